"""The production watermark: up to where incremental runs have processed each table.

One row a table in a small Delta table, `<warehouse>/watermarks`. It is no record of what is
published, which the tables' own logs are: it says where the next incremental run begins.
"""

import datetime as dt
from dataclasses import dataclass

from backfill_engine.lake.side_tables import read_entered
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.uris import join_uri

WATERMARKS = "watermarks"
"""Its folder below the warehouse."""


@dataclass(frozen=True)
class Watermark:
    """Of one table.

    Attributes:
        table: `layer/name`.
        next_key: the first partition that is still to be processed; all before are.
        number: of that partition, as its grain counts.
        run_id: the run that moved it here.
        moved_at: when, UTC.
    """

    table: str
    next_key: str
    number: int
    run_id: str
    moved_at: dt.datetime


def read_watermarks(warehouse: Warehouse) -> dict[str, Watermark]:
    """Reads the watermarks by table key: milliseconds, no JVM.

    A table that no run has processed yet is absent.

    Raises:
        SettingsError: if nothing can ever be at the warehouse's root.
        TableError: if they can't be read or are gone.
    """
    cure = "backfill with save_watermark"
    marks = read_entered(warehouse, WATERMARKS, Watermark, cure=cure)
    return {mark.table: mark for mark in sorted(marks, key=lambda mark: mark.table)}


def locate_watermarks(warehouse: Warehouse) -> str:
    """Returns where the watermarks are."""
    return join_uri(warehouse.root, WATERMARKS)
