"""A machine without a usable Java gets one line that names the cure."""

from pathlib import Path

import pytest

from backfill_engine.errors import SparkUnavailableError
from backfill_engine.spark.java import find_java, parse_java_version

CURE = r"install Java 17 or newer .* or point JAVA_HOME at one$"


def install_java(home: Path, script: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return java


def find_java_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("JAVA_HOME", str(home))
    return find_java()


@pytest.mark.parametrize(
    ("banner", "feature_release"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17)', 17),
        ('java version "1.8.0_392"\nJava(TM) SE Runtime Environment', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.2"', 11),
    ],
)
def test_feature_release_is_read_from_the_banner(banner: str, feature_release: int) -> None:
    assert parse_java_version(banner) == feature_release


def test_banner_without_a_version_is_refused() -> None:
    with pytest.raises(SparkUnavailableError, match=CURE):
        parse_java_version("command not found")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 'openjdk version \"11.0.22\"' >&2", "is version 11: "),
        ("echo 'no virtual machine' >&2; exit 1", "does not start"),
        ("echo hello >&2", "printed no version"),
        (None, "does not start"),
    ],
    ids=["too old", "failing", "something else", "not there"],
)
def test_unusable_java_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, problem: str
) -> None:
    if script:
        install_java(tmp_path, script)
    with pytest.raises(SparkUnavailableError, match=problem + r".*" + CURE) as caught:
        find_java_in(tmp_path, monkeypatch)
    assert script or str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_machine_without_java_is_told_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkUnavailableError, match=r"no Java found: " + CURE):
        find_java()


def test_java_home_wins_over_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = install_java(tmp_path / "other", "echo 'openjdk version \"25\"' >&2")
    monkeypatch.setenv("PATH", str(on_path.parent), prepend=":")
    java = install_java(tmp_path / "home", "echo 'openjdk version \"17.0.15\"' >&2")
    assert find_java_in(tmp_path / "home", monkeypatch) == str(java)
