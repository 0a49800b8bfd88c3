"""A year of days over three tables: reading the log stays quick, and five days touch no other."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_engine.extras.comparison.diffs import diff_table
from backfill_engine.lake.table_log import read_log
from backfill_engine.proof.certificates import find_certificates
from backfill_engine_tests.pipeline.running import (
    FEATURES,
    RAW,
    STAGING,
    FinishedRun,
    Pipeline,
    open_pipeline,
)
from backfill_engine_tests.project import CARRIER_DELAYS, RAW_WEATHER, STAGING_FLIGHTS
from backfill_engine_tests.shared_fixtures import build_days
from backfill_engine_tests.timed_commands import time_command

pytestmark = [pytest.mark.slow, pytest.mark.by_hand]

YEAR = build_days("2013-01-01", 365)
FIVE_DAYS = build_days("2013-06-10", 5)
FIRST, LAST = FIVE_DAYS[0].key, FIVE_DAYS[-1].key
MOST, MOST_FOR_HOURS = 1.0, 2.0
"""Limits, as multiples of the time that importing the definitions takes."""


@dataclass(frozen=True)
class Year:
    """The pipeline, and the run that published all of it."""

    pipeline: Pipeline
    run: FinishedRun


@pytest.fixture(scope="module")
def year(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Year]:
    with open_pipeline(tmp_path_factory.mktemp("year")) as pipeline:
        pipeline.zone.land([day.key for day in YEAR])
        run = pipeline.run(RAW, STAGING, FEATURES, first=YEAR[0].key, last=YEAR[-1].key)
        assert run.success, run.message
        yield Year(pipeline, run)


def find_environment(year: Year) -> dict[str, str]:
    """Tells a process where the pipeline is."""
    root = year.pipeline.root
    return {
        "DAGSTER_HOME": str(root / "dagster_home"),
        "BACKFILL_LANDING": str(root / "landing"),
        "BACKFILL_WAREHOUSE": year.pipeline.warehouse.root,
    }


def test_reading_the_log_is_quick_and_starts_no_jvm(year: Year) -> None:
    for command in (
        ("status", "--from", YEAR[0].key, "--to", YEAR[-1].key, "--json"),
        ("status", "--missing", "--from", YEAR[0].key, "--to", YEAR[-1].key),
        ("history", STAGING),
        ("proof", "certificate", year.run.id),
    ):
        times, output = time_command(find_environment(year), *command, most=MOST)
        assert times < MOST, command
        if "--json" in command:
            assert len(json.loads(output)) == 365 * 3


def test_a_plan_of_a_year_is_quick_and_starts_no_jvm(year: Year) -> None:
    tables = ",".join((RAW, STAGING, FEATURES))
    ends = ("--from", YEAR[0].key, "--to", YEAR[-1].key)
    for options in ((), ("--only", "stale,missing", "--chunk", "months=1")):
        asked = ("plan", "--select", tables, *ends, *options, "--json")
        times, output = time_command(find_environment(year), *asked, most=MOST)
        assert times < MOST, options
        planned = {
            planned_table["table"]: planned_table["states"]
            for planned_table in json.loads(output)["tables"]
        }
        assert planned == {key: {"materialized": 365} for key in (RAW, STAGING, FEATURES)}


def test_a_plan_of_a_year_of_hours_is_quick_too(year: Year, weather_landing: Path) -> None:
    shutil.copytree(weather_landing / "weather", year.pipeline.zone.root / "weather")
    ends = ("--from", "2013-01-01-00:00", "--to", "2013-12-31-23:00")
    asked = ("plan", "--select", RAW_WEATHER.key, *ends, "--chunk", "months=1", "--json")
    times, output = time_command(find_environment(year), *asked, most=MOST_FOR_HOURS)
    assert times < MOST_FOR_HOURS
    (planned,) = json.loads(output)["tables"]
    assert (planned["states"], planned["chunks"]) == ({"missing": 8760}, 12)


def test_a_year_goes_by_months_in_chunks_that_leave_the_same(year: Year) -> None:
    pipeline = year.pipeline
    before = pipeline.read_contents_checksums(CARRIER_DELAYS)
    ops = {FEATURES: {"chunk": "months=1", "restart": True}}
    run = pipeline.run(FEATURES, first=YEAR[0].key, last=YEAR[-1].key, ops=ops)
    assert run.success, run.message
    (certificate,) = find_certificates(pipeline.warehouse, run.id)
    assert [chunk.first for chunk in certificate.chunks] == [
        f"2013-{month:02}-01" for month in range(1, 13)
    ]
    assert len(certificate.commits) == 12
    assert pipeline.read_contents_checksums(CARRIER_DELAYS) == before


def test_a_rollback_of_five_days_leaves_the_other_360_untouched(year: Year) -> None:
    pipeline = year.pipeline
    log = read_log(pipeline.warehouse, STAGING_FLIGHTS)
    for day in FIVE_DAYS:
        pipeline.zone.change(day.key, lambda flight: {**flight, "arr_delay": 1000})
    for key in (RAW, STAGING):
        change = pipeline.run(key, first=FIRST, last=LAST)
        assert change.success, change.message
    changed = diff_table(log.reread(), FIVE_DAYS, before=change.id)
    # Two flights of the last day land a day later, which was not changed.
    assert [partition.changed for partition in changed.partitions.values()] == [
        120,
        120,
        120,
        120,
        118,
    ]
    assert changed.untouched.holds
    back = pipeline.run_job(
        *("rollback_partitions", "restore_partitions"),
        **{"table": STAGING, "first": FIRST, "last": LAST, "before_run": change.id},
    )
    assert back.success, back.message
    undone = diff_table(log.reread(), YEAR, before="1")
    assert len(undone.partitions) == 365
    assert all(partition.equal and partition.rows_after for partition in undone.partitions.values())
    (certificate,) = find_certificates(pipeline.warehouse, back.id)
    assert not certificate.touched_outside
    assert (certificate.untouched_partitions, certificate.untouched_files) == (360, 360)
    outside = diff_table(log.reread(), FIVE_DAYS, before="1").untouched
    assert outside.holds
    assert outside.partitions == 360
    assert Path(pipeline.warehouse.root, "certificates", back.id).is_dir()
