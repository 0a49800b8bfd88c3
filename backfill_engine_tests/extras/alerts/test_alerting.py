"""One notice tells of each chain that held something back, whatever the receiver does."""

import datetime as dt
import time
from pathlib import Path

from backfill_engine.extras.alerts.alerting import AlertMemory
from backfill_engine.orchestration.backfills.outcomes import (
    CANCELLED,
    PAUSED_STATUS,
    find_chain_result,
)
from backfill_engine.orchestration.instance.dagster_internals import (
    AUTO_RETRY_RUN_ID_TAG,
    WILL_RETRY_TAG,
    BulkActionStatus,
)
from backfill_engine.orchestration.runs.chains import read_chain
from backfill_engine.orchestration.runs.pausing import drop_paused
from backfill_engine.proof.certificates import NOT_DUE
from backfill_engine_tests.pipeline.alerting import WHY, Home
from backfill_engine_tests.pipeline.requesting import add_backfill, set_status
from backfill_engine_tests.pipeline.running import FEATURES, RAW, STAGING, list_days
from backfill_engine_tests.project import CATALOG

DAYS = list_days(4, 7)


def test_a_run_its_continuation_and_a_retry_are_one_notice(home: Home) -> None:
    home.withhold("first")
    home.begin("next", STAGING, days=list_days(6, 7), chain="first")
    home.fail("next", "its process is gone: killed")
    home.begin("retry", STAGING, days=list_days(6, 7), chain="first", root="next")
    home.publish("retry", STAGING, *list_days(6, 7))
    home.certify("retry", STAGING, dict.fromkeys(list_days(6, 7), "published"))
    home.succeed("retry")
    assert home.post_notices().accepted == ["first next"]
    (notice,) = home.receiver.accepted
    assert (notice["kind"], notice["outcome"]) == ("chain", "withheld")
    assert notice["runs"] == ["first", "next", "retry"]
    names = ("table", "status", "partitions", "ranges", "reasons")
    why = f"held up by what was withheld of {RAW}"
    assert notice["tables"] == [
        dict(zip(names, values, strict=True))
        for values in (
            (RAW, "withheld", 1, ["2013-01-05"], [f"2013-01-05: {WHY}"]),
            (STAGING, "held up", 2, [f"{DAYS[0]}...{DAYS[1]}"], [f"{DAYS[0]}...{DAYS[1]}: {why}"]),
        )
    ]
    assert notice["errors"] == []
    assert notice["goes_on"] == [f"published 2 of {STAGING} in runs that continued it"]
    assert notice["commands"]["look"] == [
        f"backfill-assets status --withheld --select {RAW} --from 2013-01-05 --to 2013-01-05"
    ]
    first, second = notice["commands"]["run_again"]
    assert f"--select 'key:\"{RAW}\"' --partition-range 2013-01-05...2013-01-05" in first
    assert f"--select 'key:\"{STAGING}\"' --partition-range 2013-01-04...2013-01-05" in second
    for line in (f"{RAW} withheld 2013-01-05: {WHY}", f"  {first}"):
        assert line in notice["text"].splitlines()
    assert home.post_notices().accepted == []


def test_what_is_good_in_the_end_is_not_told(home: Home) -> None:
    home.complete("good", RAW, days=list_days(1, 2))
    home.begin("crashed", RAW, days=list_days(3, 4))
    home.fail("crashed", "killed")
    home.complete("retry", RAW, days=list_days(3, 4), root="crashed")
    home.begin("early", FEATURES, days=list_days(9, 9))
    home.certify("early", FEATURES, {"2013-01-09": NOT_DUE})
    home.fail("early", withheld=FEATURES)
    home.begin("of another home", RAW, days=list_days(8, 8), recovered="true")
    home.fail("of another home")
    report = home.post_notices()
    assert (report.posted, report.waiting, report.problems) == (0, [], [])
    assert home.receiver.requests == 0


def test_what_was_cancelled_while_it_was_paused_did_not_fail(home: Home) -> None:
    home.begin("paused", RAW, days=DAYS)
    home.publish("paused", RAW, *DAYS[:2])
    home.certify("paused", RAW, dict.fromkeys(DAYS[:2], "published") | {DAYS[2]: "failed"})
    home.pause("paused", RAW)
    assert home.post_notices().waiting == ["paused: it is paused"]

    def find_held_back() -> list[tuple[str, list[str]]]:
        chain = read_chain(home.instance, "paused")
        found = find_chain_result(CATALOG, home.instance, home.warehouse, chain)
        return [(verdict.status, list(verdict.reasons)) for verdict in found.held_back]

    assert find_held_back() == [(PAUSED_STATUS, DAYS[2:])]
    drop_paused(home.instance, read_chain(home.instance, "paused").runs)
    report = home.post_notices()
    assert (report.posted, report.waiting, report.problems) == (0, [], [])
    assert find_held_back() == [(CANCELLED, DAYS[2:])]


def test_a_chain_is_told_only_at_its_end(home: Home) -> None:
    home.withhold("first")
    assert home.post_notices(later=5).posted == 0, "the daemon has not had its turn"
    home.begin("next", STAGING, days=list_days(6, 7), chain="first")
    assert home.post_notices(later=3600).posted == 0, "it is at work"
    home.fail("next", "killed")
    home.instance.add_run_tags("next", {WILL_RETRY_TAG: "true"})
    assert home.post_notices().posted == 0, "a retry is to come"
    home.instance.add_run_tags("next", {AUTO_RETRY_RUN_ID_TAG: "retry"})
    assert home.post_notices().accepted == ["first next"]


def test_a_backfill_is_told_once_it_has_ended(home: Home) -> None:
    add_backfill(home.instance, "abcdefgh")
    home.withhold("first", backfill="abcdefgh")
    home.begin("second", RAW, days=list_days(10, 10), backfill="abcdefgh")
    home.fail("second", "No space left on device")
    assert home.post_notices().waiting == ["abcdefgh: the backfill is requested"]
    set_status(home.instance, "abcdefgh", BulkActionStatus.COMPLETED_FAILED)
    assert home.post_notices().accepted == ["abcdefgh second"]
    (notice,) = home.receiver.accepted
    assert (notice["kind"], notice["chain"]) == ("backfill", "abcdefgh")
    reasons = [reason for table in notice["tables"] for reason in table["reasons"]]
    assert "2013-01-10: its run failed: No space left on device" in reasons


def test_a_run_without_partitions_tells_its_error(home: Home) -> None:
    home.begin("maintain", days=[])
    home.fail("maintain", "the disk is full")
    home.post_notices()
    (notice,) = home.receiver.accepted
    assert (notice["outcome"], notice["tables"]) == ("failed", [])
    assert notice["errors"] == ["run maintain (__ASSET_JOB): the disk is full"]


def test_what_a_dead_run_published_and_could_not_record_is_not_told_as_held_back(
    home: Home,
) -> None:
    home.begin("dead", RAW, days=list_days(4, 5))
    home.certify("dead", RAW, dict.fromkeys(list_days(4, 5), "published"))
    home.fail("dead", "its process is gone: killed")
    home.post_notices()
    (notice,) = home.receiver.accepted
    assert notice["tables"] == []
    assert notice["errors"] == ["run dead (__ASSET_JOB): its process is gone: killed"]


def test_a_chain_that_fails_again_later_is_told_anew(home: Home) -> None:
    home.withhold("first")
    assert home.post_notices().accepted == ["first first"]
    home.withhold("again", root="first")
    assert home.post_notices().accepted == ["first again"]
    assert home.post_notices().accepted == []


def test_no_notice_is_lost_or_doubled_by_a_receiver_that_is_slow_broken_and_down(
    home: Home,
) -> None:
    home.withhold("first")
    home.receiver.dawdle()
    began = time.monotonic()
    report = home.post_notices(timeout_seconds=0.3)
    assert time.monotonic() - began < 10
    assert report.refused == {"127.0.0.1 did not answer within 0.3 s": 1}
    home.withhold("second", first=10)
    home.receiver.hurry()
    home.receiver.status = 500
    assert home.post_notices().refused == {"127.0.0.1 answered 500": 2}
    home.receiver.status = 307  # to a place that would accept all
    assert home.post_notices().refused == {"127.0.0.1 answered 307": 2}
    home.receiver.go_down()
    report = home.post_notices()
    assert report.refused == {"127.0.0.1 can't be reached (ConnectionError)": 1}
    assert home.accepted == []
    home.withhold("third", first=20)
    home.receiver.status = 204
    home.receiver.come_up()
    home.post_notices()
    home.post_notices()
    assert home.accepted == ["first", "second", "third"]


def test_a_look_posts_so_many_and_stops_at_a_receiver_that_hangs(home: Home) -> None:
    for number in range(22):
        home.begin(f"run {number:02}", days=[])
        home.fail(f"run {number:02}", "broken")
    home.receiver.dawdle()
    assert home.post_notices(timeout_seconds=0.2).posted == 1
    home.receiver.hurry()
    assert [len(home.post_notices().accepted) for _ in range(3)] == [20, 2, 0]
    assert home.accepted == [f"run {number:02}" for number in range(22)]


def test_what_could_not_be_told_for_a_day_is_given_up_and_that_is_said(home: Home) -> None:
    home.withhold("first")
    home.receiver.status = 500
    home.post_notices()
    home.receiver.status = 200
    report = home.post_notices(later=24 * 3600 + 60)
    assert home.accepted == []
    (problem,) = report.problems
    assert problem.startswith("chain first ended ")
    assert "it is given up" in problem
    assert home.post_notices(later=24 * 3600 + 60).problems == []


def test_the_first_look_tells_nothing_old(home: Home) -> None:
    home.withhold("first")
    home.memory = AlertMemory.from_json(None, now=dt.datetime.now(tz=dt.UTC))
    assert home.post_notices().posted == 0
    home.withhold("second")
    home.post_notices()
    assert home.accepted == ["second"]


def test_a_warehouse_that_cannot_be_read_costs_the_reasons_alone(home: Home) -> None:
    home.withhold("first")
    certificates = Path(home.warehouse.root) / "certificates"
    (certificates / "first").rename(certificates / "away")
    (certificates / "first").write_text("no folder")
    home.post_notices()
    (notice,) = home.receiver.accepted
    assert [(table["table"], table["ranges"]) for table in notice["tables"]] == [
        (RAW, ["2013-01-05"]),
        (STAGING, ["2013-01-04...2013-01-07"]),
    ]
