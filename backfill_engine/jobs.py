"""Jobs: asset jobs over a range of partitions, and jobs of one op beside the assets.

A range job materializes the same partitions of several assets in one run. A backfill of several
assets would give the keys to the first of them only, and to the others all that Dagster's mappings
make of these.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, get_origin

from dagster import (
    AssetKey,
    AssetSelection,
    Config,
    JobDefinition,
    OpExecutionContext,
    define_asset_job,
    in_process_executor,
    job,
    op,
)

from backfill_engine.catalog import Catalog
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
)
from backfill_engine.orchestration.migrations import migrate_table
from backfill_engine.orchestration.records.failures import fail_with_message
from backfill_engine.orchestration.rollbacks import restore_partitions
from backfill_engine.resources import (
    find_resources,
    list_resources,
)
from backfill_engine.tables.declarations import Table

Work: TypeAlias = Callable[..., str]
"""What a job of one op does, given catalog, context, config, session and lakehouse.

Returns what was done. The function gives the op its name, configuration and description.
"""


def build_job(catalog: Catalog, name: str, work: Work) -> JobDefinition:
    """Builds a job of one op, so that its configuration is short."""

    def do_work(context: OpExecutionContext, config: Config) -> str:
        spark, lakehouse = find_resources(catalog, context)
        with fail_with_message(context):
            done = work(catalog, context, config, spark, lakehouse)
        context.log.info(done)
        return done

    do_work.__annotations__["config"] = work.__annotations__["config"]
    description = inspect.getdoc(work)
    op_name = catalog.prefix(work.__name__)
    step = op(
        name=op_name,
        description=description,
        tags=OWN_STEP,
        required_resource_keys=list_resources(catalog),
    )(do_work)

    blanks = _list_blanks(work.__annotations__["config"])
    # Dagster takes None, though its signature doesn't say so.
    opens_with = {"ops": {op_name: {"config": blanks}}} if blanks else None

    @job(
        name=catalog.prefix(name),
        description=description,
        executor_def=in_process_executor,
        config=opens_with,  # pyright: ignore[reportArgumentType]
    )
    def of_one_op() -> None:
        step()

    return of_one_op


def _list_blanks(config: type[Config]) -> dict[str, Any]:
    """Lists what a person has to fill in, with empty values: the launchpad opens with that alone.

    The schema beside has the rest. A job that needs nothing opens with all of its options.
    """
    fields = config.model_fields
    if not any(field.is_required() for field in fields.values()):
        return {}
    return {
        name: _find_type(field.annotation)() if field.is_required() else field.default
        for name, field in fields.items()
        if field.is_required() or name in _ALSO_ASKED
    }


def _find_type(annotation: Any) -> type:
    """Finds the type of values, as `dict` of `dict[str, int]`."""
    return get_origin(annotation) or annotation


_ALSO_ASKED = ("version", "reason")
"""Options that a person is to think of, though they may be left out."""

JOBS: Mapping[str, Work] = {
    "migrate_columns": migrate_table,
    "rollback_partitions": restore_partitions,
}
"""The core's jobs of one op, by name."""


OF_SENSORS = "sensors_"
"""How the name of a job begins that is not for people."""


@dataclass(frozen=True)
class RangeJob:
    """A job that materializes a range of some tables.

    Attributes:
        name: of the job.
        tables: with the same partitions.
        description: for the UI.
    """

    name: str
    tables: Sequence[Table]
    description: str

    @cached_property
    def definition(self):
        """The job, as Dagster knows it."""
        return define_asset_job(
            self.name,
            AssetSelection.assets(*map(find_asset_key, self.tables)),
            description=self.description,
            # All steps of a run in one process, so that they share one Spark session.
            executor_def=in_process_executor,
        )


@dataclass(frozen=True)
class RangeJobs:
    """The jobs that materialize ranges.

    Attributes:
        of_pipelines: for people: one for each pipeline, and where it has several grains, for each
            of them.
        of_grains: whose runs the sensors request, over all pipelines: one for each grain, and for
            the tables of it that have the same days.
    """

    of_pipelines: Sequence[RangeJob]
    of_grains: Sequence[RangeJob]

    def find_grain_job(self, asset_key: AssetKey) -> str:
        """Finds the name of the job of all assets that have the partitions of this one."""
        return next(
            job.name for job in self.of_grains if asset_key in map(find_asset_key, job.tables)
        )

    @property
    def grain_definitions(self):
        """The jobs of the grains, as Dagster knows them."""
        return [job.definition for job in self.of_grains]


def build_range_jobs(catalog: Catalog) -> RangeJobs:
    """Builds the jobs that materialize ranges."""
    of_pipelines: list[RangeJob] = []
    for pipeline, keys in catalog.pipelines.items():
        grouped = _group_by_partitions(map(catalog.find_table, keys))
        of_pipelines += [
            RangeJob(
                catalog.prefix(pipeline if len(grouped) == 1 else f"{pipeline}_{partitions}"),
                tables,
                f"Materializes a range of {tables[0].grain} of "
                f"{' → '.join(table.key for table in tables)}: "
                "one run for all of them, each with the same partitions.",
            )
            for partitions, tables in grouped.items()
        ]
    of_grains = [
        RangeJob(
            catalog.prefix(f"{OF_SENSORS}{partitions}"),
            tables,
            f"For the sensors, which request runs of some assets over a range of "
            f"{tables[0].grain}. People take the job of a pipeline.",
        )
        for partitions, tables in _group_by_partitions(catalog.tables).items()
    ]
    return RangeJobs(of_pipelines, of_grains)


def _group_by_partitions(tables: Iterable[Table]) -> Mapping[str, list[Table]]:
    """Groups tables by a word for it, as the assets of one job must have the same partitions."""
    grouped: dict[str, list[Table]] = {}
    for table in tables:
        grouped.setdefault(f"{table.grain.slug}{_name_days(table)}", []).append(table)
    return grouped


def _name_days(table: Table) -> str:
    """Names the days of a table that has others than most."""
    calendar = table.calendar
    if not table.grain.cron or calendar is None:
        return ""
    first = calendar.first_day or table.begin
    since = f"_from_{first:%Y%m%d}" if first else ""
    return f"{since}_to_{table.end:%Y%m%d}" if table.end else since
