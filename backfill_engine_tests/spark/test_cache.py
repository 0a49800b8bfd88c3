"""Files of the cache are made once, by one process at a time, and are whole or absent."""

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backfill_engine.spark.cache import are_whole, make_once


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    targets = [tmp_path / "cache" / name for name in ("a.jar", "b.jar")]
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        for target in targets:
            (folder / target.name).write_text(str(len(made)))

    for _ in range(2):
        make_once(targets, make)
    assert [target.read_text() for target in targets] == ["1", "1"]
    targets[1].unlink()
    make_once(targets, make)
    assert [target.read_text() for target in targets] == ["2", "2"]
    assert not made[0].exists()


def make_jar(folder: Path) -> None:
    (folder / "a.jar").write_text("a")


@pytest.mark.parametrize("content", ["", "A", "aa"])
def test_what_is_something_else_by_now_is_made_again(tmp_path: Path, content: str) -> None:
    """As after a power cut: a file may be empty, though its rename was acknowledged."""
    target = tmp_path / "a.jar"
    for _ in range(2):
        make_once([target], make_jar)
        assert are_whole([target])
        assert target.read_text() == "a"
        target.write_text(content)
        assert not are_whole([target])


def test_what_was_only_touched_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "a.jar"
    make_once([target], make_jar)
    os.utime(target, (0, 0))
    make_once([target], lambda _: pytest.fail("it is there"))


@pytest.mark.parametrize("seal", [None, "", "[]", '{"a.jar": {}}'])
def test_without_a_seal_only_a_pinned_hash_says_that_a_file_is_whole(
    tmp_path: Path, seal: str | None
) -> None:
    target, made = tmp_path / "a.jar", []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "a.jar").write_text("a")

    target.write_text("a")
    if seal is not None:
        target.with_suffix(".seal").write_text(seal)
    make_once([target], make, digests={"a.jar": hashlib.sha256(b"a").hexdigest()})
    assert not made
    assert are_whole([target])
    target.with_suffix(".seal").unlink()
    make_once([target], make)
    assert made


def test_who_comes_meanwhile_waits_and_makes_nothing(tmp_path: Path) -> None:
    makers: list[str] = []

    def make_slowly(folder: Path) -> None:
        makers.append(folder.name)
        time.sleep(0.2)
        (folder / "a.jar").touch()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: make_once([tmp_path / "a.jar"], make_slowly), range(4)))
    assert len(makers) == 1


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "a.jar").write_text("half")
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        make_once([tmp_path / "a.jar"], fail)
    assert [path.name for path in tmp_path.iterdir()] == ["a.lock"]


def test_what_is_not_made_stays_absent(tmp_path: Path) -> None:
    make_once([tmp_path / "a.jar"], lambda _: None)
    assert not (tmp_path / "a.jar").exists()
