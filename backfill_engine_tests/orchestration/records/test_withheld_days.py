"""A range of two weeks has three bad days of different kinds, which are then mended."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backfill_engine.lake.side_tables import build_quarantine_table, build_withheld_table
from backfill_engine.orchestration.instance.ranges import build_command
from backfill_engine.orchestration.status.partition_statuses import (
    FAILED,
    MissingRange,
    find_ranges_of,
)
from backfill_engine_tests.pipeline.landing_zone import FLIGHTS_A_DAY, double_distance
from backfill_engine_tests.pipeline.running import (
    FEATURES,
    RAW,
    STAGING,
    FinishedRun,
    Pipeline,
    copy_pipeline,
    list_days,
)
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS, STAGING_FLIGHTS

FIRST, LAST = "2013-01-01", "2013-01-14"
# Of these, the first was published before by both layers, the others are new to staging.
TRUNCATED, DOUBLED, BROKEN_LINES = "2013-01-05", "2013-01-11", "2013-01-13"
TABLES = {RAW: RAW_FLIGHTS, STAGING: STAGING_FLIGHTS}


@dataclass(frozen=True)
class State:
    """Reads what the instance and a reader see, by asset."""

    materialized: dict[str, list[str]]
    failed: dict[str, list[str]]
    rows: dict[str, list[dict[str, Any]]]
    withheld: dict[str, list[dict[str, Any]]]
    quarantine: list[dict[str, Any]]
    ranges_to_rerun: list[MissingRange]


@dataclass(frozen=True)
class Story:
    """The story keeps all that happened, in order."""

    published: State
    raw_run: FinishedRun
    staging_run: FinishedRun
    withheld: State
    mended: State


@pytest.fixture(scope="module")
def story(published_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with copy_pipeline(published_root, tmp_path_factory.mktemp("story")) as pipeline:
        zone = pipeline.zone
        published = take_state(pipeline)
        zone.land(list_days(13, 14))
        zone.truncate(TRUNCATED)
        zone.change(DOUBLED, double_distance)
        zone.add_lines(BROKEN_LINES, "{", "[]", '{"year": 2013}', "no JSON at all", "{} {}")
        raw_run = pipeline.run(RAW, STAGING, FEATURES, first=FIRST, last=LAST)
        staging_run = pipeline.run(STAGING, first=FIRST, last=LAST)
        withheld = take_state(pipeline)
        zone.land([TRUNCATED, DOUBLED, BROKEN_LINES])
        for key in (RAW, STAGING):
            for first, last in ((TRUNCATED, TRUNCATED), (DOUBLED, BROKEN_LINES)):
                pipeline.run(key, first=first, last=last).confirm()
        yield Story(published, raw_run, staging_run, withheld, take_state(pipeline))


def take_state(pipeline: Pipeline) -> State:
    found = pipeline.read_statuses(*TABLES.values(), first=FIRST, last=LAST)
    statuses = [status for table in found for status in table.partitions]
    return State(
        materialized={key: pipeline.find_days(key, "MATERIALIZED") for key in TABLES},
        failed={key: pipeline.find_days(key, "FAILED") for key in TABLES},
        rows={key: pipeline.read_rows(table) for key, table in TABLES.items()},
        withheld={
            key: pipeline.read_rows(build_withheld_table(table)) for key, table in TABLES.items()
        },
        quarantine=pipeline.read_rows(build_quarantine_table(RAW_FLIGHTS)),
        ranges_to_rerun=find_ranges_of(CATALOG, statuses, {FAILED}),
    )


def rows_of(state: State, key: str, day: str) -> list[dict[str, Any]]:
    column = TABLES[key].partition_by
    return [row for row in state.rows[key] if row[column].isoformat() == day]


def test_only_the_bad_days_fail_and_their_neighbours_publish(story: Story) -> None:
    bad = {RAW: {TRUNCATED, BROKEN_LINES}, STAGING: {TRUNCATED, DOUBLED, BROKEN_LINES}}
    for key, days in bad.items():
        assert story.withheld.failed[key] == sorted(days)
        assert story.withheld.materialized[key] == sorted({*list_days(1, 14)} - days)
        never_published = days & {DOUBLED, BROKEN_LINES}
        for day in list_days(1, 14):
            assert bool(rows_of(story.withheld, key, day)) == (day not in never_published), day


def test_raw_message_lists_each_bad_day_and_ends_with_the_commands_that_go_on(
    story: Story,
) -> None:
    lines = story.raw_run.message.split("\n")
    headline, truncated, broken, mended, retry, accept, acceptance, go_on, *commands = lines
    assert headline == ("raw/flights: withheld 2 of 14 partitions (the other 12 are published):")
    assert truncated.strip() == (
        "2013-01-05: partition_is_complete: files_are_readable "
        "(flights/year=2013/month=01/day=05/flights.json.gz can't be read: it is cut off)"
    )
    assert broken.strip() == (
        "2013-01-13: partition_is_valid: rejects = 0.04 (at most 0.01 of the records)"
    )
    assert mended == "Once the source is mended, go on with them and what waits for them:"
    assert retry.strip() == f"backfill-assets backfill retry {story.raw_run.id[:8]}"
    assert accept == "Or publish them as they are, with your reason in place of WHY:"
    # The truncated day has no rows that could be published.
    assert acceptance.strip() == build_command(
        CATALOG, [RAW], BROKEN_LINES, BROKEN_LINES, accept_validity(RAW)
    )
    assert go_on == "To go on with what does not depend on them:"
    assert [command.strip() for command in commands] == [
        build_command(CATALOG, [STAGING, FEATURES], "2013-01-01", "2013-01-04", {}),
        build_command(CATALOG, [STAGING, FEATURES], "2013-01-06", "2013-01-12", {}),
        build_command(CATALOG, [STAGING, FEATURES], "2013-01-14", "2013-01-14", {}),
    ]


def accept_validity(key: str) -> dict[str, Any]:
    accepted = {"check": "partition_is_valid", "reason": "WHY"}
    return {"ops": {key.replace("/", "__"): {"config": {"accept": [accepted]}}}}


def test_staging_message_names_the_drift_and_the_days_that_raw_withheld(story: Story) -> None:
    lines = story.staging_run.message.split("\n")
    assert lines[0] == "staging/flights: withheld 3 of 14 partitions (the other 11 are published):"
    upstream = (
        "partition_is_complete: upstream_is_published (raw/flights {0} is failed or withheld)"
    )
    assert lines[1].strip() == f"{TRUNCATED}: {upstream.format(TRUNCATED)}"
    assert lines[3].strip() == f"{BROKEN_LINES}: {upstream.format(BROKEN_LINES)}"
    assert lines[2].strip().startswith(f"{DOUBLED}: partition_is_stable: drift(distance) = ")
    assert "(below 0.25, warning from 0.1, against the baseline of 10)" in lines[2]


def test_a_withheld_day_keeps_the_contents_that_it_had(story: Story) -> None:
    for key in TABLES:
        before = rows_of(story.published, key, TRUNCATED)
        assert len(before) == FLIGHTS_A_DAY
        assert rows_of(story.withheld, key, TRUNCATED) == before


def test_withheld_rows_are_kept_aside_with_run_and_reason(story: Story) -> None:
    for key, run, day, why in (
        (RAW, story.raw_run, BROKEN_LINES, "rejects = 0.04"),
        (STAGING, story.staging_run, DOUBLED, "drift(distance) = "),
    ):
        kept = story.withheld.withheld[key]
        assert len(kept) == FLIGHTS_A_DAY
        assert {(row["partition_key"], row["run_id"]) for row in kept} == {(day, run.id)}
        assert all(why in row["reason"] for row in kept)
        names = [column.name for column in build_withheld_table(TABLES[key]).columns]
        assert list(kept[0]) == names, "no audit columns"
    longest = max(row["distance"] for row in story.withheld.withheld[STAGING])
    assert longest == 2 * 2475


def test_rejects_are_quarantined_with_reason_file_and_line(story: Story) -> None:
    assert {row["run_id"] for row in story.withheld.quarantine} == {story.raw_run.id}
    found = {
        (row["landing_date"].isoformat(), row["source_file"], row["reason"], row["line"])
        for row in story.withheld.quarantine
    }
    broken = "flights/year=2013/month=01/day=13/flights.json.gz"
    no_object = "the line is not one JSON object"
    assert found == {
        (
            TRUNCATED,
            "flights/year=2013/month=01/day=05/flights.json.gz",
            "the file can't be read: it is cut off",
            None,
        ),
        (BROKEN_LINES, broken, no_object, "{"),
        (BROKEN_LINES, broken, no_object, "[]"),
        (BROKEN_LINES, broken, no_object, "no JSON at all"),
        (BROKEN_LINES, broken, no_object, "{} {}"),
        (BROKEN_LINES, broken, "`month` is missing", '{"year": 2013}'),
    }


def test_rerun_of_the_failed_days_heals_them(story: Story) -> None:
    assert [(rerun.table, rerun.first, rerun.last) for rerun in story.withheld.ranges_to_rerun] == [
        (RAW, TRUNCATED, TRUNCATED),
        (RAW, BROKEN_LINES, BROKEN_LINES),
        (STAGING, TRUNCATED, TRUNCATED),
        (STAGING, DOUBLED, DOUBLED),
        (STAGING, BROKEN_LINES, BROKEN_LINES),
    ]
    assert story.mended.ranges_to_rerun == []
    assert story.mended.quarantine == []
    for key in TABLES:
        assert story.mended.materialized[key] == list_days(1, 14)
        for day in (TRUNCATED, DOUBLED, BROKEN_LINES):
            assert len(rows_of(story.mended, key, day)) == FLIGHTS_A_DAY
        assert rows_of(story.mended, key, TRUNCATED) == rows_of(story.published, key, TRUNCATED)
