"""The production watermark: up to where incremental runs have processed each table.

One row a table in a small Delta table, `<warehouse>/watermarks`. It is no record of what is
published, which the tables' own logs are: it says where the next incremental run begins.
"""

import datetime as dt
from dataclasses import dataclass

import pyarrow as pa
from deltalake.exceptions import DeltaError

from backfill_engine.errors import TableError
from backfill_engine.lake.delta_logs import query_rows, shorten_cause
from backfill_engine.lake.side_tables import open_entered
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
    uri, table = locate_watermarks(warehouse), open_entered(warehouse, WATERMARKS)
    if table is None:
        return {}
    try:
        rows = query_rows(table, WATERMARKS, f"SELECT * FROM {WATERMARKS}")
        marks = [
            Watermark(row["table"], row["next_key"], row["number"], row["run_id"], row["moved_at"])
            for row in rows
        ]
    except (OSError, DeltaError, pa.ArrowException, KeyError) as error:
        raise TableError(
            f"the watermarks at {uri} can't be read ({shorten_cause(error)}): restore the table "
            "from a copy, or remove its folder and its entry in ledger/, and backfill with "
            "save_watermark"
        ) from error
    return {
        watermark.table: watermark
        for watermark in sorted(marks, key=lambda watermark: watermark.table)
    }


def locate_watermarks(warehouse: Warehouse) -> str:
    """Returns where the watermarks are."""
    return join_uri(warehouse.root, WATERMARKS)
