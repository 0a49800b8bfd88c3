"""A real daemon has two places for runs, and a backfill may take only one of them."""

from itertools import pairwise
from pathlib import Path

import pytest
from dagster import (
    AssetKey,
    AssetRecordsFilter,
    DagsterInstance,
    DagsterRunStatus,
    RunRecord,
    RunsFilter,
)

from backfill_engine.orchestration.instance.dagster_internals import BACKFILL_TAG
from backfill_engine.orchestration.runs.run_tags import AT_MOST_TAG, find_run_range
from backfill_engine_tests.commands import Project
from backfill_engine_tests.pipeline.commanding import (
    follow,
    launch,
    list_commits,
    list_published,
    read_lines,
    wait_until,
)
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.running import RAW, list_days
from backfill_engine_tests.servers import serve

# Runs on Sail are too short to overlap.
pytestmark = [
    *(pytest.mark.slow, pytest.mark.by_hand, pytest.mark.only_spark),
    pytest.mark.timeout(1800),
]

ASSET = AssetKey.from_user_string(RAW)
# Published days lie between them, so each is a run of its own.
PUBLISHED, DAYS = ("2013-01-02", "2013-01-04"), ("2013-01-01", "2013-01-03", "2013-01-05")
BESIDE = "2013-01-06"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Two days are published; now the others have landed too."""
    zone = LandingZone(tmp_path / "landing")
    zone.land(PUBLISHED)
    project = Project(tmp_path, zone.root)
    run = project.materialize(RAW, partitions=f"{PUBLISHED[0]}...{PUBLISHED[1]}")
    assert "withheld 1 of 3 partitions" in run.stderr, "the day between them"
    zone.land(list_days(1, 6))
    return project


def test_runs_of_a_backfill_go_one_at_a_time_and_once_each_where_two_could(
    project: Project,
) -> None:
    """Runs that wait for such a limit may be launched twice, says dagster issue 15155."""
    ends = ("--from", DAYS[0], "--to", DAYS[-1], "--only", "missing,failed,withheld")
    with (
        DagsterInstance.from_config(project.environment["DAGSTER_HOME"]) as instance,
        serve(project) as dagster,
    ):
        backfill = launch(project, "--select", RAW, *ends, "--max-parallel", "1")
        of_it = RunsFilter(tags={BACKFILL_TAG: backfill})
        at_work = RunsFilter(tags=of_it.tags, statuses=[DagsterRunStatus.STARTED])
        wait_until(lambda: instance.get_runs(at_work))
        beside = dagster.launch_run(RAW, first=BESIDE, last=BESIDE)
        assert follow(project, backfill) == 0, read_lines(project, backfill)[-1]
        ours = sorted(instance.get_run_records(of_it), key=find_start)
        (other,) = instance.get_run_records(RunsFilter(run_ids=[beside]))
        assert len(instance.get_run_records()) == len(ours) + 2, "and the one before"
        materialized = {
            day: [
                record.run_id
                for record in instance.fetch_materializations(
                    AssetRecordsFilter(ASSET, asset_partitions=[day]), limit=100
                ).records
            ]
            for day in DAYS
        }
    runs = [record.dagster_run for record in ours]
    assert {run.status for run in runs} == {DagsterRunStatus.SUCCESS}
    assert [run.asset_selection for run in runs] == [{ASSET}] * len(DAYS)
    assert sorted(find_run_range(run) or () for run in runs) == [(day, day) for day in DAYS]
    limits = [run.tags.get(f"{AT_MOST_TAG}1") for run in runs]
    assert limits[0]
    assert len({*limits}) == 1, "what they have in common is what is counted"
    for earlier, later in pairwise(ours):
        assert find_end(earlier) <= find_start(later)
    # Another run had the other place.
    assert f"{AT_MOST_TAG}1" not in other.dagster_run.tags
    assert any(
        find_start(record) < find_end(other) and find_start(other) < find_end(record)
        for record in ours
    )

    by_day = {day: run.run_id for run in runs for day in (find_run_range(run) or ())}
    assert materialized == {day: [by_day[day]] for day in DAYS}
    assert list_published(list_commits(project, RAW, *DAYS)) == [*DAYS]


def find_start(record: RunRecord) -> float:
    assert record.start_time is not None
    return record.start_time


def find_end(record: RunRecord) -> float:
    assert record.end_time is not None
    return record.end_time
