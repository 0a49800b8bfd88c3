"""Spark's local file system and log store: as Hadoop's and Delta's in all but what they waste."""

import shutil
import stat
from pathlib import Path
from typing import Any

import psutil
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from backfill_engine.errors import SparkUnavailableError
from backfill_engine.spark import jars
from backfill_engine.spark.jars import ensure_local_files, find_local_files
from backfill_engine.spark.session import build_spark_conf


def measure_ended_children() -> int:
    """Page faults of processes that the JVM started and that ended: each has some."""
    (jvm,) = (child for child in psutil.Process().children() if "java" in child.name())
    return int(Path(f"/proc/{jvm.pid}/stat").read_text().rpartition(")")[2].split()[8])


def get_jvm(spark: SparkSession) -> Any:
    """Spark's JVM as Py4J shows it."""
    return spark.sparkContext._jvm


def get_hadoop_conf(spark: SparkSession) -> Any:
    """Hadoop's configuration with the session's settings, as Delta sees it."""
    session: Any = spark._jsparkSession
    return session.sessionState().newHadoopConf()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells of children")
@pytest.mark.parametrize("source", ["parquet", "delta"])
def test_a_write_starts_no_process(spark: SparkSession, tmp_path: Path, source: str) -> None:
    rows = spark.range(3).repartition(1)

    def measure_write() -> int:
        before = measure_ended_children()
        rows.write.format(source).mode("overwrite").save(str(tmp_path / "rows"))
        return measure_ended_children() - before

    # What Hadoop starts, it starts with every write; what Spark does beside one may start some.
    assert min(measure_write() for _ in range(5)) == 0
    files = list((tmp_path / "rows").glob("part-*.parquet"))
    assert len(files) == (1 if source == "parquet" else 5), "Delta keeps what it replaces"
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o644}


def test_settings_of_a_resource_manager_are_not_copied_for_each_file(spark: SparkSession) -> None:
    job = get_jvm(spark).org.apache.hadoop.mapred.JobConf(get_hadoop_conf(spark))
    assert job.get("mapreduce.job.reduces") == "1", "it has Hadoop's other defaults"
    assert job.get("yarn.resourcemanager.address") is None


def test_a_link_is_told_from_a_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("one\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nothing")
    jvm, conf = get_jvm(spark), get_hadoop_conf(spark)
    ours = jvm.org.apache.hadoop.fs.FileContext.getFileContext(conf)
    hadoops = jvm.org.apache.hadoop.fs.FileContext.getFileContext(
        jvm.org.apache.hadoop.conf.Configuration()
    )

    def describe(context: Any, name: str) -> tuple[int, bool, int, bool]:
        path = jvm.org.apache.hadoop.fs.Path(f"file://{tmp_path}/{name}")
        status = context.getFileLinkStatus(path)
        return (
            status.getLen(),
            status.isDirectory(),
            status.getModificationTime(),
            status.isSymlink(),
        )

    assert ours.getDefaultFileSystem().getClass().getSimpleName() == "ForklessLocalFs"
    assert hadoops.getDefaultFileSystem().getClass().getSimpleName() == "LocalFs"
    for name in ("lines.txt", "folder"):
        assert describe(ours, name) == describe(hadoops, name)
    for context in (ours, hadoops):
        with pytest.raises(Py4JJavaError, match="FileNotFoundException"):
            describe(context, "gone.txt")


def test_a_link_is_read_as_what_it_points_to(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("one\n" * 1000)
    for name, target in (("link.txt", tmp_path / "lines.txt"), ("folder", tmp_path)):
        (tmp_path / name).symlink_to(target)
    assert spark.read.text(str(tmp_path / "link.txt")).count() == 1000
    assert spark.read.text(str(tmp_path / "folder" / "lines.txt")).count() == 1000


def test_a_log_is_listed_as_by_delta_but_for_what_is_gone(
    spark: SparkSession, tmp_path: Path
) -> None:
    for version in range(12):
        (tmp_path / f"{version:020}.json").write_text("{}" * version)
    (tmp_path / "_last_checkpoint").write_text("{}")
    (tmp_path / ".00000000000000000003.json.crc").write_text("")
    (tmp_path / "_staged_commits").mkdir()
    jvm, conf = get_jvm(spark), get_hadoop_conf(spark)
    ours, deltas = (
        jvm.backfill_assets.NamesFirstLogStore(conf),
        jvm.io.delta.storage.HDFSLogStore(conf),
    )

    def list_from(store: Any, version: int) -> list[tuple[str, int, int, bool]]:
        path = jvm.org.apache.hadoop.fs.Path(f"file://{tmp_path}/{version:020}.json")
        return [
            (
                file.getPath().toString(),
                file.getLen(),
                file.getModificationTime(),
                file.isDirectory(),
            )
            for file in store.listFrom(path, conf)
        ]

    for version in (0, 9, 12):
        assert list_from(ours, version) == list_from(deltas, version)
    (tmp_path / f"{10:020}.json").unlink()
    (tmp_path / f"{10:020}.json").symlink_to(tmp_path / "gone")
    assert [Path(found[0]).name for found in list_from(ours, 10)] == [
        f"{11:020}.json",
        "_last_checkpoint",
        "_staged_commits",
    ]
    shutil.rmtree(tmp_path)
    with pytest.raises(Py4JJavaError, match="No such file or directory"):
        list_from(ours, 0)


def test_delta_lists_logs_by_it(spark: SparkSession) -> None:
    jvm, conf = get_jvm(spark), get_hadoop_conf(spark)
    store = jvm.org.apache.spark.sql.delta.storage.DelegatingLogStore(conf)
    chosen = store.getDelegate(jvm.org.apache.hadoop.fs.Path("file:///table/_delta_log"))
    assert chosen.logStoreImpl().getClass().getName() == "backfill_assets.NamesFirstLogStore"


def test_only_spark_in_this_process_is_given_it() -> None:
    here = build_spark_conf(remote=None, jars=None, overrides={})
    assert here["spark.driver.extraClassPath"].startswith(f"{find_local_files()}:")
    cluster = build_spark_conf(remote=None, jars=None, overrides={"spark.master": "spark://a:7077"})
    for conf in (cluster, build_spark_conf(remote="sc://a", jars=None, overrides={})):
        assert not {name for name in conf if "extraClassPath" in name or "file.impl" in name}


def test_what_does_not_compile_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "Wrong.scala"
    source.write_text("class Wrong extends Nothing Known")
    monkeypatch.setattr(jars, "_SOURCES", (source,))
    monkeypatch.setattr(jars, "find_cache", lambda: tmp_path / "cache")
    with pytest.raises(SparkUnavailableError, match=r"can't compile .*reinstall pyspark") as caught:
        ensure_local_files(None)
    assert "\n" not in str(caught.value)
    assert not find_local_files().exists()


def test_a_compiler_that_takes_too_long_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "find_cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(jars, "_COMPILE_SECONDS", 0.01)
    with pytest.raises(SparkUnavailableError, match=r"took over 0\.01 s .*try again") as caught:
        ensure_local_files(None)
    assert "\n" not in str(caught.value)
    assert not find_local_files().exists()
