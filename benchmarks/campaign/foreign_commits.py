"""Commits of somebody else: written by hand, past the project, its locks and its records.

delta-rs can't write to tables with in-commit timestamps, and another Spark takes ten seconds to
start. So commits are JSON lines of our own, as the Delta protocol has them.
"""

import json
import random
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.campaign.model import PARTITION_COLUMNS

Action: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class DeltaFolder:
    """A Delta table of a local disk, seen as files."""

    path: Path
    partition_column: str

    @property
    def log(self) -> Path:
        """Where its commits are."""
        return self.path / "_delta_log"

    def find_version(self) -> int:
        """The newest commit; -1 if there is no table."""
        return max((int(file.stem) for file in self.log.glob("[0-9]*.json")), default=-1)

    def read_actions(self, version: int) -> list[Action]:
        """The actions of a commit."""
        lines = (self.log / f"{version:020}.json").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def read_files(self, version: int) -> dict[str, Action]:
        """The `add` actions of the files that a version consists of, by path.

        From the first commit on: logs here are short, and none is cleaned away.
        """
        files: dict[str, Action] = {}
        for number in range(version + 1):
            for action in self.read_actions(number):
                if "add" in action:
                    files[action["add"]["path"]] = action["add"]
                elif "remove" in action:
                    files.pop(action["remove"]["path"], None)
        return files

    def move_away_without_log(self) -> None:
        """Does what a run that finds the folder without its log asks for."""
        if self.path.is_dir() and self.find_version() < 0:
            shutil.rmtree(self.path)

    def read_newest(self, kind: str) -> Action:
        """The newest action of a kind, such as `metaData`."""
        for number in range(self.find_version(), -1, -1):
            for action in self.read_actions(number):
                if kind in action:
                    return action[kind]
        raise ValueError(f"no {kind} in {self.log}")

    def commit(self, operation: str, actions: Sequence[Action]) -> None:
        """Adds a commit; another writer may come first, and then this one is the next."""
        version = self.find_version()
        earlier = self.read_actions(version)[0].get("commitInfo", {}).get("inCommitTimestamp", 0)
        now = max(int(time.time() * 1000), earlier + 1)
        info = {
            **{"inCommitTimestamp": now, "timestamp": now, "operation": operation},
            **{"operationParameters": {}, "engineInfo": "somebody else", "txnId": uuid.uuid4().hex},
        }
        content = (
            "\n".join(json.dumps(action) for action in ({"commitInfo": info}, *actions)) + "\n"
        )
        while True:
            version += 1
            try:
                with (self.log / f"{version:020}.json").open("x") as file:
                    file.write(content)
            except FileExistsError:
                continue
            return

    def write_file(self, day: str, rows: pa.Table, *, with_stats: bool = True) -> Action:
        """Writes a data file of a day; returns its `add` action."""
        name = f"{self.partition_column}={day}/part-{uuid.uuid4()}.parquet"
        place = self.path / name
        place.parent.mkdir(exist_ok=True)
        pq.write_table(rows, place)
        add = {
            **{"path": name, "partitionValues": {self.partition_column: day}},
            **{"size": place.stat().st_size, "modificationTime": int(time.time() * 1000)},
            "dataChange": True,
        }
        if with_stats:
            add["stats"] = json.dumps({"numRecords": rows.num_rows})
        return {"add": add}

    def read_rows(self, files: Mapping[str, Action]) -> pa.Table:
        """The rows of data files, without the partition's column."""
        return pa.concat_tables(
            [pq.ParquetFile(self.path / path).read() for path in files], promote_options="default"
        )

    def select_day(self, files: Mapping[str, Action], day: str) -> dict[str, Action]:
        """The files of a day."""
        column = self.partition_column
        return {path: add for path, add in files.items() if add["partitionValues"][column] == day}


def open_folder(warehouse: Path, table: str) -> DeltaFolder:
    """A table of the warehouse."""
    return DeltaFolder(warehouse / table, PARTITION_COLUMNS[table])


def _remove(files: Mapping[str, Action], *, changes_data: bool = True) -> list[Action]:
    now = int(time.time() * 1000)
    return [
        {
            "remove": {
                **{"path": path, "deletionTimestamp": now, "dataChange": changes_data},
                **{"extendedFileMetadata": True, "partitionValues": add["partitionValues"]},
                "size": add["size"],
            }
        }
        for path, add in files.items()
    ]


def _change_rows(rows: pa.Table) -> pa.Table:
    """Adds one to a column of numbers, as an analyst's UPDATE may."""
    name = "flights_7d" if "flights_7d" in rows.column_names else "distance"
    at = rows.column_names.index(name)
    of_type = rows.schema.field(at).type
    changed = pa.array([value + 1 for value in rows[name].to_pylist()], of_type)
    return rows.set_column(at, rows.schema.field(at), changed)


def _rewrite(
    operation: str,
    change: Callable[[pa.Table], pa.Table] = lambda rows: rows,
    *,
    keeps: bool = False,
    changes_data: bool = True,
    with_stats: bool = True,
) -> "Disturbance":
    """Makes what writes a file with a day's rows, changed, in place of those that it has."""

    def disturb_day(folder: DeltaFolder, files: dict[str, Action], day: str) -> None:
        of_day = folder.select_day(files, day)
        added = folder.write_file(day, change(folder.read_rows(of_day)), with_stats=with_stats)
        added["add"]["dataChange"] = changes_data
        removed = [] if keeps else _remove(of_day, changes_data=changes_data)
        folder.commit(operation, [*removed, added])

    return disturb_day


def _delete(folder: DeltaFolder, files: dict[str, Action], day: str) -> None:
    folder.commit("DELETE", _remove(folder.select_day(files, day)))


def _restore(folder: DeltaFolder, files: dict[str, Action], day: str) -> None:
    """Takes the table back to its first version with the day, as RESTORE does."""
    version = next(
        version
        for version in range(folder.find_version() + 1)
        if folder.select_day(folder.read_files(version), day)
    )
    earlier = folder.read_files(version)
    gone = {path: add for path, add in files.items() if path not in earlier}
    back = [{"add": add} for path, add in earlier.items() if path not in files]
    folder.commit("RESTORE", [*_remove(gone), *back])


def _vacuum(folder: DeltaFolder, files: dict[str, Action], day: str) -> None:
    folder.commit("VACUUM START", [])
    folder.commit("VACUUM END", [])


def _replace_table(folder: DeltaFolder, files: dict[str, Action], day: str) -> None:
    """Puts another table in its place, with another id and other rows of the day."""
    protocol, metadata = folder.read_newest("protocol"), folder.read_newest("metaData")
    of_day = folder.select_day(files, day)
    added = folder.write_file(day, _change_rows(folder.read_rows(of_day)))
    kept = [{"add": add} for path, add in files.items() if path not in of_day]
    head = [{"protocol": protocol}, {"metaData": {**metadata, "id": str(uuid.uuid4())}}]
    shutil.rmtree(folder.log)
    folder.log.mkdir()
    now = int(time.time() * 1000)
    info = {"inCommitTimestamp": now, "timestamp": now, "operation": "CREATE TABLE AS SELECT"}
    lines = [{"commitInfo": info}, *head, *kept, added]
    (folder.log / f"{0:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _lose_newest_commit(folder: DeltaFolder, files: dict[str, Action], day: str) -> None:
    version = folder.find_version()
    for path in folder.log.glob(f"*{version:020}.*"):
        path.unlink()


Disturbance: TypeAlias = Callable[[DeltaFolder, dict[str, Action], str], object]
"""Takes the table, the files of its newest version, and a day that has rows."""

KINDS: dict[str, Disturbance] = {
    "DELETE": _delete,
    "UPDATE": _rewrite("UPDATE", _change_rows),
    "UPDATE without statistics": _rewrite("UPDATE", _change_rows, with_stats=False),
    "overwrite by half a day": _rewrite("WRITE", lambda rows: rows.slice(0, rows.num_rows // 2)),
    "append": _rewrite("WRITE", keeps=True),
    "OPTIMIZE": _rewrite("OPTIMIZE", changes_data=False),
    "RESTORE": _restore,
    "VACUUM": _vacuum,
    "table removed": lambda folder, files, day: shutil.rmtree(folder.path),
    "log lost": lambda folder, files, day: shutil.rmtree(folder.log),
    "newest commit lost": _lose_newest_commit,
    "table replaced": _replace_table,
}

WHILE_A_RUN_WRITES = ("DELETE", "UPDATE", "append", "RESTORE", "OPTIMIZE")


def disturb(
    folder: DeltaFolder, kind: str, moments: random.Random, days: Sequence[str]
) -> str | None:
    """Does one of them; returns the day, or None if the table holds nothing to do it to."""
    version = folder.find_version()
    files = folder.read_files(version) if version >= 0 else {}
    present = [day for day in days if folder.select_day(files, day)]
    if not present:
        return None
    day = moments.choice(present)
    KINDS[kind](folder, files, day)
    return day
