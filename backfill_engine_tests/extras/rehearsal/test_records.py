"""What a rehearsal showed is read as it was written."""

import datetime as dt
from pathlib import Path

import pytest

from backfill_engine.errors import RehearsalError, UnknownRunError
from backfill_engine.extras.comparison.rows import PartitionDiff
from backfill_engine.extras.rehearsal.records import (
    Gates,
    Rehearsal,
    RehearsedPartition,
    RehearsedTable,
    find_scratch,
    list_rehearsals,
    read_rehearsal,
    remove_abandoned,
    remove_scratch,
    write_rehearsal,
)
from backfill_engine.lake.warehouse import Warehouse

REHEARSAL = Rehearsal(
    rehearsal_id="0c39c69e-e4fb-4ce1-94cf-d0b6b6b85f82",
    at=dt.datetime(2013, 1, 12, 6, tzinfo=dt.UTC),
    reason="INC-7",
    gates=Gates(max_psi=0.1),
    tables=(
        RehearsedTable(
            "staging/flights",
            code_version="abc",
            version=3,
            partitions=(
                RehearsedPartition("2013-01-10", withheld="row_count = 0"),
                RehearsedPartition(
                    "2013-01-11",
                    rows=2,
                    checksum="2",
                    shown_checksum="1",
                    diff=PartitionDiff(1, 2, added=1, psi={"hour": None, "origin": 0.5}),
                    changed_values={"dest": 1},
                ),
            ),
        ),
    ),
    exceeded=("staging/flights 2013-01-11: PSI of origin is 0.500 (at most 0.1)",),
)


def test_it_is_read_by_the_beginning_of_its_id(warehouse: Warehouse) -> None:
    write_rehearsal(warehouse, REHEARSAL)
    assert read_rehearsal(warehouse, "0c39c69e") == REHEARSAL
    assert list_rehearsals(warehouse) == [REHEARSAL.rehearsal_id]


def test_an_unknown_one_is_refused(warehouse: Warehouse) -> None:
    with pytest.raises(UnknownRunError, match="no rehearsal 12345678"):
        read_rehearsal(warehouse, "12345678")


def test_one_that_was_cut_off_is_refused(warehouse: Warehouse) -> None:
    place = Path(write_rehearsal(warehouse, REHEARSAL))
    place.write_text(place.read_text()[:100])
    with pytest.raises(RehearsalError, match="rehearse again"):
        read_rehearsal(warehouse, REHEARSAL.rehearsal_id)


def test_removing_its_tables_keeps_what_it_showed(warehouse: Warehouse) -> None:
    write_rehearsal(warehouse, REHEARSAL)
    tables = Path(find_scratch(warehouse, REHEARSAL.rehearsal_id).root)
    (tables / "staging").mkdir(parents=True)
    remove_scratch(warehouse, REHEARSAL.rehearsal_id)
    assert not tables.exists()
    assert read_rehearsal(warehouse, REHEARSAL.rehearsal_id) == REHEARSAL


def test_a_partition_that_never_was_published_differs_though_it_is_empty() -> None:
    first = RehearsedPartition("2013-01-11", diff=PartitionDiff(0, 0))
    assert first.differs
    assert not RehearsedPartition(
        "2013-01-11", shown_checksum="1", diff=PartitionDiff(1, 1)
    ).differs


def test_tables_of_rehearsals_that_never_ended_are_removed_after_a_while(
    warehouse: Warehouse,
) -> None:
    for rehearsal_id in ("killed", REHEARSAL.rehearsal_id):
        Path(find_scratch(warehouse, rehearsal_id).root).mkdir(parents=True)
    write_rehearsal(warehouse, REHEARSAL)  # kept with its tables
    now = dt.datetime.now(tz=dt.UTC)
    assert remove_abandoned(warehouse, before=now - dt.timedelta(hours=1)) == []
    assert remove_abandoned(warehouse, before=now + dt.timedelta(hours=1)) == ["killed"]
    assert remove_abandoned(warehouse, before=now + dt.timedelta(hours=1)) == []
    assert Path(find_scratch(warehouse, REHEARSAL.rehearsal_id).root).exists()
