"""All tables of the project, as this installation partitions them.

The modules of `tables` declare them. What an installation chooses (`BACKFILL_ORDER_KEY_STEP` and
`BACKFILL_ORDER_KEY_SPACE`) is applied here and nowhere else.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import backfill_assets.tables as declared
from backfill_assets.errors import TableError
from backfill_assets.settings import read_settings
from backfill_assets.tables.declarations import LAYERS, Table
from backfill_assets.tables.orders import ORDER_BUCKETS


@cache
def list_pipelines() -> Mapping[str, tuple[Table, ...]]:
    """Lists the tables of each module that declares any, by its name; reads them once."""
    chosen = read_settings().build_order_buckets()
    pipelines: dict[str, tuple[Table, ...]] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(declared.__path__)):
        values = vars(importlib.import_module(f"{declared.__name__}.{name}")).values()
        tables = dict.fromkeys(value for value in values if isinstance(value, Table))
        if tables:
            pipelines[name] = tuple(
                replace(table, grain=chosen) if table.grain is ORDER_BUCKETS else table
                for table in tables
            )
    return pipelines


@cache
def list_tables() -> tuple[Table, ...]:
    """Lists all tables, by layer, then by module."""
    tables = dict.fromkeys(table for tables in list_pipelines().values() for table in tables)
    return tuple(sorted(tables, key=lambda table: LAYERS.index(table.layer)))


def find_table(key: str) -> Table:
    """Finds the table with this key, `layer/name`.

    Raises:
        TableError: if there is none; names those that there are.
    """
    for table in list_tables():
        if table.key == key:
            return table
    raise TableError(f"no table {key}: there are {', '.join(table.key for table in list_tables())}")
