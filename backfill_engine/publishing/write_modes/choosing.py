"""Which write modes there are, and what of a run's wishes a table can honour."""

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, TypeAlias

from backfill_engine.errors import SettingsError
from backfill_engine.filters.row_filters import parse_filter
from backfill_engine.publishing.write_modes.append_once import AppendOnce
from backfill_engine.publishing.write_modes.mode import (
    Accept,
    Merge,
    Overwrite,
    Revert,
    Rollback,
    WriteMode,
)
from backfill_engine.publishing.write_modes.options import WriteOptions
from backfill_engine.tables.declarations import Table

_ADDED = "backfill_engine.write_modes"
"""Entry points of installed packages: a mode's name, and its class."""


def _list_modes() -> Iterator[WriteMode]:
    """Lists the modes that a run may be told, those of installed packages included."""
    yield from (Overwrite(), Merge(), AppendOnce())
    for entry_point in entry_points(group=_ADDED):
        mode = entry_point.load()()
        if not isinstance(mode, WriteMode) or mode.name != entry_point.name:
            raise SettingsError(
                f"the entry point {entry_point.name} of {_ADDED} is no write mode of that name: "
                f"mend {entry_point.value}"
            )
        yield mode


_BY_NAME = {mode.name: mode for mode in _list_modes()}

WRITE_MODES = {**_BY_NAME, **{mode.name: mode for mode in (Rollback(), Accept(), Revert())}}
"""All modes, by name."""

if TYPE_CHECKING:
    ModeName: TypeAlias = StrEnum
else:
    ModeName = StrEnum("ModeName", {name: name for name in _BY_NAME})
    """Names the modes that a run may be told; in the others no run can be told to write.

    Members are named by their values, as Dagster takes an optional enum by its members' names.
    """


def find_write_mode(options: WriteOptions) -> WriteMode:
    """Finds the mode of a run's options."""
    return WRITE_MODES[options.write_mode]


def choose_options(table: Table, **wishes: Any) -> WriteOptions:
    """Chooses what a run asks for, of one table; a mode that it doesn't name is the table's.

    Args:
        table: the table.
        wishes: fields of `WriteOptions`; None, and what is empty, counts as not asked for.

    Raises:
        SettingsError: if the table can't honour them, or they contradict each other.
        FilterError: if the filter is unreadable, or uses what isn't allowed.
    """
    given = {name: value for name, value in wishes.items() if value}
    options = WriteOptions(**{"write_mode": table.write_mode, **given})
    if options.write_mode not in list(ModeName):
        raise SettingsError(f"no write mode {options.write_mode}: there are {', '.join(ModeName)}")
    chosen = find_write_mode(options)
    options = replace(options, row_filter=options.row_filter.strip())
    if options.row_filter:
        parse_filter(options.row_filter, table)
    for mode in WRITE_MODES.values():
        for name, refusal in mode.takes.items():
            if getattr(options, name) and name not in chosen.takes:
                raise SettingsError(f"{table.key}: {refusal.format(mode=chosen.name)}")
    chosen.refuse_table(table)
    return options
