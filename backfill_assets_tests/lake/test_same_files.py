"""Files that hold the same bytes under two names."""

import gzip
from pathlib import Path

import pytest

from backfill_assets.errors import LandingError
from backfill_assets.lake.landing import LandingFile
from backfill_assets.lake.same_files import find_same_files


def land(root: Path, **contents: bytes) -> list[LandingFile]:
    files: list[LandingFile] = []
    for name, content in contents.items():
        path = root / name.replace("_gz", ".gz")
        path.write_bytes(content)
        files.append(LandingFile(str(path), len(content), 0))
    return files


def list_pairs(files: list[LandingFile]) -> list[tuple[str, str]]:
    return [(Path(one.uri).name, Path(other.uri).name) for one, other in find_same_files(files)]


def test_each_copy_is_found_with_the_first_of_its_kind(tmp_path: Path) -> None:
    files = land(tmp_path, c=b"same", a=b"same", b=b"same", d=b"diff", e=b"other", f=b"", g=b"")
    assert list_pairs(files) == [("b", "a"), ("c", "a")]


def test_gzip_is_told_by_its_last_bytes(tmp_path: Path) -> None:
    one, other = (gzip.compress(text * 9, mtime=0) for text in (b"abc", b"abd"))
    assert len(one) == len(other)
    # Packed at another time: other bytes in front, and the same content.
    later = gzip.compress(b"abc" * 9, mtime=1)
    files = land(tmp_path, a_gz=one, b_gz=other, c_gz=later, d=one)
    assert list_pairs(files) == [("c.gz", "a.gz")]


def test_files_of_a_size_of_their_own_are_not_opened(tmp_path: Path) -> None:
    assert find_same_files([LandingFile(str(tmp_path / "gone"), 5, 0)]) == []


def test_a_file_that_can_not_be_read_is_said(tmp_path: Path) -> None:
    files = [LandingFile(str(tmp_path / name), 5, 0) for name in "ab"]
    with pytest.raises(LandingError, match=r"can't read .*a: .*nothing was written: run this"):
        find_same_files(files)
