"""Lines are counted without Spark as Spark would count them, and what is broken is known."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from backfill_engine.lake.landing import LandingFile
from backfill_engine.sources import landed_lines
from backfill_engine.sources.landed_lines import count_lines, find_broken_files, find_fault

PARTS = [b"{}", b" ", b"\n", b"\r", b"\r\n", b"\t", b"\x0b", b"\x0c", b"\0", b"\xff", b"\xc2\xa0"]
CONTENTS = [
    b"",
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbf\n{}",
    b"\xef\xbb\xbf{}\n\xef\xbb\xbf\n",
    b"{}\n" * 1000,
    *(outer + inner + b"{}" + inner + outer for outer in PARTS for inner in PARTS),
]


def land(path: Path, content: bytes) -> LandingFile:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return LandingFile(str(path), path.stat().st_size, 0)


@pytest.mark.only_spark
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


PACKED = gzip.compress(b"{}\n" * 1000)
FAULTS = {
    b"": "can't be read: it is cut off",
    PACKED[:9]: "can't be read: it is cut off",
    PACKED[:-1]: "can't be read: it is cut off",
    PACKED + b"\0": "can't be read: bytes that are no gzip follow its end",
    PACKED + bytes(512): "can't be read: bytes that are no gzip follow its end",
    PACKED + PACKED + b"more": "can't be read: bytes that are no gzip follow its end",
    PACKED[:30] + b"\xff\xff" + PACKED[32:]: "can't be read: it is no whole gzip (Error -3",
    b"{}\n" * 1000: "can't be read: it is no whole gzip (Error -3",
    PACKED: "",
    PACKED + PACKED: "",
    gzip.compress(bytes(9 << 20)): "",
}


@pytest.mark.parametrize("piece", [1 << 20, 7])
def test_why_a_gzip_can_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(landed_lines, "_PIECE", piece)
    for content, fault in FAULTS.items():
        path = tmp_path / "a.json.gz"
        path.write_bytes(content if len(content) < 9000 or piece > 7 else PACKED)
        found = find_fault(LandingFile(str(path), len(content), 0))
        assert found.startswith(fault) and bool(found) == bool(fault)


def test_the_file_that_an_error_names_is_no_other_that_begins_so(tmp_path: Path) -> None:
    files = [land(tmp_path / name, b"{}\n") for name in ("a.json", "a.json.gz", "a b.json")]
    text, packed, blank = files
    error = "Encountered error while reading file file://{}.  SQLSTATE: KD001"
    assert find_broken_files(files, error.format(packed.uri)) == {packed: "can't be read by Spark"}
    assert list(find_broken_files(files, error.format(text.uri))) == [text]
    assert list(find_broken_files(files, error.format(blank.uri.replace(" ", "%20")))) == [blank]
    Path(text.uri).unlink()
    gone = {text: "can't be read (No such file or directory)"}
    assert find_broken_files(files, "no file is named") == gone
