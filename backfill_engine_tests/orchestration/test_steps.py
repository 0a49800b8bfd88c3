"""A range gives what its days one by one give; a reversed one gives nothing."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from backfill_engine.lake.table_log import read_log
from backfill_engine_tests.pipeline.landing_zone import double_distance
from backfill_engine_tests.pipeline.running import (
    RAW,
    STAGING,
    FinishedRun,
    Pipeline,
    copy_pipeline,
    list_days,
    open_pipeline,
)
from backfill_engine_tests.project import RAW_FLIGHTS, STAGING_FLIGHTS

BAD = "2013-01-05"


def test_one_range_gives_the_verdicts_and_contents_of_its_days_one_by_one(
    spark: object, tmp_path: Path
) -> None:
    with open_pipeline(tmp_path / "range") as pipeline:
        pipeline.zone.land(list_days(1, 8))
        pipeline.zone.change(BAD, double_distance)
        assert pipeline.run(RAW, first="2013-01-01", last="2013-01-08").success
    with (
        copy_pipeline(tmp_path / "range", tmp_path / "days") as day_by_day,
        open_pipeline(tmp_path / "range") as at_once,
    ):
        days = list_days(1, 6)
        single = [at_once.run(STAGING, first=days[0], last=days[-1], check_events=400)]
        many = [day_by_day.run(STAGING, first=day, last=day, check_events=400) for day in days]
        assert at_once.find_days(STAGING, "FAILED") == [BAD]
        assert day_by_day.find_days(STAGING, "FAILED") == [BAD]
        verdicts = read_verdicts(at_once, single)
        assert verdicts == read_verdicts(day_by_day, many)
        assert len(verdicts) == 4 * 6, "four checks a day; what is withheld is not asked for one"
        assert read_contents(at_once) == read_contents(day_by_day)
        assert set(read_contents(at_once)) == {*days} - {BAD}
        assert read_log(at_once.warehouse, STAGING_FLIGHTS).version == 1
        assert read_log(day_by_day.warehouse, STAGING_FLIGHTS).version == 5


def test_a_table_on_disk_that_differs_ends_a_step_in_a_line(empty_pipeline: Pipeline) -> None:
    pipeline = empty_pipeline
    pipeline.zone.land(list_days(1, 3))
    path = read_log(pipeline.warehouse, RAW_FLIGHTS).uri
    write_deltalake(path, pa.table({"landing_date": [dt.date(2013, 1, 1)], "carrier": [1]}))
    run = pipeline.run(RAW, first="2013-01-01", last="2013-01-01")
    assert "declare a table of another name and fill that; nothing was written" in run.message
    assert read_log(pipeline.warehouse, RAW_FLIGHTS).version == 0
    assert pipeline.find_days(RAW, "FAILED") == ["2013-01-01"]


def read_verdicts(pipeline: Pipeline, runs: Sequence[FinishedRun]) -> dict:
    """By partition and check: whether it passed, how severe it is, and all that was measured."""
    return {
        (evaluation.partition, evaluation.check_name): (
            evaluation.passed,
            evaluation.severity,
            # What to do names the run.
            {name: value for name, value in evaluation.metadata.items() if name != "what to do"},
        )
        for run in runs
        for evaluation in pipeline.read_evaluations(run)
        if evaluation.partition is not None
    }


def read_contents(pipeline: Pipeline) -> dict:
    """Rows, checksum and profile of each published day, as its commit has them."""
    publishes = read_log(pipeline.warehouse, STAGING_FLIGHTS).publishes
    return {
        key: (publish.rows, publish.checksum, publish.record.profiles[key])
        for key, publish in publishes.items()
    }


def test_a_reversed_range_fails_and_writes_nothing(pipeline: Pipeline) -> None:
    before = read_log(pipeline.warehouse, RAW_FLIGHTS).version
    run = pipeline.run(RAW, first="2013-01-09", last="2013-01-02")
    assert (run.success, run.message) == (
        False,
        "no partition lies in 2013-01-09...2013-01-02: a range is FIRST...LAST, ascending; "
        "nothing was written",
    )
    assert read_log(pipeline.warehouse, RAW_FLIGHTS).version == before
    assert pipeline.find_days(RAW, "FAILED") == []
    assert all(len(pipeline.read_materializations(RAW, day)) == 1 for day in list_days(1, 12))
