"""A year of days over three tables: reading the log stays quick."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from backfill_engine_tests.pipeline.running import (
    FEATURES,
    RAW,
    STAGING,
    FinishedRun,
    Pipeline,
    open_pipeline,
)
from backfill_engine_tests.shared_fixtures import build_days
from backfill_engine_tests.timed_commands import time_command

pytestmark = [pytest.mark.slow, pytest.mark.by_hand]

YEAR = build_days("2013-01-01", 365)
MOST = 1.0
"""The limit, as a multiple of the time that importing the definitions takes."""


@dataclass(frozen=True)
class Year:
    """The pipeline, and the run that published all of it."""

    pipeline: Pipeline
    run: FinishedRun


@pytest.fixture(scope="module")
def year(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Year]:
    with open_pipeline(tmp_path_factory.mktemp("year")) as pipeline:
        pipeline.zone.land([day.key for day in YEAR])
        run = pipeline.run(RAW, STAGING, FEATURES, first=YEAR[0].key, last=YEAR[-1].key)
        assert run.success, run.message
        yield Year(pipeline, run)


def find_environment(year: Year) -> dict[str, str]:
    """Tells a process where the pipeline is."""
    root = year.pipeline.root
    return {
        "DAGSTER_HOME": str(root / "dagster_home"),
        "BACKFILL_LANDING": str(root / "landing"),
        "BACKFILL_WAREHOUSE": year.pipeline.warehouse.root,
    }


def test_reading_the_log_is_quick_and_starts_no_jvm(year: Year) -> None:
    for command in (
        ("status", "--from", YEAR[0].key, "--to", YEAR[-1].key, "--json"),
        ("status", "--missing", "--from", YEAR[0].key, "--to", YEAR[-1].key),
        ("history", STAGING),
        ("proof", "certificate", year.run.id),
    ):
        times, output = time_command(find_environment(year), *command, most=MOST)
        assert times < MOST, command
        if "--json" in command:
            assert len(json.loads(output)) == 365 * 3
