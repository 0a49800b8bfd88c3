"""Compares what two variants published, so that none is fast because it did less."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from backfill_assets.lake.table_log import read_log
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.tables.declarations import Table


class DifferentContentsError(Exception):
    """Two variants that should have published the same rows did not."""


def check_same_contents(tables: Sequence[Table], one: Path, other: Path, *, days: int) -> None:
    """Rows per partition by the Delta logs, then every row by value.

    Args:
        tables: what both warehouses hold.
        one: a warehouse.
        other: another.
        days: partitions that each table must have.

    Raises:
        DifferentContentsError: naming the first table that differs and how.
    """
    for table in tables:
        counts, other_counts = (
            read_log(Warehouse(str(root)), table).count_rows() for root in (one, other)
        )
        if counts != other_counts or len(counts) != days:
            differing = sorted(
                key
                for key in counts.keys() | other_counts.keys()
                if counts.get(key) != other_counts.get(key)
            )
            raise DifferentContentsError(
                f"{table.key}: {len(counts)} and {len(other_counts)} partitions of {days}; "
                f"rows differ in {', '.join(differing) or 'none'}"
            )
        if not _read_sorted(one, table).equals(_read_sorted(other, table)):
            raise DifferentContentsError(f"{table.key}: equal numbers of rows, unequal values")


def _read_sorted(root: Path, table: Table) -> pa.Table:
    columns = list(table.column_names)
    rows = Warehouse(str(root)).open(table).to_pyarrow_table(columns=columns)
    return rows.sort_by([(name, "ascending") for name in columns])
