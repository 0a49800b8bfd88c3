"""Tables of our own over a table that somebody else writes, of whatever grains, run by Dagster."""

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
from backfill_engine.orchestration.planning.plans import Only, list_planned_partitions
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

    def run(self, table: Table, first: str, last: str = "") -> bool:
        """Publishes a range of a table."""
        job = self.defs.resolve_implicit_global_asset_job_def()
        result = job.execute_in_process(
            instance=self.instance,
            asset_selection=[AssetKey.from_user_string(table.key)],
            tags={RANGE_START_TAG: first, RANGE_END_TAG: last or first},
            raise_on_error=False,
        )
        return result.success

    def read_log(self, table: Table) -> TableLog:
        """Reads the log of a table."""
        return read_log(self.catalog.warehouse, self.catalog.find_table(table.key))

    def read_rows(self, table: Table) -> list[dict[str, Any]]:
        """Reads the rows of a table by delta-rs, as dictionaries in the order of their values."""
        found = self.read_log(table).open_snapshot().to_pyarrow_table().to_pylist()
        return sorted(found, key=lambda row: [str(value) for value in row.values()])

    def find_due(self, table: Table, first: str, last: str) -> list[str]:
        """Finds the partitions of a range that a plan of all but what is up to date would run."""
        graph, now = self.defs.get_repository_def().asset_graph, dt.datetime.now(tz=dt.UTC)
        planner = open_planner(self.instance, graph, self.catalog, now=now)
        ranges = {self.catalog.find_table(table.key): (first, last)}
        plan = planner.plan(ranges, only=[Only.STALE, Only.FAILED, Only.WITHHELD])
        planned = list_planned_partitions(self.catalog, plan)
        return planned.get(AssetKey.from_user_string(table.key), [])


def build_mapped_tables(
    root: Path, assets: Sequence[TableAsset], instance: DagsterInstance, calendar: Calendar
) -> MappedTables:
    """Builds a code location of table assets, with its warehouse and landing zone below `root`."""
    settings = Settings(landing=f"{root}/landing", warehouse=f"{root}/warehouse")
    return MappedTables(root, build_defs(assets, lakehouse=settings, calendar=calendar), instance)


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
