"""Storages of events side by side: what a run logs, and what is then in each of their tables."""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy
from dagster import (
    AssetCheckEvaluation,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetMaterialization,
    AssetObservation,
    BackfillPolicy,
    DagsterInstance,
    DailyPartitionsDefinition,
    Definitions,
    EventLogEntry,
    Failure,
    MaterializeResult,
    asset,
)
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.schema import SqlEventLogStorageMetadata
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster_postgres import PostgresEventLogStorage

from backfill_engine.orchestration.instance.event_batches import BatchingSqliteEventLogStorage
from backfill_engine.orchestration.instance.postgres_event_batches import (
    BatchingPostgresEventLogStorage,
)

DAYS = DailyPartitionsDefinition("2013-01-01", end_date="2013-01-05")
TAGS = {
    "dagster/asset_partition_range_start": "2013-01-01",
    "dagster/asset_partition_range_end": "2013-01-04",
}


@asset(
    partitions_def=DAYS,
    backfill_policy=BackfillPolicy.single_run(),
    check_specs=[AssetCheckSpec(name, asset="upper", partitions_def=DAYS) for name in ("c", "d")],
)
def upper(context: AssetExecutionContext) -> Iterator[Any]:
    for key in context.partition_keys:
        context.log.info(f"at {key}")
        yield AssetObservation("upper", partition=key, tags={"dagster/data_version": key})
        yield AssetMaterialization(
            "upper", partition=key, metadata={"rows": 3}, tags={"dagster/data_version": key}
        )
        for name in ("c", "d"):
            yield AssetCheckEvaluation(
                asset_key=context.asset_key, check_name=name, passed=name == "c", partition=key
            )
    yield MaterializeResult(metadata={"__source_asset_observation__": True}, check_results=[])


@asset(partitions_def=DAYS, backfill_policy=BackfillPolicy.single_run(), deps=[upper])
def lower(context: AssetExecutionContext) -> None:
    context.log_event(AssetMaterialization("lower", partition="2013-01-01"))
    raise Failure("and no more")


_OF_THE_DATABASE = {
    "asset_keys": ("id", "create_timestamp"),  # PostgreSQL numbers each try to write the row
    "secondary_indexes": ("create_timestamp", "migration_completed"),
}
DEFS = Definitions([upper, lower])


def list_events(home: Path) -> list[EventLogEntry]:
    """What a run logs of two assets over four days: of every kind that this project stores."""
    home.mkdir()
    with DagsterInstance.local_temp(
        str(home), overrides={"telemetry": {"enabled": False}}
    ) as instance:
        result = DEFS.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            tags=TAGS,
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
        return list(instance.all_logs(result.run_id))


def open_storage(place: str, *, batching: bool = True) -> SqlEventLogStorage:
    """The storage in a folder, or a PostgreSQL database; Dagster's own, or the project's."""
    if place.startswith("postgresql"):
        storage = BatchingPostgresEventLogStorage if batching else PostgresEventLogStorage
    else:
        storage = BatchingSqliteEventLogStorage if batching else SqliteEventLogStorage
    return storage(place)


def read_tables(
    storage: SqlEventLogStorage, run_ids: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables, without what a database itself says of itself and of a row."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run_id in (None, *run_ids):
        connect = storage.index_connection() if run_id is None else storage.run_connection(run_id)
        with connect as connection:
            for table in SqlEventLogStorageMetadata.sorted_tables:
                rows = connection.execute(sqlalchemy.select(table).order_by(table.c.id))
                found[f"{run_id}: {table.name}"] = [
                    {
                        name: _shorten_plan(value) if name == "evaluation_event" else value
                        for name, value in row.items()
                        if name not in _OF_THE_DATABASE.get(table.name, ("create_timestamp",))
                    }
                    for row in rows.mappings()
                ]
    return found


def _shorten_plan(event: str) -> str:
    """Without the partitions of a planned check, which the project's rows of single ones lack."""
    entry = json.loads(event)
    if "partitions_subset" in (planned := entry["dagster_event"]["event_specific_data"]):
        planned["partitions_subset"] = None
    return json.dumps(entry)


def wait_for_half(gate: Path) -> None:
    """Waits until a `HalfRead` of this gate stands in the middle."""
    for _ in range(6000):
        if gate.exists():
            return
        time.sleep(0.01)
    raise TimeoutError(f"nothing was stored of a batch within a minute: no {gate}")


class HalfRead(list[EventLogEntry]):
    """Events that are handed over up to the middle, and the rest when a file is gone.

    The storage in files looks first which runs they are of.
    """

    def __init__(self, events: Sequence[EventLogEntry], gate: Path, *, place: str) -> None:
        super().__init__(events)
        self._gate, self._looks = gate, 0 if place.startswith("postgresql") else 1

    def __iter__(self) -> Iterator[EventLogEntry]:
        """Goes through them, and waits where they are being stored."""
        self._looks -= 1
        for at, event in enumerate(super().__iter__()):
            if self._looks < 0 and at == len(self) // 2:
                self._gate.touch()
                while self._gate.exists():
                    time.sleep(0.01)
            yield event
