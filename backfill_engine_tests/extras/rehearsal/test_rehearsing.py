"""Applying a rehearsal publishes what it shows, and until then nothing is touched."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backfill_engine.extras.comparison.pins import pin_tables
from backfill_engine.extras.rehearsal.applying import list_unapplied
from backfill_engine.extras.rehearsal.records import Rehearsal, RehearsedPartition, read_rehearsal
from backfill_engine.lake.table_log import read_log
from backfill_engine.orchestration.runs.run_tags import REHEARSAL_TAG
from backfill_engine_tests.pipeline.landing_zone import delay
from backfill_engine_tests.pipeline.running import (
    FEATURES,
    RAW,
    STAGING,
    FinishedRun,
    Pipeline,
    copy_pipeline,
    list_days,
)
from backfill_engine_tests.project import CARRIER_DELAYS, RAW_FLIGHTS, STAGING_FLIGHTS

TABLES = (RAW_FLIGHTS, STAGING_FLIGHTS, CARRIER_DELAYS)
DAY = "2013-01-05"
RANGES = {  # what a change of what landed on DAY can reach
    RAW: [[DAY, DAY]],
    STAGING: [["2013-01-03", DAY]],
    FEATURES: [["2013-01-03", "2013-01-10"]],  # the last that is published
}


def rehearse(pipeline: Pipeline, **config: Any) -> Rehearsal:
    done = pipeline.run_job("rehearse", "rehearse_partitions", **config).confirm()
    return read_rehearsal(pipeline.warehouse, done.message)


def apply(pipeline: Pipeline, rehearsal: Rehearsal, key: str, *ends: str) -> FinishedRun:
    tags = {REHEARSAL_TAG: rehearsal.rehearsal_id}
    return pipeline.run(key, first=ends[0], last=ends[1], tags=tags)


def find_partitions(rehearsal: Rehearsal, key: str) -> dict[str, RehearsedPartition]:
    partitions = rehearsal.list_partitions(key)
    assert partitions
    return {rehearsed.partition: rehearsed for rehearsed in partitions}


@dataclass(frozen=True)
class Repair:
    """A day of three layers is rehearsed, and applied layer by layer."""

    pipeline: Pipeline
    before: dict[str, Any]
    rehearsed: dict[str, Any]
    rehearsal: Rehearsal
    unapplied: list[dict[str, list[str]]]
    apart: list[dict[str, list[str]]]
    after: dict[str, Any]


@pytest.fixture(scope="module")
def repair(published_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repair]:
    with copy_pipeline(published_root, tmp_path_factory.mktemp("rehearsal")) as pipeline:
        pipeline.run(FEATURES, first="2013-01-01", last="2013-01-10").confirm()
        before = pipeline.look(*TABLES)
        pipeline.zone.change(DAY, delay)
        rehearsal = rehearse(pipeline, ranges=RANGES, max_changed_share=0.5)
        rehearsed = pipeline.look(*TABLES)
        unapplied, apart = [list_left(pipeline, rehearsal)], [list_apart(pipeline)]
        for key, ((first, last),) in RANGES.items():
            apply(pipeline, rehearsal, key, first, last).confirm()
            unapplied.append(list_left(pipeline, rehearsal))
            apart.append(list_apart(pipeline))
        yield Repair(
            pipeline, before, rehearsed, rehearsal, unapplied, apart, pipeline.look(*TABLES)
        )


def list_left(pipeline: Pipeline, rehearsal: Rehearsal) -> dict[str, list[str]]:
    logs = [read_log(pipeline.warehouse, table) for table in TABLES]
    return {log.table.key: list_unapplied(rehearsal, log) for log in logs}


def list_apart(pipeline: Pipeline) -> dict[str, list[str]]:
    """Finds partitions that were computed from other contents than the tables now have."""
    logs = [read_log(pipeline.warehouse, table) for table in TABLES]
    return {pin.table: [*pin.apart] for pin in pin_tables(logs)}


def test_a_rehearsal_touches_nothing(repair: Repair) -> None:
    assert repair.rehearsed == repair.before


def test_its_tables_are_gone_and_what_it_showed_is_kept(repair: Repair) -> None:
    folder = Path(repair.pipeline.warehouse.root, "rehearsals", repair.rehearsal.rehearsal_id)
    assert [path.name for path in folder.iterdir()] == ["rehearsal.json"]


def test_it_shows_the_difference_by_partition(repair: Repair) -> None:
    raw = find_partitions(repair.rehearsal, RAW)[DAY]
    staging = find_partitions(repair.rehearsal, STAGING)
    features = find_partitions(repair.rehearsal, FEATURES)
    assert raw.differs
    assert set(staging) == {*list_days(3, 5)}
    changed = staging[DAY]
    assert changed.diff is not None
    assert (changed.diff.added, changed.diff.removed) == (0, 0)
    assert changed.changed_values["arr_delay"] == changed.diff.changed > 0
    assert set(changed.changed_values) <= {"arr_delay", "arr_time", "source_file"}
    # A mean of seven days moves with one of them, and no count of flights does.
    assert features[DAY].differs
    assert "mean_arr_delay_7d" in features[DAY].changed_values
    assert "flights_7d" not in features[DAY].changed_values
    assert not features["2013-01-03"].differs or staging["2013-01-03"].differs


def test_gates_are_held_against_each_partition(repair: Repair) -> None:
    beyond = [text for text in repair.rehearsal.exceeded if text.startswith(f"{RAW} {DAY}")]
    assert len(beyond) == 1
    assert "of its rows differ (at most 50.0%)" in beyond[0]


def test_applying_it_publishes_what_was_shown_and_nothing_else(repair: Repair) -> None:
    for table in TABLES:
        shown = find_partitions(repair.rehearsal, table.key)
        now, was = repair.after[table.key][1], repair.before[table.key][1]
        assert {key: now[key] for key in shown} == {
            key: partition.checksum for key, partition in shown.items()
        }
        assert {key: now[key] for key in now if key not in shown} == {
            key: was[key] for key in was if key not in shown
        }


def test_what_is_left_to_apply_is_told_by_the_commits(repair: Repair) -> None:
    everything = {key: [*find_partitions(repair.rehearsal, key)] for key in RANGES}
    assert repair.unapplied[0] == everything
    assert repair.unapplied[1] == {**everything, RAW: []}
    assert repair.unapplied[-1] == {key: [] for key in RANGES}


def test_tables_belong_together_before_and_after_and_not_between(repair: Repair) -> None:
    together = {key: [] for key in RANGES}
    assert repair.apart[0] == together
    assert repair.apart[1] == {**together, STAGING: list_days(3, 5)}
    assert repair.apart[2][STAGING] == []
    assert DAY in repair.apart[2][FEATURES]
    assert repair.apart[3] == together


def test_only_what_is_still_as_shown_is_published(published_root: Path, tmp_path: Path) -> None:
    with copy_pipeline(published_root, tmp_path) as pipeline:
        for day in list_days(4, 6):
            pipeline.zone.change(day, delay)
        pipeline.zone.change("2013-01-07", lambda flight: {**flight, "carrier": None})
        rehearsal = rehearse(
            pipeline, ranges={RAW: [["2013-01-04", "2013-01-07"]], STAGING: [["2013-01-07"] * 2]}
        )
        shown = find_partitions(rehearsal, RAW)
        assert [day for day, partition in shown.items() if partition.withheld] == ["2013-01-07"]
        blocked = find_partitions(rehearsal, STAGING)["2013-01-07"].withheld
        assert blocked == f"{RAW} 2013-01-07 is failed or withheld"

        refused = apply(pipeline, rehearsal, RAW, "2013-01-04", "2013-01-07")
        assert "has shown nothing to publish of raw/flights 2013-01-07" in refused.message

        # The source of one changes, and another is published by somebody in between.
        pipeline.zone.change("2013-01-05", lambda flight: delay(flight, 8))
        pipeline.zone.change("2013-01-06", lambda flight: delay(flight, 9))
        assert pipeline.run(RAW, first="2013-01-06", last="2013-01-06").success
        pipeline.zone.change("2013-01-06", delay)
        before = pipeline.read_contents_checksums(RAW_FLIGHTS)
        run = apply(pipeline, rehearsal, RAW, "2013-01-04", "2013-01-06")
        after = pipeline.read_contents_checksums(RAW_FLIGHTS)
        assert "were rehearsed, found" in run.message
        assert "somebody published the partition since" in run.message
        assert {day for day in after if after[day] != before[day]} == {"2013-01-04"}
        assert after["2013-01-04"] == shown["2013-01-04"].checksum
