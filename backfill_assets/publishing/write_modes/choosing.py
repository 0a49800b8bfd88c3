"""Which write modes there are, and what of a run's wishes a table can honour."""

from dataclasses import replace
from typing import Any

from backfill_assets.errors import SettingsError
from backfill_assets.filters.row_filters import parse_filter
from backfill_assets.publishing.write_modes.append_once import AppendOnce
from backfill_assets.publishing.write_modes.merge import Merge
from backfill_assets.publishing.write_modes.mode import WriteMode
from backfill_assets.publishing.write_modes.options import ModeName, WriteOptions
from backfill_assets.publishing.write_modes.overwrite import Overwrite
from backfill_assets.publishing.write_modes.restore import Rollback, TakeBack
from backfill_assets.tables.declarations import Table

WRITE_MODES = {
    mode.name: mode for mode in (Overwrite(), Merge(), AppendOnce(), Rollback(), TakeBack())
}
"""All modes, by name."""


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
    asked = {name: value for name, value in wishes.items() if value}
    options = WriteOptions(**{"write_mode": table.write_mode, **asked})
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
