"""Runs that change the same partitions at the same time, and files that change under a run.

What happens meanwhile happens inside the slower run's computation, so that it always does.
"""

import datetime as dt
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from backfill_assets.errors import LandingError
from backfill_assets.lake.history import count_rows, read_commits, read_version
from backfill_assets.lake.slices import Partition
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.lake.window import Window
from backfill_assets.lake.writer import create_table
from backfill_assets.partitions import FIRST_DAY
from backfill_assets.publishing.inputs import PinnedInputs, pin_inputs
from backfill_assets.publishing.publish import Publisher
from backfill_assets.publishing.recipes import Recipe
from backfill_assets.tables.flights import FLIGHT_FIELDS, RAW_FLIGHTS
from backfill_assets.transforms.raw_flights import build_raw_flights
from backfill_assets_tests.conftest import build_days
from backfill_assets_tests.lake.readings import READINGS, build_rows, overwrite_readings
from backfill_assets_tests.pipeline.landing_zone import Flight, LandingZone, build_landed
from backfill_assets_tests.pipeline.running import list_days

COPIES = replace(READINGS, layer="staging")
DAYS = build_days("2013-01-01", 3)


@dataclass
class Computation:
    """Computes a table; the first time, something happens meanwhile.

    Attributes:
        compute: the rows of a window.
        meanwhile: what happens.
        windows: the partition keys of each call so far.
    """

    compute: Callable[[Window], DataFrame]
    meanwhile: Callable[[], object] = lambda: None
    windows: list[list[str]] = field(default_factory=list)

    def __call__(self, window: Window) -> DataFrame:
        """The rows of the window."""
        self.windows.append([one.key for one in window.partitions])
        if len(self.windows) == 1:
            self.meanwhile()
        return self.compute(window)


@dataclass(frozen=True)
class Run:
    """One run of a recipe, as a step makes it."""

    publisher: Publisher

    def pin(self, partitions: Sequence[Partition]) -> PinnedInputs:
        """The inputs as they are now."""
        one = self.publisher
        return pin_inputs(
            one.warehouse, one.recipe, landing_root=one.landing_root, partitions=partitions
        )

    def publish(self, partitions: Sequence[Partition], pinned: PinnedInputs | None = None) -> None:
        """Publishes all of the partitions."""
        pinned = pinned or self.pin(partitions)
        results = self.publisher.publish_chunk(partitions, pinned)
        assert [one.key for one in results] == [one.key for one in partitions]
        assert not [one for one in results if one.version is None]


@pytest.fixture
def build_run(spark: SparkSession, warehouse: Warehouse) -> Callable[..., Run]:
    """Makes runs of any recipe on the test's warehouse."""

    def build(recipe: Recipe, run_id: str, zone: LandingZone | None = None) -> Run:
        return Run(
            Publisher(
                spark=spark,
                warehouse=warehouse,
                recipe=recipe,
                landing_root=str(zone.root) if zone else "",
                run_id=run_id,
                today=dt.date(2013, 2, 1),
                withheld_days=30,
            )
        )

    return build


def copy_readings(computation: Computation | None = None) -> Recipe:
    compute = computation or (lambda window: window.read(READINGS, column="day"))
    return Recipe(COPIES, compute, inputs=(READINGS,))


def land_raw(computation: Computation | None = None) -> Recipe:
    return Recipe(
        RAW_FLIGHTS, computation or _build_raw, landing="flights", landing_fields=FLIGHT_FIELDS
    )


def _build_raw(window: Window) -> DataFrame:
    return build_raw_flights(
        window.read_landing(), begin=FIRST_DAY, extra_fields=window.extra_fields
    )


def read_values(warehouse: Warehouse) -> dict[str, set[str]]:
    """The values of each day's copies."""
    values: dict[str, set[str]] = {}
    for row in warehouse.open(COPIES).to_pyarrow_table().to_pylist():
        values.setdefault(row["day"].isoformat(), set()).add(row["value"])
    return values


def read_publishes(warehouse: Warehouse) -> list[tuple[str, list[str], dict]]:
    """Run, partitions and input versions of each publish of the copies, oldest first."""
    records = [one.record for one in reversed(read_commits(warehouse, COPIES)) if one.record]
    return [(one.run_id, sorted(one.rows), dict(one.input_versions)) for one in records]


def test_partitions_that_another_run_publishes_meanwhile_are_computed_again_from_newer_inputs(
    spark: SparkSession, warehouse: Warehouse, build_run: Callable[..., Run]
) -> None:
    def publish_second_day() -> None:
        second = [DAYS[1]]
        overwrite_readings(spark, warehouse, second, build_rows(second, "new"))
        build_run(copy_readings(), "fast").publish(second)

    create_table(spark, warehouse, READINGS)
    overwrite_readings(spark, warehouse, DAYS, build_rows(DAYS, "old"))
    computation = Computation(copy_readings().compute, publish_second_day)
    build_run(copy_readings(computation), "slow").publish(DAYS)

    first, second, third = list_days(1, 3)
    assert read_values(warehouse) == {first: {"old"}, second: {"new"}, third: {"old"}}
    assert computation.windows == [[first, second, third], [second]]
    old, new = ({READINGS.key: version} for version in (1, 2))
    assert read_publishes(warehouse) == [
        ("fast", [second], new),
        ("slow", [first, third], old),
        ("slow", [second], new),
    ]


def test_a_slow_old_run_that_ends_after_a_fast_new_one_does_not_win(
    spark: SparkSession, warehouse: Warehouse, build_run: Callable[..., Run]
) -> None:
    days = DAYS[:2]
    create_table(spark, warehouse, READINGS)
    overwrite_readings(spark, warehouse, days, build_rows(days, "old"))
    slow = build_run(copy_readings(), "slow")
    pinned = slow.pin(days)
    overwrite_readings(spark, warehouse, days, build_rows(days, "new"))
    build_run(copy_readings(), "fast").publish(days)
    slow.publish(days, pinned)

    keys = [one.key for one in days]
    assert read_values(warehouse) == {key: {"new"} for key in keys}
    newest = {READINGS.key: read_version(warehouse, READINGS)}
    assert read_publishes(warehouse) == [("fast", keys, newest), ("slow", keys, newest)]


def test_two_runs_that_meet_the_same_new_field_both_publish(
    zone: LandingZone, warehouse: Warehouse, build_run: Callable[..., Run]
) -> None:
    for day in list_days(1, 2):
        zone.change(day, _add_gate)
    fast = build_run(land_raw(), "fast", zone)
    computation = Computation(_build_raw, lambda: fast.publish([DAYS[1]]))
    build_run(land_raw(computation), "slow", zone).publish([DAYS[0]])

    rows = warehouse.open(RAW_FLIGHTS).to_pyarrow_table().to_pylist()
    assert {row["landing_date"].isoformat() for row in rows} == {*list_days(1, 2)}
    assert {row["gate"] for row in rows} == {"A1"}


def test_landing_files_that_change_while_they_are_read_publish_nothing(
    zone: LandingZone, warehouse: Warehouse, build_run: Callable[..., Run]
) -> None:
    zone.land(list_days(1, 2))
    more = [*map(json.dumps, build_landed("2013-01-02")), "{}"]
    computation = Computation(_build_raw, lambda: zone.write("2013-01-02", more))
    with pytest.raises(LandingError, match=r"of 2013-01-02 changed while they were read"):
        build_run(land_raw(computation), "run", zone).publish(DAYS[:2])
    assert count_rows(warehouse, RAW_FLIGHTS) == {}


@pytest.fixture
def zone(warehouse: Warehouse) -> LandingZone:
    """Beside the warehouse."""
    return LandingZone(Path(warehouse.root).with_name("landing"))


def _add_gate(flight: Flight) -> Flight:
    return {**flight, "gate": "A1"}
