"""A warehouse and a Dagster home that older code made, and what they say without this package.

`fixtures/README.md` says what is in them. They are read by the command line and by delta-rs only.
"""

import gzip
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from backfill_engine_tests.commands import Project

_ARCHIVE = Path(__file__).parent / "fixtures" / "before_the_rooms.tar.xz"
_SETTINGS = (("BACKFILL_BEGIN", "2013-01-01"), ("BACKFILL_END", "2013-01-05"))

Record = dict[str, Any]
Contents = dict[str, tuple[int, int, str]]
"""By partition: version, rows, checksum."""


def extract(root: Path) -> Project:
    """Both and their landing zone, below a folder that is another than where they were made."""
    with tarfile.open(_ARCHIVE) as archive:
        archive.extractall(root, filter="data")
    return Project(root, root / "landing", _SETTINGS)


def ask(project: Project, *arguments: str, code: int = 0) -> str:
    """What a command prints, which must end with this code."""
    answer = project.run("backfill-assets", *arguments)
    assert answer.returncode == code, answer.stdout + answer.stderr
    return answer.stdout


def ask_json(project: Project, *arguments: str) -> Any:
    """The same, as JSON."""
    return json.loads(ask(project, *arguments, "--json"))


def read_contents(project: Project, table: str) -> Contents:
    """By partition, what the newest commit to it says that it holds; by delta-rs."""
    contents: Contents = {}
    for commit in DeltaTable(str(project.warehouse / table)).history():  # newest first
        record = json.loads(commit.get("userMetadata") or '{"rows": {}}')
        for key, rows in record["rows"].items():
            contents.setdefault(key, (commit["version"], rows, record["checksums"][key]))
    return contents


def find_last_run(project: Project, table: str) -> str:
    """The run of the newest commit."""
    commit = DeltaTable(str(project.warehouse / table)).history(1)[0]
    return json.loads(commit["userMetadata"])["run_id"]


def read_rows(project: Project, table: str, *, version: int | None = None) -> list[Record]:
    """All rows in a fixed order; by delta-rs."""
    rows = DeltaTable(str(project.warehouse / table), version=version).to_pyarrow_table()
    return sorted(rows.to_pylist(), key=str)


def land_again(path: Path, change: Callable[[Record], Record]) -> None:
    """Lands a file with each record changed."""
    records = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    lines = "".join(json.dumps(change(record)) + "\n" for record in records)
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))
