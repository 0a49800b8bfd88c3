"""The declared rules on a real year: every day passes, and a broken day doesn't.

A year of flights has holidays, a blizzard and a few rows of 2014; rules that withhold any of them
would be switched off before long.
"""

import datetime as dt
import functools
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from backfill_assets.quality.judging import judge_partitions
from backfill_assets.rules.drift import Drift
from backfill_assets.rules.measured import PartitionMeasures
from backfill_assets.rules.profiles import PartitionProfile
from backfill_assets.rules.reconciled import Reconciled
from backfill_assets.rules.verdicts import Check, Finding, Outcome, Verdict
from backfill_assets.tables.declarations import Table
from backfill_assets.tables.flights import CARRIER_DELAYS, RAW_FLIGHTS, STAGING_FLIGHTS
from backfill_assets_tests.quality.real_days import (
    build_delays,
    count_source_records,
    read_flights,
)
from backfill_assets_tests.quality.real_measures import measure, measure_days

DAYS = {RAW_FLIGHTS: 366, STAGING_FLIGHTS: 365, CARRIER_DELAYS: 365}
ODD_DAYS = {
    "an ordinary Tuesday": "2013-05-14",
    "a small Saturday": "2013-01-19",
    "the blizzard": "2013-02-08",
    "the day after it": "2013-02-09",
    "Independence Day": "2013-07-04",
    "Thanksgiving": "2013-11-28",
    "Christmas": "2013-12-25",
}
"""Faults must show on any of them."""

each_table = pytest.mark.parametrize("table", DAYS, ids=lambda table: table.key)


@functools.cache
def measure_year(table: Table) -> dict[str, PartitionMeasures]:
    return measure_days(build_delays() if table is CARRIER_DELAYS else read_flights(), table)


@functools.cache
def profile_year(table: Table) -> dict[str, PartitionProfile]:
    return {key: measured.profile() for key, measured in measure_year(table).items()}


def judge(
    table: Table,
    measures: Mapping[str, PartitionMeasures],
    published: Mapping[str, PartitionProfile],
    **source_records: int,
) -> dict[str, Verdict]:
    return judge_partitions(
        table,
        measures,
        source_records=count_source_records(table, measures) | source_records,
        published=published,
    )


def find_all(verdicts: Mapping[str, Verdict], rule: str) -> dict[str, Finding]:
    return {
        key: finding
        for key, verdict in verdicts.items()
        for found in verdict.findings.values()
        for finding in found
        if finding.rule == rule
    }


def find_highest(verdicts: Mapping[str, Verdict], rule: str) -> tuple[str, float]:
    values = {
        key: finding.value
        for key, finding in find_all(verdicts, rule).items()
        if finding.value is not None
    }
    return max(values.items(), key=lambda item: item[1])


@each_table
def test_rules_are_about_declared_columns(table):
    for rule in table.rules:
        column = rule.total_of if isinstance(rule, Reconciled) else getattr(rule, "column", None)
        assert column is None or column in table.column_names
        if isinstance(rule, Drift):
            assert list(rule.edges) == sorted(set(rule.edges))


@each_table
def test_every_day_passes_in_one_range_ascending(table):
    verdicts = judge(table, measure_year(table), {})
    assert len(verdicts) == DAYS[table]
    assert [verdict for verdict in verdicts.values() if verdict.withheld] == []


@each_table
def test_every_day_passes_again_when_all_is_published(table):
    verdicts = judge(table, measure_year(table), profile_year(table))
    assert [verdict for verdict in verdicts.values() if verdict.withheld] == []
    for verdict in verdicts.values():
        assert all(finding.value == 0 for finding in verdict.findings[Check.STABLE])


@each_table
def test_every_day_passes_whichever_day_a_backfill_begins_on(table):
    # Three weeks of each: the smaller the baseline, the more a holiday in it counts.
    days = list(measure_year(table).items())
    for begin in range(len(days)):
        verdicts = judge(table, dict(days[begin : begin + 21]), {})
        assert [verdict for verdict in verdicts.values() if verdict.withheld] == []


@each_table
def test_a_day_passes_as_the_only_one_missing(table):
    measures, profiles = measure_year(table), profile_year(table)
    for key in [*list(measures)[::10], *ODD_DAYS.values()]:
        others = {other: profile for other, profile in profiles.items() if other != key}
        (verdict,) = judge(table, {key: measures[key]}, others).values()
        assert not verdict.withheld, verdict


def test_only_the_stragglers_of_the_last_landing_day_are_few():
    verdicts = judge(RAW_FLIGHTS, measure_year(RAW_FLIGHTS), {})
    ratios = find_all(verdicts, "row_count_ratio")
    warned = {key: finding for key, finding in ratios.items() if finding.outcome is Outcome.WARNED}
    assert {key: round(finding.value or 0, 2) for key, finding in warned.items()} == {
        "2014-01-01": 0.05
    }


def test_stragglers_pass_also_beside_the_busiest_day_alone():
    measures, profiles = measure_year(RAW_FLIGHTS), profile_year(RAW_FLIGHTS)
    wednesdays = [key for key in profiles if dt.date.fromisoformat(key).weekday() == 2]
    busiest = max(wednesdays, key=lambda key: profiles[key].rows)
    others = {busiest, "2013-01-01", "2013-01-03", "2013-01-04"}
    published = {key: profiles[key] for key in others}
    (verdict,) = judge(RAW_FLIGHTS, {"2014-01-01": measures["2014-01-01"]}, published).values()
    (ratio,) = find_all({"last": verdict}, "row_count_ratio").values()
    assert (round(ratio.value or 0, 3), ratio.outcome) == (0.047, Outcome.WARNED)


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


# The figures that the comments in `tables.flights` name, and how often each warns.
@pytest.mark.parametrize(
    ("column", "day", "highest", "warnings"),
    [
        ("distance", "2013-12-28", 0.052, 0),
        ("air_time", "2013-12-10", 0.160, 7),
        ("hour", "2013-11-28", 0.176, 1),
        ("dep_delay", "2013-03-08", 1.521, 49),
        ("arr_delay", "2013-12-17", 1.902, 91),
    ],
)
def test_the_years_highest_drift(column, day, highest, warnings):
    verdicts = judge(STAGING_FLIGHTS, measure_year(STAGING_FLIGHTS), {})
    rule = f"drift({column})"
    assert find_highest(verdicts, rule) == (day, pytest.approx(highest, abs=0.001))
    outcomes = [finding.outcome for finding in find_all(verdicts, rule).values()]
    assert outcomes.count(Outcome.WARNED) == warnings
    assert Outcome.FAILED not in outcomes


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


@each_table
@pytest.mark.parametrize("factor", [0.5, 2])
def test_rows_lost_or_doubled_on_the_way_do_not_reconcile(table, factor):
    key = "2013-05-14"
    measured = measure_year(table)[key]
    totals = [rule.figure for rule in table.rules if isinstance(rule, Reconciled) and rule.total_of]
    broken = replace(
        measured,
        rows=int(measured.rows * factor),
        figures={
            **measured.figures,
            **{total: int(measured.figures[total] * factor) for total in totals},
        },
    )
    records = count_source_records(table, {key: measured})[key]
    (verdict,) = judge(table, {key: broken}, profile_year(table), **{key: records}).values()
    assert "reconciled" in [finding.rule for finding in verdict.failed(Check.COMPLETE)]


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
