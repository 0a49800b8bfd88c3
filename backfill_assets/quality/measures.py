"""Measures all partitions of a range in one grouped pass."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.lake.slices import Partition
from backfill_assets.lake.tables import Table
from backfill_assets.quality.audit_columns import REJECT_REASON, UNKNOWN_FIELDS
from backfill_assets.quality.checksums import build_checksum_parts, build_row_hash, format_checksum


@dataclass(frozen=True)
class PartitionMeasures:
    """What one partition holds; all zero for one without rows.

    Attributes:
        rows: rows to publish.
        checksum: see `quality.checksums`.
        rejects: lines that can't become rows.
        reject_example: reason and source of one of them.
        unknown_fields: fields in the source that no schema declares, sorted.
    """

    rows: int = 0
    checksum: str = format_checksum(0, 0)
    rejects: int = 0
    reject_example: str | None = None
    unknown_fields: tuple[str, ...] = ()


def measure_partitions(
    frame: DataFrame, table: Table, partitions: Sequence[Partition]
) -> dict[str, PartitionMeasures]:
    """One grouped aggregation; what comes to the driver is one row a partition.

    Args:
        frame: columns of `table`; where a source was parsed also `_reject_reason` and
            `_unknown_fields`, with null table columns in rejected rows but for the partition
            column.
        table: its declaration.
        partitions: all partitions that `frame` may hold.

    Returns:
        Measures per partition key, for each of `partitions`.
    """
    parsed = REJECT_REASON in frame.columns
    is_row = F.col(REJECT_REASON).isNull() if parsed else F.expr("true")
    upper, lower = build_checksum_parts(F.when(is_row, build_row_hash(table)))
    aggregates = [
        F.count_if(is_row).alias("rows"),
        upper.alias("upper"),
        lower.alias("lower"),
    ]
    if parsed:
        aggregates += [
            F.count_if(~is_row).alias("rejects"),
            F.first(
                F.when(~is_row, F.concat_ws(": ", "source_file", REJECT_REASON)), ignorenulls=True
            ).alias("reject_example"),
            F.flatten(F.collect_set(UNKNOWN_FIELDS)).alias("unknown_fields"),
        ]
    keys = {partition.slice.start: partition.key for partition in partitions}
    found = {
        keys[row[table.partition_by]]: PartitionMeasures(
            rows=row.rows,
            checksum=format_checksum(row.upper, row.lower),
            rejects=row.rejects if parsed else 0,
            reject_example=row.reject_example if parsed else None,
            unknown_fields=tuple(sorted(set(row.unknown_fields))) if parsed else (),
        )
        for row in frame.groupBy(table.partition_by).agg(*aggregates).collect()
    }
    return {one.key: found.get(one.key, PartitionMeasures()) for one in partitions}
