"""Runs the project's own code location in this process, and reads what the runs left behind.

As `dagster asset materialize` does it, but for the session, which the tests share, and the places,
which come with the run's configuration.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetKey,
    AssetMaterialization,
    AssetRecordsFilter,
    AssetSelection,
    DagsterEventType,
    DagsterInstance,
    Definitions,
    JsonMetadataValue,
    define_asset_job,
    execute_job,
)
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest
from pyspark.sql import SparkSession

from backfill_engine.contents.partition_contents import read_back
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.dagster_internals import (
    AssetGraph,
    ReconstructableRepository,
)
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.orchestration.runs.run_tags import RANGE_END_TAG, RANGE_START_TAG
from backfill_engine.orchestration.status.partition_statuses import TableStatuses, read_statuses
from backfill_engine.resources import build_lakehouse, build_resources
from backfill_engine.rules.verdicts import Check
from backfill_engine.settings import Settings
from backfill_engine.tables.declarations import Table
from backfill_engine_tests.commands import PROJECT
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.project import (
    CARRIER_DELAYS,
    CATALOG,
    RAW_FLIGHTS,
    STAGING_FLIGHTS,
    defs,
)

RAW, STAGING, FEATURES = RAW_FLIGHTS.key, STAGING_FLIGHTS.key, CARRIER_DELAYS.key

_LOCATION = ReconstructableRepository.for_module(
    "backfill_assets.definitions", "defs", str(PROJECT)
)
_HOME = {  # as `dagster.yaml` has it
    "telemetry": {"enabled": False},
    "instance_class": {
        "module": "backfill_engine.orchestration.runs.claims",
        "class": "ClaimingInstance",
    },
}
_SMALL_QUERIES = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
_QUIET = {"console": {"config": {"log_level": "CRITICAL"}}}


@dataclass(frozen=True)
class FinishedRun:
    """How a run ended.

    Attributes:
        id: the run.
        success: whether all its steps succeeded.
        message: what the failed step said; empty if none failed.
        error: class of the exception that a step ended with; empty likewise.
    """

    id: str
    success: bool
    message: str = ""
    error: str = ""

    def confirm(self) -> "FinishedRun":
        """The same run, which has to have succeeded."""
        assert self.success, self.message
        return self


@dataclass(frozen=True)
class Pipeline:
    """A landing zone, a warehouse and a Dagster instance, all below one folder."""

    root: Path
    instance: DagsterInstance

    @property
    def zone(self) -> LandingZone:
        """Where flights land."""
        return LandingZone(self.root / "landing")

    @property
    def warehouse(self) -> Warehouse:
        """The Delta tables."""
        return Warehouse(str(self.root / "warehouse"))

    def run(
        self,
        *keys: str,
        first: str,
        last: str,
        check_events: int = 0,
        chunk_partitions: int = 500,
        wait_seconds: int = 900,
        accept: Sequence[Mapping[str, Any]] = (),
        tags: Mapping[str, str] | None = None,
        ops: Mapping[str, Mapping[str, Any]] | None = None,
        job: str | None = None,
    ) -> FinishedRun:
        """Materializes a range of partitions of some assets in one run.

        Args:
            keys: of the assets, `layer/name`.
            first: first partition key.
            last: last partition key.
            check_events: budget of check evaluations.
            chunk_partitions: most partitions that a step works on at once.
            wait_seconds: most seconds that a step waits for its upstream.
            accept: configuration of the acceptances, for each of the assets.
            tags: of the run, beside those of its range.
            ops: configuration of some of the assets, by key.
            job: run the assets as ops of this job; the run then has no asset selection.
        """
        config: dict[str, Any] = {
            "resources": self._describe_resources(
                check_events=check_events,
                chunk_partitions=chunk_partitions,
                wait_seconds=wait_seconds,
            )
        }
        configs: dict[str, dict[str, Any]] = {
            key: dict(options) for key, options in (ops or {}).items()
        }
        if accept:
            for key in keys:
                configs.setdefault(key, {})["accept"] = [dict(acceptance) for acceptance in accept]
        config["ops"] = {
            key.replace("/", "__"): {"config": options} for key, options in configs.items()
        }
        with execute_job(
            _LOCATION.get_reconstructable_job(job or "__ASSET_JOB"),
            self.instance,
            run_config={**config, "loggers": _QUIET},
            tags={**(tags or {}), RANGE_START_TAG: first, RANGE_END_TAG: last},
            asset_selection=None if job else [AssetKey.from_user_string(key) for key in keys],
            op_selection=[key.replace("/", "__") for key in keys] if job else None,
            raise_on_error=False,
        ) as result:
            return self._describe(result.run_id, success=result.success)

    def run_job(self, job: str, op: str, **config: Any) -> FinishedRun:
        """Runs a job of one op; its output is the message if it succeeded."""
        with execute_job(
            _LOCATION.get_reconstructable_job(job),
            self.instance,
            run_config={
                "resources": self._describe_resources(),
                "ops": {op: {"config": config}},
                "loggers": _QUIET,
            },
            raise_on_error=False,
        ) as result:
            finished = self._describe(result.run_id, success=result.success)
            output = result.output_for_node(op) if result.success else finished.message
            return replace(finished, message=output or "")

    def roll_back(self, table: str, first: str, last: str, **options: Any) -> FinishedRun:
        """Takes partitions back, or accepts what others made of them."""
        where = {"table": table, "first": first, "last": last}
        return self.run_job("rollback_partitions", "restore_partitions", **where, **options)

    def run_watch(self) -> FinishedRun:
        """Runs the assets about the tables."""
        with execute_job(
            _LOCATION.get_reconstructable_job("watch"),
            self.instance,
            run_config={"resources": self._describe_resources(), "loggers": _QUIET},
            raise_on_error=False,
        ) as result:
            return self._describe(result.run_id, success=result.success)

    def run_readable_check(self, key: str, *, first: str, last: str) -> FinishedRun:
        """Runs `partition_is_readable` of one asset on its own."""
        check = AssetCheckKey(AssetKey.from_user_string(key), Check.READABLE.value)
        location = Definitions(
            assets=defs.assets,
            asset_checks=defs.asset_checks,
            jobs=[define_asset_job("check_readable", AssetSelection.checks(check))],
            resources=build_resources(CATALOG, self._settings()),
        )
        result = location.resolve_job_def("check_readable").execute_in_process(
            instance=self.instance,
            run_config={"loggers": _QUIET},
            tags={RANGE_START_TAG: first, RANGE_END_TAG: last},
            raise_on_error=False,
        )
        return self._describe(result.run_id, success=result.success)

    def read_statuses(self, *tables: Table, first: str, last: str) -> list[TableStatuses]:
        """What `status` tells of partitions of tables."""
        return read_statuses(CATALOG, self.instance, self.warehouse, tables, first=first, last=last)

    def find_days(self, key: str, status: str) -> list[str]:
        """Partitions that the instance shows as MATERIALIZED or FAILED."""
        asset_key = AssetKey.from_user_string(key)
        partitions_def = find_partitions_def(CATALOG.find_table(key))
        keys = partitions_def.get_partition_keys()
        found = self.instance.get_status_by_partition(asset_key, keys, partitions_def) or {}
        return [day for day, state in found.items() if state is not None and state.value == status]

    def find_unsynced(self, key: str) -> list[str]:
        """Partitions that Dagster calls unsynced, as the UI does."""
        graph, asset_key = defs.get_repository_def().asset_graph, AssetKey.from_user_string(key)
        days = self.find_days(key, "MATERIALIZED")
        return find_unsynced(self.instance, graph, asset_key, days)

    def read_evaluations(self, run: FinishedRun) -> list[AssetCheckEvaluation]:
        """The check evaluations that a run stored, oldest first."""
        entries = self.instance.all_logs(run.id, of_type=DagsterEventType.ASSET_CHECK_EVALUATION)
        events = (entry.get_dagster_event() for entry in entries)
        return [event.asset_check_evaluation_data for event in events]

    def read_materializations(self, key: str, day: str) -> list[AssetMaterialization]:
        """The materializations of one partition, newest first."""
        wanted = AssetRecordsFilter(AssetKey.from_user_string(key), asset_partitions=[day])
        records = self.instance.fetch_materializations(wanted, limit=100).records
        return [record.asset_materialization for record in records if record.asset_materialization]

    def read_inputs(self, key: str, day: str) -> dict[str, Any]:
        """What the newest materialization of a partition says that it was computed from."""
        inputs = self.read_materializations(key, day)[0].metadata["inputs"]
        assert isinstance(inputs, JsonMetadataValue)
        return dict(cast("dict[str, Any]", inputs.data))

    def read_rows(self, table: Table, day: str | None = None) -> list[dict[str, Any]]:
        """A table, or one day of it, as delta-rs reads it, sorted; none if it doesn't exist."""
        if not self.warehouse.exists(table):
            return []
        rows = self.warehouse.open(table).to_pyarrow_table().to_pylist()
        if day is not None:
            rows = [row for row in rows if row[table.partition_by].isoformat() == day]
        return sorted(rows, key=str)

    def read_contents_checksums(self, table: Table) -> dict[str, str]:
        """What an independent reader finds in each partition."""
        log = read_log(self.warehouse, table)
        found = read_back(log, build_partitions(table, log.count_rows()))
        return {key: partition.checksum for key, partition in found.items()}

    def look(self, *tables: Table) -> dict[str, Any]:
        """All that readers and Dagster see of tables: version, contents, good and failed days."""
        return {
            table.key: (
                read_log(self.warehouse, table).version,
                self.read_contents_checksums(table),
                self.find_days(table.key, "MATERIALIZED"),
                self.find_days(table.key, "FAILED"),
            )
            for table in tables
        }

    def read_checksums(self, table: Table) -> dict[str, str]:
        """What the newest commit of each published partition says of its contents."""
        publishes = read_log(self.warehouse, table).publishes
        return {key: publish.checksum for key, publish in publishes.items()}

    def _settings(self, **bounds: int) -> Settings:
        return Settings(
            landing=str(self.zone.root),
            warehouse=self.warehouse.root,
            **{"check_events": 0, "chunk_partitions": 500, **bounds},  # pyright: ignore[reportArgumentType]
        )

    def _describe_resources(self, **bounds: int) -> dict[str, Any]:
        lakehouse = build_lakehouse(self._settings(**bounds))
        config = lakehouse.model_dump()
        return {"lakehouse": {"config": config}}

    def _describe(self, run_id: str, *, success: bool) -> FinishedRun:
        failures = self.instance.all_logs(run_id, of_type=DagsterEventType.STEP_FAILURE)
        for entry in failures:
            failure = entry.get_dagster_event().step_failure_data
            failure_data = failure.user_failure_data
            cause = failure.error and (failure.error.cause or failure.error)
            return FinishedRun(
                run_id,
                success,
                message=(failure_data.description if failure_data else str(cause)) or "",
                error=(cause.cls_name if cause else "") or "",
            )
        return FinishedRun(run_id, success)


@contextmanager
def open_pipeline(root: Path) -> Iterator[Pipeline]:
    """The pipeline in a folder; its Dagster instance is opened, or begun."""
    home = root / "dagster_home"
    home.mkdir(parents=True, exist_ok=True)
    with DagsterInstance.local_temp(str(home), overrides=_HOME) as instance, _plan_small_queries():
        yield Pipeline(root, instance)


@contextmanager
def _plan_small_queries() -> Iterator[None]:
    """Spark goes over rows without compiling code for it first, or planning stage by stage.

    Most runs of such a pipeline have some hundred rows, and take a third less time by it. Tests
    that call transforms, measures and writers themselves have Spark as users have it, and so has
    all that is run by a command.
    """
    spark = SparkSession.getActiveSession()
    if spark is None:
        yield
        return
    try:
        for name, value in _SMALL_QUERIES.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name in _SMALL_QUERIES:
            spark.conf.unset(name)


@contextmanager
def copy_pipeline(source: Path, root: Path) -> Iterator[Pipeline]:
    """A pipeline that begins as a copy of the one in `source`, which must not be open."""
    shutil.copytree(source, root, dirs_exist_ok=True)
    with open_pipeline(root) as pipeline:
        yield pipeline


def find_unsynced(
    instance: DagsterInstance, graph: AssetGraph, asset_key: AssetKey, keys: Sequence[str]
) -> list[str]:
    """The partitions that Dagster calls unsynced."""
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    return [key for key in keys if resolver.get_status(asset_key, key) is StaleStatus.STALE]


def list_files(root: Path) -> dict[str, float]:
    """All files below a folder, and when each was written."""
    return {str(path): path.stat().st_mtime for path in sorted(root.rglob("*"))}


def list_days(first: int, last: int) -> list[str]:
    """Keys of days of January 2013, both included."""
    return [f"2013-01-{day:02}" for day in range(first, last + 1)]
