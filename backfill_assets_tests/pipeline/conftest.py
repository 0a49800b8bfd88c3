"""A pipeline that has published a few good days, made once and copied for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_assets_tests.pipeline.running import (
    RAW,
    STAGING,
    Pipeline,
    copy_pipeline,
    list_days,
    open_pipeline,
)


@pytest.fixture(scope="session")
def published_root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Days 1 to 12 of January landed and in raw, 1 to 10 in staging. For copying."""
    root = tmp_path_factory.mktemp("published")
    with open_pipeline(root) as pipeline:
        pipeline.zone.land(list_days(1, 12))
        for key, last in ((RAW, "2013-01-12"), (STAGING, "2013-01-10")):
            run = pipeline.run(key, first="2013-01-01", last=last)
            assert run.success, run.message
    return root


@pytest.fixture
def pipeline(published_root: Path, tmp_path: Path) -> Iterator[Pipeline]:
    """A copy of the published days, for the test to go on from."""
    with copy_pipeline(published_root, tmp_path) as copied:
        yield copied


@pytest.fixture
def empty_pipeline(spark: SparkSession, tmp_path: Path) -> Iterator[Pipeline]:
    """Nothing landed, nothing published."""
    with open_pipeline(tmp_path / "pipeline") as pipeline:
        yield pipeline
