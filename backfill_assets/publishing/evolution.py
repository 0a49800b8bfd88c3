"""Schema evolution of tables that keep what landed: a new field becomes a new, nullable column."""

import re
from collections.abc import Iterable
from dataclasses import replace

from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.lake.window import Window
from backfill_assets.lake.writer import add_columns
from backfill_assets.tables.declarations import Column, Table

_COLUMN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def find_extra_fields(warehouse: Warehouse, table: Table) -> tuple[str, ...]:
    """Columns that the stored table has beyond its declaration, in stored order."""
    if not warehouse.exists(table):
        return ()
    stored = (field.name for field in warehouse.open(table).schema().fields)
    return tuple(name for name in stored if name not in table.column_names)


def find_new_fields(table: Table, known: Iterable[str], seen: Iterable[str]) -> list[str]:
    """Fields seen in the source that the table has no column for, but could; sorted.

    A name that Delta can't store, or that differs from a column's only by case, can't become one.
    """
    taken = {name.lower() for name in (*table.column_names, *known)}
    new: list[str] = []
    for name in sorted(set(seen)):
        if name.lower() not in taken and _COLUMN_NAME.fullmatch(name):
            taken.add(name.lower())
            new.append(name)
    return new


def add_fields(window: Window, names: Iterable[str]) -> None:
    """Adds text columns to the table, in a commit of their own; old partitions read null."""
    comment = "Seen in the source; no schema declares it"
    columns = [Column(name, "STRING", comment) for name in names]
    add_columns(window.spark, window.warehouse, window.table, columns)


def extend_table(table: Table, extra_fields: Iterable[str]) -> Table:
    """The table with its extra columns, as it is stored."""
    extra = (Column(name, "STRING", "Not declared") for name in extra_fields)
    return replace(table, columns=(*table.columns, *extra))
