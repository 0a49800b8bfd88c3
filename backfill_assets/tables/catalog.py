"""All tables of the project, in the order in which data flows."""

from backfill_assets.errors import TableError
from backfill_assets.tables.declarations import Table
from backfill_assets.tables.flights import CARRIER_DELAYS, RAW_FLIGHTS, STAGING_FLIGHTS

TABLES: tuple[Table, ...] = (RAW_FLIGHTS, STAGING_FLIGHTS, CARRIER_DELAYS)


def select_tables(keys: str | None) -> tuple[Table, ...]:
    """The tables of a comma-separated list of keys; all if there is none.

    Raises:
        TableError: if one doesn't exist.
    """
    return tuple(find_table(key.strip()) for key in keys.split(",")) if keys else TABLES


def find_table(key: str) -> Table:
    """The table with this key, `layer/name`.

    Raises:
        TableError: if there is none; names those that there are.
    """
    for table in TABLES:
        if table.key == key:
            return table
    raise TableError(f"no table {key}: there are {', '.join(table.key for table in TABLES)}")
