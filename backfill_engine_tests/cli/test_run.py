"""`run` carries the plan out without a daemon, and its verdicts say how each table ended."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRunStatus

from backfill_engine.lake.locks import hold_lock
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.runs.run_tags import (
    CHAIN_TAG,
    CONTINUES_TAG,
    LAUNCHED_BY_TAG,
    REASON_TAG,
)
from backfill_engine_tests.commands import Project
from backfill_engine_tests.landing_zones import copy_days, rewrite_records
from backfill_engine_tests.project import STAGING_FLIGHTS

TABLES = ("raw/flights", "staging/flights", "features/carrier_delays")
BAD, WARNED = "2013-01-03", "2013-01-04"
RANGE = ("--from", "2013-01-01", "--to", "2013-01-05")


@pytest.fixture(scope="module")
def landed(sample_landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Seven days have landed: one is half broken, one has a field that nobody declared."""
    root = tmp_path_factory.mktemp("run")
    landing = copy_days(sample_landing, root / "landing", first="2013-01-01", count=7)
    folder = landing / "flights" / "year=2013" / "month=01" / "day=03"
    (folder / "broken.json").write_text("{\n" * 400, encoding="utf-8")
    rewrite_records(landing, WARNED, lambda records: [{**record, "gate": 1} for record in records])
    return Project(root, landing)


def read_tags(project: Project) -> list[dict[str, str]]:
    with DagsterInstance.from_config(project.environment["DAGSTER_HOME"]) as instance:
        return [dict(run.tags) for run in reversed(instance.get_runs())]


def test_what_does_not_depend_on_a_bad_day_goes_on_and_the_rest_has_its_reason(
    landed: Project,
) -> None:
    arguments = ("--select", "group:raw,staging/flights,features/carrier_delays", *RANGE)
    ran = landed.run("backfill-assets", "run", *arguments, "--yes", "--json", "--reason", "fill")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    found = json.loads(ran.stdout)
    assert (found["state"], found["only_waits"]) == ("held back", False)
    published = {table["table"]: table["published_ranges"] for table in found["tables"]}
    assert published == {
        "raw/flights": ["2013-01-01...2013-01-02", "2013-01-04...2013-01-05"],
        "staging/flights": ["2013-01-01...2013-01-02", "2013-01-04...2013-01-05"],
        "features/carrier_delays": ["2013-01-01...2013-01-02"],
    }
    (withheld,) = found["tables"][0]["held_back"]
    assert (withheld["status"], withheld["ranges"]) == ("withheld", [BAD])
    assert "rejects = " in withheld["reasons"][0]
    assert [*found["tables"][0]["warned"]] == [WARNED]
    assert "not declared: gate" in found["tables"][0]["warned"][WARNED]
    # Beside the JSON, it prints a line whenever something changed.
    assert "raw/flights 4 of 5, 1 held back" in ran.stderr
    assert "Traceback" not in ran.stderr
    # These are runs like any other: they form one chain and record who asked, and why.
    first, *others = read_tags(landed)
    assert (first[REASON_TAG], bool(first[LAUNCHED_BY_TAG])) == ("fill", True)
    assert others
    for tags in others:
        assert tags[CHAIN_TAG] == found["run_id"]
        assert tags[CONTINUES_TAG]
        assert tags[REASON_TAG] == "fill"

    # `plan` tells withheld partitions from those that only waited and those never tried.
    plan = landed.run("backfill-assets", "plan", "--select", ",".join(TABLES), *RANGE, "--json")
    raw, staging, features = json.loads(plan.stdout)["tables"]
    assert raw["states"] == {"materialized": 4, "withheld": 1}
    assert staging["states"] == {"materialized": 4, "failed": 1}
    assert features["states"] == {"materialized": 2, "failed": 1, "withheld": 2}
    for only, keys in (("withheld", [[BAD, BAD]]), ("failed", [])):
        planned = landed.run(
            "backfill-assets", "plan", "--select", TABLES[0], "--only", only, "--json"
        )
        assert json.loads(planned.stdout)["tables"][0]["ranges"] == keys


def test_ctrl_c_ends_the_run_and_says_what_was_published(landed: Project, tmp_path: Path) -> None:
    project = landed.copy(tmp_path / "cancelled")
    out = tmp_path / "out.txt"
    command = [
        *(str(Path(sys.executable).parent / "backfill-assets"), "run", "--yes"),
        *("--select", ",".join(TABLES), "--from", "2013-01-06", "--to", "2013-01-07"),
    ]
    with (
        # So that the run gets no farther, however fast it is.
        hold_lock(Warehouse(str(project.warehouse)), STAGING_FLIGHTS.place),
        out.open("w") as output,
        subprocess.Popen(
            command,
            env=project.environment,
            cwd=project.root,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as running,
    ):
        wait_for(out, "raw/flights 2 of 2")
        running.send_signal(signal.SIGINT)
        try:
            code = running.wait(10)
        except subprocess.TimeoutExpired:  # for the lock; a second one waits for nothing
            running.send_signal(signal.SIGINT)
            code = running.wait(120)
    text = out.read_text()
    assert code == 130, text
    assert "cancelled: published 2 of 2 of raw/flights" in text
    assert "its run was cancelled" in text, text
    assert (
        "backfill-assets run --select staging/flights,features/carrier_delays "
        "--from 2013-01-06 --to 2013-01-07 --only missing,failed,withheld"
    ) in text.replace("\n", " ")
    assert "Traceback" not in text
    with DagsterInstance.from_config(project.environment["DAGSTER_HOME"]) as instance:
        assert instance.get_runs(limit=1)[0].status is DagsterRunStatus.CANCELED


def wait_for(out: Path, words: str) -> None:
    deadline = time.monotonic() + 240
    while words not in out.read_text():
        assert time.monotonic() < deadline, out.read_text()
        time.sleep(0.2)
