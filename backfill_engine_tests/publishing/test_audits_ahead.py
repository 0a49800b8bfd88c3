"""Small chunks that are audited together: each published by itself, as if it had been alone."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from backfill_engine.errors import LandingError
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.side_tables import build_quarantine_table, build_withheld_table
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.audit import AHEAD_BYTES, BatchedAudits, group_small_chunks
from backfill_engine.publishing.inputs import PinnedInputs
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import PartitionResult
from backfill_engine.sources.input_window import InputWindow
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.publishing import COPIES, RAW_RECIPE, Interrupted, Lake
from backfill_engine_tests.pipeline.running import list_days
from backfill_engine_tests.project import RAW_FLIGHTS
from backfill_engine_tests.shared_fixtures import build_days

FIRST, SECOND, THIRD = list_days(1, 3)
DAYS = build_days(FIRST, 3)


@dataclass
class Step:
    """Publishes the days of a recipe one by one, audited together."""

    lake: Lake
    recipe: Recipe
    run_id: str = "slow"
    pinned: PinnedInputs = field(init=False)

    def __post_init__(self) -> None:
        self.pinned = self.lake.pin(self.recipe, DAYS)
        self.publisher = replace(
            self.lake.build_publisher(self.recipe, run_id=self.run_id),
            ahead=BatchedAudits(self.pinned, [DAYS]),
        )

    def publish(self, day: Partition) -> PartitionResult:
        """What became of the day."""
        (result,), _ = self.publisher.publish_chunk([day], self.pinned)
        return result


def read_values(warehouse: Warehouse) -> list[tuple[str, str]]:
    """Day and value of each copy."""
    rows = warehouse.open(COPIES.table).to_pyarrow_table().to_pylist()
    return sorted((row["day"].isoformat(), row["value"]) for row in rows)


def test_they_are_computed_once_and_committed_one_by_one(lake: Lake) -> None:
    (alone, *_) = lake.publish(COPIES, DAYS[:1], run_id="alone")
    compute = Interrupted(COPIES, lambda: None)
    step = Step(lake, replace(COPIES, compute=compute))
    first = step.publish(DAYS[0])
    assert read_log(lake.warehouse, COPIES.table).count_rows() == {FIRST: 2}
    assert first.measures == alone.measures
    second, third = map(step.publish, DAYS[1:])

    assert compute.computed == [[FIRST, SECOND, THIRD]]
    assert first.version is not None
    assert [second.version, third.version] == [first.version + 1, first.version + 2]
    commits = read_log(lake.warehouse, COPIES.table).list_commits_after(first.version - 1)
    assert [[*commit.record.rows] for commit in commits if commit.record] == [
        [THIRD],
        [SECOND],
        [FIRST],
    ]
    assert read_values(lake.warehouse) == sorted((day.key, "old") for day in 2 * DAYS)


def test_what_another_run_has_changed_is_computed_again_and_so_is_what_comes_after(
    lake: Lake,
) -> None:
    compute = Interrupted(COPIES, lambda: None)
    step = Step(lake, replace(COPIES, compute=compute))
    step.publish(DAYS[0])
    lake.overwrite_readings([DAYS[1]], "new")
    lake.publish(COPIES, [DAYS[1]], run_id="fast")
    results = [step.publish(day) for day in DAYS[1:]]

    assert all(result.version is not None for result in results)
    assert compute.computed == [[FIRST, SECOND, THIRD], [SECOND], [THIRD]]
    assert dict(read_values(lake.warehouse)) == {FIRST: "old", SECOND: "new", THIRD: "old"}


def test_an_error_is_told_of_the_chunk_that_it_is_of(lake: Lake) -> None:
    def compute(window: InputWindow) -> DataFrame:
        if DAYS[1] in window.partitions:
            raise LandingError("the second day is broken")
        return COPIES.compute(window)

    step = Step(lake, replace(COPIES, compute=compute))
    assert step.publish(DAYS[0]).version is not None
    with pytest.raises(LandingError, match="the second day is broken"):
        step.publish(DAYS[1])
    assert step.publish(DAYS[2]).version is not None
    assert read_log(lake.warehouse, COPIES.table).count_rows().keys() == {FIRST, THIRD}


def test_what_is_kept_aside_is_of_its_own_chunk(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    zone = LandingZone(tmp_path / "landing")
    zone.land([FIRST, SECOND, THIRD])
    zone.add_lines(SECOND, *["{"] * 5)
    step = Step(Lake(spark, warehouse, str(zone.root)), RAW_RECIPE)
    quarantine = read_log(warehouse, build_quarantine_table(RAW_FLIGHTS))
    withheld = read_log(warehouse, build_withheld_table(RAW_FLIGHTS))

    assert step.publish(DAYS[0]).version is not None
    assert not quarantine.reread().exists
    second = step.publish(DAYS[1])
    assert second.version is None
    assert sum(quarantine.reread().count_folder_rows().values()) == second.measures.rejects == 5
    rows = withheld.reread().open_snapshot().to_pyarrow_table().to_pylist()
    assert {row["partition_key"] for row in rows} == {SECOND}
    assert len(rows) == second.measures.rows
    assert step.publish(DAYS[2]).version is not None
    assert sum(quarantine.reread().count_folder_rows().values()) == 5
    assert read_log(warehouse, RAW_FLIGHTS).count_rows().keys() == {FIRST, THIRD}


def test_a_lot_is_neighbours_within_the_bounds_of_memory_and_of_what_a_crash_may_lose(
    lake: Lake,
) -> None:
    pinned = lake.pin(COPIES, DAYS)
    assert max(pinned.measure_bytes(DAYS).values()) < AHEAD_BYTES

    def gather(*bytes_of_days: int, max_partitions: int = 9, max_bytes: int = 2**40) -> list[int]:
        sizes = {day.key: size for day, size in zip(DAYS, bytes_of_days, strict=True)}
        chunks = [[day] for day in DAYS]
        bounds = {"max_partitions": max_partitions, "max_bytes": max_bytes}
        return [len(lot) for lot in group_small_chunks(pinned, chunks, sizes, **bounds)]

    assert gather(1, 1, 1) == [3]
    assert gather(1, 1, AHEAD_BYTES) == [2, 1]
    assert gather(1, AHEAD_BYTES + 1, 1) == [1, 1, 1]
    assert gather(1, 1, 1, max_partitions=2) == [2, 1]
    assert gather(4, 5, 6, max_bytes=10) == [2, 1]
