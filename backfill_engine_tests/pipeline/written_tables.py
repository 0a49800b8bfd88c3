"""Commits to tables, as runs leave them, made without Spark: few rows, and a whole record."""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from backfill_engine.lake.commits import CommitInputs, CommitRecord, Consumed
from backfill_engine.lake.partitions import build_partitions, build_table_predicate
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.due.readiness import find_windows
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.publishing.inputs import PinnedInputs, list_landing
from backfill_engine.publishing.serving import choose_served
from backfill_engine.tables.declarations import Table
from backfill_engine_tests.project import CATALOG, defs

ROWS = 3
"""Of each partition."""


def commit_as_now(
    warehouse: Warehouse,
    landing_root: str,
    key: str,
    keys: Sequence[str],
    *,
    run_id: str,
    provisional: Mapping[str, str] | None = None,
) -> int:
    """Publishes partitions as a run would: from what is there now, by the code as it is.

    Returns:
        The version of the table.
    """
    table = CATALOG.find_table(key)
    log = read_log(warehouse, table)
    recipe = choose_served(CATALOG.recipes[key], log)
    graph = defs.get_repository_def().asset_graph
    pinned = PinnedInputs(
        target=log,
        inputs={source.key: read_log(warehouse, source) for source in recipe.inputs},
        listing=list_landing(recipe, landing_root, build_partitions(table, keys)),
        windows=find_windows(graph, find_asset_key(table), keys, recipe.unread),
    )
    commit_days(
        warehouse,
        table,
        keys,
        run_id=run_id,
        code_version=recipe.code_version,
        input_versions=pinned.describe(),
        input_ids=pinned.identify(),
        consumed=pinned.describe_consumed(keys),
        provisional=provisional,
    )
    return log.reread().version


def commit_days(
    warehouse: Warehouse,
    table: Table,
    days: Sequence[str],
    *,
    run_id: str,
    code_version: str = "",
    backfill_id: str = "",
    input_versions: Mapping[str, int | str] | None = None,
    input_ids: Mapping[str, str] | None = None,
    consumed: Mapping[str, Consumed] | None = None,
    provisional: Mapping[str, str] | None = None,
    row_filter: str = "",
) -> None:
    """Publishes partitions of a table in one commit; hours of daily folders are whole days."""
    partitions = build_partitions(table, days)
    predicate = build_table_predicate(table, [partition.slice for partition in partitions])
    record = CommitRecord(
        commit_id=str(uuid.uuid4()),
        run_id=run_id,
        asset_key=table.key,
        code_version=code_version,
        input_versions=input_versions or {},
        input_ids=input_ids or {},
        predicate=predicate,
        rows=dict.fromkeys(days, ROWS),
        checksums={day: f"{number:016x}" for number, day in enumerate(days)},
        backfill_id=backfill_id,
        provisional=provisional or {},
        options={"write_mode": "overwrite", "row_filter": row_filter},
        consumed=CommitInputs.of(consumed or {}),
    )
    starts = [partition.slice.start for partition in partitions for _ in range(ROWS)]
    folders = [
        start.date() if table.folder_by and isinstance(start, dt.datetime) else start
        for start in starts
    ]
    rows = pa.table({table.folder_column: folders, "value": range(len(starts))})
    exists = warehouse.exists(table)
    write_deltalake(
        warehouse.uri(table),
        rows,
        mode="overwrite",
        predicate=predicate if exists else None,
        partition_by=None if exists else [table.folder_column],
        commit_properties=CommitProperties(custom_metadata={"userMetadata": record.to_json()}),
    )
