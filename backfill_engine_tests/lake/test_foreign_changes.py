"""What another program did to a table shows in its log, partition by partition. No Spark."""

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_engine.lake.commit_files import read_changed_folders
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.lake.readings import READINGS
from backfill_engine_tests.lake.test_commits import RECORD
from backfill_engine_tests.lake.test_table_log import append

FIRST, SECOND = "2013-01-02", "2013-01-03"
"""The partitions of RECORD, and of no record."""


def publish(warehouse: Warehouse, rows: int = 2) -> TableLog:
    """Publishes FIRST as this project does, in two commits, so that there is much to compact."""
    for _ in range(2):
        append(warehouse, dt.date.fromisoformat(FIRST), rows, RECORD.to_json())
    return read_log(warehouse, READINGS)


def write(warehouse: Warehouse, day: str | None, mode: str = "append") -> None:
    rows = pa.table({"day": [day], "id": [7], "value": ["foreign"]})
    rows = rows.set_column(0, "day", rows["day"].cast(pa.date32()))
    write_deltalake(warehouse.uri(READINGS), rows, mode=mode, partition_by=["day"])  # type: ignore[arg-type]


CHANGES: dict[str, Callable[[DeltaTable], object]] = {
    "delete": lambda table: table.delete(f"day = '{FIRST}'"),
    "delete of a row": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update({"value": "'other'"}, predicate="id = 1"),
    "restore": lambda table: table.restore(0),
}
NO_CHANGES: dict[str, Callable[[DeltaTable], object]] = {
    "compaction": lambda table: table.optimize.compact(),
    "vacuum": lambda table: table.vacuum(dry_run=False),
    "properties": lambda table: table.alter.set_table_properties({"delta.appendOnly": "false"}),
    "checkpoint": lambda table: table.create_checkpoint(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_partition_that_another_program_changed_is_no_longer_as_published(
    change: str, warehouse: Warehouse
) -> None:
    log = publish(warehouse)
    assert log.foreign_changes == {}
    CHANGES[change](log.open_snapshot())
    now = log.reread()
    assert set(now.foreign_changes) == {FIRST}
    assert now.checksums[FIRST] != now.publishes[FIRST].checksum
    assert "version 2" in now.checksums[FIRST]
    assert set(publish(warehouse).foreign_changes) == set(), "published again since"


@pytest.mark.parametrize("change", NO_CHANGES)
def test_commits_that_change_no_data_are_nobodys_change(change: str, warehouse: Warehouse) -> None:
    log = publish(warehouse)
    NO_CHANGES[change](DeltaTable(warehouse.uri(READINGS)))
    now = log.reread()
    assert now.foreign_changes == {}
    assert now.checksums == log.checksums == RECORD.checksums


def test_rows_of_another_program_show_where_nothing_was_published(warehouse: Warehouse) -> None:
    log = publish(warehouse)
    write(warehouse, SECOND)
    assert set(log.reread().foreign_changes) == {SECOND}
    write(warehouse, None)
    assert set(log.reread().foreign_changes) == {SECOND}, "no partition has rows without a day"
    write(warehouse, SECOND, mode="overwrite")
    assert set(log.reread().foreign_changes) == {FIRST, SECOND}


def test_change_is_known_when_the_log_no_longer_has_it(warehouse: Warehouse) -> None:
    publish(warehouse)
    write(warehouse, FIRST)
    write(warehouse, SECOND)
    log = read_log(warehouse, READINGS).keep_publishes()
    DeltaTable(log.uri).create_checkpoint()
    for version in range(3):
        (Path(log.uri) / "_delta_log" / f"{version:020}.json").unlink()
    now = read_log(warehouse, READINGS)
    assert now.begins_with == 3
    assert {key: commit.version for key, commit in now.foreign_changes.items()} == {
        FIRST: 2,
        SECOND: 3,
    }


def test_rows_without_statistics_are_counted_in_their_files(warehouse: Warehouse) -> None:
    log = publish(warehouse)
    newest = Path(log.uri) / "_delta_log" / f"{log.version:020}.json"
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    newest.write_text("\n".join(map(json.dumps, actions)))
    assert read_log(warehouse, READINGS).count_rows() == {FIRST: 4}


@pytest.mark.parametrize(
    ("action", "folders"),
    [
        ({"add": {"path": "x", "partitionValues": {"day": FIRST}, "dataChange": True}}, {FIRST}),
        ({"remove": {"path": f"day={FIRST}/x", "dataChange": True}}, {FIRST}),
        ({"remove": {"path": f"day={FIRST}/x", "dataChange": False}}, set()),
        ({"add": {"path": "a/x", "partitionValues": {"col-7f": SECOND}}}, {SECOND}),
        ({"add": {"path": "x", "partitionValues": {}, "dataChange": True}}, None),
        ({"commitInfo": {"operation": "WRITE"}}, set()),
    ],
)
def test_folders_that_a_commit_changed(
    action: dict[str, object], folders: set[str] | None, tmp_path: Path
) -> None:
    """None: an action doesn't say which, so that it may be any."""
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{7:020}.json").write_text(json.dumps(action))
    assert read_changed_folders(str(tmp_path), 7, "day") == folders
    assert read_changed_folders(str(tmp_path), 8, "day") is None, "cleaned away"
