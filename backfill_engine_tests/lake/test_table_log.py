"""The log as delta-rs writes it: these answers need neither Spark nor this project's writer."""

import dataclasses
import datetime as dt
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from backfill_engine.errors import TableError
from backfill_engine.lake.commits import Commit, CommitRecord, find_changed_partitions, find_commit
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.lake.readings import READINGS
from backfill_engine_tests.lake.test_commits import RECORD


def append(warehouse: Warehouse, day: dt.date, rows: int, user_metadata: str | None) -> None:
    columns = {"day": [day] * rows, "id": range(rows), "value": ["x"] * rows}
    write_deltalake(
        warehouse.uri(READINGS),
        pa.table({name: list(values) for name, values in columns.items()}),
        mode="append",
        partition_by=["day"],
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": user_metadata} if user_metadata else {}
        ),
    )


NUMBERED = tuple(
    dataclasses.replace(RECORD, commit_id=f"commit-{number}", run_id=f"run-{number}")
    for number in range(6)
)


def append_numbered(warehouse: Warehouse, *numbers: int) -> None:
    for number in numbers:
        append(warehouse, dt.date(2013, 1, 1), 1, NUMBERED[number].to_json())


def list_records(log: TableLog) -> list[tuple[int, CommitRecord | None]]:
    return [(commit.version, commit.record) for commit in log.commits]


def test_missing_table_has_no_commits_no_rows_and_no_version(warehouse: Warehouse) -> None:
    log = read_log(warehouse, READINGS)
    assert log.commits == ()
    assert log.count_rows() == {}
    assert (log.exists, log.version) == (False, -1)
    with pytest.raises(TableError, match=r"raw/readings does not exist at .*: materialize"):
        log.require()


def test_version_that_the_log_does_not_have_is_refused(warehouse: Warehouse) -> None:
    with pytest.raises(DeltaError):
        read_log(warehouse, READINGS, version=0)
    append_numbered(warehouse, 0)
    with pytest.raises(DeltaError):
        read_log(warehouse, READINGS, version=1)


def test_rows_are_counted_per_partition_over_all_files(warehouse: Warehouse) -> None:
    for day, rows in ((1, 3), (2, 1), (1, 2)):
        append(warehouse, dt.date(2013, 1, day), rows, None)
    log = read_log(warehouse, READINGS)
    assert log.count_rows() == {"2013-01-01": 5, "2013-01-02": 1}
    assert log.as_of(0).count_rows() == {"2013-01-01": 3}
    assert log.require().version == 2


def test_what_another_writer_restored_or_touched_is_read_from_its_commit(
    warehouse: Warehouse,
) -> None:
    for day in (1, 2):
        append(warehouse, dt.date(2013, 1, day), 2, None)
    uri = warehouse.uri(READINGS)
    DeltaTable(uri).delete("day = '2013-01-02'")
    DeltaTable(uri).restore(1)
    DeltaTable(uri).optimize.compact()
    append(warehouse, dt.date(2013, 1, 1), 2, None)
    DeltaTable(uri).optimize.compact()
    log = read_log(warehouse, READINGS)
    assert [commit.restores for commit in log.commits[::-1]] == [None, None, None, 1, None, None]
    touched = [commit.foreign for commit in log.commits[-3::-1]]
    assert touched == [("2013-01-02",), ("2013-01-02",), ("2013-01-01",), ()]


def test_files_are_listed_with_their_figures_which_are_summed_per_partition(
    warehouse: Warehouse,
) -> None:
    for day in (1, 2, 1):
        append(warehouse, dt.date(2013, 1, day), 10 * day, None)
    root = Path(warehouse.uri(READINGS))
    files = [
        (f"2013-01-0{day}", str(path.relative_to(root)), 10 * day, path.stat().st_size)
        for day in (1, 2)
        for path in root.glob(f"day=2013-01-0{day}/*")
    ]
    log = read_log(warehouse, READINGS)
    assert sorted(log.list_files("path", "num_records", "size_bytes")) == sorted(files)
    sizes = Counter[str]()
    for day, _, _, size in files:
        sizes[day] += size
    assert log.sum_folder_bytes() == sizes


def test_commits_come_newest_first_and_foreign_ones_without_record(warehouse: Warehouse) -> None:
    day = dt.date(2013, 1, 1)
    for user_metadata in (RECORD.to_json(), "by hand", None):
        append(warehouse, day, 1, user_metadata)
    log = read_log(warehouse, READINGS)
    assert list_records(log) == [(2, None), (1, None), (0, RECORD)]
    assert [commit.version for commit in log.list_commits_after(0)] == [2, 1]
    assert log.list_commits_after(2) == []
    assert abs(log.commits[0].committed_at - dt.datetime.now(tz=dt.UTC)) < dt.timedelta(minutes=5)


def test_commit_that_came_since_is_seen_only_when_the_log_is_read_again(
    warehouse: Warehouse,
) -> None:
    append_numbered(warehouse, 0, 1)
    log = read_log(warehouse, READINGS)
    append_numbered(warehouse, 2)
    time.sleep(0.05)  # A commit file that is newer than a reading counts as another one.
    assert list_records(log) == [(1, NUMBERED[1]), (0, NUMBERED[0])]
    newer = log.reread()
    assert newer.version == 2
    assert list_records(newer) == [(2, NUMBERED[2]), (1, NUMBERED[1]), (0, NUMBERED[0])]
    assert newer.commits[1:] == log.commits
    assert newer.commits[1] is log.commits[0], "read once"
    assert newer.reread() is newer
    assert newer.as_of(newer.version) is newer
    assert list_records(log) == [(1, NUMBERED[1]), (0, NUMBERED[0])]


def test_commits_keep_their_versions_where_the_log_has_lost_some(warehouse: Warehouse) -> None:
    append_numbered(warehouse, *range(6))
    before = read_log(warehouse, READINGS, version=3)
    assert [commit.version for commit in before.commits] == [3, 2, 1, 0]
    uri = warehouse.uri(READINGS)
    DeltaTable(uri).create_checkpoint()
    for version in (2, 3, 4):
        Path(uri, "_delta_log", f"{version:020}.json").unlink()
    log = read_log(warehouse, READINGS)
    assert log.version == 5
    assert list_records(log) == [(5, NUMBERED[5]), (1, NUMBERED[1]), (0, NUMBERED[0])]
    assert list_records(before.reread()) == [(5, NUMBERED[5]), *list_records(before)]
    assert log.count_rows() == {"2013-01-01": 6}


def test_commit_is_found_by_its_id_and_partitions_by_their_latest(warehouse: Warehouse) -> None:
    later = dataclasses.replace(RECORD, commit_id="later", rows={"2013-01-02": 1, "2013-01-03": 1})
    for record in (RECORD, later):
        append(warehouse, dt.date(2013, 1, 1), 1, record.to_json())
    log = read_log(warehouse, READINGS)
    found = find_commit(log.commits, RECORD.commit_id)
    assert found is not None
    assert found.version == 0
    assert find_commit(log.commits, "unknown") is None
    versions = {key: publish.version for key, publish in log.publishes.items()}
    assert versions == {"2013-01-01": 0, "2013-01-02": 1, "2013-01-03": 1}


@pytest.mark.parametrize(
    ("record", "foreign", "changed"),
    [
        (RECORD, (), {"2013-01-02"}),
        (dataclasses.replace(RECORD, run_id="own"), (), set()),
        (None, None, {"2013-01-02", "2013-01-03"}),
        (None, ("2013-01-01", "2013-01-03"), {"2013-01-03"}),
        (None, (), set()),
    ],
)
def test_partitions_are_changed_by_other_runs_and_by_hand(
    record: CommitRecord | None, foreign: tuple[str, ...] | None, changed: set[str]
) -> None:
    commit = Commit(7, dt.datetime.now(tz=dt.UTC), "WRITE", record, foreign)
    keys = ["2013-01-02", "2013-01-03"]
    assert find_changed_partitions([commit], keys, run_id="own") == changed
