"""The sensor by a real daemon, which is killed in mid-run with all that it started, and goes on."""

import json
import os
import signal
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterInstance

from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.runs.run_tags import REASON_TAG
from backfill_engine_tests.commands import PROJECT, Project, confirm
from backfill_engine_tests.landing_zones import copy_days, rewrite_records
from backfill_engine_tests.project import CATALOG
from backfill_engine_tests.servers import serve, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.by_hand, pytest.mark.timeout(1800)]

TABLES = ("raw/flights", "staging/flights", "features/carrier_delays")
RUNS = "{ runsOrError { ... on Runs { results { status startTime } } } }"


def count_published(project: Project) -> list[int]:
    """Partitions of each table that can be read."""
    warehouse = Warehouse(str(project.warehouse))
    return [len(read_log(warehouse, CATALOG.find_table(key)).publishes) for key in TABLES]


def test_it_takes_the_layers_on_and_a_kill_costs_nothing_but_time(
    sample_landing: Path, tmp_path: Path
) -> None:
    landing = copy_days(sample_landing, tmp_path / "landing", first="2013-01-01", count=5)
    project = Project(tmp_path / "project", landing)
    workspace = ("-w", str(PROJECT / "workspace.yaml"))
    confirm(project.run("dagster", "sensor", "start", "process_due_partitions", *workspace))
    with serve(project) as first:
        wait_for(lambda: "STARTED" in json.dumps(first.query(RUNS)), seconds=240)
        os.killpg(first.process.pid, signal.SIGKILL)
    with serve(project):
        wait_for(lambda: count_published(project) == [5, 5, 5], seconds=600)
        rewrite_records(landing, "2013-01-05", lambda records: [*records, be_late(records[0])])
        wait_for(lambda: len(read_reasons(project)) == 7, seconds=600)
    reasons = read_reasons(project)
    assert reasons[:4] == ["5 new"] * 4, "the killed one, and again; staging; features"
    assert reasons[4:] == ["1 changed", "1 changed", "5 changed"]


def be_late(record: dict) -> dict:
    """A flight of the first day that nobody has told yet."""
    return {**record, "day": 1, "flight": 9001}


def read_reasons(project: Project) -> list[str]:
    """Of the runs of these tables, oldest first; what reads the features has runs, too."""
    keys = {AssetKey(table.split("/")) for table in TABLES}
    with DagsterInstance.from_config(project.environment["DAGSTER_HOME"]) as instance:
        runs = reversed(instance.get_runs())
        return [run.tags[REASON_TAG] for run in runs if keys.issuperset(run.asset_selection or ())]
