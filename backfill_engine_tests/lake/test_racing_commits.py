"""Two processes race for the next version of one log, on a store that lets puts overwrite."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import obstore
import pytest
from obstore.store import from_url

from backfill_engine_tests.lake.committing_process import name_commit
from backfill_engine_tests.object_store import BUCKET, ObjectStore


def race(root: str, *, commits: int, how: str) -> dict[str, list[int]]:
    """The versions that each of two processes says that it made."""
    processes = {
        writer: subprocess.Popen(
            [
                *(sys.executable, "-m", "backfill_engine_tests.lake.committing_process"),
                *(root, writer, str(commits), how),
            ],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for writer in ("a", "b")
    }
    for process in processes.values():
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    made: dict[str, list[int]] = {}
    for writer, process in processes.items():
        out, _ = process.communicate(timeout=500)
        assert process.returncode == 0
        made[writer] = [int(line) for line in out.splitlines()]
    return made


@pytest.mark.parametrize(
    "commits", [50, pytest.param(500, marks=[pytest.mark.slow, pytest.mark.by_hand])]
)
def test_racing_commits_lose_none(object_store: ObjectStore, tmp_path: Path, commits: int) -> None:
    root = f"s3a://{BUCKET}/{tmp_path.name}"
    made = race(root, commits=commits, how="locked")
    store = from_url(root)
    found = [
        bytes(obstore.get(store, name_commit(version)).bytes()).decode()
        for version in range(2 * commits)
    ]
    assert sorted(found) == sorted(
        f"{writer} {number}" for writer in made for number in range(commits)
    )
    for writer, versions in made.items():
        assert [found[version] for version in versions] == [
            f"{writer} {number}" for number in range(commits)
        ]
    turns = sum(earlier[0] != later[0] for earlier, later in pairwise(found))
    assert turns > commits / 20  # they did race


@pytest.mark.slow
@pytest.mark.by_hand
def test_without_the_lock_commits_overwrite_each_other(
    object_store: ObjectStore, tmp_path: Path
) -> None:
    made = race(f"s3a://{BUCKET}/{tmp_path.name}", commits=100, how="unlocked")
    assert set(made["a"]) & set(made["b"])
