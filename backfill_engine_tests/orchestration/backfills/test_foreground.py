"""A plan is cut into runs, and verdicts tell of runs that were never made or ended. No Spark."""

import datetime as dt
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event, Timer

import pytest
import typer
from dagster import DagsterRunStatus

from backfill_engine.cli import job_runs
from backfill_engine.cli.run_command import carry_out, print_idle, print_verdicts
from backfill_engine.errors import BackfillError
from backfill_engine.orchestration.backfills import foreground as foreground_module
from backfill_engine.orchestration.backfills.cancelling import cancel
from backfill_engine.orchestration.backfills.foreground import (
    Execution,
    Foreground,
    RangeRun,
    build_range_runs,
)
from backfill_engine.orchestration.backfills.outcomes import (
    Verdicts,
    build_idle_verdicts,
    find_verdicts,
)
from backfill_engine.orchestration.backfills.progress_reader import ProgressReader
from backfill_engine.orchestration.planning.launching import describe_planned
from backfill_engine.orchestration.planning.plans import Plan, TablePlan
from backfill_engine.orchestration.runs.option_declarations import Launch
from backfill_engine.orchestration.runs.pausing import pause
from backfill_engine.orchestration.runs.run_tags import (
    FOREGROUND_CANCELLED_TAG,
    FOREGROUND_ENDED_TAG,
    FOREGROUND_TAG,
    LAUNCHED_BY_TAG,
    REASON_TAG,
)
from backfill_engine_tests.pipeline.alerting import Home
from backfill_engine_tests.pipeline.requesting import get_run, read_progress
from backfill_engine_tests.pipeline.running import FEATURES, RAW, STAGING, list_days
from backfill_engine_tests.project import CATALOG, defs

GRAPH = defs.get_repository_def().asset_graph
JANUARY = ("2013-01-01", "2013-01-31")


def test_a_run_goes_on_where_ctrl_c_interrupts_who_waits_for_it() -> None:
    go_on = Event()

    def work(_: RangeRun) -> None:
        go_on.wait()

    execution = Execution(work, RangeRun((), "", "", {}))
    execution.start()
    Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        execution.has_ended.wait(5)
    assert not execution.has_ended.is_set()
    go_on.set()
    assert execution.has_ended.wait(5)


def plan_table(key: str, *ranges: tuple[str, str]) -> TablePlan:
    return TablePlan(key, "code", {}, [], ranges, len(ranges), 1, 1, 0, 0, 0, None)


def build(*tables: TablePlan) -> list[tuple[str, ...]]:
    runs = build_range_runs(
        CATALOG, GRAPH, Plan(tables, {}), Launch(reason="why"), launch_id="once"
    )
    return [(*run.assets, run.first, run.last) for run in runs]


def test_tables_go_with_those_they_read_where_their_ranges_are_the_same() -> None:
    hours = ("2013-01-01-00:00", "2013-01-31-23:00")
    assert build(
        plan_table("raw/flights", JANUARY),
        plan_table("raw/weather", hours),
        plan_table("staging/flights", JANUARY),
        plan_table("staging/weather", JANUARY),
        plan_table("features/carrier_delays", JANUARY),
        plan_table("features/departure_conditions", JANUARY),
    ) == [
        ("raw/flights", "staging/flights", "features/carrier_delays", *JANUARY),
        ("raw/weather", *hours),
        ("staging/weather", "features/departure_conditions", *JANUARY),
    ]


def test_other_ranges_are_runs_of_their_own_upstream_first() -> None:
    days = [("2013-01-02", "2013-01-02"), ("2013-01-05", "2013-01-07")]
    assert build(
        plan_table("raw/flights", *days),
        plan_table("raw/orders"),
        plan_table("staging/flights", days[0]),
        plan_table("features/carrier_delays", JANUARY),
    ) == [
        ("raw/flights", *days[0]),
        ("raw/flights", *days[1]),
        ("staging/flights", *days[0]),
        ("features/carrier_delays", *JANUARY),
    ]


def test_a_run_says_who_and_why_and_nobody_else_retries_it() -> None:
    plan = Plan([plan_table("raw/flights", JANUARY)], {})
    (run,) = build_range_runs(CATALOG, GRAPH, plan, Launch(reason="why"), launch_id="once")
    assert (run.tags[REASON_TAG], run.tags[FOREGROUND_TAG]) == ("why", "once")
    assert run.tags[LAUNCHED_BY_TAG]
    assert run.tags["dagster/max_retries"] == "0"


def test_a_title_says_the_ends_of_each_grain() -> None:
    plan = Plan(
        [
            plan_table("raw/flights", ("2013-01-02", "2013-01-02"), ("2013-01-05", "2013-01-07")),
            plan_table("raw/orders", ("0000000", "0100000")),
            plan_table("staging/flights", JANUARY),
            plan_table("staging/orders"),
        ],
        {},
    )
    assert describe_planned(CATALOG, plan) == (
        "raw/flights, staging/flights 2013-01-01...2013-01-31; raw/orders 0000000...0100000"
    )


DAYS = list_days(4, 7)


def build_run(key: str) -> RangeRun:
    return RangeRun((key,), DAYS[0], DAYS[-1], {FOREGROUND_TAG: "once"})


@dataclass
class Executions:
    """Makes each run, as it is told: no steps, the runs are the instance's."""

    home: Home
    execute: Callable[[Home, str], None]
    runs: list[str] = field(default_factory=list)
    ends_at: str = ""

    def __call__(self, request: RangeRun) -> None:
        """Makes it."""
        run_id = f"run-{len(self.runs) + 1}"
        self.runs.append(run_id)
        days = [day for day in DAYS if request.first <= day <= request.last]
        if run_id == self.ends_at:
            raise BackfillError("this machine has no room")
        self.home.begin(run_id, *request.assets, days=days)
        self.home.instance.add_run_tags(run_id, request.all_tags)
        self.execute(self.home, run_id)


def prepare(
    home: Home, execute: Callable[[RangeRun], None], targets: dict[str, list[str]]
) -> Foreground:
    return Foreground(CATALOG, home.instance, GRAPH, home.warehouse, execute, "once", targets)


def carry_two_out(home: Home, execute: Callable[[Home, str], None]) -> tuple[list[str], Verdicts]:
    """Returns which of two runs were made, and the verdicts."""
    executions = Executions(home, execute)
    foreground = prepare(home, executions, {RAW: DAYS, STAGING: DAYS})
    list(foreground.carry_out(build_run(key) for key in (RAW, STAGING)))
    # Two days of staging weren't chosen, as they are up to date.
    plan = Plan([plan_table(RAW, JANUARY), replace(plan_table(STAGING, JANUARY), up_to_date=2)], {})
    found = find_verdicts(
        CATALOG, home.instance, home.warehouse, foreground, plan, is_cancelled=False
    )
    return executions.runs, found


def test_a_run_that_cannot_be_made_is_one_error(home: Home) -> None:
    def execute(_: RangeRun) -> None:
        raise OSError("no room\nfor a run")

    foreground = prepare(home, execute, {RAW: DAYS})
    with pytest.raises(BackfillError, match=r"no run could be made: no room$"):
        list(foreground.carry_out([build_run(RAW)]))
    assert not foreground.runs


def list_held_back(found: Verdicts) -> list[tuple[str, str, int, str]]:
    return [
        (held_back["table"], held_back["status"], held_back["partitions"], held_back["reasons"][0])
        for table in found.tables
        for held_back in table.held_back
    ]


def test_the_last_line_says_how_much_was_left_as_up_to_date(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    def execute(home: Home, run_id: str) -> None:
        key = RAW if run_id == "run-1" else STAGING
        home.publish(run_id, key, *DAYS)
        left = dict.fromkeys(DAYS[:3], "already published")
        home.certify(run_id, key, {**left, DAYS[3]: "published"})
        home.succeed(run_id)

    _, found = carry_two_out(home, execute)
    assert [(table.partitions, table.published, table.up_to_date) for table in found.tables] == [
        (4, 1, 3),
        (6, 1, 5),
    ]
    assert found.tables[0].published_ranges == [DAYS[-1]]
    assert (found.state, found.up_to_date) == ("published", 8)
    print_verdicts(found)
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"published: 1 of 4 of {RAW}, 1 of 6 of {STAGING}; 8 left as up to date"
    )
    idle = build_idle_verdicts(Plan([replace(plan_table(RAW), up_to_date=5)], {}))
    assert [(table.table, table.partitions, table.up_to_date) for table in idle.tables] == [
        (RAW, 5, 5)
    ]
    print_idle(idle)
    assert capsys.readouterr().out == "nothing is to be run; 5 left as up to date\n"


@pytest.mark.parametrize("is_noted", [True, False])
def test_a_pause_from_elsewhere_ends_it_and_the_rest_is_told_as_paused(
    home: Home, *, is_noted: bool
) -> None:
    def execute(home: Home, run_id: str) -> None:
        home.publish(run_id, RAW, DAYS[0])
        if is_noted:  # else its window has closed
            pause(home.instance, run_id, reason="disk", now=dt.datetime.now(tz=dt.UTC))
        home.pause(run_id, RAW)

    runs, found = carry_two_out(home, execute)
    assert (runs, found.state) == (["run-1"], "paused")
    assert list_held_back(found) == [
        (RAW, "paused", 3, "2013-01-05...2013-01-07: its run is paused"),
        (STAGING, "paused", 4, "2013-01-04...2013-01-07: paused before a run of it was made"),
    ]
    assert found.commands == (["backfill-assets backfill resume run-1"] if is_noted else [])


def test_a_cancellation_from_elsewhere_ends_it(home: Home) -> None:
    def execute(home: Home, run_id: str) -> None:
        home.instance.report_run_canceled(get_run(home.instance, run_id))

    runs, found = carry_two_out(home, execute)
    assert (runs, found.state) == (["run-1"], "cancelled")
    assert FOREGROUND_ENDED_TAG in get_run(home.instance, "run-1").tags
    assert [status for _, status, _, _ in list_held_back(found)] == ["cancelled", "cancelled"]


def test_a_cancellation_between_two_runs_ends_it_before_the_next(home: Home) -> None:
    def execute(home: Home, run_id: str) -> None:
        home.publish(run_id, RAW, *DAYS)
        home.succeed(run_id)
        found = cancel(CATALOG, home.instance, run_id, wait_seconds=0, silent_seconds=3600)
        assert (found.ended, found.unfinished, found.by_shell) == ([], [], True)
        progress = read_progress(home.instance, run_id)
        assert (progress.state, progress.is_over) == ("being cancelled", False)

    runs, found = carry_two_out(home, execute)
    assert (runs, found.state) == (["run-1"], "cancelled")
    why = "2013-01-04...2013-01-07: cancelled before a run of it was requested"
    assert list_held_back(found) == [(STAGING, "cancelled", 4, why)]
    # An observer elsewhere knows of the runs that were made.
    assert read_progress(home.instance, "run-1").is_over
    with pytest.raises(BackfillError, match=r"run run-1 is over \(success\)"):
        cancel(CATALOG, home.instance, "run-1", wait_seconds=0, silent_seconds=3600)


def test_a_run_that_begins_as_it_is_cancelled_is_ended_by_its_shell(home: Home) -> None:
    def execute(home: Home, run_id: str) -> None:
        if run_id == "run-1":
            home.publish(run_id, RAW, *DAYS)
            home.succeed(run_id)
            return
        # An observer looked before this run was made.
        home.instance.add_run_tags("run-1", {FOREGROUND_CANCELLED_TAG: "true"})
        work_until_interrupted(home, run_id)

    executions = Executions(home, execute)
    foreground = prepare(home, executions, {RAW: DAYS})
    list(foreground.carry_out(build_run(key) for key in (RAW, STAGING, FEATURES)))
    assert executions.runs == ["run-1", "run-2"]
    assert read_progress(home.instance, "run-1").state == "cancelled"


def work_until_interrupted(home: Home, run_id: str) -> None:
    """Works until somebody interrupts it, and then ends as Dagster lets a run end."""
    deadline = time.monotonic() + 30
    try:
        while time.monotonic() < deadline:
            time.sleep(0.05)
    except KeyboardInterrupt:
        run = get_run(home.instance, run_id)
        assert run.status is DagsterRunStatus.CANCELING
        home.instance.report_run_canceled(run)


def test_a_run_that_does_not_end_as_it_is_cancelled_counts_as_cancelled(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = Event()

    def execute(_: Home, __: str) -> None:
        done.wait(30)

    monkeypatch.setattr(foreground_module, "_CANCEL_SECONDS", 0.1)
    executions = Executions(home, execute)
    foreground = prepare(home, executions, {RAW: DAYS})
    states = foreground.carry_out([build_run(RAW)])
    next(states)
    foreground.cancel()
    done.set()
    assert read_progress(home.instance, "run-1").state == "cancelled"


def test_an_error_in_mid_way_leaves_the_verdicts_of_what_was_done(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def execute(home: Home, run_id: str) -> None:
        home.publish(run_id, RAW, *DAYS)
        home.succeed(run_id)

    executions = Executions(home, execute, ends_at="run-2")
    monkeypatch.setattr(job_runs, "materialize", lambda _, request: executions(request))
    monkeypatch.setenv("BACKFILL_WAREHOUSE", home.warehouse.root)
    plan = Plan([plan_table(RAW, (DAYS[0], DAYS[-1])), plan_table(STAGING, (DAYS[0], DAYS[1]))], {})
    with pytest.raises(typer.Exit) as ended:
        carry_out(home.instance, plan, Launch(), as_json=True)
    assert ended.value.exit_code == 1
    now = dt.datetime.now(tz=dt.UTC)
    assert not ProgressReader(CATALOG, home.instance).read("run-1", now=now).at_work
    found = json.loads(capsys.readouterr().out)
    why = "no run could be made: this machine has no room"
    assert found["errors"] == [why]
    assert [
        (table["table"], table["published"], table["partitions"]) for table in found["tables"]
    ] == [
        (RAW, 4, 4),
        (STAGING, 0, 2),
    ]
    (held_back,) = (held_back for table in found["tables"] for held_back in table["held_back"])
    days = "2013-01-04...2013-01-05"
    reasons = [f"{days}: no run of it was made: {why}"]
    assert [*held_back] == ["table", "status", "partitions", "ranges", "reasons"]
    assert [*held_back.values()] == [STAGING, "failed", 2, [days], reasons]
