"""Files that hold the same content under two names."""

import gzip
from pathlib import Path

from backfill_engine.lake.landing import LandingFile
from backfill_engine.sources.landed_lines import find_same_in_groups


def land(root: Path, **contents: bytes) -> list[LandingFile]:
    files: list[LandingFile] = []
    for name, content in contents.items():
        path = root / name.replace("_gz", ".gz")
        path.write_bytes(content)
        files.append(LandingFile(str(path), len(content), 0))
    return files


def list_pairs(files: list[LandingFile]) -> list[tuple[str, str]]:
    return [
        (Path(file.uri).name, Path(earlier.uri).name)
        for file, earlier in find_same_in_groups([files])[0]
    ]


def test_each_copy_is_found_with_the_first_of_its_kind(tmp_path: Path) -> None:
    files = land(tmp_path, c=b"same", a=b"same", b=b"same", d=b"diff", e=b"other", f=b"", g=b"")
    assert list_pairs(files) == [("b", "a"), ("c", "a")]


def test_content_is_compared_packed_or_not(tmp_path: Path) -> None:
    content = b"".join(b"%d\n" % number for number in range(3000))
    files = land(
        tmp_path,
        a=content,
        b_gz=gzip.compress(content),
        c_gz=gzip.compress(content, compresslevel=0, mtime=1),
        d_gz=gzip.compress(content[:9]) + gzip.compress(content[9:]),
        e=content[:-1],
        f_gz=gzip.compress(content[:-2] + b"x\n"),
        g_gz=gzip.compress(b""),
        h_gz=gzip.compress(b"", mtime=1),
    )
    assert list_pairs(files) == [(name, "a") for name in ("b.gz", "c.gz", "d.gz")]


def test_files_of_a_size_of_their_own_are_not_opened(tmp_path: Path) -> None:
    gone = LandingFile(str(tmp_path / "gone"), 5, 0)
    assert find_same_in_groups([[gone], [gone]]) == [[], []]


def test_a_file_that_can_not_be_read_is_the_same_as_none(tmp_path: Path) -> None:
    content = gzip.compress(b"".join(b"%d\n" % number for number in range(3000)))
    files = land(tmp_path, a_gz=content[:-9], b_gz=content[:-9], c_gz=b"none", d_gz=b"none")
    files += [LandingFile(str(tmp_path / name), 5, 0) for name in ("gone", "gone too")]
    assert list_pairs(files) == []
