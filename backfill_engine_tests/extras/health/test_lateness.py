"""The measured lateness of rows equals a count of them one by one."""

import datetime as dt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.errors import TableError
from backfill_engine.extras.health.lateness import (
    Arrivals,
    Lateness,
    count_arrivals,
    summarize_all,
    summarize_days,
)
from backfill_engine.extras.health.outcomes import find_quantile
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine_tests.contents.written_rows import write_rows

LANDED = Table(
    layer="raw",
    name="records",
    partition_by="landed",
    columns=(required("landed", "DATE", "Day"), Column("day", "DATE", "Day that it is of")),
)


def day(number: int) -> dt.date:
    return dt.date(2013, 1, number)


@given(
    values=st.lists(
        st.tuples(st.integers(0, 60).map(float), st.integers(1, 9)), min_size=1, max_size=20
    ),
    share=st.sampled_from([0.05, 0.5, 0.95, 1.0]),
)
def test_quantiles_are_those_of_each_value_repeated(
    values: list[tuple[float, int]], share: float
) -> None:
    repeated = [value for value, weight in values for _ in range(weight)]
    assert find_quantile(values, share) == np.quantile(repeated, share, method="inverted_cdf")


def test_there_is_no_quantile_of_nothing() -> None:
    assert find_quantile([], 0.5) == 0.0


def test_rows_are_counted_by_the_day_that_they_landed_on_and_the_one_they_are_of(
    warehouse: Warehouse,
) -> None:
    landed = [(1, 1), (3, 1), (3, 1), (3, 2), (3, 3), (4, 1)]
    rows = [{"landed": day(at), "day": day(of)} for at, of in landed]
    write_rows(warehouse, LANDED, [*rows, {"landed": day(4), "day": None}])
    found = count_arrivals(read_log(warehouse, LANDED), "day", since=day(2))
    assert found == [
        Arrivals(day(3), day(1), 2),
        Arrivals(day(3), day(2), 1),
        Arrivals(day(3), day(3), 1),
        Arrivals(day(4), day(1), 1),
    ]
    assert summarize_days(found, "landed") == [
        Lateness(day(3), rows=4, late=3, p50=2, p95=2, most=2, after_one=0.5, after_two=0.0),
        Lateness(day(4), rows=1, late=1, p50=3, p95=3, most=3, after_one=1.0, after_two=1.0),
    ]
    assert [
        (summary.day, summary.rows, summary.after_two) for summary in summarize_days(found, "of")
    ] == [
        (day(1), 3, pytest.approx(1 / 3)),
        (day(2), 1, 0.0),
        (day(3), 1, 0.0),
    ]
    all_ = summarize_all(found)
    assert all_ is not None
    assert (all_.day, all_.rows, all_.late, all_.after_two) == (day(4), 5, 4, pytest.approx(0.2))


def test_a_table_whose_files_are_gone_says_so(warehouse: Warehouse) -> None:
    write_rows(warehouse, LANDED, [{"landed": day(1), "day": day(1)}])
    (lost,) = Path(warehouse.root).rglob("*.parquet")
    lost.unlink()
    with pytest.raises(TableError, match=r"raw/records: rows can't be counted"):
        count_arrivals(read_log(warehouse, LANDED), "day", since=day(1))


def test_nothing_has_no_lateness() -> None:
    assert summarize_all([]) is None


def test_times_are_late_by_parts_of_a_day() -> None:
    hour = dt.datetime(2013, 1, 1, 6, tzinfo=dt.UTC)
    assert Arrivals(hour + dt.timedelta(hours=6), hour, 1).days_late == 0.25
    # Rows land by the hour and are read by the day.
    assert Arrivals(hour, day(1), 1).days_late == 0.25
