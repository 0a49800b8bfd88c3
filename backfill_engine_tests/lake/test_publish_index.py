"""What is known of publishes once Delta has removed the commits that told of them."""

import datetime as dt
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.errors import HistoryError
from backfill_engine.lake.commits import (
    Commit,
    CommitAudit,
    CommitRecord,
    group_publishes,
    keep_publishes,
)
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.lake.readings import READINGS
from backfill_engine_tests.lake.test_commits import RECORD
from backfill_engine_tests.lake.test_table_log import append
from backfill_engine_tests.pipeline.aging import clean_log

KEYS = ("2013-01-01", "2013-01-02", "2013-01-03")


def build_record(version: int, *keys: str, run: str | None = None) -> CommitRecord:
    """Builds a record whose figures follow from its version; its run is new unless it is named."""
    return replace(
        RECORD,
        commit_id=f"commit-{version}",
        run_id=run or f"run-{version}",
        rows=dict.fromkeys(keys, version),
        checksums=dict.fromkeys(keys, f"{version:016x}"),
        profiles={key: {"r": version, "n": {}, "h": {}} for key in keys},
        audit=CommitAudit(),
    )


def publish(warehouse: Warehouse, *partitions: tuple[str, ...]) -> None:
    """Commits one after the other, each of some partitions."""
    version = read_log(warehouse, READINGS).version
    for number, keys in enumerate(partitions, start=version + 1):
        append(warehouse, dt.date(2013, 1, 1), 1, build_record(number, *keys).to_json())


def describe(log: TableLog) -> dict[str, tuple[int, int, str]]:
    return {
        key: (newest.version, newest.rows, newest.checksum) for key, newest in log.publishes.items()
    }


def find_index(warehouse: Warehouse) -> Path:
    return Path(warehouse.root, "publishes", "raw.readings.jsonl")


def test_publishes_stay_known_when_the_log_has_lost_their_commits(warehouse: Warehouse) -> None:
    publish(warehouse, KEYS, (KEYS[0],), (KEYS[0],), (KEYS[1],))
    whole = read_log(warehouse, READINGS)
    kept = whole.keep_publishes()
    assert describe(kept) == describe(whole)
    publish(warehouse, (KEYS[1],))
    expected = describe(read_log(warehouse, READINGS))
    clean_log(warehouse, READINGS, keep=1)
    log = read_log(warehouse, READINGS)
    assert (log.begins_with, log.known_since) == (4, 0)
    assert describe(log) == expected
    assert log.publishes[KEYS[2]].record.profiles[KEYS[2]] == {"r": 0, "n": {}, "h": {}}
    assert [commit.version for commit in log.commits] == [4]
    assert [commit.version for commit in log.iterate_commits()] == [4]
    # The last publish, and the one of the run before.
    assert [commit.version for commit in group_publishes(log.known_commits)[KEYS[0]]] == [2, 1]
    with pytest.raises(HistoryError, match="version 1 is no longer in the log, which begins with"):
        log.as_of(1)


def test_what_no_index_kept_is_known_to_be_unknown(warehouse: Warehouse) -> None:
    publish(warehouse, KEYS[:2], (KEYS[0],), (KEYS[0],))
    clean_log(warehouse, READINGS, keep=1)
    log = read_log(warehouse, READINGS)
    assert log.lacks_commits
    assert (log.known_since, [*log.publishes]) == (2, [KEYS[0]])
    kept = log.keep_publishes()
    publish(warehouse, (KEYS[2],))
    again = read_log(warehouse, READINGS)
    assert not again.lacks_commits
    assert (kept.known_since, again.known_since) == (2, 2), "it stays unknown"
    assert again.find_partitions_with_lost_history(KEYS[:2], again.as_of(2)) == [KEYS[1]]


def test_commits_lost_in_the_middle_count_as_lost(warehouse: Warehouse) -> None:
    publish(warehouse, KEYS, *[(KEYS[0],)] * 4)
    DeltaTable(warehouse.uri(READINGS)).create_checkpoint()
    for version in (1, 2):
        Path(warehouse.uri(READINGS), "_delta_log", f"{version:020}.json").unlink()
    log = read_log(warehouse, READINGS)
    assert log.lacks_commits
    assert (log.begins_with, log.known_since) == (3, 3)
    assert [commit.version for commit in log.iterate_commits()] == [4, 3, 0]
    moment = dt.datetime.now(tz=dt.UTC)
    certified = [Commit(2, moment, "WRITE", build_record(2, KEYS[1]))]
    assert log.keep_publishes(certified=certified).publishes[KEYS[1]].version == 2, "not 0"


def test_an_index_that_is_not_of_this_log_counts_as_none(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    publish(warehouse, KEYS[:1], KEYS[1:2])
    read_log(warehouse, READINGS).keep_publishes()
    index = find_index(warehouse)
    assert read_log(warehouse, READINGS).index.version == 1
    first = Path(warehouse.uri(READINGS), "_delta_log", f"{1:020}.json")
    written = first.read_text(encoding="utf-8")

    first.write_text(written.replace("commit-1", "commit-x"), encoding="utf-8")
    assert read_log(warehouse, READINGS).index.version == -1, "another commit of that number"
    first.write_text(written, encoding="utf-8")

    whole = index.read_bytes()
    index.write_bytes(whole.replace(b'"version":1', b'"version":7', 1))
    assert read_log(warehouse, READINGS).index.version == -1, "ahead of the log"
    index.write_bytes(whole)
    assert read_log(warehouse, READINGS).index.version == 1

    shutil.move(warehouse.uri(READINGS), tmp_path / "old")
    publish(warehouse, KEYS[:1], KEYS[2:])
    log = read_log(warehouse, READINGS)
    assert (log.index.version, sorted(log.publishes)) == (-1, [KEYS[0], KEYS[2]]), "another table"


def test_nothing_is_written_where_nothing_was_committed(warehouse: Warehouse) -> None:
    assert read_log(warehouse, READINGS).keep_publishes().publishes == {}
    publish(warehouse, KEYS)
    read_log(warehouse, READINGS).keep_publishes()
    before = find_index(warehouse).stat()
    read_log(warehouse, READINGS).keep_publishes()
    assert find_index(warehouse).stat().st_mtime_ns == before.st_mtime_ns
    assert [path.name for path in find_index(warehouse).parent.iterdir()] == ["raw.readings.jsonl"]


COMMITS = st.lists(
    st.tuples(
        st.sets(st.sampled_from("abc"), min_size=1), st.integers(0, 3), st.booleans(), st.booleans()
    ),
    max_size=12,
)
"""Each commit's partitions and run, whether it appends, and whether the index is then kept."""


@given(COMMITS)
def test_an_index_made_bit_by_bit_keeps_what_all_commits_tell(
    drawn: list[tuple[set[str], int, bool, bool]],
) -> None:
    commits: list[Commit] = []
    kept: tuple[Commit, ...] = ()
    newer: list[Commit] = []
    for version, (keys, run, appends, keeps) in enumerate(drawn):
        record = build_record(version, *sorted(keys), run=f"run-{run}")
        batches = dict.fromkeys(keys, f"batch-{version}") if appends else {}
        made = Commit(
            version, dt.datetime.now(tz=dt.UTC), "WRITE", replace(record, batches=batches)
        )
        commits.insert(0, made)
        newer.insert(0, made)
        if keeps:
            kept, newer = keep_publishes((*newer, *kept)), []
    known = (*newer, *kept)
    found, whole = (
        {
            key: (newest.version, newest.rows)
            for key, (newest, *_) in group_publishes(history).items()
        }
        for history in (known, commits)
    )
    assert found == whole
    for key, publishes in group_publishes(commits).items():
        versions = [commit.version for commit in group_publishes(known)[key]]
        runs = [commit.record.run_id for commit in publishes]
        others = [commit for commit, run in zip(publishes, runs, strict=True) if run != runs[0]]
        assert set(versions) >= {commit.version for commit in publishes[: runs.index(runs[0]) + 1]}
        assert not others or others[0].version in versions, "to which an undo goes back"
    index = keep_publishes(commits)
    assert len(index) <= 3 * len(commits)
    for commit in index:
        assert commit.record is not None
        assert {*commit.record.rows} == {*commit.record.checksums} == {*commit.record.profiles}
