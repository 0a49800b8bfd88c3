"""Lines are counted without Spark as Spark would count them, and what is broken is known."""

import gzip
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from backfill_assets.lake import landed_lines
from backfill_assets.lake.landed_lines import UNREADABLE, count_lines, is_broken
from backfill_assets.lake.landing import LandingFile

PARTS = [b"{}", b" ", b"\n", b"\r", b"\r\n", b"\t", b"\x0b", b"\x0c", b"\0", b"\xff", b"\xc2\xa0"]
CONTENTS = [
    b"",
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbf\n{}",
    b"\xef\xbb\xbf{}\n\xef\xbb\xbf\n",
    b"{}\n" * 1000,
    *(one + other + b"{}" + other + one for one in PARTS for other in PARTS),
]


def land(path: Path, content: bytes) -> LandingFile:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return LandingFile(str(path), path.stat().st_size, 0)


def test_spark_counts_the_same(spark: SparkSession, tmp_path: Path) -> None:
    counted = {}
    for number, content in enumerate(CONTENTS):
        name = f"{number}.json{'.gz' if number % 2 else ''}"
        counted[name] = count_lines(land(tmp_path / name, content))
    lines = spark.read.text(str(tmp_path)).where(F.col("value").rlike(r"\S"))
    named = lines.select(F.substring_index("_metadata.file_path", "/", -1).alias("name"))
    found = {row["name"]: row["count"] for row in named.groupBy("name").count().collect()}
    assert {name: count for name, count in counted.items() if count} == found


@given(parts=st.lists(st.sampled_from(PARTS), max_size=30), piece=st.integers(1, 5))
@settings(max_examples=200, deadline=None)
def test_pieces_cut_no_line(
    parts: list[bytes], piece: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = land(tmp_path_factory.getbasetemp() / "cut.json", b"".join(parts))
    whole = count_lines(file)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(landed_lines, "_PIECE", piece)
        assert count_lines(file) == whole


def test_what_is_cut_off_is_broken(tmp_path: Path) -> None:
    good = land(tmp_path / "good.json.gz", b"{}\n" * 1000)
    broken = [
        LandingFile(str(tmp_path / "cut.json.gz"), 9, 0),
        LandingFile(str(tmp_path / "none.json.gz"), 0, 0),
    ]
    content = Path(good.uri).read_bytes()
    for file in broken:
        Path(file.uri).write_bytes(content[: file.size])
    assert Counter(map(is_broken, [good, *broken])) == {False: 1, True: 2}
    with pytest.raises(UNREADABLE):
        count_lines(broken[0])
