"""Spark's local file system starts no process, and is Hadoop's in all else."""

import stat
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from backfill_assets.errors import SparkUnavailableError
from backfill_assets.spark import local_files
from backfill_assets.spark.local_files import ensure_local_files, find_local_files
from backfill_assets.spark.session import build_spark_conf


def measure_ended_children() -> int:
    """Page faults of processes that the JVM started and that ended: each has some."""
    (jvm,) = (child for child in psutil.Process().children() if "java" in child.name())
    return int(Path(f"/proc/{jvm.pid}/stat").read_text().rpartition(")")[2].split()[8])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells of children")
def test_a_write_starts_no_process(spark: SparkSession, tmp_path: Path) -> None:
    before = measure_ended_children()
    spark.range(3).repartition(1).write.parquet(str(tmp_path / "rows"))
    assert measure_ended_children() == before
    (file,) = (tmp_path / "rows").glob("part-*.parquet")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_a_link_is_read_as_what_it_points_to(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("one\n" * 1000)
    for name, target in (("link.txt", tmp_path / "lines.txt"), ("folder", tmp_path)):
        (tmp_path / name).symlink_to(target)
    assert spark.read.text(str(tmp_path / "link.txt")).count() == 1000
    assert spark.read.text(str(tmp_path / "folder" / "lines.txt")).count() == 1000


def test_only_spark_in_this_process_is_given_it() -> None:
    here = build_spark_conf(remote=None, jars=None, overrides={})
    assert here["spark.driver.extraClassPath"].startswith(f"{find_local_files()}:")
    cluster = build_spark_conf(remote=None, jars=None, overrides={"spark.master": "spark://a:7077"})
    for conf in (cluster, build_spark_conf(remote="sc://a", jars=None, overrides={})):
        assert not {name for name in conf if "extraClassPath" in name or "fs.file" in name}


def test_what_does_not_compile_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "Wrong.scala"
    source.write_text("class Wrong extends Nothing Known")
    monkeypatch.setattr(local_files, "_SOURCE", source)
    monkeypatch.setattr(local_files, "find_cache", lambda: tmp_path / "cache")
    with pytest.raises(SparkUnavailableError, match=r"can't compile .*reinstall pyspark") as caught:
        ensure_local_files()
    assert "\n" not in str(caught.value)
    assert not find_local_files().exists()


def test_a_compiler_that_takes_too_long_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_files, "find_cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(local_files, "_COMPILE_SECONDS", 0.01)
    with pytest.raises(SparkUnavailableError, match=r"took over 0\.01 s .*try again") as caught:
        ensure_local_files()
    assert "\n" not in str(caught.value)
    assert not find_local_files().exists()
