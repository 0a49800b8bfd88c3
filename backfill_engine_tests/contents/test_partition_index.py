"""Which partition a row is of, by the canonical word of what its partition column holds."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_engine.contents.canonical_words import canonicalize
from backfill_engine.contents.partition_contents import read_back
from backfill_engine.contents.rows import PartitionIndex, build_conditions
from backfill_engine.grains.dates import Days
from backfill_engine.lake.partitions import (
    build_partitions,
    build_table_predicate,
    find_folder,
    find_keys_in_folders,
)
from backfill_engine.lake.stored_declarations import check_readable
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import Table, required
from backfill_engine.tables.external_delta import ExternalDelta

DAYS = ("2024-01-31", "2024-02-01", "2024-02-02", "2024-02-05")


@pytest.mark.parametrize(
    ("grain", "written", "others", "condition"),
    [
        (
            Days("%Y%m%d"),
            pa.array(["20240205", "20240131", "20240202", "20240201"]),
            pa.array(["20240203", "20240130", "2024-01-31", "", None]),
            "(`ds` >= '20240131' AND `ds` < '20240203') OR "
            "(`ds` >= '20240205' AND `ds` < '20240206')",
        ),
        (
            Days("%Y%m%d", type="INT"),
            pa.array([20240205, 20240131, 20240202, 20240201], pa.int32()),
            pa.array([20240203, 20240130, 0, None], pa.int32()),
            "(`ds` >= 20240131 AND `ds` < 20240203) OR (`ds` >= 20240205 AND `ds` < 20240206)",
        ),
    ],
    ids=["texts", "integers"],
)
def test_what_a_column_holds_is_of_the_day_that_it_says(
    grain: Days, written: pa.Array, others: pa.Array, condition: str
) -> None:
    table = Table("raw", "days", "ds", (required("ds", grain.type),), grain=grain)
    partitions = build_partitions(table, DAYS)
    index = PartitionIndex(table, partitions)
    assert index.find_owners(canonicalize(written)).tolist() == [3, 0, 2, 1]
    assert set(index.find_owners(canonicalize(others)).tolist()) == {-1}
    assert list(build_conditions("ds", index)) == [f" WHERE {condition}"]
    assert build_table_predicate(table, (part.slice for part in partitions)) == condition
    folders = [find_folder(table, partition) for partition in partitions]
    assert folders == ["20240131", "20240201", "20240202", "20240205"]
    assert find_keys_in_folders(table, [*folders, "20240230", "2024021"]) == DAYS


@pytest.mark.parametrize("grain", [Days("%Y-%m-%d"), Days("%Y%m%d", type="INT")], ids=str)
def test_rows_of_a_table_in_hives_layout_are_counted_and_read_by_their_day(
    grain: Days, tmp_path: Path
) -> None:
    columns = (required("ds", grain.type), required("litres", "BIGINT"))
    location = str(tmp_path / "theirs")
    theirs = ExternalDelta("theirs", "days", "ds", columns, grain=grain, location=location)
    days = [dt.date.fromisoformat(day) for day in DAYS for _ in range(int(day[-1]))]
    values = [grain.find_stored(day) for day in days]
    held = pa.array(values, pa.int32() if grain.type == "INT" else pa.string())
    write_deltalake(
        location, pa.table({"ds": held, "litres": list(range(len(days)))}), partition_by="ds"
    )
    log = read_log(Warehouse(str(tmp_path / "warehouse")), theirs)
    check_readable(log)
    assert log.count_rows() == {day: int(day[-1]) for day in DAYS}
    partitions = build_partitions(theirs, DAYS[1:3])
    found = {key: contents.rows for key, contents in read_back(log, partitions).items()}
    assert found == {"2024-02-01": 1, "2024-02-02": 2}
