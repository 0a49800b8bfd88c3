"""Compares what two variants published, so that none is fast because it did less."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from backfill_engine.contents.partition_contents import read_back
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import Table


class DifferentContentsError(Exception):
    """Two variants that should have published the same rows did not."""


def check_same_contents(tables: Sequence[Table], first: Path, second: Path, *, days: int) -> None:
    """Rows per partition by the Delta logs, then every row by value.

    Args:
        tables: what both warehouses hold.
        first: a warehouse.
        second: another.
        days: partitions that each table must have.

    Raises:
        DifferentContentsError: naming the first table that differs and how.
    """
    for table in tables:
        logs = [read_log(Warehouse(str(root)), table) for root in (first, second)]
        _check_same_counts(logs[0], logs[1], days)
        if not _read_sorted(first, table).equals(_read_sorted(second, table)):
            raise DifferentContentsError(f"{table.key}: equal numbers of rows, unequal values")


def check_same_checksums(
    tables: Sequence[Table], first: Path, second: Path, *, partitions: int
) -> None:
    """Rows per partition by the Delta logs, then checksums: for more rows than memory holds.

    The checksums are read from the data files of both, a batch of rows at a time, by the project's
    reader that is no Spark.

    Args:
        tables: what both warehouses hold, of the grain that they are partitioned by there.
        first: a warehouse.
        second: another.
        partitions: how many each table must have.

    Raises:
        DifferentContentsError: naming the first table that differs and how.
    """
    for table in tables:
        logs = [read_log(Warehouse(str(root)), table) for root in (first, second)]
        keys = _check_same_counts(logs[0], logs[1], partitions)
        found, others = (read_back(log, build_partitions(table, keys)) for log in logs)
        differing = sorted(key for key in keys if found[key] != others[key])
        if differing:
            raise DifferentContentsError(
                f"{table.key}: equal numbers of rows, unequal checksums of {', '.join(differing)}"
            )


def find_differing(first: Mapping[str, int], second: Mapping[str, int]) -> list[str]:
    """Finds the keys whose numbers differ, those that only one of them has included; ascending."""
    return sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))


def _check_same_counts(first: TableLog, second: TableLog, partitions: int) -> list[str]:
    """Returns the partition keys."""
    counts, other_counts = first.count_rows(), second.count_rows()
    if counts != other_counts or len(counts) != partitions:
        differing = find_differing(counts, other_counts)
        raise DifferentContentsError(
            f"{first.table.key}: {len(counts)} and {len(other_counts)} partitions of {partitions}; "
            f"rows differ in {', '.join(differing) or 'none'}"
        )
    return sorted(counts)


def _read_sorted(root: Path, table: Table) -> pa.Table:
    columns = list(table.column_names)
    rows = Warehouse(str(root)).open(table).to_pyarrow_table(columns=columns)
    return rows.sort_by([(name, "ascending") for name in columns])
