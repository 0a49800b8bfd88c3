"""Compares a table with what someone else vouches for: a Delta table, Parquet files or a CSV."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backfill_engine.contents.partition_contents import read_contents
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog
from backfill_engine.proof.example_keys import ExampleKey, find_example_keys
from backfill_engine.proof.golden_rows import read_golden
from backfill_engine.proof.row_comparison import RowChanges, compare_contents


@dataclass(frozen=True)
class GoldenReport:
    """A table next to its golden.

    Attributes:
        table: `layer/name`.
        golden: path of the other side.
        keys: the columns by which rows are matched.
        not_compared: columns of the table that the golden lacks.
        partitions: by key: `removed` rows are missing in the table, `added` ones are extra,
            `changed` ones differ.
        examples: a few keys of partitions that differ.
        mismatches: rows that are missing, extra or different, over all partitions.
    """

    table: str
    golden: str
    keys: tuple[str, ...]
    not_compared: tuple[str, ...]
    partitions: Mapping[str, RowChanges]
    examples: Mapping[str, Sequence[ExampleKey]]
    mismatches: int


def compare_with_golden(
    log: TableLog, partitions: Sequence[Partition], path: Path, *, keys: Sequence[str]
) -> GoldenReport:
    """Reads both without Spark.

    Args:
        log: of the table, which must exist.
        partitions: which to compare.
        path: of the golden.
        keys: columns that identify a row.

    Raises:
        GoldenError: if the golden can't be read or compared.
    """
    table = log.table
    golden = read_golden(path, table, partitions, keys=keys)
    contents = read_contents(log, partitions, columns=golden.compared, keys=keys)
    changes = compare_contents(golden, contents)
    mismatches = sum(rows.removed + rows.added + rows.changed for rows in changes.values())
    return GoldenReport(
        table=table.key,
        golden=str(path),
        keys=tuple(keys),
        not_compared=tuple(golden.missing),
        partitions=changes,
        examples=find_example_keys(golden, contents) if mismatches else {},
        mismatches=mismatches,
    )
