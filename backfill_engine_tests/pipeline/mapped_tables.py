"""Tables of our own, run by Dagster in a code location of their own: of any grains and sources."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from dagster import AssetKey, DagsterInstance, Definitions
from deltalake import DeltaTable, write_deltalake

from backfill_engine import Calendar, Catalog, Settings, Table, TableAsset, build_defs
from backfill_engine.asset_definitions import find_catalogs
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.orchestration.planning.planning import open_planner
from backfill_engine.orchestration.planning.plans import Only, Plan, list_planned_partitions
from backfill_engine.orchestration.planning.run_requests import Memory, find_run_requests
from backfill_engine.orchestration.runs.run_tags import RANGE_END_TAG, RANGE_START_TAG


@dataclass(frozen=True)
class MappedTables:
    """A code location, and its instance.

    Attributes:
        root: folder of all tables.
        defs: of the code location.
        instance: the Dagster instance.
    """

    root: Path
    defs: Definitions
    instance: DagsterInstance

    @property
    def catalog(self) -> Catalog:
        """The catalog of the code location."""
        (catalog,) = find_catalogs(self.defs.get_repository_def().asset_graph)
        return catalog

    def run(self, table: Table | str, first: str, last: str = "", *beside: Table) -> bool:
        """Publishes a range of a table, and of others; tells whether all went."""
        keys = [table if isinstance(table, str) else table.key, *(other.key for other in beside)]
        job = self.defs.resolve_implicit_global_asset_job_def()
        result = job.execute_in_process(
            instance=self.instance,
            asset_selection=[AssetKey.from_user_string(key) for key in keys],
            tags={RANGE_START_TAG: first, RANGE_END_TAG: last or first},
            raise_on_error=False,
        )
        return result.success

    def read_log(self, table: Table | str) -> TableLog:
        """Reads the log of a table."""
        key = table if isinstance(table, str) else table.key
        return read_log(self.catalog.warehouse, self.catalog.find_table(key))

    def read_rows(self, table: Table) -> list[dict[str, Any]]:
        """Reads the rows of a table by delta-rs, as dictionaries in the order of their values."""
        found = self.read_log(table).open_snapshot().to_pyarrow_table().to_pylist()
        return sorted(found, key=lambda row: [str(value) for value in row.values()])

    def plan(self, ranges: Mapping[Table, tuple[str, str]], *only: Only) -> Plan:
        """Plans ranges of tables, of these only some partitions."""
        graph, now = self.defs.get_repository_def().asset_graph, dt.datetime.now(tz=dt.UTC)
        planner = open_planner(self.instance, graph, self.catalog, now=now)
        found = {self.catalog.find_table(table.key): ends for table, ends in ranges.items()}
        return planner.plan(found, only=only)

    def find_due(self, table: Table, first: str, last: str, *only: Only) -> list[str]:
        """Finds the partitions of a range that a plan would run: of all but what is up to date."""
        plan = self.plan(
            {table: (first, last)}, *(only or (Only.STALE, Only.FAILED, Only.WITHHELD))
        )
        planned = list_planned_partitions(self.catalog, plan)
        return planned.get(AssetKey.from_user_string(table.key), [])

    def find_requested(self, *, late_days: int = 90) -> list[tuple[str, str, str]]:
        """Finds what the sensor would request: table, first and last partition."""
        found = find_run_requests(
            self.catalog,
            self.instance,
            self.defs.get_repository_def().asset_graph,
            self.catalog.warehouse,
            Memory(),
            landing_root=f"{self.root}/landing",
            late_days=late_days,
        )
        return [(work.table, work.first, work.last) for work in found.requested]


def define_tables(root: Path, assets: Sequence[TableAsset], calendar: Calendar) -> Definitions:
    """Defines a code location of table assets, its warehouse and landing zone below `root`."""
    settings = Settings(landing=f"{root}/landing", warehouse=f"{root}/warehouse")
    return build_defs(assets, lakehouse=settings, calendar=calendar)


def build_mapped_tables(
    root: Path, assets: Sequence[TableAsset], instance: DagsterInstance, calendar: Calendar
) -> MappedTables:
    """Builds a code location of table assets."""
    return MappedTables(root, define_tables(root, assets, calendar), instance)


def write_theirs(location: Path, by: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """Replaces the partitions of somebody else's table that `columns` have rows of."""
    is_there = DeltaTable.is_deltatable(str(location))
    values = ", ".join(f"'{value}'" for value in dict.fromkeys(columns[by]))
    write_deltalake(
        location,
        pa.table(dict(columns)),
        mode="overwrite",
        partition_by=[by],
        predicate=f"{by} in ({values})" if is_there else None,
    )
