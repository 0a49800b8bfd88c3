"""Makes a small warehouse and its Dagster home old: thousands of commits and events behind them.

Commits are as Delta writes them, but of the files that are there already: each says that it
published one partition again. Events are copies of those that the home has.
"""

import json
import os
import sqlite3
import uuid
from dataclasses import replace
from datetime import datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable

from backfill_engine.lake.commits import CommitRecord, Publish
from backfill_engine.lake.partitions import build_partitions, build_table_predicate, find_folder
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import Table
from backfill_engine.uris import local_path

_COPIED_TABLES = ("event_logs", "asset_check_executions")


def shift_log(warehouse: Warehouse, table: Table, days: float) -> None:
    """Lets all commits of a table be `days` older than they say."""
    for path in _list_commits(warehouse, table):
        actions = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for action in actions:
            info = action.get("commitInfo", {})
            for name in ("timestamp", "inCommitTimestamp"):
                if name in info:
                    info[name] -= round(days * 86_400_000)
        _write_commit(path, actions)
    # What a reader kept of them beside the table is of other commits now.
    index = local_path(warehouse.root) / "publishes" / f"{table.layer}.{table.name}.jsonl"
    index.unlink(missing_ok=True)


def age_log(warehouse: Warehouse, table: Table, commits: int, *, until: datetime) -> None:
    """Publishes partitions of a table again, one a commit, in turn.

    Args:
        warehouse: where the table is, on a local disk.
        table: with at least one published partition.
        commits: how many.
        until: when the last of them is (UTC); the others lie between it and the newest so far.
    """
    log = read_log(warehouse, table)
    published, newest = log.publishes, log.commits[0].committed_at
    step = (until - newest) / commits
    adds = _find_adds(warehouse, table)
    for number, key in enumerate(islice(cycle(sorted(published)), commits), start=1):
        record = _publish_again(table, published[key], based_on=log.version + number - 1)
        moment = round((newest + step * number).timestamp() * 1000)
        folder = find_folder(table, build_partitions(table, [key])[0])
        info = {
            "inCommitTimestamp": moment,
            "timestamp": moment,
            "operation": "WRITE",
            "operationParameters": {"mode": "Overwrite"},
            "isolationLevel": "Serializable",
            "isBlindAppend": False,
            "userMetadata": record.to_json(),
        }
        path = _find_commit(warehouse, table, log.version + number)
        _write_commit(path, [{"commitInfo": info}, *({"add": add} for add in adds[folder])])
    DeltaTable(warehouse.uri(table)).create_checkpoint()


def age_home(home: Path, run_id: str, copies: int) -> None:
    """Copies a run with all that the home's index says of it, as runs before it.

    Args:
        home: `DAGSTER_HOME`, with the storage that Dagster takes by itself.
        run_id: the run.
        copies: how many.
    """
    ids = [str(uuid.uuid4()) for _ in range(copies)]
    with sqlite3.connect(home / "history" / "runs.db") as runs:
        _copy_rows(runs, "runs", run_id, ids)
        _copy_rows(runs, "run_tags", run_id, ids)
    with sqlite3.connect(home / "history" / "runs" / "index.db") as events:
        for table in _COPIED_TABLES:
            _copy_rows(events, table, run_id, ids)


def count_events(home: Path) -> int:
    """Counts the events that the home's index has."""
    with sqlite3.connect(home / "history" / "runs" / "index.db") as events:
        (count,) = events.execute("SELECT count(*) FROM event_logs").fetchone()
    return count


def _copy_rows(connection: sqlite3.Connection, table: str, run_id: str, ids: list[str]) -> None:
    columns = [
        row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "id"
    ]
    listed = ", ".join(f'"{column}"' for column in columns)
    rows = connection.execute(f"SELECT {listed} FROM {table} WHERE run_id = ?", [run_id]).fetchall()
    marks = ", ".join("?" for _ in columns)
    connection.executemany(
        f"INSERT INTO {table} ({listed}) VALUES ({marks})",
        (
            [value.replace(run_id, id_) if isinstance(value, str) else value for value in row]
            for id_ in ids
            for row in rows
        ),
    )


def _publish_again(table: Table, publish: Publish, *, based_on: int) -> CommitRecord:
    (partition,) = build_partitions(table, [publish.key])
    return replace(
        publish.record.restrict({publish.key}),
        commit_id=str(uuid.uuid4()),
        run_id=str(uuid.uuid4()),
        partition_start=publish.key,
        partition_end=publish.key,
        predicate=build_table_predicate(table, [partition.slice]),
        based_on=based_on,
        statement="",
    )


def _find_adds(warehouse: Warehouse, table: Table) -> dict[str, list[dict[str, Any]]]:
    """Finds the actions that added the present files of each folder."""
    present = {unquote(path) for _, path in read_log(warehouse, table).list_files("path")}
    adds: dict[str, list[dict[str, Any]]] = {}
    for path in _list_commits(warehouse, table):
        for action in (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()):
            if "add" in action and unquote(action["add"]["path"]) in present:
                folder = action["add"]["partitionValues"][table.folder_column]
                adds.setdefault(folder, []).append(action["add"])
    return adds


def _list_commits(warehouse: Warehouse, table: Table) -> list[Path]:
    return sorted((local_path(warehouse.uri(table)) / "_delta_log").glob("[0-9]*.json"))


def _find_commit(warehouse: Warehouse, table: Table, version: int) -> Path:
    return local_path(warehouse.uri(table)) / "_delta_log" / f"{version:020}.json"


def _write_commit(path: Path, actions: list[dict[str, Any]]) -> None:
    path.write_text(
        "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions),
        encoding="utf-8",
    )
    moment = actions[0]["commitInfo"]["timestamp"] / 1000
    os.utime(path, (moment, moment))
