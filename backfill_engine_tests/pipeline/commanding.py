"""Backfills as people command them: launched, watched, listed, each by a process of its own."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backfill_engine.lake.commits import Commit
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.commands import PROJECT, QUICKLY, Project
from backfill_engine_tests.postgres import serve_postgres
from backfill_engine_tests.project import CATALOG
from backfill_engine_tests.servers import wait_for

_BIN = Path(sys.executable).parent
Line = Mapping[str, Any]


@contextmanager
def open_postgres_home(root: Path) -> Iterator[Project]:
    """A project whose landing zone is there, with the home of a server, on PostgreSQL."""
    with serve_postgres() as server:
        settings = (("DAGSTER_POSTGRES_URL", server.create_database()), *QUICKLY)
        yield Project(root, root / "landing", settings, PROJECT / "deploy" / "dagster.yaml")


def launch(project: Project, *options: str) -> str:
    """`launch`, without being asked; the id of the backfill."""
    found = project.run("backfill-assets", "launch", *options, "--yes")
    assert found.returncode == 0, found.stdout + found.stderr
    requested = re.search(r"requested backfill (\w+):", found.stdout)
    assert requested, found.stdout
    return requested[1]


def command(project: Project, *arguments: str) -> str:
    """Any command that has to succeed; what it says."""
    found = project.run("backfill-assets", *arguments)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def find_listed(project: Project, backfill: str) -> Line:
    """What `backfill list` tells of one."""
    listed = json.loads(command(project, "backfill", "list", "--json"))
    return next(item for item in listed if item["id"] == backfill)


def list_commits(project: Project, table: str, *keys: str) -> list[Commit]:
    """The commits that published any of some partitions, oldest first, by the table's own log."""
    log = read_log(Warehouse(str(project.warehouse)), CATALOG.find_table(table))
    return [
        commit
        for commit in reversed(log.list_commits_after(-1))
        if commit.record is not None and not commit.record.rows.keys().isdisjoint(keys)
    ]


def list_published(commits: Iterable[Commit]) -> list[str]:
    """The partitions that commits published, each as often as it was, in order of keys."""
    return sorted(key for commit in commits if commit.record for key in commit.record.rows)


@contextmanager
def watch(project: Project, backfill: str) -> Iterator["subprocess.Popen[str]"]:
    """`backfill watch --json`, as somebody else watches."""
    out = project.root / f"watch-{backfill}.jsonl"
    with out.open("w") as file:
        watching = subprocess.Popen(
            [str(_BIN / "backfill-assets"), "backfill", "watch", backfill, "--json"],
            env=project.environment,
            cwd=project.root,
            stdout=file,
            text=True,
        )
        try:
            yield watching
        finally:
            watching.kill()
            watching.wait()


def follow(project: Project, backfill: str) -> int:
    """Watches until it is over; the exit code of the watching."""
    with watch(project, backfill) as watching:
        return watching.wait(timeout=900)


def wait_until(condition: Callable[[], object]) -> None:
    """Looks often enough to see what lasts a second."""
    wait_for(lambda: bool(condition()), seconds=400, look_every=0.3)


def read_lines(project: Project, backfill: str) -> list[Line]:
    """What the watching has told so far."""
    text = (project.root / f"watch-{backfill}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]
