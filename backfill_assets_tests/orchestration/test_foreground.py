"""How a plan is cut into runs, and what becomes of runs of which the process is lost. No Spark."""

from pathlib import Path

import pytest
from dagster import DagsterInstance

from backfill_assets.cli.worker_process import open_worker
from backfill_assets.definitions import defs
from backfill_assets.errors import BackfillError
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.orchestration.foreground import Foreground, RangeRun, build_range_runs
from backfill_assets.orchestration.launching import LAUNCHED_BY_TAG, Launch, describe_planned
from backfill_assets.orchestration.plans import Plan, TablePlan
from backfill_assets.orchestration.run_options import CHAIN_TAG, FOREGROUND_TAG, REASON_TAG

GRAPH = defs.get_repository_def().asset_graph
JANUARY = ("2013-01-01", "2013-01-31")


def plan_table(key: str, *ranges: tuple[str, str]) -> TablePlan:
    return TablePlan(key, {}, [], ranges, len(ranges), 1, 1, 0, 0, 0, None)


def build(*tables: TablePlan) -> list[tuple[str, ...]]:
    runs = build_range_runs(GRAPH, Plan(tables, {}), Launch(reason="why"), launch_id="once")
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
    (run,) = build_range_runs(GRAPH, plan, Launch(reason="why"), launch_id="once")
    assert (run.tags[REASON_TAG], run.tags[FOREGROUND_TAG]) == ("why", "once")
    assert run.tags[LAUNCHED_BY_TAG]
    assert run.tags["dagster/max_retries"] == "0"
    assert run.continue_chain("first").tags[CHAIN_TAG] == "first"
    assert RangeRun.from_json(run.to_json()) == run


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
    assert describe_planned(plan) == (
        "raw/flights, staging/flights 2013-01-01...2013-01-31; raw/orders 0000000...0100000"
    )


def test_a_process_that_cannot_even_begin_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "nowhere"))
    request = RangeRun(("raw/flights",), *JANUARY, {FOREGROUND_TAG: "once"})
    with DagsterInstance.ephemeral() as instance, open_worker() as worker:
        targets = {"raw/flights": ["2013-01-01"]}
        warehouse = Warehouse(str(tmp_path))
        foreground = Foreground(instance, GRAPH, warehouse, worker, "once", targets)
        with pytest.raises(BackfillError, match=r"no run could be made: exit 1, last words: .*"):
            list(foreground.carry_out([request]))
    assert not foreground.runs
