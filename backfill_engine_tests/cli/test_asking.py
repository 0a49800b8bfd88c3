"""What can't be taken back at a click says what it does and asks, as a person or a script sees it.

By real commands, one after the other: a promotion refused, mended, asked about and made, taken
back, its version retired; and a table rolled back.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dagster import DagsterInstance

from backfill_engine.extras.versions.described import list_switches
from backfill_engine.lake.served_versions import find_served
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import Table
from backfill_engine_tests.commands import Project, confirm, find_program
from backfill_engine_tests.landing_zones import copy_days
from backfill_engine_tests.project import (
    CARRIER_DELAYS,
    CARRIER_DELAYS_V2,
    RAW_FLIGHTS,
    SERVED_CARRIER_DELAYS,
)

RAW, STAGING = "raw/flights", "staging/flights"
V1, V2, SERVED = CARRIER_DELAYS.key, CARRIER_DELAYS_V2.key, SERVED_CARRIER_DELAYS.key
FIRST, LAST = "2013-01-01", "2013-01-06"
PROMOTE = ("version", "promote", "carrier_delays", "v2")
BACK = ("rollback", SERVED)
RETIRE = ("version", "retire", "carrier_delays", "v2")
ROLL_BACK = ("rollback", RAW, "--from", "2013-01-05", "--to", LAST, "--to-version", "1")


@dataclass(frozen=True)
class Asked:
    """A project, and how commands answer a script there."""

    project: Project

    def ask(self, *arguments: str, says: str = "") -> "subprocess.CompletedProcess[str]":
        """Runs a command whose input is what somebody says, and then ends."""
        return subprocess.run(
            [find_program("backfill-assets"), *arguments],
            env=self.project.environment,
            cwd=self.project.root,
            input=says,
            capture_output=True,
            text=True,
            check=False,
        )

    def answer(self, *arguments: str, code: int, says: str = "") -> str:
        """What a command that makes no run prints; of one that fails just the line that says so."""
        before = self.count_runs()
        answer = self.ask(*arguments, says=says)
        assert answer.returncode == code, answer.stdout + answer.stderr
        assert self.count_runs() == before
        if code:
            assert answer.stderr.count("\n") == 1, answer.stderr
        return answer.stderr if code else answer.stdout

    def do(self, *arguments: str) -> str:
        """What a command prints that does what is asked, without a line of anybody else."""
        answer = confirm(self.ask(*arguments))
        assert "WARN" not in answer.stdout + answer.stderr
        return answer.stdout

    def count_runs(self) -> int:
        """How many runs were made in this Dagster home."""
        with DagsterInstance.from_config(self.project.environment["DAGSTER_HOME"]) as instance:
            return instance.get_runs_count()

    def read_log(self, table: Table) -> TableLog:
        """The log of a table, as it is now."""
        return read_log(Warehouse(str(self.project.warehouse)), table)


@pytest.fixture(scope="module")
def asked(sample_landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Six days, the first version served; of the second the last two are missing."""
    root = tmp_path_factory.mktemp("asked")
    project = Project(root, copy_days(sample_landing, root / "landing", first=FIRST, count=6))
    confirm(project.materialize(RAW, STAGING, V1, SERVED, partitions=f"{FIRST}...{LAST}"))
    confirm(project.materialize(V2, partitions=f"{FIRST}...2013-01-04"))
    yield Asked(project)


def test_a_promotion_is_refused_by_ranges_and_the_command_that_mends_it(asked: Asked) -> None:
    refused = asked.answer(*PROMOTE, "--yes", code=1)
    assert f"2013-01-05...{LAST}: {V2} is missing" in refused
    mending = re.search("`backfill-assets (run [^`]+)` publishes them", refused)
    assert mending, refused
    dry = asked.ask(*PROMOTE, "--dry-run")
    assert (dry.returncode, dry.stdout.count("missing: ")) == (1, 2)
    asked.do(*shlex.split(mending[1]), "--yes")
    assert len(asked.read_log(CARRIER_DELAYS_V2).count_rows()) == 6


def test_a_promotion_says_what_it_replaces_and_asks(asked: Asked) -> None:
    assert "say --yes beforehand; nothing was done" in asked.answer(*PROMOTE, code=2)
    assert "aborted" in asked.answer(*PROMOTE, code=1, says="n\n")
    canary = ("--canary", "2014-01-01...2014-01-02")
    assert "lies in the canary" in asked.answer(*PROMOTE, *canary, "--yes", code=2)
    drifts = asked.ask(*PROMOTE, "--yes")
    assert drifts.returncode == 1
    assert f"6 partitions ({FIRST} … {LAST}) of {V2} replace those of {V1}" in drifts.stdout
    assert f'`backfill-assets version promote carrier_delays {V2} --accept "…"`' in drifts.stderr
    assert find_served(asked.read_log(SERVED_CARRIER_DELAYS)) == V1
    asked.do(*PROMOTE, "--accept", "by design", "--reason", "better", "--yes")
    assert find_served(asked.read_log(SERVED_CARRIER_DELAYS)) == V2
    assert f"serves {V2} already" in asked.answer(*PROMOTE, code=0)


def test_it_goes_back_once_somebody_agrees(asked: Asked) -> None:
    assert f"{SERVED} serves {V2}: promote another" in asked.answer(*RETIRE, "--yes", code=1)
    assert "say --yes" in asked.answer(*BACK, code=2)
    assert f"of {V1} replace those of {V2}" in asked.answer(*BACK, "--dry-run", code=0)
    answer = asked.ask(*BACK, "--reason", "worse", says="y\n")
    assert answer.returncode == 0, answer.stderr
    latest, *_ = list_switches(asked.read_log(SERVED_CARRIER_DELAYS))
    assert (latest.serves, latest.why) == (V1, "worse")


def test_a_retirement_says_what_goes_and_asks(asked: Asked) -> None:
    assert f"{V2}: 6 partitions with" in asked.answer(*RETIRE, "--dry-run", code=0)
    assert "say --yes" in asked.answer(*RETIRE, code=2)
    assert any(asked.read_log(CARRIER_DELAYS_V2).count_rows().values())
    assert "is retired" in asked.do(*RETIRE, "--reason", "worse", "--yes")
    assert not any(asked.read_log(CARRIER_DELAYS_V2).count_rows().values())


def test_a_rollback_says_what_it_undoes_and_asks(asked: Asked) -> None:
    confirm(asked.project.materialize(RAW, partitions=f"2013-01-05...{LAST}"))
    before = asked.read_log(RAW_FLIGHTS)
    undone = before.publishes[LAST].record.run_id
    shown = asked.answer(*ROLL_BACK, "--dry-run", code=0)
    assert f"{RAW}: 2 partitions (2013-01-05 … {LAST}) go back from version 2 to version 1" in shown
    assert f"undone: run {undone} (version 2)" in shown
    assert f"computed from them, at most: {STAGING} " in shown
    assert "say --yes" in asked.answer(*ROLL_BACK, code=2)
    assert "neither is given" in asked.answer(*ROLL_BACK[:-2], "--yes", code=2)
    assert asked.read_log(RAW_FLIGHTS).version == 2
    done = asked.do(*ROLL_BACK, "--reason", "INC-9", "--yes")
    assert "hold again what they held at version 1, as version 3" in done
    after = asked.read_log(RAW_FLIGHTS).publishes[LAST].record
    assert "INC-9" in str(after.notes)
    assert "hold already" in asked.answer(*ROLL_BACK, "--dry-run", code=0)
