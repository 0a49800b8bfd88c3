"""A side file that was cut off, or in which a byte changed, is never read as another one."""

import datetime as dt
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_engine.errors import RehearsalError, TableError
from backfill_engine.extras.rehearsal.records import read_rehearsal, write_rehearsal
from backfill_engine.lake.commit_files import PublishIndex, read_index
from backfill_engine.lake.protections import PROTECTIONS, add_protection, read_protections
from backfill_engine.lake.side_tables import enter_table, open_entered
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.watermarks import WATERMARKS, read_watermarks
from backfill_engine.lake.whole_files import read_whole_file, write_file, write_whole_file
from backfill_engine.publishing.audit import find_profiles
from backfill_engine_tests.extras.rehearsal.test_records import REHEARSAL
from backfill_engine_tests.lake.readings import READINGS
from backfill_engine_tests.lake.test_protections import CLOSED, NOW
from backfill_engine_tests.lake.test_publish_index import KEYS, build_record, find_index, publish
from backfill_engine_tests.lake.test_table_log import append
from backfill_engine_tests.pipeline.aging import clean_log


def test_what_was_written_is_read(tmp_path: Path) -> None:
    place = str(tmp_path / "a" / "b.jsonl")
    with pytest.raises(FileNotFoundError):
        read_whole_file(place)
    for lines in ([], [b""], [b"a", b"", b"c"]):
        write_whole_file(place, lines)
        assert read_whole_file(place) == lines
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.jsonl"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    place = tmp_path / "folder"
    place.mkdir()
    (place / "file").touch()
    with pytest.raises(OSError, match="folder"):
        write_file(str(place), b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def damage(path: Path, check: Callable[[], None]) -> None:
    """Cuts a file off at each byte, and changes each of its bytes, and checks what is read."""
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place])
        check()
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        check()
    path.write_bytes(whole)


def test_a_damaged_index_of_publishes_counts_as_none(warehouse: Warehouse) -> None:
    publish(warehouse, KEYS, (KEYS[0],))
    read_log(warehouse, READINGS).keep_publishes()
    log = read_log(warehouse, READINGS)
    assert log.index.version == 1

    def check() -> None:
        assert read_index(warehouse, READINGS, log.open_snapshot()) == PublishIndex()

    damage(find_index(warehouse), check)
    assert read_index(warehouse, READINGS, log.open_snapshot()) == log.index


def test_a_damaged_rehearsal_is_refused(warehouse: Warehouse) -> None:
    place = Path(write_rehearsal(warehouse, REHEARSAL))

    def check() -> None:
        with pytest.raises(RehearsalError, match="cut off or was edited"):
            read_rehearsal(warehouse, REHEARSAL.rehearsal_id)

    damage(place, check)
    assert read_rehearsal(warehouse, REHEARSAL.rehearsal_id) == REHEARSAL


def test_protections_are_read_or_refused_whatever_becomes_of_their_entry(
    warehouse: Warehouse,
) -> None:
    stored = add_protection(warehouse, CLOSED, now=NOW)
    entry = Path(warehouse.root, "ledger", "protections.jsonl")
    whole = entry.read_bytes()

    def check() -> None:
        assert list(read_protections(warehouse).decisions) == [stored]

    damage(entry, check)
    entry.unlink()
    check()
    assert not entry.exists(), "who only reads writes nothing"

    entry.write_bytes(whole)
    shutil.rmtree(Path(warehouse.root, PROTECTIONS))

    def check_gone() -> None:
        with pytest.raises(TableError, match=r"protections is gone: restore .* or remove .*ledger"):
            read_protections(warehouse)

    check_gone()
    damage(entry, check_gone)
    entry.unlink()
    assert list(read_protections(warehouse).decisions) == []


def test_an_older_copy_of_the_protections_or_another_table_is_refused(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    first = add_protection(warehouse, CLOSED, now=NOW)
    here = Path(warehouse.root, PROTECTIONS)
    shutil.copytree(here, tmp_path / "older")
    second = add_protection(warehouse, CLOSED, now=NOW)
    newest = tmp_path / "newest"
    here.rename(newest)
    shutil.copytree(tmp_path / "older", here)

    def check_refused() -> None:
        with pytest.raises(TableError, match="is not the table that was written last"):
            read_protections(warehouse)

    check_refused()
    shutil.rmtree(here)
    write_deltalake(str(here), DeltaTable(str(newest)).to_pyarrow_table())
    check_refused()
    with pytest.raises(TableError, match="is not the table that was written last"):
        add_protection(warehouse, CLOSED, now=NOW)
    shutil.rmtree(here)
    newest.rename(here)
    assert list(read_protections(warehouse).decisions) == [second, first]


def test_watermarks_that_are_gone_are_missed(warehouse: Warehouse) -> None:
    assert read_watermarks(warehouse) == {}
    publish(warehouse, KEYS)
    shutil.copytree(warehouse.uri(READINGS), Path(warehouse.root, WATERMARKS))
    enter_table(warehouse, WATERMARKS)
    assert open_entered(warehouse, WATERMARKS) is not None
    shutil.rmtree(Path(warehouse.root, WATERMARKS))
    with pytest.raises(TableError, match="watermarks is gone"):
        read_watermarks(warehouse)


def test_what_no_log_and_no_index_knows_is_compared_by_the_rows_of_the_table(
    warehouse: Warehouse,
) -> None:
    publish(warehouse, KEYS[:1])
    append(warehouse, dt.date(2013, 1, 2), 5, build_record(1, KEYS[1]).to_json())
    publish(warehouse, KEYS[:1])
    log = read_log(warehouse, READINGS).keep_publishes()
    profiles, is_lost = find_profiles(log)
    assert (sorted(profiles), is_lost) == (sorted(KEYS[:2]), False)

    index = find_index(warehouse)
    lines = index.read_bytes().splitlines(keepends=True)
    clean_log(warehouse, READINGS, keep=1)
    assert find_profiles(log.reread()) == (profiles, False)
    index.write_bytes(b"".join(lines[:-2]))
    log = read_log(warehouse, READINGS).keep_publishes()
    profiles, is_lost = find_profiles(log)
    assert profiles[KEYS[1]].rows == 5
    assert is_lost
    append(warehouse, dt.date(2013, 1, 3), 4, None)  # by another program
    profiles, _ = find_profiles(log.reread())
    assert profiles["2013-01-03"].rows == 4


def test_rows_of_another_program_are_compared_with_before_anybody_publishes_them(
    warehouse: Warehouse,
) -> None:
    publish(warehouse, KEYS[:1])
    append(warehouse, dt.date(2013, 1, 2), 5, None)
    profiles, is_lost = find_profiles(read_log(warehouse, READINGS))
    assert (profiles["2013-01-02"].rows, is_lost) == (5, False)
