"""Damage to what lies beside the tables: index, certificates, protections, Dagster's own files."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from dagster import AssetKey, DagsterInstance

from backfill_engine_tests.commands import Project
from benchmarks.campaign.model import TABLES


def _replace_by_a_folder(path: Path, moments: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _cut_at_a_line_end(path: Path, moments: random.Random) -> None:
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(lines[: moments.randrange(len(lines))]))


def _change_a_byte(path: Path, moments: random.Random) -> None:
    content = bytearray(path.read_bytes() or b"0")
    content[moments.randrange(len(content))] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path, random.Random], object]] = {
    "cut at a line's end": _cut_at_a_line_end,
    "cut in mid-line": lambda path, moments: os.truncate(
        path, moments.randrange(path.stat().st_size or 1)
    ),
    "emptied": lambda path, moments: os.truncate(path, 0),
    "removed": lambda path, moments: path.unlink(),
    "replaced by a folder": _replace_by_a_folder,
    "a byte changed": _change_a_byte,
}
SIDE_FILES = {
    "publish index": "warehouse/publishes/*.jsonl",
    "certificate": "warehouse/certificates/**/*.json",
    "protections": "warehouse/protections/_delta_log/*.json",
    "watermarks": "warehouse/watermarks/_delta_log/*.json",
}
"""Patterns below the pipeline's folder."""
DAGSTER_INDEX = "dagster_home/history/runs/index.db"
"""Of a home on SQLite."""
_MENDED_BY_HAND = ("protections", "watermarks")
"""Nothing tells what was in these: they come back from a copy."""


def damage(project: Project, kind: str, moments: random.Random) -> tuple[str, Path, bytes] | None:
    """Damages a file of a kind; returns how, the file and what was in it; None if there is none."""
    found = sorted(path for path in project.root.glob(SIDE_FILES[kind]) if path.is_file())
    if not found:
        return None
    path, how = moments.choice(found), moments.choice(list(DAMAGES))
    content = path.read_bytes()
    DAMAGES[how](path, moments)
    return how, path, content


def mend(kind: str, path: Path, content: bytes) -> None:
    """Does what messages name as the cure: takes a folder away, puts back a copy of a log."""
    if path.is_dir():
        shutil.rmtree(path)
    if kind in _MENDED_BY_HAND:
        path.write_bytes(content)


def lose_dagster_index(project: Project) -> bool:
    """Removes the index of Dagster's events, as of a disk that lost it; False if there is none."""
    path = project.root / DAGSTER_INDEX
    if not path.is_file():
        return False
    for file in path.parent.glob("index.db*"):
        file.unlink()
    return True


def wipe_assets(project: Project) -> None:
    """Does what `dagster asset wipe` does to the tables' assets."""
    with DagsterInstance.from_config(project.environment["DAGSTER_HOME"]) as instance:
        instance.wipe_assets([AssetKey.from_user_string(table) for table in TABLES])
