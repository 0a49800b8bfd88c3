"""One place in three spellings: Hadoop's, Arrow's and the file system's."""

from pathlib import Path

import pytest

from backfill_engine.uris import absolute_uri, arrow_uri, is_local, join_uri, local_path


@pytest.mark.parametrize(
    ("uri", "local"),
    [("data/lake", True), ("/lake", True), ("file:///lake", True), ("s3a://lake", False)],
)
def test_plain_paths_and_file_uris_are_local(uri: str, *, local: bool) -> None:
    assert is_local(uri) is local


def test_relative_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_uri("data/lake/") == f"{tmp_path}/data/lake"


def test_file_uris_become_paths() -> None:
    assert absolute_uri("file:///my%20lake/") == "/my lake"
    assert local_path("file:///my%20lake") == Path("/my lake")


def test_percent_signs_of_plain_paths_stay() -> None:
    assert local_path("/50%25") == Path("/50%25")


def test_object_store_uris_lose_only_the_trailing_slash() -> None:
    assert absolute_uri("s3a://bucket/lake/") == "s3a://bucket/lake"


def test_join_makes_one_slash_between_segments() -> None:
    assert join_uri("s3a://bucket/", "raw", "flights") == "s3a://bucket/raw/flights"
    assert join_uri("/lake", "raw") == "/lake/raw"


@pytest.mark.parametrize(
    ("hadoop", "arrow"),
    [
        ("s3a://bucket/lake", "s3://bucket/lake"),
        ("s3n://bucket/lake", "s3://bucket/lake"),
        ("gs://bucket/lake", "gs://bucket/lake"),
        ("file:///lake", "/lake"),
    ],
)
def test_arrow_gets_the_scheme_that_it_knows(hadoop: str, arrow: str) -> None:
    assert arrow_uri(hadoop) == arrow
