"""The declared rules on broken days: each fault that a person must see warns or withholds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from backfill_engine.rules.verdicts import Check
from backfill_engine_tests.project import (
    CARRIER_DELAYS,
    CARRIER_DELAYS_V2,
    DEPARTURE_CONDITIONS,
    RAW_FLIGHTS,
    STAGING_FLIGHTS,
    STAGING_WEATHER,
    TRAINING_EXAMPLES,
)
from backfill_engine_tests.quality.real_days import read_flights
from backfill_engine_tests.quality.real_measures import measure
from backfill_engine_tests.quality.real_years import (
    CUSTOMER_ORDERS,
    FRAMES,
    ODD_DAYS,
    find_not_passed,
    judge,
    profile_year,
)

Break = Callable[[pd.DataFrame], Any]


def _change(column: str, change: Callable[[Any], object]) -> Break:
    return lambda day: day.assign(**{column: change(day[column])})


def _half(column: str, change: Callable[[Any], object]) -> Break:
    """Changes every other row."""
    return lambda day: day.assign(
        **{column: day[column].where(np.arange(len(day)) % 2 > 0, change(day[column]))}
    )


def _without(column: str, value: str) -> Break:
    return lambda day: day.loc[day[column] != value]


def _some_null(column: str) -> Break:
    """Removes three of ten values, counting only rows that have a value."""
    return _change(column, lambda values: values.where(values.notna().cumsum() % 10 > 2))


WEEKLY_FAULTS: list[tuple[str, Break, str]] = [
    ("no EWR", _without("origin", "EWR"), "row_count_ratio"),
    ("no JFK", _without("origin", "JFK"), "drift(origin)"),
    ("no UA", _without("carrier", "UA"), "drift(carrier)"),
    ("no US", _without("carrier", "US"), "drift(carrier)"),
    (
        "seconds",
        _change("mean_dep_delay_7d", lambda x: x * 60),
        "drift(mean_dep_delay_7d)",
    ),
    (
        "seconds there",
        _change("mean_arr_delay_7d", lambda x: x * 60),
        "drift(mean_arr_delay_7d)",
    ),
    (
        "sign",
        _change("mean_dep_delay_7d", lambda x: -x),
        "drift(mean_dep_delay_7d)",
    ),
    (
        "half an hour on",
        _half("mean_arr_delay_7d", lambda x: x + 60),
        "agrees(mean_arr_delay_7d)",
    ),
    (
        "share in time",
        _change("late_share_7d", lambda x: 1 - x),
        "drift(late_share_7d)",
    ),
    (
        "one mean",
        _change("mean_dep_delay_7d", lambda x: x * 0 + 12),
        "varies(mean_dep_delay_7d)",
    ),
    ("30 % nulls", _some_null("late_share_7d"), "nulls(late_share_7d)"),
]
"""These faults are made in each version of the carriers' delays."""

SEEDED: list[tuple[object, str, Break, str]] = [
    (STAGING_FLIGHTS, "no EWR", _without("origin", "EWR"), "drift(origin)"),
    (STAGING_FLIGHTS, "no LGA", _without("origin", "LGA"), "drift(origin)"),
    (STAGING_FLIGHTS, "no UA", _without("carrier", "UA"), "drift(carrier)"),
    (STAGING_FLIGHTS, "no WN", _without("carrier", "WN"), "drift(carrier)"),
    (STAGING_FLIGHTS, "seconds", _change("dep_delay", lambda x: x * 60), "drift(dep_delay)"),
    (STAGING_FLIGHTS, "seconds there", _change("arr_delay", lambda x: x * 60), "drift(arr_delay)"),
    (STAGING_FLIGHTS, "one delay", _change("dep_delay", lambda x: x * 0 + 5), "drift(dep_delay)"),
    (STAGING_FLIGHTS, "sign", _change("dep_delay", lambda x: -x), "agrees(dep_delay)"),
    (STAGING_FLIGHTS, "sign there", _change("arr_delay", lambda x: -x), "agrees(arr_delay)"),
    (STAGING_FLIGHTS, "half an hour on", _half("dep_delay", lambda x: x + 60), "agrees(dep_delay)"),
    (STAGING_FLIGHTS, "half of hours", _half("hour", lambda x: x + 1), "agrees(sched_dep_time)"),
    (STAGING_FLIGHTS, "half in air", _half("air_time", lambda x: x + 60), "agrees(air_time)"),
    (STAGING_FLIGHTS, "half in km", _half("distance", lambda x: x * 1.6), "agrees(air_time)"),
    (STAGING_FLIGHTS, "30 % nulls", _some_null("dep_time"), "agrees(dep_delay)"),
    (STAGING_FLIGHTS, "30 % in air", _some_null("air_time"), "agrees(arr_delay)"),
    (STAGING_FLIGHTS, "30 % of planes", _some_null("tailnum"), "agrees(tailnum)"),
    (STAGING_FLIGHTS, "one plane", _change("tailnum", lambda x: "N1"), "varies(tailnum)"),
    *((table, *fault) for table in (CARRIER_DELAYS, CARRIER_DELAYS_V2) for fault in WEEKLY_FAULTS),
    (TRAINING_EXAMPLES, "30 % lost", _some_null("flights_7d"), "agrees(flights_7d)"),
    (TRAINING_EXAMPLES, "labels", _change("late", lambda x: x == False), "agrees(late)"),  # noqa: E712
    (TRAINING_EXAMPLES, "no delays", _some_null("arr_delay"), "nulls(arr_delay)"),
    (
        TRAINING_EXAMPLES,
        "features of its own day",
        lambda day: day.assign(features_date=day["flight_date"]),
        "agrees(features_date)",
    ),
    (
        STAGING_WEATHER,
        "a silent station",
        lambda day: day.assign(observed_at=day["observed_at"].where(day["origin"] != "EWR")),
        "nulls(observed_at)",
    ),
    (STAGING_WEATHER, "°C", _change("temp", lambda x: (x - 32) / 1.8), "agrees(humid)"),
    (DEPARTURE_CONDITIONS, "half of rows", lambda day: day.iloc[::2], "row_count_ratio"),
    (DEPARTURE_CONDITIONS, "no JFK", _without("origin", "JFK"), "drift(origin)"),
    (DEPARTURE_CONDITIONS, "no B6", _without("carrier", "B6"), "drift(carrier)"),
    (DEPARTURE_CONDITIONS, "seconds", _change("dep_delay", lambda x: x * 60), "drift(dep_delay)"),
    (DEPARTURE_CONDITIONS, "°C", _change("temp", lambda x: (x - 32) / 1.8), "agrees(humid)"),
    (DEPARTURE_CONDITIONS, "sign", _change("temp", lambda x: -x), "agrees(humid)"),
    (DEPARTURE_CONDITIONS, "one value", _change("temp", lambda x: x * 0 + 55), "varies(temp)"),
    (DEPARTURE_CONDITIONS, "inches", _change("pressure", lambda x: x / 34), "values(pressure)"),
    (DEPARTURE_CONDITIONS, "30 % nulls", _some_null("visib"), "nulls(visib)"),
    (
        DEPARTURE_CONDITIONS,
        "half from later",
        _half("observed_at", lambda x: x + pd.Timedelta(hours=1)),
        "agrees(observed_at)",
    ),
    (CUSTOMER_ORDERS, "dollars", _change("net_cents", lambda x: x / 100), "agrees(net_cents)"),
    (CUSTOMER_ORDERS, "sign", _change("net_cents", lambda x: -x), "agrees(net_cents)"),
    (CUSTOMER_ORDERS, "one sum", _change("net_cents", lambda x: 9_000_000), "varies(net_cents)"),
    (CUSTOMER_ORDERS, "in time", _change("late_share", lambda x: 1 - x), "drift(late_share)"),
    (CUSTOMER_ORDERS, "kept", _change("returned_share", lambda x: 1 - x), "drift(returned_share)"),
    (CUSTOMER_ORDERS, "30 % nulls", _some_null("late_share"), "nulls(late_share)"),
    (CUSTOMER_ORDERS, "half of them", lambda day: day.iloc[::2], "row_count_ratio"),
]
"""Faults whose distribution may look like nature's."""


@pytest.mark.parametrize(
    ("table", "break_day", "rule"),
    [(table, break_day, rule) for table, _, break_day, rule in SEEDED],
    ids=[f"{getattr(table, 'key', '')}: {fault}" for table, fault, _, _ in SEEDED],
)
def test_a_seeded_fault_is_seen_on_any_day(table, break_day, rule):
    keys = [*ODD_DAYS.values()] if table is not CUSTOMER_ORDERS else ["0050000", "0110000"]
    frame = FRAMES[table]()
    for key in keys:
        day = frame.loc[frame[table.partition_by] == key]
        others = {
            earlier: profile for earlier, profile in profile_year(table).items() if earlier < key
        }
        found = judge(table, {key: measure(break_day(day), table)}, others)
        assert (key, rule) in find_not_passed(found)
        assert (key, rule) not in find_not_passed(judge(table, {key: measure(day, table)}, others))


def _lose(column: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda day: day.assign(**{column: np.nan})


STAGING_FAULTS: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], Check, str]] = {
    "half of the rows": (lambda day: day.iloc[::2], Check.COMPLETE, "row_count_ratio"),
    "rows doubled": (lambda day: pd.concat([day, day]), Check.VALID, "keys_are_unique"),
    "no distances": (_lose("distance"), Check.VALID, "nulls(distance)"),
    "no hours": (_lose("hour"), Check.VALID, "nulls(hour)"),
    "no destinations": (_lose("dest"), Check.VALID, "nulls(dest)"),
    "no tail numbers": (_lose("tailnum"), Check.VALID, "nulls(tailnum)"),
    "no air times": (_lose("air_time"), Check.VALID, "nulls(air_time)"),
    "a distance below 0": (
        lambda day: day.assign(distance=[-1, *day["distance"].iloc[1:]]),
        Check.VALID,
        "values(distance)",
    ),
    "distances doubled": (
        lambda day: day.assign(distance=day["distance"] * 2),
        Check.STABLE,
        "drift(distance)",
    ),
    "distances in km": (
        lambda day: day.assign(distance=(day["distance"] * 1.609).round()),
        Check.STABLE,
        "drift(distance)",
    ),
    "air time in hours": (
        lambda day: day.assign(air_time=(day["air_time"] / 60).round()),
        Check.STABLE,
        "drift(air_time)",
    ),
    "hours in UTC": (
        lambda day: day.assign(hour=(day["hour"] + 5) % 24),
        Check.STABLE,
        "drift(hour)",
    ),
}


@pytest.mark.parametrize("rerun", [False, True], ids=["first run", "re-run"])
@pytest.mark.parametrize("key", ODD_DAYS.values(), ids=ODD_DAYS)
@pytest.mark.parametrize(
    ("break_day", "check", "rule"), STAGING_FAULTS.values(), ids=STAGING_FAULTS
)
def test_a_broken_day_is_withheld(break_day, check, rule, key, rerun):
    flights = read_flights()
    broken = measure(break_day(flights.loc[flights["flight_date"] == key]), STAGING_FLIGHTS)
    published = {
        other: profile
        for other, profile in profile_year(STAGING_FLIGHTS).items()
        if rerun or other < key
    }
    (verdict,) = judge(STAGING_FLIGHTS, {key: broken}, published).values()
    assert rule in [finding.rule for finding in verdict.failed(check)]


@pytest.mark.parametrize("table", [CARRIER_DELAYS, CARRIER_DELAYS_V2], ids=lambda table: table.key)
@pytest.mark.parametrize("key", ODD_DAYS.values(), ids=ODD_DAYS)
@pytest.mark.parametrize(
    ("break_day", "rule"),
    [
        (_change("mean_dep_delay_7d", lambda x: x * 60), "drift(mean_dep_delay_7d)"),
        (_change("mean_arr_delay_7d", lambda x: x * 60), "drift(mean_arr_delay_7d)"),
        (_change("mean_dep_delay_7d", lambda x: -x), "drift(mean_dep_delay_7d)"),
        (_change("late_share_7d", lambda x: 1 - x), "drift(late_share_7d)"),
        (_without("carrier", "UA"), "drift(carrier)"),
        (_without("origin", "JFK"), "drift(origin)"),
    ],
    ids=["seconds", "seconds there", "sign", "share in time", "no UA", "no JFK"],
)
def test_a_spoiled_day_of_features_is_withheld(break_day, rule, key, table):
    frame = FRAMES[table]()
    broken = measure(break_day(frame.loc[frame["flight_date"] == key]), table)
    others = {earlier: profile for earlier, profile in profile_year(table).items() if earlier < key}
    (verdict,) = judge(table, {key: broken}, others).values()
    assert rule in [finding.rule for finding in verdict.failed(Check.STABLE)]


@pytest.mark.parametrize(
    ("break_day", "rule"),
    [
        (_lose("distance"), "nulls(distance)"),
        (_lose("tailnum"), "nulls(tailnum)"),
        (lambda day: day.assign(month=0), "values(month)"),
        (lambda day: day.assign(hour=24), "values(hour)"),
    ],
    ids=["no distances", "no tail numbers", "months from 0", "hours to 24"],
)
def test_a_broken_landing_day_is_withheld(break_day, rule):
    flights, key = read_flights(), "2013-05-14"
    broken = measure(break_day(flights.loc[flights["landing_date"] == key]), RAW_FLIGHTS)
    (verdict,) = judge(RAW_FLIGHTS, {key: broken}, profile_year(RAW_FLIGHTS)).values()
    assert rule in [finding.rule for finding in verdict.failed(Check.VALID)]


@pytest.mark.parametrize(
    ("rerun", "rows", "rule"), [(False, 30, "row_count_ratio"), (True, 300, "shrink")]
)
@pytest.mark.parametrize("key", ODD_DAYS.values(), ids=ODD_DAYS)
def test_a_landing_day_that_lost_most_of_its_rows_is_withheld(key, rerun, rows, rule):
    flights = read_flights()
    landed = flights.loc[flights["landing_date"] == key].head(rows)
    published = {
        other: profile
        for other, profile in profile_year(RAW_FLIGHTS).items()
        if rerun or other != key
    }
    verdicts = judge(RAW_FLIGHTS, {key: measure(landed, RAW_FLIGHTS)}, published)
    assert rule in [finding.rule for finding in verdicts[key].failed(Check.COMPLETE)]
