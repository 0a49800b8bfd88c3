"""Commits to tables, as runs leave them, made without Spark: few rows, and a whole record."""

import uuid
from collections.abc import Mapping, Sequence

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from backfill_assets.lake.commits import CommitRecord
from backfill_assets.lake.consumed import Consumed, describe_consumed
from backfill_assets.lake.partitions import build_partitions, build_table_predicate
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.tables.declarations import Table

ROWS = 3
"""Of each partition."""


def commit_days(
    warehouse: Warehouse,
    table: Table,
    days: Sequence[str],
    *,
    run_id: str,
    code_version: str = "",
    backfill_id: str = "",
    input_versions: Mapping[str, int | str] | None = None,
    consumed: Mapping[str, Consumed] | None = None,
    provisional: Mapping[str, str] | None = None,
    row_filter: str = "",
) -> None:
    """Publishes days of a table that has its days as folders, in one commit."""
    partitions = build_partitions(table, days)
    predicate = build_table_predicate(table, [partition.slice for partition in partitions])
    record = CommitRecord(
        commit_id=str(uuid.uuid4()),
        run_id=run_id,
        asset_key=table.key,
        partition_start=days[0],
        partition_end=days[-1],
        code_version=code_version,
        input_versions=input_versions or {},
        write_mode="overwrite",
        predicate=predicate,
        rows=dict.fromkeys(days, ROWS),
        checksums={day: f"{number:016x}" for number, day in enumerate(days)},
        backfill_id=backfill_id,
        provisional=provisional or {},
        row_filter=row_filter,
        **describe_consumed(consumed or {}),
    )
    starts = [partition.slice.start for partition in partitions for _ in range(ROWS)]
    rows = pa.table({table.folder_column: starts, "value": range(len(starts))})
    exists = warehouse.exists(table)
    write_deltalake(
        warehouse.uri(table),
        rows,
        mode="overwrite",
        predicate=predicate if exists else None,
        partition_by=None if exists else [table.folder_column],
        commit_properties=CommitProperties(custom_metadata={"userMetadata": record.to_json()}),
    )
