"""Commits of ours are Delta's: read by an independent reader, one a version, later than others."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_engine.engines.delta_commits import write_empty_commit, write_new_columns
from backfill_engine.errors import TableError


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table of two rows, by day."""
    rows = pa.table({"day": ["a", "b"], "id": [1, 2]})
    write_deltalake(str(tmp_path / "table"), rows, partition_by=["day"], name="readings")
    return str(tmp_path / "table")


def read_info(uri: str, version: int) -> dict:
    text = Path(uri, "_delta_log", f"{version:020}.json").read_text()
    return json.loads(text.splitlines()[0])["commitInfo"]


def test_a_commit_without_rows_carries_its_record_and_changes_nothing(uri: str) -> None:
    before = DeltaTable(uri).to_pyarrow_table().to_pylist()
    write_empty_commit(uri, "record")
    table = DeltaTable(uri)
    assert table.version() == 1
    assert table.to_pyarrow_table().to_pylist() == before
    assert read_info(uri, 1)["userMetadata"] == "record"


def test_a_commit_is_later_than_the_one_before(uri: str) -> None:
    place = Path(uri, "_delta_log", f"{1:020}.json")
    later = 2**43  # milliseconds, in the 23rd century: a clock may be set back
    place.write_text(json.dumps({"commitInfo": {"inCommitTimestamp": later}}) + "\n")
    write_empty_commit(uri, "record")
    assert read_info(uri, 2)["inCommitTimestamp"] == later + 1


def test_new_columns_are_null_and_all_else_stays(uri: str) -> None:
    before = DeltaTable(uri).metadata()
    write_new_columns(
        uri, [{"name": "note", "type": "string", "nullable": True, "metadata": {"comment": "c"}}]
    )
    table = DeltaTable(uri)
    assert [field.name for field in table.schema().fields] == ["day", "id", "note"]
    assert table.to_pyarrow_table().column("note").to_pylist() == [None, None]
    after = table.metadata()
    assert (after.id, after.name, after.partition_columns) == (before.id, "readings", ["day"])


def test_writers_at_once_make_a_version_each_or_are_refused(uri: str) -> None:
    def write(writer: int) -> list[str]:
        made: list[str] = []
        for number in range(40):
            with suppress(TableError):
                write_empty_commit(uri, f"{writer}.{number}")
                made.append(f"{writer}.{number}")
        return made

    with ThreadPoolExecutor(4) as pool:
        made = [record for records in pool.map(write, range(4)) for record in records]
    last = DeltaTable(uri).version()
    found = [read_info(uri, version)["userMetadata"] for version in range(1, last + 1)]
    assert sorted(found) == sorted(made)
    assert len(made) < 160, "none was refused"
    assert not [*Path(uri, "_delta_log").glob(".*")]
