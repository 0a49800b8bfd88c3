"""Schema evolution of tables that keep what landed: a new field becomes a new, nullable column."""

import re
from collections.abc import Iterable
from dataclasses import replace

from backfill_engine.audit_columns import LANDED_FILE, is_reserved
from backfill_engine.tables.declarations import Column, Table

_COLUMN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def find_new_fields(table: Table, known: Iterable[str], seen: Iterable[str]) -> list[str]:
    """Finds fields seen in the source that the table has no column for, but could; sorted.

    A name that Delta can't store, that differs from a column's only by case, or that the engine has
    a column of, can't become one.
    """
    taken = {name.lower() for name in (*table.column_names, *known, LANDED_FILE)}
    new: list[str] = []
    for name in sorted(set(seen)):
        if name.lower() in taken or is_reserved(name):
            continue
        if _COLUMN_NAME.fullmatch(name):
            taken.add(name.lower())
            new.append(name)
    return new


def build_field_columns(names: Iterable[str]) -> tuple[Column, ...]:
    """Builds a text column for each field that no schema declares."""
    return tuple(
        Column(name, "STRING", "Seen in the source; no schema declares it") for name in names
    )


def extend_table(table: Table, extra_fields: Iterable[str]) -> Table:
    """Returns the table with its extra columns, as it is stored."""
    return replace(table, columns=(*table.columns, *build_field_columns(extra_fields)))
