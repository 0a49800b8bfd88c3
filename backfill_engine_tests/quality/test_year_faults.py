"""The declared rules on broken days: each fault that a person must see warns or withholds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from backfill_engine.rules.verdicts import Check
from backfill_engine.tables.declarations import Table
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


def _scale(column: str, by: float) -> Break:
    return _change(column, lambda values: values * by)


def _set(column: str, value: object) -> Break:
    return lambda day: day.assign(**{column: value})


def _without(column: str, value: str) -> Break:
    return lambda day: day.loc[day[column] != value]


def _drop_half(day: pd.DataFrame) -> pd.DataFrame:
    return day.iloc[::2]


def _some_null(column: str) -> Break:
    """Removes three of ten values, counting only rows that have a value."""
    return _change(column, lambda values: values.where(values.notna().cumsum() % 10 > 2))


def _read_of_own_day(day: pd.DataFrame) -> pd.DataFrame:
    return day.assign(features_date=day["flight_date"])


def _silence_a_station(day: pd.DataFrame) -> pd.DataFrame:
    return day.assign(observed_at=day["observed_at"].where(day["origin"] != "EWR"))


def _delay(times: Any) -> Any:
    return times + pd.Timedelta(hours=1)


BLOCKING = "!"
"""Ends the name of a fault that withholds."""
IN_CELSIUS = _change("temp", lambda x: (x - 32) / 1.8)
DEPARTURES, ARRIVALS = "mean_dep_delay_7d", "mean_arr_delay_7d"
WEEKLY_FAULTS: list[tuple[str, Break, str]] = [
    ("no EWR", _without("origin", "EWR"), "row_count_ratio"),
    ("no JFK!", _without("origin", "JFK"), "drift(origin)"),
    ("no UA!", _without("carrier", "UA"), "drift(carrier)"),
    ("no US", _without("carrier", "US"), "drift(carrier)"),
    ("seconds!", _scale(DEPARTURES, 60), f"drift({DEPARTURES})"),
    ("seconds there!", _scale(ARRIVALS, 60), f"drift({ARRIVALS})"),
    ("sign!", _scale(DEPARTURES, -1), f"drift({DEPARTURES})"),
    ("half an hour on", _half(ARRIVALS, lambda x: x + 60), f"agrees({ARRIVALS})"),
    ("share in time!", _change("late_share_7d", lambda x: 1 - x), "drift(late_share_7d)"),
    ("one mean", _change(DEPARTURES, lambda x: x * 0 + 12), f"varies({DEPARTURES})"),
    ("30 % nulls", _some_null("late_share_7d"), "nulls(late_share_7d)"),
]
FAULTS: dict[Table, list[tuple[str, Break, str]]] = {
    STAGING_FLIGHTS: [
        ("no EWR", _without("origin", "EWR"), "drift(origin)"),
        ("no LGA", _without("origin", "LGA"), "drift(origin)"),
        ("no UA", _without("carrier", "UA"), "drift(carrier)"),
        ("no WN", _without("carrier", "WN"), "drift(carrier)"),
        ("seconds", _scale("dep_delay", 60), "drift(dep_delay)"),
        ("seconds there", _scale("arr_delay", 60), "drift(arr_delay)"),
        ("one delay", _change("dep_delay", lambda x: x * 0 + 5), "drift(dep_delay)"),
        ("sign", _scale("dep_delay", -1), "agrees(dep_delay)"),
        ("sign there", _scale("arr_delay", -1), "agrees(arr_delay)"),
        ("half an hour on", _half("dep_delay", lambda x: x + 60), "agrees(dep_delay)"),
        ("half of hours", _half("hour", lambda x: x + 1), "agrees(sched_dep_time)"),
        ("half in air", _half("air_time", lambda x: x + 60), "agrees(air_time)"),
        ("half in km", _half("distance", lambda x: x * 1.6), "agrees(air_time)"),
        ("30 % nulls", _some_null("dep_time"), "agrees(dep_delay)"),
        ("30 % in air", _some_null("air_time"), "agrees(arr_delay)"),
        ("30 % of schedules", _some_null("sched_arr_time"), "agrees(arr_delay)"),
        ("30 % of planes", _some_null("tailnum"), "agrees(tailnum)"),
        ("one plane", _set("tailnum", "N1"), "varies(tailnum)"),
    ],
    CARRIER_DELAYS: WEEKLY_FAULTS,
    CARRIER_DELAYS_V2: WEEKLY_FAULTS,
    TRAINING_EXAMPLES: [
        ("30 % lost", _some_null("flights_7d"), "agrees(flights_7d)"),
        ("labels", _change("late", lambda x: x == False), "agrees(late)"),  # noqa: E712
        ("no delays", _some_null("arr_delay"), "nulls(arr_delay)"),
        ("of its own day", _read_of_own_day, "agrees(features_date)"),
    ],
    STAGING_WEATHER: [
        ("a silent station", _silence_a_station, "nulls(observed_at)"),
        ("°C", IN_CELSIUS, "agrees(humid)"),
    ],
    DEPARTURE_CONDITIONS: [
        ("half of rows", _drop_half, "row_count_ratio"),
        ("no JFK", _without("origin", "JFK"), "drift(origin)"),
        ("no B6", _without("carrier", "B6"), "drift(carrier)"),
        ("seconds", _scale("dep_delay", 60), "drift(dep_delay)"),
        ("°C", IN_CELSIUS, "agrees(humid)"),
        ("sign", _scale("temp", -1), "agrees(humid)"),
        ("one value", _change("temp", lambda x: x * 0 + 55), "varies(temp)"),
        ("inches", _scale("pressure", 1 / 34), "values(pressure)"),
        ("30 % nulls", _some_null("visib"), "nulls(visib)"),
        ("half later", _half("observed_at", _delay), "agrees(observed_at)"),
    ],
    CUSTOMER_ORDERS: [
        ("dollars", _scale("net_cents", 0.01), "agrees(net_cents)"),
        ("sign", _scale("net_cents", -1), "agrees(net_cents)"),
        ("one sum", _set("net_cents", 9_000_000), "varies(net_cents)"),
        ("in time", _change("late_share", lambda x: 1 - x), "drift(late_share)"),
        ("kept", _change("returned_share", lambda x: 1 - x), "drift(returned_share)"),
        ("30 % nulls", _some_null("late_share"), "nulls(late_share)"),
        ("half of them", _drop_half, "row_count_ratio"),
    ],
}
"""Faults whose distribution may look like nature's."""
SEEDED = [(table, *fault) for table, faults in FAULTS.items() for fault in faults]


@pytest.mark.parametrize(
    ("table", "fault", "break_day", "rule"),
    SEEDED,
    ids=[f"{table.key}: {fault}" for table, fault, _, _ in SEEDED],
)
def test_a_seeded_fault_is_seen_on_any_day(table, fault, break_day, rule):
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
        if fault.endswith(BLOCKING):
            assert rule in [finding.rule for finding in found[key].failed(Check.STABLE)]


def _lose(column: str) -> Break:
    return _set(column, np.nan)


STAGING_FAULTS: dict[str, tuple[Break, Check, str]] = {
    "half of the rows": (_drop_half, Check.COMPLETE, "row_count_ratio"),
    "rows doubled": (lambda day: pd.concat([day, day]), Check.VALID, "keys_are_unique"),
    **{
        f"no {column}": (_lose(column), Check.VALID, f"nulls({column})")
        for column in ("distance", "hour", "dest", "tailnum", "air_time")
    },
    "a distance below 0": (
        lambda day: day.assign(distance=[-1, *day["distance"].iloc[1:]]),
        Check.VALID,
        "values(distance)",
    ),
    "distances doubled": (_scale("distance", 2), Check.STABLE, "drift(distance)"),
    "distances in km": (_scale("distance", 1.609), Check.STABLE, "drift(distance)"),
    "air time in hours": (_scale("air_time", 1 / 60), Check.STABLE, "drift(air_time)"),
    "hours in UTC": (_change("hour", lambda x: (x + 5) % 24), Check.STABLE, "drift(hour)"),
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


@pytest.mark.parametrize(
    ("break_day", "rule"),
    [
        (_lose("distance"), "nulls(distance)"),
        (_lose("tailnum"), "nulls(tailnum)"),
        (_set("month", 0), "values(month)"),
        (_set("hour", 24), "values(hour)"),
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
