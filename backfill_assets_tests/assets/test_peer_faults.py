"""What other tools get wrong: each fault as a test that a naive build fails.

Six days land and are published, twice; the source loses rows and a day; a day turns bad, and mends.
"""

import gzip
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from backfill_engine.lake.table_log import read_log
from backfill_engine.orchestration.status.partition_statuses import (
    FAILED,
    MissingRange,
    find_ranges_of,
    read_statuses,
)
from backfill_engine_tests.pipeline.landing_zone import FLIGHTS_A_DAY, build_landed
from backfill_engine_tests.pipeline.running import (
    RAW,
    FinishedRun,
    Pipeline,
    list_days,
    open_pipeline,
)
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS

DAYS = list_days(1, 6)
FIRST, LAST = DAYS[0], DAYS[-1]
SHRUNK, EMPTIED, BAD = "2013-01-03", "2013-01-04", "2013-01-05"
BAD_LINES = ["{"] * 5
LANDED = {day: len(build_landed(day)) for day in DAYS}


@dataclass(frozen=True)
class Story:
    """The runs, and the version and contents of the table after each."""

    pipeline: Pipeline
    runs: tuple[FinishedRun, ...]
    versions: tuple[int, ...]
    checksums: tuple[dict[str, str], ...]
    missing: list[MissingRange]


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with open_pipeline(tmp_path_factory.mktemp("peers")) as pipeline:
        runs: list[FinishedRun] = []
        versions: list[int] = []
        checksums: list[dict[str, str]] = []

        def run(first: str, last: str, *, chunk: int = 500) -> None:
            runs.append(pipeline.run(RAW, first=first, last=last, chunk_partitions=chunk))
            versions.append(read_log(pipeline.warehouse, RAW_FLIGHTS).version)
            checksums.append(pipeline.read_contents_checksums(RAW_FLIGHTS))

        pipeline.zone.land(DAYS)
        run(FIRST, LAST, chunk=2)
        run(FIRST, LAST)
        pipeline.zone.write(SHRUNK, read_lines(pipeline, SHRUNK)[:-20])
        pipeline.zone.remove(EMPTIED)
        pipeline.zone.add_lines(BAD, *BAD_LINES)
        run(FIRST, LAST)
        (found,) = read_statuses(
            CATALOG, pipeline.instance, pipeline.warehouse, [RAW_FLIGHTS], first=FIRST, last=LAST
        )
        missing = find_ranges_of(CATALOG, found.partitions, {FAILED})
        pipeline.zone.land([BAD])
        for missing_range in missing:
            run(missing_range.first, missing_range.last)
        yield Story(pipeline, tuple(runs), tuple(versions), tuple(checksums), missing)


def read_lines(pipeline: Pipeline, day: str) -> list[str]:
    return gzip.decompress(pipeline.zone.path(day).read_bytes()).decode().splitlines()


def count_by_day(pipeline: Pipeline, version: int) -> Counter[str]:
    rows = pipeline.warehouse.open(RAW_FLIGHTS, version=version).to_pyarrow_table()
    return Counter(str(day) for day in rows["landing_date"].to_pylist())


def test_a_second_run_doubles_nothing(story: Story) -> None:
    assert story.runs[1].success
    assert count_by_day(story.pipeline, story.versions[1]) == LANDED
    assert story.checksums[1] == story.checksums[0]


def test_rows_that_the_source_deleted_and_days_that_it_took_back_go(story: Story) -> None:
    expected = {**LANDED, SHRUNK: LANDED[SHRUNK] - 20}
    del expected[EMPTIED]
    assert count_by_day(story.pipeline, story.versions[2]) == expected


def test_no_version_shows_a_bad_row_or_half_a_replacement(story: Story) -> None:
    """There is no moment between a delete and an append either."""
    allowed = {day: {0, LANDED[day]} for day in DAYS}
    allowed[SHRUNK] |= {LANDED[SHRUNK] - 20}
    published: set[str] = set()
    for version in range(story.versions[-1] + 1):
        counts = count_by_day(story.pipeline, version)
        assert all(counts[day] in allowed[day] for day in DAYS)
        assert published - set(counts) <= {EMPTIED}, "a published day vanished for a while"
        published |= set(counts)
    assert story.checksums[2][BAD] == story.checksums[1][BAD]
    assert "withheld 1 of 6 partitions" in story.runs[2].message


def test_after_a_failure_only_what_failed_is_run_again(story: Story) -> None:
    assert [(key.first, key.last) for key in story.missing] == [(BAD, BAD)]
    assert story.runs[3].success
    latest = read_log(story.pipeline.warehouse, RAW_FLIGHTS).publishes
    again = {key for key, publish in latest.items() if publish.version == story.versions[3]}
    assert again == {BAD}


def test_each_partition_has_figures_of_its_own(story: Story) -> None:
    counts = count_by_day(story.pipeline, story.versions[3])
    for day in DAYS:
        newest = story.pipeline.read_materializations(RAW, day)[0]
        assert newest.metadata["dagster/partition_row_count"].value == counts[day]
        assert newest.metadata["checksum"].value == story.checksums[3].get(day, "0" * 16)
    assert counts[LAST] == FLIGHTS_A_DAY


def test_a_reversed_range_is_no_success(story: Story) -> None:
    run = story.pipeline.run(RAW, first=LAST, last=FIRST)
    assert not run.success
    assert "ascending" in run.message
    assert read_log(story.pipeline.warehouse, RAW_FLIGHTS).version == story.versions[-1]
