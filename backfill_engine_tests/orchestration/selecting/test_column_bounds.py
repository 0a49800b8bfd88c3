"""Bounds of a column other than the partition's become row filters."""

from dataclasses import replace

import pytest

from backfill_engine.errors import PartitionRangeError
from backfill_engine.filters.row_filters import parse_filter
from backfill_engine.orchestration.selecting.selections import (
    build_column_filter,
    is_of_partitions,
)
from backfill_engine.tables.declarations import Column
from backfill_engine_tests.project import CATALOG

FLIGHTS = CATALOG.find_table("staging/flights")


@pytest.mark.parametrize(
    ("column", "start", "end", "built"),
    [
        (
            "landing_date",
            "2012-02-29",
            "2013-01-08",
            "`landing_date` >= DATE '2012-02-29' AND `landing_date` < DATE '2013-01-08'",
        ),
        (
            "scheduled_departure",
            "2013-01-05T00:30+02:00",
            "2013-01-08",
            "`scheduled_departure` >= TIMESTAMP '2013-01-04 22:30:00Z' AND "
            "`scheduled_departure` < TIMESTAMP '2013-01-08 00:00:00Z'",
        ),
        ("DISTANCE", "-5", str(2**63 - 1), f"`distance` >= -5 AND `distance` < {2**63 - 1}"),
    ],
)
def test_bounds_are_typed_by_the_column_and_can_be_read_as_a_filter(
    column: str, start: str, end: str, built: str
) -> None:
    assert build_column_filter([FLIGHTS], column, start, end) == built
    assert parse_filter(built, FLIGHTS).text == built


@pytest.mark.parametrize(
    ("column", "start", "end", "message"),
    [
        ("distance", "1", str(2**63), "give an integer of 64 bits"),
        ("distance", "1.5", "2", "1.5: the values of distance in staging/flights are INT"),
        ("landing_date", "2013-02-29", "2013-03-01", "2013-02-29: .* give a date, as"),
        ("scheduled_departure", "0001-01-01T00:00+14:00", "2013-01-01", "give a time, as"),
        ("scheduled_departure", "2013-01-01T01:00+01:00", "2013-01-01", "that is empty"),
        ("cancelled", "0", "1", "it is BOOLEAN in staging/flights, which has no ranges"),
    ],
)
def test_what_bounds_no_values_is_refused_with_its_cure(
    column: str, start: str, end: str, message: str
) -> None:
    with pytest.raises(PartitionRangeError, match=message):
        build_column_filter([FLIGHTS], column, start, end)


def test_tables_in_which_it_is_of_other_types_are_bounded_apart() -> None:
    of_text = [
        Column(column.name, "TIMESTAMP", column.comment)
        if column.name == "landing_date"
        else column
        for column in FLIGHTS.columns
    ]
    other = replace(FLIGHTS, name="others", columns=tuple(of_text))
    with pytest.raises(PartitionRangeError, match="in staging/flights than in staging/others: ask"):
        build_column_filter([FLIGHTS, other], "landing_date", "2013-01-01", "2013-01-02")


def test_a_column_that_decides_the_partition_bounds_partitions() -> None:
    assert is_of_partitions([FLIGHTS], "Flight_Date")
    assert not is_of_partitions([FLIGHTS], "landing_date")
    with pytest.raises(PartitionRangeError, match="of raw/flights, but not of staging/flights"):
        is_of_partitions([FLIGHTS, CATALOG.find_table("raw/flights")], "landing_date")
