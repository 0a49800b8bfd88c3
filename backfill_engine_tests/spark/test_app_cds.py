"""Sessions start from an archive of classes, which is made once and may be missing or useless."""

import os
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_engine.spark import app_cds, session
from backfill_engine.spark.app_cds import (
    JAVA_OPTIONS,
    find_class_archive,
    train,
    train_class_archive,
)
from backfill_engine.spark.cache import make_once
from backfill_engine.spark.session import build_spark_conf, check_prerequisites


def test_what_a_session_is_trained_by_works(spark: SparkSession, tmp_path: Path) -> None:
    train(spark, tmp_path)
    assert {path.name for path in (tmp_path / "table").glob("day=*")} == {"day=0", "day=1"}


def test_other_jars_and_another_java_have_an_archive_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archives = [find_class_archive([Path("a.jar")]), find_class_archive([Path("b.jar")])]
    java = tmp_path / "bin" / "java"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_class_archive([Path("a.jar")]) is None
    java.parent.mkdir()
    java.touch()
    archives.append(find_class_archive([Path("a.jar")]))
    assert None not in archives
    assert len(set(archives)) == 3


def test_jars_that_are_installed_again_have_another_archive(tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.touch()
    before = find_class_archive([jar])
    assert find_class_archive([jar]) == before
    os.utime(jar, (0, 0))
    assert find_class_archive([jar]) != before


def test_a_session_uses_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "classes.jsa"
    monkeypatch.setattr(session, "find_class_archive", lambda _: archive)
    options = [build_spark_conf(remote=None, jars=None, overrides={})[JAVA_OPTIONS]]
    make_once([archive], lambda folder: (folder / archive.name).touch())
    options.append(build_spark_conf(remote=None, jars=None, overrides={})[JAVA_OPTIONS])
    archive.write_text("something else")
    options.append(build_spark_conf(remote=None, jars=None, overrides={})[JAVA_OPTIONS])
    assert [f"-XX:SharedArchiveFile={archive}" in each for each in options] == [False, True, False]


@pytest.mark.parametrize("seconds", [60, 0.1])
def test_a_training_that_fails_or_takes_too_long_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(app_cds, "_TRAINING_SECONDS", seconds)
    conf = {**build_spark_conf(remote=None, jars=None, overrides={}), "spark.driver.memory": "lots"}
    train_class_archive(tmp_path / "cache" / "classes.jsa", conf)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["classes.lock"]


def test_no_room_for_an_archive_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    train_class_archive(tmp_path / "file" / "classes.jsa", {JAVA_OPTIONS: ""})


def test_archives_that_no_session_used_for_a_month_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago = time.time() - 31 * 24 * 3600
    used, unused, other = (
        tmp_path / name for name in ("classes-1.jsa", "classes-2.jsa", "local-files-1.jar")
    )
    for file in (used, unused, other):
        for made in (file, file.with_suffix(".lock"), file.with_suffix(".seal")):
            made.touch()
            os.utime(made, (long_ago, long_ago))
    monkeypatch.setattr(session, "find_class_archive", lambda _: used)
    check_prerequisites(remote=None, jars=None)
    monkeypatch.setattr(app_cds, "_TRAINING_SECONDS", 0.1)
    train_class_archive(tmp_path / "classes-3.jsa", {JAVA_OPTIONS: ""})
    left = {path.stem for path in tmp_path.iterdir()}
    assert left == {used.stem, other.stem, "classes-3"}
