"""Partitions are taken back to what they held, and the run says what that undoes."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from backfill_engine.errors import RollbackError
from backfill_engine.lake.table_log import read_log
from backfill_engine.proof.certificates import find_certificates
from backfill_engine.publishing.restoring import plan_rollback
from backfill_engine_tests.pipeline.landing_zone import delay
from backfill_engine_tests.pipeline.requesting import read_target
from backfill_engine_tests.pipeline.running import (
    RAW,
    STAGING,
    FinishedRun,
    Pipeline,
    copy_pipeline,
    list_days,
)
from backfill_engine_tests.project import RAW_FLIGHTS, STAGING_FLIGHTS
from backfill_engine_tests.shared_fixtures import build_days

FIRST, LAST = "2013-01-04", "2013-01-06"
CHANGED = list_days(4, 6)
OTHERS = [day for day in list_days(1, 12) if day not in CHANGED]
NOW = dt.datetime.now(tz=dt.UTC)


@dataclass(frozen=True)
class Story:
    """Three days of raw are changed, taken back, and brought again."""

    pipeline: Pipeline
    change: FinishedRun
    back: FinishedRun
    forth: FinishedRun
    checksums: tuple[dict[str, str], ...]


@pytest.fixture(scope="module")
def story(published_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with copy_pipeline(published_root, tmp_path_factory.mktemp("rollback")) as pipeline:
        checksums = [pipeline.read_contents_checksums(RAW_FLIGHTS)]
        change = change_days(pipeline)
        checksums.append(pipeline.read_contents_checksums(RAW_FLIGHTS))
        back = roll_back(pipeline, before_run=change.id)
        checksums.append(pipeline.read_contents_checksums(RAW_FLIGHTS))
        forth = roll_back(pipeline, before_run=back.id)
        checksums.append(pipeline.read_contents_checksums(RAW_FLIGHTS))
        yield Story(pipeline, change, back, forth, tuple(checksums))


def change_days(pipeline: Pipeline) -> FinishedRun:
    for day in CHANGED:
        pipeline.zone.change(day, delay)
    return pipeline.run(RAW, first=FIRST, last=LAST)


def roll_back(pipeline: Pipeline, **options: object) -> FinishedRun:
    return pipeline.roll_back(RAW, FIRST, LAST, **options)


def test_contents_are_what_they_were_and_a_second_rollback_restores_the_restored(
    story: Story,
) -> None:
    assert story.change.success, story.change.message
    assert story.back.success, story.back.message
    assert story.forth.success, story.forth.message
    original, changed, back, forth = story.checksums
    assert {day for day in original if original[day] != changed[day]} == {*CHANGED}
    assert back == original
    assert forth == changed


def test_it_is_one_commit_and_nothing_else_is_touched(story: Story) -> None:
    newest, rollback, change, *_ = read_log(story.pipeline.warehouse, RAW_FLIGHTS).commits
    for commit, run in ((newest, story.forth), (rollback, story.back), (change, story.change)):
        assert commit.record is not None
        assert commit.record.run_id == run.id
        assert sorted(commit.record.rows) == CHANGED
    assert newest.record is not None
    assert newest.record.write_mode == "rollback"
    assert newest.record.input_versions == {RAW: change.version}
    (certificate,) = find_certificates(story.pipeline.warehouse, story.forth.id)
    assert not certificate.touched_outside
    assert certificate.untouched_partitions == len(OTHERS)


def test_materializations_say_what_was_restored(story: Story) -> None:
    newest, back, change, original = story.pipeline.read_materializations(RAW, FIRST)
    version = int(str(original.metadata["delta_version"].value))
    assert "restored" not in change.metadata
    by = find_certificates(story.pipeline.warehouse, story.back.id)[0]
    assert by.write_mode == "rollback"
    assert str(back.metadata["restored"].value).startswith(f"version {version}, published by run ")
    assert newest.metadata["restored"].value == (
        f"version {version + 1}, published by run {story.change.id}"
    )
    assert newest.metadata["checksum"] == change.metadata["checksum"]


def test_the_same_rollback_again_writes_nothing_and_says_what_it_has_done(
    pipeline: Pipeline,
) -> None:
    change = change_days(pipeline)
    roll_back(pipeline, before_run=change.id).confirm()
    version = read_log(pipeline.warehouse, RAW_FLIGHTS).version
    for target in ({"before_run": change.id}, {"to_version": version - 2}):
        again = roll_back(pipeline, downstream=True, **target).confirm()
        assert f"hold already what they held at version {version - 2}, since version {version}" in (
            again.message
        )
        assert f"undone: run {change.id}" in again.message
        assert "requested backfill" in again.message
    assert read_log(pipeline.warehouse, RAW_FLIGHTS).version == version
    partial = pipeline.roll_back(RAW, FIRST, FIRST, to_version=version - 2).confirm()
    assert "hold already" in partial.message


def test_what_was_computed_from_them_is_listed_and_rebuilt_on_request(pipeline: Pipeline) -> None:
    change = change_days(pipeline)
    back = roll_back(pipeline, before_run=change.id, downstream=True).confirm()
    # Of the days before, only the third has flights that landed on the fourth.
    assert "computed from them: staging/flights 2013-01-03...2013-01-06" in back.message
    (backfill,) = pipeline.instance.get_backfills()
    assert f"requested backfill {backfill.backfill_id}" in back.message
    assert read_target(backfill) == {STAGING: list_days(3, 6)}


def test_a_day_that_was_not_published_then_becomes_empty_again(pipeline: Pipeline) -> None:
    pipeline.zone.land(["2013-01-13"])
    run = pipeline.run(RAW, first="2013-01-13", last="2013-01-13").confirm()
    pipeline.roll_back(RAW, "2013-01-13", "2013-01-13", before_run=run.id).confirm()
    assert pipeline.read_rows(RAW_FLIGHTS, "2013-01-13") == []
    newest = pipeline.read_materializations(RAW, "2013-01-13")[0]
    assert str(newest.metadata["restored"].value).endswith("when nothing was published")


def test_later_runs_of_the_same_partitions_are_not_undone_without_force(
    pipeline: Pipeline,
) -> None:
    runs = []
    for minutes in (7, 8):
        pipeline.zone.change(FIRST, partial(delay, minutes=minutes))
        runs.append(pipeline.run(RAW, first=FIRST, last=FIRST))
    before = read_log(pipeline.warehouse, RAW_FLIGHTS).version
    refused = roll_back(pipeline, before_run=runs[0].id)
    assert f"would also undo {runs[1].id} (version {before}): repeat it with --force" in (
        refused.message
    )
    assert read_log(pipeline.warehouse, RAW_FLIGHTS).version == before
    roll_back(pipeline, before_run=runs[0].id, force=True).confirm()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "by the version or by the run to undo: neither is given"),
        ({"to_version": 0, "before_run": "a"}, "by the run to undo: both are given"),
        ({"to_version": 1}, "nothing to undo"),
        ({"to_version": 99}, "raw/flights has no version 99: the newest is 1"),
        ({"before_run": "no-such-run"}, "no run no-such-run has published any of these"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    pipeline: Pipeline, options: dict[str, object], message: str
) -> None:
    refused = roll_back(pipeline, **options)
    assert message in refused.message
    assert read_log(pipeline.warehouse, RAW_FLIGHTS).version == 1


def test_a_version_whose_files_are_gone_is_refused_early(pipeline: Pipeline) -> None:
    gone = pipeline.warehouse.open(STAGING_FLIGHTS, version=1).file_uris()
    pipeline.run(STAGING, first=FIRST, last=LAST).confirm()
    removed = {*gone} - {*pipeline.warehouse.open(STAGING_FLIGHTS).file_uris()}
    Path(sorted(removed)[0]).unlink()
    log = read_log(pipeline.warehouse, STAGING_FLIGHTS)
    with pytest.raises(RollbackError, match=r"1 of its files are gone, .* \(VACUUM removes"):
        plan_rollback(log, build_days(FIRST, 3), to_version=1, now=NOW)


def test_a_version_older_than_the_retention_is_refused_early(pipeline: Pipeline) -> None:
    pipeline.run(STAGING, first=FIRST, last=LAST).confirm()
    log, days = read_log(pipeline.warehouse, STAGING_FLIGHTS), build_days(FIRST, 3)
    plan = plan_rollback(log, days, to_version=1, now=NOW + dt.timedelta(days=89))
    assert plan.to_version == 1
    with pytest.raises(RollbackError, match="older than the 90 days that the table keeps for undo"):
        plan_rollback(log, days, to_version=1, now=NOW + dt.timedelta(days=91))
