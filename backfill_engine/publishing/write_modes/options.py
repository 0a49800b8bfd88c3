"""How a run writes one table. Pure data; `choosing` says what a table can honour."""

from dataclasses import dataclass
from typing import Any

from backfill_engine.filters.row_filters import RowFilter, combine_filters
from backfill_engine.tables.declarations import Table

APPEND_ONCE = "append_once"
TAKE_BACK = "take_back"
"""The mode in which a run takes back what it published and can't read as it was audited."""


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """How the computed rows of a partition get together with those that are published.

    Attributes:
        write_mode: the name of a mode, see `publishing.write_modes`.
        row_filter: of a merge: only rows for which it is true are taken from what was computed.
        delete_missing: of a merge: rows that were not computed go, among those that `row_filter`
            is true for.
        batch: names the batch that is appended; empty means that the inputs, as they were pinned,
            are one.
    """

    write_mode: str = "overwrite"
    row_filter: str = ""
    delete_missing: bool = False
    batch: str = ""

    def describe(self) -> dict[str, Any]:
        """Describes the options that are not empty, as JSON values."""
        # Not `vars`: a certificate has options, too, and more.
        options = {name: getattr(self, name) for name in WriteOptions.__dataclass_fields__}
        return {name: value for name, value in options.items() if value}

    def find_row_filter(self, table: Table) -> RowFilter | None:
        """Combines the run's filter and the table's own; None if there is neither.

        A row must meet both.
        """
        return combine_filters(table, table.row_filter, self.row_filter)


OVERWRITE = WriteOptions()
"""What a run does that isn't told otherwise, of a table that isn't declared otherwise."""
