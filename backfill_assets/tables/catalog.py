"""All tables of the project: those that the modules of this package declare."""

import importlib
import pkgutil

import backfill_assets.tables as declared
from backfill_assets.errors import TableError
from backfill_assets.tables.declarations import Table

LAYERS = ("raw", "staging", "features")
"""In the order in which data flows."""


def _find_tables() -> tuple[Table, ...]:
    modules = sorted(one.name for one in pkgutil.iter_modules(declared.__path__))
    found = dict.fromkeys(
        value
        for name in modules
        if f"{declared.__name__}.{name}" != __name__
        for value in vars(importlib.import_module(f"{declared.__name__}.{name}")).values()
        if isinstance(value, Table)
    )
    return tuple(sorted(found, key=lambda table: LAYERS.index(table.layer)))


TABLES: tuple[Table, ...] = _find_tables()
"""By layer, then by module."""


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
