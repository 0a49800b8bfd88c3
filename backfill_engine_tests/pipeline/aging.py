"""Cleans the log of a table as Delta does past the retention."""

from deltalake import DeltaTable

from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import Table
from backfill_engine.uris import local_path


def clean_log(warehouse: Warehouse, table: Table, *, keep: int) -> None:
    """Removes all commits of a table but the newest `keep`."""
    DeltaTable(warehouse.uri(table)).create_checkpoint()
    log = local_path(warehouse.uri(table)) / "_delta_log"
    for path in sorted(log.glob("[0-9]*.json"))[:-keep]:
        path.unlink()
