"""What the project and Dagster say of the partitions, by the commands that people use."""

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from dagster import AssetKey, DagsterInstance

from backfill_engine_tests.commands import Project, find_program
from benchmarks.campaign.checker import (
    FAILED,
    IN_PROGRESS,
    MATERIALIZED,
    MISSING,
    View,
    Violation,
)
from benchmarks.campaign.model import TABLES, Partition

_SECONDS = 300


@dataclass(frozen=True)
class Answer:
    """What a command came to."""

    command: str
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """Its output as JSON; None if it printed none."""
        try:
            return json.loads(self.stdout)
        except ValueError:
            return None

    def find_violations(self) -> list[Violation]:
        """Finds what no command may do: print a trace, hang, or fail without a word."""
        output = self.stdout + self.stderr
        if "Traceback (most recent call last)" in output:
            last = self.stderr.strip().splitlines()[-1:] or ["?"]
            return [Violation("a trace", None, f"{self.command}: {last[0]}")]
        if self.code == _HANGS:
            return [Violation("it hangs", None, self.command)]
        if self.code == 0 and self.command.endswith("--json") and self.json is None:
            return [Violation("no answer", None, self.command)]
        if self.code not in (0, 3) and not output.strip():
            return [Violation("not a word", None, f"{self.command}: exit {self.code}")]
        return []


_HANGS = -1000


def ask(project: Project, *arguments: str) -> Answer:
    """Runs `backfill-assets` to its end."""
    command = " ".join(("backfill-assets", *arguments))
    try:
        done = subprocess.run(
            [find_program("backfill-assets"), *arguments],
            env=project.environment,
            cwd=project.root,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(command, _HANGS, "", "")
    return Answer(command, done.returncode, done.stdout, done.stderr)


def select(days: list[str]) -> list[str]:
    """The options that name the tables and days."""
    return ["--select", ",".join(TABLES), "--from", days[0], "--to", days[-1]]


def read_view(project: Project, days: list[str]) -> tuple[View, list[Answer]]:
    """Asks for status, what is missing, and what is to be run; not Dagster itself.

    A partition of which a command can't answer counts as one that is to be run.
    """
    named = select(days)
    status = ask(project, "status", *named, "--json")
    missing = ask(project, "status", "--missing", *named, "--json")
    plan = ask(project, "plan", *named, "--only", "missing,failed,withheld,stale", "--json")
    answers = [status, missing, plan]
    statuses = {(row["table"], row["partition"]): row["status"] for row in status.json or ()}
    if None in (missing.json, plan.json):
        return View(statuses, frozenset((table, day) for table in TABLES for day in days)), answers
    to_run = set(_expand(missing.json, days))
    for table in plan.json["tables"]:
        ends = [{"table": table["table"], "first": a, "last": b} for a, b in table["ranges"]]
        to_run |= set(_expand(ends, days))
    return View(statuses, frozenset(to_run)), answers


def _expand(ranges: Iterable[dict[str, str]], days: list[str]) -> list[Partition]:
    return [
        (found["table"], day)
        for found in ranges
        for day in days
        if found["first"] <= day <= found["last"]
    ]


def add_dagster(view: View, project: Project, days: list[str]) -> View:
    """Adds what Dagster's own event log says of each partition."""
    shown: dict[Partition, str] = {}
    with DagsterInstance.from_config(project.environment["DAGSTER_HOME"]) as instance:
        log = instance.event_log_storage
        for table in TABLES:
            key = AssetKey.from_user_string(table)
            done = log.get_materialized_partitions(key)
            tried = (
                log.get_latest_asset_partition_materialization_attempts_without_materializations(
                    key
                )
            )
            for day in days:
                shown[table, day] = MATERIALIZED if day in done else MISSING
                if day in tried:
                    run = instance.get_run_by_id(tried[day][0])
                    if run is not None and not run.is_finished:
                        shown[table, day] = IN_PROGRESS
                    elif run is not None and run.is_failure:
                        shown[table, day] = FAILED
    return replace(view, dagster=shown)
