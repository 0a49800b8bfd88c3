"""The runs of a backfill, their retries and continuations tell how far it has come."""

import datetime as dt
from collections.abc import Callable
from dataclasses import replace

import pytest
from dagster import AssetCheckEvaluation, AssetKey, DagsterEvent, DagsterEventType

from backfill_engine.errors import HistoryError
from backfill_engine.orchestration.backfills.backfills import find_backfill, list_backfills
from backfill_engine.orchestration.backfills.outcomes import find_outcome
from backfill_engine.orchestration.backfills.progress_reader import (
    Progress,
    ProgressReader,
    State,
)
from backfill_engine.orchestration.instance.dagster_internals import BulkActionStatus
from backfill_engine.orchestration.runs.pausing import drop_paused, pause, unpause
from backfill_engine.orchestration.runs.run_tags import FOREGROUND_ENDED_TAG, FOREGROUND_TAG
from backfill_engine_tests.pipeline.alerting import WHY, Home
from backfill_engine_tests.pipeline.requesting import get_run, read_progress, request, set_status
from backfill_engine_tests.pipeline.running import RAW, STAGING, list_days
from backfill_engine_tests.project import CATALOG

DAYS = list_days(4, 7)


def count(progress: Progress) -> dict[str, tuple[int, int, int, int]]:
    """By table: published, held back, at work, waiting."""
    return {
        table.table: (table.published, table.held_back, table.at_work, table.waiting)
        for table in progress.tables
    }


def tell(home: Home, progress: Progress) -> list[tuple[str, str, list[str]]]:
    """What the outcome says of all that is held back: table, status and reasons."""
    outcome = find_outcome(CATALOG, home.instance, home.warehouse, progress)
    return [(entry["table"], entry["status"], entry["reasons"]) for entry in outcome.held_back]


def count_as_read(home: Home, backfill: str) -> Callable[[], dict[str, tuple[int, int, int, int]]]:
    """Counts again and again, by one reader."""
    reader = ProgressReader(CATALOG, home.instance)
    return lambda: count(reader.read(backfill, now=dt.datetime.now(tz=dt.UTC)))


def test_a_backfill_is_followed_from_its_request_to_its_end(home: Home) -> None:
    backfill = request(home.instance, RAW, STAGING, days=DAYS)
    progress = read_progress(home.instance, backfill)
    assert (progress.state, progress.at_work) == ("requested", "the backfill is requested")
    assert count(progress) == {RAW: (0, 0, 0, 4), STAGING: (0, 0, 0, 4)}
    assert progress.seconds_left is None

    home.begin("first", RAW, days=DAYS, backfill=backfill)
    begins = DagsterEvent(DagsterEventType.RUN_START.value, "__ASSET_JOB")
    home.instance.report_dagster_event(begins, "first")
    home.publish("first", RAW, *DAYS[:2])
    progress = read_progress(home.instance, backfill)
    assert count(progress) == {RAW: (2, 0, 2, 0), STAGING: (0, 0, 0, 4)}
    assert progress.at_work == "1 of its runs have not ended"
    assert progress.partitions == 8
    begun = progress.backfill.started_at
    assert begun
    in_half_a_minute = replace(progress, read_at=begun + dt.timedelta(seconds=30))
    assert (in_half_a_minute.per_minute, in_half_a_minute.seconds_left) == (4, 90)

    home.publish("first", RAW, *DAYS[2:])
    home.succeed("first")
    home.begin("second", STAGING, days=DAYS, backfill=backfill)
    home.publish("second", STAGING, *DAYS)
    assert not read_progress(home.instance, backfill).is_over, "its run has not ended"
    home.succeed("second")
    progress = read_progress(home.instance, backfill)  # and Dagster has yet to say so
    assert (progress.state, progress.published, progress.is_over) == ("published", 8, True)
    outcome = find_outcome(CATALOG, home.instance, home.warehouse, progress)
    assert (outcome.state, outcome.held_back, outcome.commands) == ("published", [], [])


def test_what_was_published_before_is_to_be_published_again(home: Home) -> None:
    home.complete("earlier", RAW, days=DAYS)
    backfill = request(home.instance, RAW, days=DAYS)
    assert count(read_progress(home.instance, backfill)) == {RAW: (0, 0, 0, 4)}
    backfill = home.start_backfill(RAW, days=DAYS, published=1)
    assert count(read_progress(home.instance, backfill)) == {RAW: (1, 0, 3, 0)}


def test_a_queued_run_waits_and_a_retry_counts(home: Home) -> None:
    backfill = home.start_backfill(RAW, days=DAYS, published=1, run_id="crashed")
    home.fail("crashed", "killed")
    assert count(read_progress(home.instance, backfill)) == {RAW: (1, 3, 0, 0)}
    home.begin("retry", RAW, days=DAYS, backfill=backfill, root="crashed", state="NOT_STARTED")
    assert count(read_progress(home.instance, backfill)) == {RAW: (1, 0, 0, 3)}


def judge(home: Home, run_id: str, *days: str) -> None:
    """The run tells a check of days, as it does once a chunk is published."""
    for day in days:
        check = AssetCheckEvaluation(
            AssetKey.from_user_string(RAW), "partition_is_valid", passed=False, partition=day
        )
        event = DagsterEvent(
            DagsterEventType.ASSET_CHECK_EVALUATION.value,
            "__ASSET_JOB",
            event_specific_data=check,
        )
        home.instance.report_dagster_event(event, run_id)


def test_what_a_run_at_work_withheld_counts_chunk_by_chunk(home: Home) -> None:
    backfill = home.start_backfill(RAW, days=DAYS)
    read = count_as_read(home, backfill)
    assert read() == {RAW: (0, 0, 4, 0)}
    home.publish("first", RAW, DAYS[0])
    judge(home, "first", *DAYS[:2])
    assert read() == {RAW: (1, 1, 2, 0)}
    home.publish("first", RAW, DAYS[3])
    judge(home, "first", *DAYS[2:])
    assert read() == {RAW: (2, 2, 0, 0)}
    home.fail("first", withheld=RAW)
    home.begin("retry", RAW, days=DAYS[1:3], backfill=backfill)
    assert read() == {RAW: (2, 0, 2, 0)}, "another run tries them"


def test_between_two_runs_of_a_shell_it_is_not_over(home: Home) -> None:
    home.complete("first-run", RAW, days=DAYS)
    home.instance.add_run_tags("first-run", {FOREGROUND_TAG: "once"})
    progress = read_progress(home.instance, "first-run")
    assert (progress.state, progress.at_work) == (
        "running",
        "more of its runs are to come, from the shell that makes them",
    )
    assert read_progress(home.instance, "first-run", later=90).is_over, "the shell was killed"
    home.complete("next-run", STAGING, days=DAYS, chain="first-run")
    home.instance.add_run_tags("next-run", {FOREGROUND_TAG: "once"})
    assert not read_progress(home.instance, "first-run").is_over
    home.instance.add_run_tags("next-run", {FOREGROUND_ENDED_TAG: "true"})
    assert read_progress(home.instance, "first-run").state == "published"


def test_what_is_withheld_is_told_with_ranges_reasons_and_commands(home: Home) -> None:
    backfill = request(home.instance, RAW, STAGING, days=DAYS)
    home.withhold("first", backfill=backfill)
    set_status(home.instance, backfill, BulkActionStatus.COMPLETED_FAILED)
    home.begin("next", STAGING, days=DAYS[2:], chain=backfill)
    assert not read_progress(home.instance, backfill, later=3600).is_over, (
        "a run that continues it is at work"
    )
    home.publish("next", STAGING, *DAYS[2:])
    home.succeed("next")
    progress = read_progress(home.instance, backfill)
    assert count(progress) == {RAW: (3, 1, 0, 0), STAGING: (2, 2, 0, 0)}
    assert (progress.state, progress.is_over) == ("held back", True)
    outcome = find_outcome(CATALOG, home.instance, home.warehouse, progress)
    assert not outcome.only_waits
    assert tell(home, progress) == [
        (RAW, "withheld", [f"2013-01-05: {WHY}"]),
        (STAGING, "held up", [f"2013-01-04...2013-01-05: held up by what was withheld of {RAW}"]),
    ]
    assert outcome.commands == [
        f"backfill-assets status --withheld --select {RAW} --from 2013-01-05 --to 2013-01-05",
        f"backfill-assets backfill retry {backfill}",
    ]
    # Another run has published it since, so nothing is left to do.
    home.complete("mended", RAW, STAGING, days=DAYS[:2])
    assert read_progress(home.instance, backfill).state == "published"


def test_what_never_came_to_its_turn_is_held_back_at_the_end(home: Home) -> None:
    backfill = home.start_backfill(RAW, STAGING, days=DAYS)
    home.fail("first", "No space left on device")
    set_status(home.instance, backfill, BulkActionStatus.COMPLETED_FAILED)
    progress = read_progress(home.instance, backfill)
    assert count(progress) == {RAW: (0, 4, 0, 0), STAGING: (0, 4, 0, 0)}
    why = "no run of it was requested, as what it reads is held back"
    assert tell(home, progress) == [
        (RAW, "failed", ["2013-01-04...2013-01-07: its run failed: No space left on device"]),
        (STAGING, "held up", [f"2013-01-04...2013-01-07: {why}"]),
    ]


def test_a_cancelled_backfill_is_over_once_its_runs_are(home: Home) -> None:
    backfill = request(home.instance, RAW, days=DAYS)
    home.begin("first", RAW, days=DAYS[:2], backfill=backfill)
    home.publish("first", RAW, DAYS[0])
    set_status(home.instance, backfill, BulkActionStatus.CANCELING)
    assert read_progress(home.instance, backfill).state == "being cancelled"
    home.instance.report_run_canceled(get_run(home.instance, "first"))
    progress = read_progress(home.instance, backfill)
    assert (progress.state, count(progress)) == ("cancelled", {RAW: (1, 3, 0, 0)})
    ((_, _, reasons),) = tell(home, progress)
    assert reasons == [
        "2013-01-05: its run was cancelled",
        "2013-01-06...2013-01-07: cancelled before a run of it was requested",
    ]


def test_what_is_paused_waits_and_says_until_when(home: Home) -> None:
    home.begin("first-run", RAW, STAGING, days=DAYS)
    home.publish("first-run", RAW, *DAYS[:2])
    now = dt.datetime.now(tz=dt.UTC)
    paused = pause(home.instance, "first-run", reason="disk", now=now)
    home.pause("first-run", RAW)
    progress = read_progress(home.instance, "first-run", later=3600)
    assert (progress.state, progress.is_over, progress.has_daemon) == ("paused", False, False)
    assert count(progress) == {RAW: (2, 0, 0, 2), STAGING: (0, 0, 0, 4)}
    why = f"{paused}, until `backfill-assets backfill resume first-run`"
    assert (progress.why_paused, progress.at_work) == (why, f"it is paused: {why}")
    unpause(home.instance, "first-run")
    progress = read_progress(home.instance, "first-run")
    assert (
        progress.why_paused == "until the sensor go_on_after_pause asks for the rest, as it may now"
    )

    # A run goes on with it, although the first one's tag doesn't say so yet.
    home.begin("next-run", RAW, STAGING, days=DAYS, chain="first-run")
    progress = read_progress(home.instance, "first-run")
    assert (progress.state, progress.why_paused) == ("running", "")
    assert count(progress) == {RAW: (2, 0, 2, 0), STAGING: (0, 0, 4, 0)}
    home.publish("next-run", RAW, *DAYS[:3])
    home.pause("next-run", RAW)
    assert count(read_progress(home.instance, "first-run")) == {
        RAW: (3, 0, 0, 1),
        STAGING: (0, 0, 0, 4),
    }


def test_what_stands_counts_before_the_run_that_goes_on_comes_to_it(home: Home) -> None:
    home.complete("others", RAW, days=DAYS)
    backfill = home.start_backfill(RAW, days=DAYS, published=2, run_id="paused-run")
    home.pause("paused-run", RAW)
    set_status(home.instance, backfill, BulkActionStatus.COMPLETED_FAILED)
    read = count_as_read(home, backfill)
    assert read() == {RAW: (2, 0, 0, 2)}
    home.begin("goes-on", RAW, days=DAYS, chain=backfill)
    assert read() == {RAW: (2, 0, 2, 0)}, "what others published before is to be done yet"
    judge(home, "goes-on", DAYS[0])
    assert read() == {RAW: (1, 1, 2, 0)}, "it did not stand, and is withheld"
    home.publish("goes-on", RAW, DAYS[2])
    assert read() == {RAW: (2, 1, 1, 0)}
    home.pause("goes-on", RAW)
    assert read() == {RAW: (3, 0, 0, 1)}, "it is tried again"
    home.begin("at-last", RAW, days=DAYS, chain=backfill, state="NOT_STARTED")
    assert read() == {RAW: (3, 0, 0, 1)}


def test_what_is_cancelled_while_it_is_paused_is_over(home: Home) -> None:
    backfill = home.start_backfill(RAW, days=DAYS, published=2)
    home.pause("first", RAW)
    set_status(home.instance, backfill, BulkActionStatus.COMPLETED_FAILED)
    assert read_progress(home.instance, backfill).state == "paused"
    drop_paused(home.instance, home.instance.get_runs())
    progress = read_progress(home.instance, backfill)
    assert (progress.state, count(progress)) == ("cancelled", {RAW: (2, 2, 0, 0)})
    ((_, _, reasons),) = tell(home, progress)
    assert reasons == ["2013-01-06...2013-01-07: its run was cancelled while it was paused"]


def test_what_another_run_took_over_counts_as_it_was_left(home: Home) -> None:
    backfill = home.start_backfill(RAW, days=DAYS, published=3)
    home.fail("first", "killed")
    set_status(home.instance, backfill, BulkActionStatus.COMPLETED_FAILED)
    home.begin("other", RAW, days=[DAYS[0], DAYS[3]])
    states = read_progress(home.instance, backfill).states[RAW]
    assert states[DAYS[0]] is State.PUBLISHED, "it was, by this one"
    assert states[DAYS[3]] is State.HELD_BACK


def test_what_another_run_tried_last_is_told_as_that_left_it(home: Home) -> None:
    backfill = home.start_backfill(RAW, days=DAYS, published=2)
    home.begin("other-run", RAW, days=DAYS[2:])
    home.fail("first", "landing files changed while they were read")
    set_status(home.instance, backfill, BulkActionStatus.COMPLETED_FAILED)

    def tell_later() -> list[tuple[str, str, list[str]]]:
        return tell(home, read_progress(home.instance, backfill, later=3600))

    last = f"{DAYS[2]}...{DAYS[3]}: run other-ru was the last to try it"
    assert tell_later() == [(RAW, "in progress", [f"{last}: in progress"])]
    home.fail("other-run", "No space left on device")
    assert tell_later() == [(RAW, "failed", [f"{last}: its run failed: No space left on device"])]
    home.begin("mended", RAW, days=DAYS[2:])
    home.publish("mended", RAW, *DAYS[2:])
    assert tell_later() == []


def test_a_run_of_no_backfill_is_found_like_one_by_any_of_its_runs(home: Home) -> None:
    home.withhold("first-run")
    home.begin("next-run", STAGING, days=DAYS[2:], chain="first-run")
    for wanted in ("first-run", "next-run", "first-ru"):
        found = find_backfill(CATALOG, home.instance, wanted)
        assert (found.id, found.kind) == ("first-run", "run")
        assert found.title == f"{RAW}, {STAGING} 2013-01-04...2013-01-07"
    assert count(read_progress(home.instance, "first-run")) == {
        RAW: (3, 1, 0, 0),
        STAGING: (0, 2, 2, 0),
    }


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("", "'' names no run or backfill"),
        ("abc", "'abc' names no run or backfill"),
        ("nosuchid", "this Dagster home knows no backfill and no run nosuchid"),
        ("alike-run", "is the beginning of alike-run-1 and alike-run-2"),
    ],
)
def test_what_names_nothing_is_refused(home: Home, wanted: str, message: str) -> None:
    for run_id in ("alike-run-1", "alike-run-2"):
        home.begin(run_id, RAW, days=DAYS)
    with pytest.raises(HistoryError, match=message):
        find_backfill(CATALOG, home.instance, wanted)


def test_backfills_are_listed_newest_first(home: Home) -> None:
    older, newer = (
        request(home.instance, key, days=DAYS, title=title)
        for key, title in ((RAW, "older"), (STAGING, "newer"))
    )
    found = list_backfills(CATALOG, home.instance, limit=5)
    assert [(backfill.id, backfill.title, backfill.origin.reason) for backfill in found] == [
        (newer, "newer", "wrong numbers"),
        (older, "older", "wrong numbers"),
    ]
    assert found[0].list_target_ranges(CATALOG) == [(STAGING, [("2013-01-04", "2013-01-07")])]
    assert [backfill.id for backfill in list_backfills(CATALOG, home.instance, limit=1)] == [newer]
