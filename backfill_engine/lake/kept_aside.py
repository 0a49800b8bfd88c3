"""Reads what is kept beside a table: withheld rows and rejected records, as delta-rs has them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyarrow.compute import field

from backfill_engine.lake.ledger import open_entered
from backfill_engine.lake.side_tables import build_quarantine_table, build_withheld_table
from backfill_engine.lake.slices import Partition
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import Table


@dataclass(frozen=True)
class KeptAside:
    """What one of the two tables holds of some partitions.

    Attributes:
        what: `withheld rows` or `rejected records`.
        table: where they are.
        count: how many there are.
        rows: the first of them, with run and reason.
    """

    what: str
    table: str
    count: int
    rows: Sequence[dict[str, Any]]


def read_kept_aside(
    warehouse: Warehouse, table: Table, partitions: Sequence[Partition], *, most: int
) -> list[KeptAside]:
    """Reads what is kept of partitions that follow one another, `most` rows of each kind.

    Raises:
        TableError: if a table of these can't be read or is gone.
    """
    keys = [partition.key for partition in partitions]
    place = field(table.partition_by)
    in_slices = (place >= partitions[0].slice.start) & (place < partitions[-1].slice.end)
    found: list[KeptAside] = []
    for what, aside, wanted in (
        ("withheld rows", build_withheld_table(table), field("partition_key").isin(keys)),
        ("rejected records", build_quarantine_table(table), in_slices),
    ):
        if (kept := open_entered(warehouse, aside.key)) is not None:
            rows = kept.to_pyarrow_dataset().filter(wanted)
            first = rows.head(most).to_pylist()
            found.append(KeptAside(what, warehouse.uri(aside), rows.count_rows(), first))
    return found
