"""`plan` and `launch` work over landed files before any table exists. They need no Spark."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster import AssetKey, AssetMaterialization, DagsterInstance, DagsterRun, DagsterRunStatus
from typer.testing import CliRunner

from backfill_engine.cli import app
from backfill_engine.errors import SettingsError
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.dagster_internals import PartitionBackfill
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.runs.run_tags import RANGE_END_TAG, RANGE_START_TAG
from backfill_engine.spark.remotes import SPARK_REMOTE_TAG
from backfill_engine_tests.commands import PROJECT
from backfill_engine_tests.pipeline.alerting import Home
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.running import RAW, STAGING, list_days
from backfill_engine_tests.pipeline.written_tables import ROWS, commit_as_now

DAYS = list_days(1, 4)

RANGE = ("--select", "raw/flights,staging/flights", "--from", "2013-01-01", "--to", "2013-01-03")

FOUR = (*RANGE[:-1], DAYS[3])

MISSING = ("--only", "missing")


@pytest.fixture(autouse=True)
def zone(installation: LandingZone) -> LandingZone:
    """Three days have landed, and there is a Dagster home."""
    installation.land(DAYS[:3])
    return installation


def run(*arguments: str):
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})


def plan(*arguments: str) -> dict[str, Any]:
    result = run("plan", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def find_backfill() -> PartitionBackfill:
    """Finds the only backfill that was asked for."""
    with DagsterInstance.get() as instance:
        (backfill,) = instance.get_backfills()
    return backfill


def count_targets(backfill: PartitionBackfill) -> dict[str, int]:
    """Counts the partitions that a backfill is about, by table."""
    assert backfill.asset_backfill_data is not None
    target = backfill.asset_backfill_data.target_subset.partitions_subsets_by_asset_key
    return {key.to_user_string(): len(subset) for key, subset in target.items()}


def test_a_plan_shows_what_would_be_run_and_the_command(tmp_path: Path) -> None:
    result = run("plan", *RANGE, "--downstream")
    assert result.exit_code == 0, result.output
    assert "3 missing" in result.output
    assert "no earlier step" in result.output
    assert "downstream: nothing else was computed from them" in result.output
    # Nothing has to wait for partitions that the same plan publishes earlier.
    assert "can't go yet" not in result.output
    assert (
        """--select 'key:"raw/flights",key:"staging/flights"' --partition-range """
        "2013-01-01...2013-01-03"
    ) in result.output
    alone = run("plan", "--select", "staging/flights", *RANGE[2:])
    assert "can't go yet: staging/flights 2013-01-01: raw/flights 2013-01-01 is missing" in (
        alone.output
    )
    assert not (tmp_path / "warehouse").exists()


def test_a_plan_takes_what_only_a_launch_tells_and_says_so() -> None:
    options = ("--reason", "INC-9", "--spark-remote", "sc://big:15002", "--priority", "3", "--yes")
    assert "`backfill-assets launch` takes the same options" in run("plan", *RANGE, *options).output
    assert "the same options" not in run("plan", *RANGE, "--priority", "3").output
    with DagsterInstance.get() as instance:
        assert not instance.get_backfills()


def test_a_template_takes_what_is_downstream_unless_the_command_line_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    templates = tmp_path / "templates.toml"
    templates.write_text('[all]\nwhen = "Now."\nonly = "all"\ndownstream = true\n')
    monkeypatch.setenv("BACKFILL_TEMPLATES", str(templates))
    selection = ("--select", "raw/flights", "--from", "2013-01-01", "--to", "2013-01-02")
    with DagsterInstance.get() as instance:
        for key in ("staging/flights", "features/carrier_delays"):
            event = AssetMaterialization(AssetKey.from_user_string(key), partition="2013-01-02")
            instance.report_runless_asset_event(event)
    follows = "downstream, at most: staging/flights 2013-01-02...2013-01-02"
    assert follows in run("plan", *selection, "--template", "all").output
    assert follows not in run("plan", *selection, "--template", "all", "--no-downstream").output
    found = plan(*selection, "--downstream")["tables"]
    counts = {"raw/flights": 2, "staging/flights": 1, "features/carrier_delays": 1}
    assert [(table["table"], table["partitions"]) for table in found] == [*counts.items()]
    refused = run("plan", *selection, "--downstream", "--chunk", "hours=6")
    assert isinstance(refused.exception, SettingsError)
    result = run("launch", *selection, "--template", "all", "--yes")
    assert (result.exit_code, follows in result.output) == (0, True), result.output
    assert count_targets(find_backfill()) == counts


def test_a_plan_is_told_as_json() -> None:
    raw, staging = plan(*RANGE, *MISSING)["tables"]
    assert (raw["table"], raw["states"], raw["partitions"]) == ("raw/flights", {"missing": 3}, 3)
    assert raw["ranges"] == [["2013-01-01", "2013-01-03"]]
    assert raw["bytes_read"] > 0
    assert (raw["commits"], raw["rows"], raw["seconds"]) == (1, 0, None)
    assert staging["rows_read"] is None, "raw is yet to get its first rows"
    assert staging["waits"] == []
    nothing = run("plan", *RANGE, "--only", "withheld")
    assert "nothing is to be run" in nothing.output
    (alone,) = plan("--select", STAGING, *RANGE[2:])["tables"]
    assert alone["rows_read"] == 0, "and it won't"


def test_rows_of_parquet_are_read_off_the_footers(tmp_path: Path) -> None:
    for kind, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        folder = tmp_path / "landing" / "orders" / kind
        folder.mkdir(parents=True)
        for number, keys in enumerate((range(1, 100), range(99_990, 100_010))):
            pq.write_table(pa.table({key: keys}), folder / f"{number}.parquet")

    def count_rows_read(last: str) -> int | None:
        asked = ("--select", "raw/orders", "--from", "0000000", "--to", last)
        return plan(*asked)["tables"][0]["rows_read"]

    assert count_rows_read("0100000") == 2 * (99 + 20)
    assert count_rows_read("0000000") is None, "of a file that holds keys of the next one, too"


def test_the_total_is_in_the_page_and_in_json(commanded_home: Home) -> None:
    published = dict.fromkeys(DAYS[:3], "published")
    for number in range(3):
        commanded_home.begin(f"run-{number}", RAW, STAGING, days=DAYS[:3])
        commanded_home.certify(f"run-{number}", RAW, published)
    page = run("plan", *RANGE).output
    assert "all tables, one after the other" not in page, "of staging there is no earlier step"
    assert plan(*RANGE)["total"] is None
    commanded_home.certify("run-0", STAGING, published)
    assert "all tables, one after the other: 2 s, by earlier steps" in run("plan", *RANGE).output
    assert plan(*RANGE)["total"] == pytest.approx(2)
    alone = plan("--select", RAW, *RANGE[2:])
    assert alone["total"] == alone["tables"][0]["seconds"] == pytest.approx(1)
    assert plan(*RANGE, "--only", "withheld")["total"] is None


def publish(tmp_path: Path, key: str, days: list[str], *, missing: str = "") -> None:
    """Publishes days as a run would now, without the raw days in `missing`."""
    version = commit_as_now(
        Warehouse(str(tmp_path / "warehouse")),
        str(tmp_path / "landing"),
        key,
        days,
        run_id=f"run-of-{key.replace('/', '-')}",
        provisional={days[-1]: f"{RAW} {missing} is missing"} if missing else None,
    )
    asset_key = AssetKey.from_user_string(key)
    with DagsterInstance.get() as instance:
        for day in days:
            event = AssetMaterialization(
                asset_key, partition=day, metadata={"delta_version": version}
            )
            instance.report_runless_asset_event(event)


def plan_chunks(*options: str) -> list[tuple[int, int, int, int]]:
    """Reads how many partitions, standing partitions, chunks and commits each table has."""
    names = ("partitions", "stands", "chunks", "commits")
    return [tuple(table[name] for name in names) for table in plan(*FOUR, *options)["tables"]]


def test_a_plan_in_chunks_counts_what_would_be_computed(tmp_path: Path, zone: LandingZone) -> None:
    zone.land(list_days(4, 4))
    publish(tmp_path, RAW, DAYS[:3])
    publish(tmp_path, STAGING, DAYS[:2], missing=DAYS[3])
    chunk = ("--chunk", "days=1")
    # Day 2 of staging reads two days more, of which this plan is to publish the second.
    assert plan_chunks(*chunk) == [(4, 3, 1, 1), (4, 1, 3, 3)]
    raw, staging = plan(*FOUR, *chunk)["tables"]
    assert raw["bytes_read"] == zone.path(DAYS[3]).stat().st_size
    assert (raw["rows"], staging["rows"]) == (ROWS, 3 * ROWS)
    # Of what landed only bytes are known; of staging's days 2 to 4 there will be three of raw.
    assert (raw["rows_read"], staging["rows_read"]) == (None, 3 * ROWS)
    page = run("plan", *FOUR, *chunk).output
    assert "3 stand as they are: raw/flights, of 4 partitions" in page
    assert "--partition-range 2013-01-01...2013-01-04" in page, "its run says itself what stands"
    assert plan_chunks() == [(4, 0, 1, 1)] * 2
    assert plan_chunks(*chunk, "--restart") == [(4, 0, 4, 4)] * 2
    assert '"restart": true' in run("plan", *FOUR, *chunk, "--restart").output
    assert isinstance(run("plan", *FOUR, "--restart").exception, SettingsError)
    assert plan_chunks(*chunk, "--only", "missing") == [(1, 0, 1, 1), (2, 0, 2, 2)]
    alone = ("--select", STAGING, "--to", DAYS[1])
    assert plan_chunks(*chunk, *alone) == [(2, 2, 0, 0)], "what was missing still is"
    publish(tmp_path, STAGING, DAYS[:1], missing=DAYS[2])
    assert plan_chunks(*chunk, *alone) == [(2, 1, 1, 1)], "that has come since"
    zone.add_lines(DAYS[0], "{}")
    assert plan_chunks(*chunk) == [(4, 2, 2, 2), (4, 0, 4, 4)]


def test_where_rows_are_merged_nothing_stands(tmp_path: Path) -> None:
    publish(tmp_path, RAW, DAYS[:3])
    publish(tmp_path, STAGING, DAYS[:2])
    only = ("--select", STAGING, "--from", DAYS[0], "--to", DAYS[0], "--chunk", "days=1")
    rows = ("--column", "hour", "--start", "3", "--end", "9")
    merged = json.loads(run("launch", *only, "--write-mode", "merge", "--yes", "--json").stdout)
    plans = (plan(*only), merged["plan"], plan(*only, *rows))
    assert [found["tables"][0]["stands"] for found in plans] == [1, 0, 0]


def test_a_launch_asks_once_and_says_that_no_daemon_is_there() -> None:
    declined = CliRunner().invoke(app, ["launch", *RANGE], input="n\n")
    assert declined.exit_code == 1
    result = run("launch", *RANGE, "--reason", "first fill", "--yes")
    assert result.exit_code == 0, result.output
    assert "no daemon is running in this Dagster home" in result.output
    backfill = find_backfill()
    assert f"requested backfill {backfill.backfill_id}" in result.output
    assert backfill.title == ("raw/flights, staging/flights 2013-01-01...2013-01-03: first fill")


def test_a_run_in_the_foreground_needs_no_daemon_and_says_what_only_waits() -> None:
    """Nothing of raw is published, so that no partition can go: no Spark is started.

    In a process of its own, as a code location takes its settings once.
    """
    arguments = ("--select", "staging/flights", *RANGE[2:], "--yes", "--reason", "look")
    result = subprocess.run(
        [sys.executable, "-c", "from backfill_engine.cli import main; main()", "run", *arguments],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 3, result.stdout + result.stderr
    assert "2013-01-01...2013-01-03: raw/flights 2013-01-01 is missing" not in result.stdout
    assert "not due" in result.stdout
    assert "held back: published 0 of 3 of staging/flights" in result.stdout
    assert "staging/flights 0 of 3, 3 held back" in result.stdout  # a line whenever it changed
    with DagsterInstance.get() as instance:
        (done,) = instance.get_runs()
    assert done.tags["backfill_assets/reason"] == "look"
    # A partition that only waits gets no verdict from an audit.
    (table,) = plan("--select", STAGING, *RANGE[2:])["tables"]
    assert table["states"] == {"not_due": 3}


def test_a_run_is_refused_while_others_work_on_its_partitions() -> None:
    tags = {RANGE_START_TAG: "2013-01-02", RANGE_END_TAG: "2013-01-02", **OWN_STEP}
    selected, started = frozenset({AssetKey(["raw", "flights"])}), DagsterRunStatus.STARTED
    with DagsterInstance.get() as instance:
        instance.add_run(
            DagsterRun("__ASSET_JOB", status=started, tags=tags, asset_selection=selected)
        )
    result = run("run", *RANGE, "--yes")
    assert result.exit_code == 1
    assert "runs are at work on raw/flights 2013-01-02...2013-01-02" in str(result.exception)
    with DagsterInstance.get() as instance:
        assert len(instance.get_runs()) == 1


def test_a_launch_names_its_spark_and_tells_itself_as_json() -> None:
    result = run("launch", *RANGE, "--spark-remote", "sc://big:15002", "--yes", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    backfill = find_backfill()
    assert (backfill.tags or {})[SPARK_REMOTE_TAG] == "sc://big:15002"
    assert (found["backfill_id"], found["title"]) == (backfill.backfill_id, backfill.title)
    assert [table["table"] for table in found["plan"]["tables"]] == [RAW, STAGING]
    id_ = backfill.backfill_id
    paused = json.loads(run("backfill", "pause", id_, "--reason", "disk", "--json").stdout)
    assert (paused["id"], paused["reason"]) == (id_, "disk")
    going_on = json.loads(run("backfill", "resume", id_, "--json").stdout)
    assert going_on == {"id": id_, "kind": "backfill", "has_daemon": False}


def test_what_is_not_to_be_run_is_told_as_json_too() -> None:
    none = ("--only", "withheld", "--yes", "--json")
    assert json.loads(run("launch", *RANGE, *none).stdout)["backfill_id"] == ""
    done = json.loads(run("run", *RANGE, *none).stdout)
    assert (done["run_id"], done["state"], done["tables"]) == ("", "published", [])


def test_of_all_time_only_what_is_named_is_planned() -> None:
    """One plan has tables of several grains, each with all of its partitions."""
    found = plan("--select", "raw/flights,staging/weather", *MISSING)["tables"]
    assert [table["ranges"] for table in found] == 2 * [[["2013-01-01", "2014-01-01"]]]
    assert run("plan", "--select", "raw/flights").exit_code == 1


def test_days_and_hours_are_launched_in_one_backfill(tmp_path: Path) -> None:
    (tmp_path / "landing" / "weather").mkdir()
    result = run("launch", "--select", "group:raw and not key:raw/orders*", *MISSING, "--yes")
    assert result.exit_code == 0, result.output
    backfill = find_backfill()
    assert backfill.title == (
        "raw/flights 2013-01-01...2014-01-01; raw/weather 2013-01-01-00:00...2014-01-01-23:00"
    )
    assert count_targets(backfill) == {"raw/flights": 366, "raw/weather": 8784}
