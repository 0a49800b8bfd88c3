"""Runs that change the same partitions at the same time, and files that change under a run.

What happens meanwhile happens inside the slower run's computation, so that it always does.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from backfill_engine.errors import LandingError, TableError
from backfill_engine.lake.reader import read_table
from backfill_engine.lake.side_tables import build_withheld_table
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.results import PartitionResult
from backfill_engine.rules.count_rules import RowCount
from backfill_engine.sources.input_window import InputWindow
from backfill_engine_tests.lake.readings import READINGS
from backfill_engine_tests.pipeline.landing_zone import LandingZone, build_landed
from backfill_engine_tests.pipeline.publishing import COPIES, RAW_RECIPE, Interrupted, Lake
from backfill_engine_tests.pipeline.running import list_days
from backfill_engine_tests.project import RAW_FLIGHTS
from backfill_engine_tests.shared_fixtures import build_days

FIRST, SECOND, THIRD = list_days(1, 3)
DAYS = build_days(FIRST, 3)


def read_values(warehouse: Warehouse) -> dict[str, set[str]]:
    """The values of each day's copies."""
    values: dict[str, set[str]] = {}
    for row in warehouse.open(COPIES.table).to_pyarrow_table().to_pylist():
        values.setdefault(row["day"].isoformat(), set()).add(row["value"])
    return values


def read_publishes(warehouse: Warehouse) -> list[tuple[str, list[str], int | str]]:
    """Run, partitions and version of the input of each publish of the copies, oldest first."""
    records = [
        commit.record
        for commit in reversed(read_log(warehouse, COPIES.table).commits)
        if commit.record
    ]
    return [
        (record.run_id, sorted(record.rows), record.input_versions[READINGS.key])
        for record in records
    ]


def list_published(results: list[PartitionResult]) -> list[str]:
    return [result.key for result in results if result.version is not None]


def test_partitions_that_another_run_publishes_meanwhile_are_computed_again_from_newer_inputs(
    lake: Lake,
) -> None:
    old = read_log(lake.warehouse, READINGS).version

    def publish_second_day() -> None:
        second = [DAYS[1]]
        lake.overwrite_readings(second, "new")
        lake.publish(COPIES, second, run_id="fast")

    compute = Interrupted(COPIES, publish_second_day)
    results = lake.publish(replace(COPIES, compute=compute), DAYS, run_id="slow")

    assert list_published(results) == [FIRST, SECOND, THIRD]
    assert read_values(lake.warehouse) == {FIRST: {"old"}, SECOND: {"new"}, THIRD: {"old"}}
    assert compute.computed == [[FIRST, SECOND, THIRD], [SECOND]]
    assert read_publishes(lake.warehouse) == [
        ("fast", [SECOND], old + 1),
        ("slow", [FIRST, THIRD], old),
        ("slow", [SECOND], old + 1),
    ]


def test_a_slow_old_run_that_ends_after_a_fast_new_one_does_not_win(lake: Lake) -> None:
    days = DAYS[:2]
    pinned = lake.pin(COPIES, days)
    lake.overwrite_readings(days, "new")
    new = read_log(lake.warehouse, READINGS).version
    lake.publish(COPIES, days, run_id="fast")
    results = lake.publish(COPIES, days, run_id="slow", pinned=pinned)

    assert list_published(results) == [FIRST, SECOND]
    assert read_values(lake.warehouse) == {FIRST: {"new"}, SECOND: {"new"}}
    assert read_publishes(lake.warehouse) == [
        ("fast", [FIRST, SECOND], new),
        ("slow", [FIRST, SECOND], new),
    ]


def test_a_nightly_append_meanwhile_is_replaced_in_the_runs_partitions_and_seen_in_others(
    lake: Lake,
) -> None:
    lake.publish(COPIES, DAYS, run_id="before")
    log, uri = read_log(lake.warehouse, COPIES.table), lake.warehouse.uri(COPIES.table)

    def append_by_night() -> None:
        rows = DeltaTable(uri).to_pyarrow_table(filters=[("day", "!=", DAYS[2].slice.start)])
        frame = lake.spark.createDataFrame(rows, read_table(lake.spark, log).schema)
        frame.write.format("delta").mode("append").save(uri)

    compute = Interrupted(COPIES, append_by_night)
    lake.publish(replace(COPIES, compute=compute), [DAYS[0], DAYS[2]], run_id="slow")

    assert compute.computed == [[FIRST, THIRD], [FIRST]]
    log = read_log(lake.warehouse, COPIES.table)
    assert log.count_rows() == {FIRST: 2, SECOND: 4, THIRD: 2}
    assert list(log.foreign_changes) == [SECOND]


@pytest.mark.only_spark
def test_what_rewrites_files_meanwhile_is_no_change(lake: Lake) -> None:
    lake.publish(COPIES, DAYS, run_id="before")
    uri = lake.warehouse.uri(COPIES.table)

    def maintain() -> None:
        lake.spark.sql(f"OPTIMIZE delta.`{uri}`")
        lake.spark.sql(f"VACUUM delta.`{uri}`")

    compute = Interrupted(COPIES, maintain)
    lake.publish(replace(COPIES, compute=compute), DAYS, run_id="slow")
    assert compute.computed == [[FIRST, SECOND, THIRD]]
    assert read_log(lake.warehouse, COPIES.table).foreign_changes == {}


@pytest.mark.slow
@pytest.mark.by_hand
def test_rows_that_an_older_run_would_withhold_are_not_kept_beside_the_newer_ones(
    lake: Lake,
) -> None:
    """The older run read older inputs, so its withheld rows are no news."""
    few = replace(COPIES, table=replace(COPIES.table, rules=(RowCount(at_most=1),)))
    days = [DAYS[1]]

    def mend_and_publish() -> None:
        lake.overwrite_readings(days, "new", ids=1)
        (result,) = lake.publish(few, days, run_id="fast")
        assert result.version is not None

    compute = Interrupted(few, mend_and_publish)
    results = lake.publish(replace(few, compute=compute), DAYS, run_id="slow")

    assert list_published(results) == [SECOND]
    withheld = lake.warehouse.open(build_withheld_table(few.table)).to_pyarrow_table().to_pylist()
    assert {row["partition_key"] for row in withheld} == {FIRST, THIRD}
    assert compute.computed == [[FIRST, SECOND, THIRD], [SECOND]]


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_run_that_loses_every_race_gives_up_and_says_so(lake: Lake) -> None:
    rounds: list[str] = []

    def lose(window: InputWindow) -> DataFrame:
        rounds.append(f"fast-{len(rounds)}")
        lake.publish(COPIES, [DAYS[1]], run_id=rounds[-1])
        return COPIES.compute(window)

    with pytest.raises(TableError, match=rf"other runs keep changing {SECOND}: let them end"):
        lake.publish(replace(COPIES, compute=lose), DAYS, run_id="slow")
    assert len(rounds) == 5
    first, *fast = read_publishes(lake.warehouse)
    assert [publish[0] for publish in (first, *fast)] == ["fast-0", "slow", *rounds[1:]]
    assert read_values(lake.warehouse) == {FIRST: {"old"}, SECOND: {"old"}, THIRD: {"old"}}


def test_two_runs_that_meet_the_same_new_field_both_publish(landed: Lake) -> None:
    zone = LandingZone(Path(landed.landing_root))
    for day in (FIRST, SECOND):
        zone.change(day, lambda flight: {**flight, "gate": "A1"})
    compute = Interrupted(RAW_RECIPE, lambda: landed.publish(RAW_RECIPE, [DAYS[1]], run_id="fast"))
    landed.publish(replace(RAW_RECIPE, compute=compute), [DAYS[0]], run_id="slow")

    rows = landed.warehouse.open(RAW_FLIGHTS).to_pyarrow_table().to_pylist()
    assert {(str(row["landing_date"]), row["gate"]) for row in rows} == {
        (FIRST, "A1"),
        (SECOND, "A1"),
    }


def test_landing_files_that_change_while_they_are_read_publish_nothing(landed: Lake) -> None:
    zone = LandingZone(Path(landed.landing_root))
    more = [*map(json.dumps, build_landed(SECOND)), "{}"]
    compute = Interrupted(RAW_RECIPE, lambda: zone.write(SECOND, more))
    with pytest.raises(LandingError, match=rf"of {SECOND} changed while they were read"):
        landed.publish(replace(RAW_RECIPE, compute=compute), DAYS[:2])
    assert read_log(landed.warehouse, RAW_FLIGHTS).count_rows() == {}


@pytest.fixture
def landed(spark: SparkSession, warehouse: Warehouse, tmp_path: Path) -> Lake:
    """A lake with two days of flights in its landing zone."""
    zone = LandingZone(tmp_path / "landing")
    zone.land([FIRST, SECOND])
    return Lake(spark, warehouse, str(zone.root))
