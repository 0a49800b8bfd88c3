"""The declared rules on the clean year: nothing fails, and nothing warns.

A year of flights has holidays, a blizzard and a few rows of 2014; rules that withhold any of them
would be switched off before long, and warnings that are usual are read by nobody.
"""

import datetime as dt
from dataclasses import replace

import pytest

from backfill_engine.rules.column_rules import Agreement
from backfill_engine.rules.count_rules import Reconciled
from backfill_engine.rules.drift import Drift
from backfill_engine.rules.finding_names import find_name
from backfill_engine.rules.verdicts import Check, Outcome
from backfill_engine_tests.project import (
    CARRIER_DELAYS,
    CARRIER_DELAYS_V2,
    DEPARTURE_CONDITIONS,
    RAW_FLIGHTS,
    RAW_WEATHER,
    SERVED_CARRIER_DELAYS,
    STAGING_FLIGHTS,
    STAGING_WEATHER,
    TRAINING_EXAMPLES,
)
from backfill_engine_tests.quality.real_days import count_source_records
from backfill_engine_tests.quality.real_measures import measure, measure_days
from backfill_engine_tests.quality.real_weather import (
    build_conditions,
    build_weather_days,
    read_weather,
)
from backfill_engine_tests.quality.real_years import (
    CUSTOMER_ORDERS,
    ODD_DAYS,
    STAGING_ORDERS,
    WITHOUT_REPORTS,
    find_not_passed,
    judge,
    list_findings,
    measure_year,
    profile_year,
)

PARTITIONS = {
    RAW_FLIGHTS: 366,
    STAGING_FLIGHTS: 365,
    CARRIER_DELAYS: 365,
    CARRIER_DELAYS_V2: 365,
    SERVED_CARRIER_DELAYS: 365,
    TRAINING_EXAMPLES: 365,
    STAGING_WEATHER: 364,
    DEPARTURE_CONDITIONS: 364,
    STAGING_ORDERS: 13,
    CUSTOMER_ORDERS: 13,
}
STRAGGLERS = ("2014-01-01", "row_count_ratio")
"""The one warning: a landing day after the source's last, with none of its own flights."""

each_table = pytest.mark.parametrize("table", PARTITIONS, ids=lambda table: table.key)


@each_table
def test_rules_are_about_declared_columns(table):
    for rule in table.rules:
        column = rule.total_of if isinstance(rule, Reconciled) else getattr(rule, "column", None)
        assert column is None or column in table.column_names
        if isinstance(rule, Agreement):
            assert rule.column in rule.condition
        if isinstance(rule, Drift):
            assert list(rule.edges) == sorted(set(rule.edges))
            assert rule.weight is None or rule.weight in table.column_names


@each_table
def test_every_partition_passes_in_one_range_ascending(table):
    verdicts = judge(table, measure_year(table), {})
    assert len(verdicts) == PARTITIONS[table]
    assert find_not_passed(verdicts) == ({STRAGGLERS} if table is RAW_FLIGHTS else set())
    assert {
        finding.rule for _, finding in list_findings(verdicts) if not find_name(finding.rule)
    } == set()


@each_table
def test_every_partition_passes_again_when_all_is_published(table):
    verdicts = judge(table, measure_year(table), profile_year(table))
    assert find_not_passed(verdicts) <= {STRAGGLERS}
    for verdict in verdicts.values():
        # The value is None in the bucket that has a single order.
        stable = verdict.findings.get(Check.STABLE, ())
        assert all(finding.value in (0, None) for finding in stable)


@each_table
def test_every_partition_passes_whichever_one_a_backfill_begins_on(table):
    # Three weeks are judged at a time: the smaller a baseline, the more a holiday in it counts.
    days = list(measure_year(table).items())
    of_flights = (
        RAW_FLIGHTS,
        STAGING_FLIGHTS,
        CARRIER_DELAYS,
        CARRIER_DELAYS_V2,
        TRAINING_EXAMPLES,
    )
    for begin in range(0, len(days), 1 if table in of_flights else 5):
        verdicts = judge(table, dict(days[begin : begin + 21]), {})
        assert find_not_passed(verdicts) <= {STRAGGLERS}


@each_table
def test_a_partition_passes_as_the_only_one_missing(table):
    measures, profiles = measure_year(table), profile_year(table)
    for key in {*list(measures)[::10], *(measures.keys() & ODD_DAYS.values())}:
        others = {other: profile for other, profile in profiles.items() if other != key}
        assert find_not_passed(judge(table, {key: measures[key]}, others)) == set()


def test_stragglers_pass_also_beside_the_busiest_day_alone():
    measures, profiles = measure_year(RAW_FLIGHTS), profile_year(RAW_FLIGHTS)
    wednesdays = [key for key in profiles if dt.date.fromisoformat(key).weekday() == 2]
    busiest = max(wednesdays, key=lambda key: profiles[key].rows)
    others = {busiest, "2013-01-01", "2013-01-03", "2013-01-04"}
    published = {key: profiles[key] for key in others}
    verdicts = judge(RAW_FLIGHTS, {"2014-01-01": measures["2014-01-01"]}, published)
    (ratio,) = (
        finding for _, finding in list_findings(verdicts) if finding.rule == "row_count_ratio"
    )
    assert (round(ratio.value or 0, 3), ratio.outcome) == (0.047, Outcome.WARNED)


def test_a_day_without_any_report_of_the_weather_is_withheld():
    for table, frame in (
        (STAGING_WEATHER, build_weather_days()),
        (DEPARTURE_CONDITIONS, build_conditions()),
    ):
        day = measure(frame.loc[frame[table.partition_by] == WITHOUT_REPORTS], table)
        assert judge(table, {WITHOUT_REPORTS: day}, profile_year(table))[WITHOUT_REPORTS].withheld


def test_hours_of_weather_warn_of_one_wind_that_cannot_be():
    reports = read_weather()
    weeks = reports.loc[reports["landing_hour"].between("2013-02-08", "2013-02-22")]
    verdicts = judge(RAW_WEATHER, measure_days(weeks, RAW_WEATHER), {})
    assert len(verdicts) > 330
    assert find_not_passed(verdicts) == {("2013-02-12-08:00", "values(wind_speed)")}


# The figures that `backfill_assets/calibration.md` has, of one range ascending.
@pytest.mark.parametrize(
    ("table", "rule", "day", "highest"),
    [
        (STAGING_FLIGHTS, "drift(origin)", "2013-08-31", 0.037),
        (STAGING_FLIGHTS, "drift(distance)", "2013-12-28", 0.052),
        (STAGING_FLIGHTS, "drift(air_time)", "2013-12-10", 0.160),
        (STAGING_FLIGHTS, "drift(hour)", "2013-11-28", 0.176),
        (STAGING_FLIGHTS, "drift(dep_delay)", "2013-03-08", 1.473),
        (STAGING_FLIGHTS, "drift(arr_delay)", "2013-03-08", 1.848),
        (STAGING_FLIGHTS, "agrees(air_time)", "2013-11-17", 0.010),
        (CARRIER_DELAYS, "agrees(mean_arr_delay_7d)", "2013-12-10", 0.121),
        (CARRIER_DELAYS, "drift(mean_dep_delay_7d)", "2013-07-10", 0.051),
        (CARRIER_DELAYS, "drift(mean_arr_delay_7d)", "2013-07-12", 0.046),
        (CARRIER_DELAYS, "drift(late_share_7d)", "2013-12-11", 0.039),
        (CARRIER_DELAYS_V2, "agrees(mean_arr_delay_7d)", "2013-12-10", 0.242),
        (CARRIER_DELAYS_V2, "drift(mean_dep_delay_7d)", "2013-07-23", 0.042),
        (CARRIER_DELAYS_V2, "drift(mean_arr_delay_7d)", "2013-04-10", 0.040),
        (CARRIER_DELAYS_V2, "drift(late_share_7d)", "2013-12-09", 0.033),
        (TRAINING_EXAMPLES, "agrees(flights_7d)", "2013-01-02", 0.006),
        (TRAINING_EXAMPLES, "nulls(arr_delay)", "2013-09-12", 0.044),
        (STAGING_WEATHER, "nulls(observed_at)", "2013-01-01", 0.278),
        (DEPARTURE_CONDITIONS, "agrees(humid)", "2013-09-12", 0.064),
        (DEPARTURE_CONDITIONS, "nulls(wind_dir)", "2013-05-02", 0.154),
    ],
)
def test_the_years_highest_figures(table, rule, day, highest):
    verdicts = judge(table, measure_year(table), {})
    found = {
        key: finding.value or 0 for key, finding in list_findings(verdicts) if finding.rule == rule
    }
    assert max(found.items(), key=lambda item: item[1]) == (day, pytest.approx(highest, abs=0.001))


@each_table
@pytest.mark.parametrize("factor", [0.5, 2])
def test_rows_lost_or_doubled_on_the_way_do_not_reconcile(table, factor):
    key = sorted(measure_year(table))[5]
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
