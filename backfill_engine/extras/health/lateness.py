"""How late rows come: counts by the partition that they landed in and by what they are of.

A table that lands by day may hold rows of any day before. Of each pair of days the rows are
counted, by delta-rs and DataFusion, which reads two columns and keeps a number a pair.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from deltalake.exceptions import DeltaError

from backfill_engine.errors import TableError
from backfill_engine.extras.health.outcomes import find_quantile
from backfill_engine.lake.delta_logs import query_rows, shorten_cause
from backfill_engine.lake.table_log import TableLog

DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Arrivals:
    """Rows that landed in one partition and are of one time.

    Attributes:
        landed: start of the partition that they landed in: a date, or a time in UTC.
        of: what they are of, likewise.
        rows: how many.
    """

    landed: dt.date
    of: dt.date
    rows: int

    @property
    def days_late(self) -> float:
        """Days from the time that they are of to the one in which they landed; 0 on time."""
        return (find_moment(self.landed) - find_moment(self.of)) / DAY


@dataclass(frozen=True)
class Lateness:
    """How late rows came, that have the landing day or the day that they are of in common.

    Attributes:
        day: which.
        rows: all of them.
        late: those that landed after the day that they are of.
        p50: days late of the middle one of the late; 0 where none is.
        p95: days late that 95 % of the late ones don't exceed.
        most: days late of the latest.
        after_one: share of all that came more than one day late, from 0 to 1.
        after_two: more than two.
    """

    day: dt.date
    rows: int
    late: int
    p50: float
    p95: float
    most: float
    after_one: float
    after_two: float


def find_moment(value: dt.date) -> dt.datetime:
    """Finds the moment, UTC, at which a day begins; of a time, which has no zone, that time."""
    if isinstance(value, dt.datetime):
        return value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)


def count_arrivals(log: TableLog, column: str, *, since: dt.date) -> list[Arrivals]:
    """Counts rows by the partition that they landed in and by what they are of, ascending.

    Rows without a value of `column` are left out: nobody can say how late they are. Data files of
    older partitions are not opened.

    Args:
        log: of a table that exists.
        column: says what a row is of; of the type of the table's partition column.
        since: first day of landing that counts.

    Raises:
        TableError: if the rows can't be read.
    """
    table = log.table
    snapshot = log.open_snapshot()
    by = f'"{table.partition_by}", "{column}"'
    try:
        rows = query_rows(
            snapshot,
            "arrivals",
            f'SELECT {by}, count(*) AS "rows counted" FROM arrivals '
            f"WHERE \"{table.partition_by}\" >= '{since:%Y-%m-%d}' "
            f'AND "{column}" IS NOT NULL GROUP BY {by} ORDER BY {by}',
        )
    except (OSError, DeltaError, pa.ArrowException) as error:
        raise TableError(f"{table.key}: rows can't be counted: {shorten_cause(error)}") from error
    return [Arrivals(row[table.partition_by], row[column], row["rows counted"]) for row in rows]


def summarize_days(arrivals: Iterable[Arrivals], by: Literal["landed", "of"]) -> list[Lateness]:
    """Sums up rows by the day in which they landed, or by the day that they are of; ascending."""
    grouped: dict[dt.date, list[Arrivals]] = defaultdict(list)
    for arrival in arrivals:
        grouped[getattr(arrival, by)].append(arrival)
    return [_describe(day, grouped[day]) for day in sorted(grouped)]


def summarize_all(arrivals: Sequence[Arrivals]) -> Lateness | None:
    """Sums up all of them, under the last day in which any landed; None of none."""
    if not arrivals:
        return None
    return _describe(max(arrival.landed for arrival in arrivals), arrivals)


def _describe(day: dt.date, arrivals: Sequence[Arrivals]) -> Lateness:
    late = [(arrival.days_late, arrival.rows) for arrival in arrivals if arrival.days_late > 0]
    rows = sum(arrival.rows for arrival in arrivals)
    after_one, after_two = (
        sum(count for days, count in late if days > bound) / rows for bound in (1, 2)
    )
    return Lateness(
        day=day,
        rows=rows,
        late=sum(count for _, count in late),
        p50=find_quantile(late, 0.5),
        p95=find_quantile(late, 0.95),
        most=max((days for days, _ in late), default=0.0),
        after_one=after_one,
        after_two=after_two,
    )
