"""Delta's jars: pinned, and asked for by name where a given folder lacks them."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from backfill_engine.errors import SparkUnavailableError
from backfill_engine.spark.jars import ensure_jars, jar_paths, pinned_jars


def test_every_jar_is_pinned_by_a_sha256() -> None:
    assert any(name.startswith("delta-spark") for name in pinned_jars())
    for name, digest in pinned_jars().items():
        assert name.endswith(".jar")
        assert len(bytes.fromhex(digest)) == 32


def test_folder_without_jars_is_told_which_it_lacks(tmp_path: Path) -> None:
    present, *lacking = jar_paths(tmp_path)
    fill(tmp_path)
    for path in lacking:
        path.unlink()
    with pytest.raises(SparkUnavailableError, match=f"BACKFILL_JARS={tmp_path} lacks ") as caught:
        ensure_jars(tmp_path)
    assert lacking
    assert all(path.name in str(caught.value) for path in lacking)
    assert present.name not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_folder_with_all_jars_is_taken_as_it_is(tmp_path: Path) -> None:
    fill(tmp_path)
    ensure_jars(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(pinned_jars())


@pytest.mark.parametrize("left", [0, 20])
def test_folder_with_a_broken_jar_is_told_which(tmp_path: Path, left: int) -> None:
    fill(tmp_path)
    broken, *_ = tmp_path.iterdir()
    broken.write_bytes(broken.read_bytes()[:left])
    with pytest.raises(SparkUnavailableError, match=f"={tmp_path} has broken .* {broken.name}: "):
        ensure_jars(tmp_path)


def fill(folder: Path) -> None:
    """Makes a jar, of a file of its own, for each that is pinned."""
    for path in jar_paths(folder):
        with ZipFile(path, "w") as jar:
            jar.writestr("content", path.name)
