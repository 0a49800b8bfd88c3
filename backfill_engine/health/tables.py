"""How each table is doing now."""

from dataclasses import dataclass

from backfill_engine.health.lags import Lag


@dataclass(frozen=True)
class TableHealth:
    """Of one table.

    Attributes:
        table: `layer/name`.
        published: partitions.
        failed: partitions that Dagster shows failed: withheld, or their step ended before them.
        duplicates: rows per 1,000 whose natural key another has too, the most of any partition.
        lag: of its watermark; None if no incremental run has processed it.
        fault: why this can't be told, all of it then being 0; empty if it can.
    """

    table: str
    published: int = 0
    failed: int = 0
    duplicates: float = 0.0
    lag: Lag | None = None
    fault: str = ""
