"""A process of its own that writes READINGS, for tests of writers that know nothing of each other.

Arguments: warehouse root, folder of the barrier, own name, steps as JSON. Before each step it waits
until all writers have reached it. Prints one JSON line per step: when it began and ended.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import PartitionsChangedError, create_table
from backfill_engine_tests.lake.readings import (
    READINGS,
    ReadingRow,
    build_rows,
    overwrite_readings,
)
from backfill_engine_tests.shared_fixtures import build_days, start_session

WRITERS = ("a", "b")
_BARRIER_SECONDS = 120.0


@dataclass(frozen=True)
class Step:
    """Overwrites `days` days from `first_day` on, `times` times; the value is writer and number."""

    name: str
    first_day: str
    days: int
    times: int


@dataclass(frozen=True)
class StepReport:
    """When the step's first write began and its last ended, on the machine's monotonic clock."""

    step: str
    began: float
    ended: float


def run_steps(warehouse: Warehouse, barrier: Path, writer: str, steps: list[Step]) -> None:
    """Creates the table and runs the steps, reporting each on stdout."""
    spark = start_session({"spark.driver.memory": "768m", "spark.master": "local[1]"})
    for step in steps:
        days = build_days(step.first_day, step.days)
        _wait_for_all(barrier, step.name, writer)
        began = time.monotonic()
        create_table(spark, read_log(warehouse, READINGS))
        for number in range(1, step.times + 1):
            _overwrite(spark, warehouse, writer, days, build_rows(days, f"{writer}{number}"))
        report = StepReport(step.name, began, time.monotonic())
        sys.stdout.write(json.dumps(asdict(report)) + "\n")
    spark.stop()


def _overwrite(
    spark: SparkSession,
    warehouse: Warehouse,
    writer: str,
    days: Sequence[Partition],
    rows: list[ReadingRow],
) -> None:
    """Begins again whenever the other writer was faster, as the project's runs do."""
    while True:
        try:
            overwrite_readings(spark, warehouse, days, rows, run_id=writer)
        except PartitionsChangedError:
            continue
        return


def _wait_for_all(barrier: Path, step: str, writer: str) -> None:
    (barrier / f"{step}.{writer}").touch()
    deadline = time.monotonic() + _BARRIER_SECONDS
    while not all((barrier / f"{step}.{each_writer}").exists() for each_writer in WRITERS):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the other writer never reached {step}")
        time.sleep(0.005)


if __name__ == "__main__":
    root, barrier_folder, name, steps_json = sys.argv[1:]
    run_steps(
        Warehouse(root),
        Path(barrier_folder),
        name,
        [Step(**step) for step in json.loads(steps_json)],
    )
