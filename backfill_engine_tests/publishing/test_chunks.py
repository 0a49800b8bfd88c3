"""Chunks of files: a file that several partitions are computed from counts once."""

from pathlib import Path

import pytest

from backfill_engine.grains.chunk_sizes import parse_chunk_size
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.inputs import PinnedInputs
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
