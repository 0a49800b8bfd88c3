"""All tables of the project: those that the modules of this package declare."""

import importlib
import pkgutil

import backfill_assets.tables as declared
from backfill_assets.errors import TableError
from backfill_assets.tables.declarations import Table

LAYERS = ("raw", "staging", "features")
"""In the order in which data flows."""


def _find_pipelines() -> dict[str, tuple[Table, ...]]:
    modules = (
        importlib.import_module(f"{declared.__name__}.{one.name}")
        for one in pkgutil.iter_modules(declared.__path__)
        if f"{declared.__name__}.{one.name}" != __name__
    )
    found = {
        module.__name__.rpartition(".")[2]: tuple(
            dict.fromkeys(one for one in vars(module).values() if isinstance(one, Table))
        )
        for module in modules
    }
    return {name: tables for name, tables in sorted(found.items()) if tables}


PIPELINES: dict[str, tuple[Table, ...]] = _find_pipelines()
"""The tables of each module that declares some, by its name."""

TABLES: tuple[Table, ...] = tuple(
    sorted(
        dict.fromkeys(table for tables in PIPELINES.values() for table in tables),
        key=lambda table: LAYERS.index(table.layer),
    )
)
"""By layer, then by module."""


def find_table(key: str) -> Table:
    """The table with this key, `layer/name`.

    Raises:
        TableError: if there is none; names those that there are.
    """
    for table in TABLES:
        if table.key == key:
            return table
    raise TableError(f"no table {key}: there are {', '.join(table.key for table in TABLES)}")
