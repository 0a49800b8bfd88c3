"""Publishes without Dagster, for what the project's own assets can't be made to do."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from backfill_assets.tables.flights import FLIGHT_FIELDS
from backfill_assets.transforms.raw_flights import build_raw_flights
from backfill_engine.contents.partition_contents import PartitionReader
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.inputs import PinnedInputs, pin_inputs
from backfill_engine.publishing.publisher import Publisher
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.restoring import build_rollback_recipe, plan_rollback
from backfill_engine.publishing.results import PartitionResult, Run
from backfill_engine.publishing.write_modes.mode import Rollback
from backfill_engine.publishing.write_modes.options import OVERWRITE, WriteOptions
from backfill_engine.rules.verdicts import Acceptance
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.sources.json_landing import JsonLanding
from backfill_engine.tables.declarations import Column, Table
from backfill_engine.transforms.landed_rows import build_landed_rows
from backfill_engine_tests.lake.readings import READINGS, build_rows, overwrite_readings
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS


def _build_raw(window: InputWindow) -> DataFrame:
    return build_raw_flights(
        window.read_landing(),
        begin=window.find_begin(),
        extra_fields=window.extra_fields,
    )


RAW_RECIPE = Recipe(
    table=CATALOG.find_table(RAW_FLIGHTS.key),
    compute=_build_raw,
    landing=JsonLanding("flights", FLIGHT_FIELDS),
    count_source=InputWindow.count_landing,
)


def land_json(table: Table, dataset: str, fields: Sequence[Column]) -> Recipe:
    """A raw table of the JSON lines that land of a dataset."""
    return Recipe(
        table=table,
        compute=lambda window: build_landed_rows(
            window.read_landing(), table, fields, extra_fields=window.extra_fields
        ),
        landing=JsonLanding(dataset, tuple(fields)),
        count_source=InputWindow.count_landing,
    )


COPIES = Recipe(
    table=replace(READINGS, layer="staging"),
    compute=lambda window: window.read(READINGS, column="day"),
    inputs=(READINGS,),
    count_source=lambda window: window.count_input(READINGS),
)


@dataclass
class Interrupted:
    """Computes what a recipe computes; the first time, something happens meanwhile.

    Attributes:
        recipe: the recipe.
        meanwhile: what happens.
        computed: the partition keys of each call so far.
    """

    recipe: Recipe
    meanwhile: Callable[[], object]
    computed: list[list[str]] = field(default_factory=list)

    def __call__(self, window: InputWindow) -> DataFrame:
        """The rows of the window."""
        self.computed.append([partition.key for partition in window.partitions])
        if len(self.computed) == 1:
            self.meanwhile()
        return self.recipe.compute(window)


@dataclass(frozen=True)
class Lake:
    """Where runs of any recipe read and write."""

    spark: SparkSession
    warehouse: Warehouse
    landing_root: str = ""
    task_bytes: int | None = None

    def overwrite_readings(
        self, days: Sequence[Partition], value: str, *, ids: int = 2, **options: Any
    ) -> int:
        """Publishes `ids` rows with a value for each day; returns the version."""
        rows = build_rows(days, value, ids=ids)
        return overwrite_readings(self.spark, self.warehouse, days, rows, **options)

    def pin(self, recipe: Recipe, partitions: Sequence[Partition]) -> PinnedInputs:
        """The inputs as they are now."""
        return pin_inputs(
            read_log(self.warehouse, recipe.table),
            {table.key: read_log(self.warehouse, table) for table in recipe.inputs},
            recipe,
            landing_root=self.landing_root,
            partitions=partitions,
            windows={
                table.key: {partition.key: [partition.key] for partition in partitions}
                for table in recipe.inputs
            },
        )

    def publish(
        self,
        recipe: Recipe,
        partitions: Sequence[Partition],
        *,
        run_id: str = "run",
        pinned: PinnedInputs | None = None,
        today: dt.date = dt.date(2013, 2, 1),
        options: WriteOptions = OVERWRITE,
        acceptances: Sequence[Acceptance] = (),
    ) -> list[PartitionResult]:
        """Publishes partitions, from the inputs as they are now unless others are given."""
        publisher = self.build_publisher(
            recipe, run_id=run_id, today=today, options=options, acceptances=acceptances
        )
        pinned = pinned or self.pin(recipe, partitions)
        results, _ = publisher.publish_chunk(partitions, pinned)
        return results

    def roll_back(
        self, table: Table, partitions: Sequence[Partition], *, run_id: str, **to: Any
    ) -> None:
        """Takes partitions back to what they were `before_run`, or at `to_version`."""
        log, now = read_log(self.warehouse, table), dt.datetime.now(dt.UTC)
        plan = plan_rollback(log, partitions, **to, now=now)
        options = WriteOptions(write_mode=Rollback.name)
        publisher = self.build_publisher(
            build_rollback_recipe(plan), run_id=run_id, options=options
        )
        publisher.publish_as_pinned(plan.partitions, plan.pin())

    def build_publisher(
        self,
        recipe: Recipe,
        *,
        run_id: str = "run",
        today: dt.date = dt.date(2013, 2, 1),
        options: WriteOptions = OVERWRITE,
        acceptances: Sequence[Acceptance] = (),
    ) -> Publisher:
        """What publishes partitions of a recipe, in a run that began at midnight."""
        return Publisher(
            spark=self.spark,
            recipe=recipe,
            run=Run(
                run_id=run_id,
                started_at=dt.datetime.combine(today, dt.time(), dt.UTC),
                options=options,
                acceptances=tuple(acceptances),
            ),
            landing_root=self.landing_root,
            withheld_days=30,
            reader=PartitionReader(lambda: self.spark, self.task_bytes),
        )
