"""Chunks of files and bytes: what several partitions are computed from counts once."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_engine.grains.chunk_sizes import parse_chunk_size
from backfill_engine.grains.names import Names
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.inputs import PinnedInputs
from backfill_engine.tables.declarations import Table, required
from backfill_engine_tests.project import RAW_FLIGHTS
from backfill_engine_tests.shared_fixtures import build_days
from backfill_engine_tests.sources.test_pattern_files import list_days, write


@pytest.mark.parametrize(
    ("size", "lengths"), [("files=1", [31, 28, 31]), ("files=2", [59, 31]), ("files=3", [90])]
)
def test_days_of_a_month_are_of_one_file(tmp_path: Path, size: str, lengths: list[int]) -> None:
    for month in ("01", "02", "03"):
        write(tmp_path, f"old/2011/readings_2011-{month}.csv")
    target = read_log(Warehouse(str(tmp_path / "warehouse")), RAW_FLIGHTS)
    pinned = PinnedInputs(target, {}, list_days(tmp_path, "2011-01-01", 90))
    chunks = pinned.cut(build_days("2011-01-01", 90), parse_chunk_size(size))
    assert list(map(len, chunks)) == lengths


def test_bytes_of_an_input_of_names_and_of_one_without_partitions_count_once(
    warehouse: Warehouse,
) -> None:
    shop, day = required("shop", "STRING"), required("day", "DATE")
    shops = Table("raw", "shops", "shop", (shop,), grain=Names(("A", "B", "C")))
    regions = Table("raw", "regions", columns=(shop,))
    rows = pa.table({"shop": ["A", "B", "B", "C"], "sold": [1, 2, 3, 4]})
    write_deltalake(warehouse.uri(shops), rows, partition_by=["shop"])
    write_deltalake(warehouse.uri(regions), rows)
    logs = {table.key: read_log(warehouse, table) for table in (shops, regions)}
    days = build_days("2024-01-01", 3)
    first, second, third = (partition.key for partition in days)
    pinned = PinnedInputs(
        read_log(warehouse, Table("gold", "days", "day", (day,))),
        logs,
        windows={
            shops.key: {first: ["A"], second: ["A", "B"], third: ["B"]},
            regions.key: {key: ["whole"] for key in (first, second, third)},
        },
    )
    folders = logs[shops.key].sum_folder_bytes()
    (whole,) = logs[regions.key].sum_folder_bytes().values()
    assert pinned.measure_bytes(days) == {
        first: folders["A"] + whole,
        second: folders["B"],
        third: 0,
    }
    assert pinned.measure_bytes(days[2:]) == {third: folders["B"] + whole}
