"""The least of a table that is computed from what lands."""

from typing import Any

from backfill_engine.grains.grain import Grain
from backfill_engine.tables.declarations import Table, required


def build_landed_table(grain: Grain[Any], by: str = "at") -> Table:
    """A table with partitions of a grain, and nothing beside the column that says which."""
    columns = (required(by, grain.column_types[0], "Says which partition."),)
    if not grain.in_daily_folders:
        return Table("raw", "events", by, columns, grain)
    folder = required("day", "DATE", "Its day.")
    return Table("raw", "events", by, (*columns, folder), grain, folder_by="day")
