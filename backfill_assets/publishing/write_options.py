"""How a run writes: what it may be told, and what a table can't honour."""

from dataclasses import dataclass

from backfill_assets.errors import SettingsError
from backfill_assets.filters.row_filters import RowFilter, combine_filters, parse_filter
from backfill_assets.lake.commits import WriteMode
from backfill_assets.tables.declarations import Table

_CHOICES = (WriteMode.OVERWRITE, WriteMode.MERGE, WriteMode.APPEND_ONCE)


@dataclass(frozen=True)
class WriteOptions:
    """How the computed rows of a partition get together with those that are published.

    Attributes:
        mode: `overwrite` replaces a partition by what was computed; `merge` replaces rows of the
            same natural key and adds the others; `append_once` adds all of a batch, once.
        delete_missing: of a merge: rows that were not computed go, among those that `row_filter`
            is true for.
        row_filter: of a merge: only rows for which it is true are taken from what was computed.
        batch: names the batch that is appended; empty means that the inputs, as they were pinned,
            are one.
    """

    mode: WriteMode = WriteMode.OVERWRITE
    delete_missing: bool = False
    row_filter: str = ""
    batch: str = ""

    def find_row_filter(self, table: Table) -> RowFilter | None:
        """The run's filter and the table's own, both of which a row must meet; None if neither."""
        return combine_filters(table, table.row_filter, self.row_filter)


OVERWRITE = WriteOptions()
"""What a run does that isn't told otherwise, of a table that isn't declared otherwise."""


def choose_options(
    table: Table,
    *,
    write_mode: str | None = None,
    delete_missing: bool = False,
    row_filter: str = "",
    batch: str = "",
) -> WriteOptions:
    """What a run was told, for one table; what it wasn't is as the table has it.

    Raises:
        SettingsError: if the table can't honour it, or it contradicts itself.
        FilterError: if the filter is unreadable, or uses what isn't allowed.
    """
    chosen = write_mode or table.write_mode
    if chosen not in [one.value for one in _CHOICES]:
        raise SettingsError(f"no write mode {chosen}: there are {', '.join(_CHOICES)}")
    mode = WriteMode(chosen)
    if row_filter.strip():
        parse_filter(row_filter, table)
        if mode is not WriteMode.MERGE:
            raise SettingsError(
                f"{table.key}: a run with a filter would {mode} whole partitions with part "
                "of their rows: set write_mode to merge, or leave the filter out"
            )
    if delete_missing and mode is not WriteMode.MERGE:
        raise SettingsError(f"{table.key}: delete_missing is for write_mode merge, not {mode}")
    if batch and mode is not WriteMode.APPEND_ONCE:
        raise SettingsError(f"{table.key}: a batch is for write_mode append_once, not {mode}")
    if mode is WriteMode.MERGE and not table.natural_key:
        raise SettingsError(
            f"{table.key} can't merge: it declares no natural key that would tell which row "
            "replaces which; use overwrite"
        )
    return WriteOptions(mode, delete_missing, row_filter.strip(), batch)
