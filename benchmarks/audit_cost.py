"""What the audit costs in Spark: the same writes plain and audited, in turn, in one session.

Plain is read, transform, replaceWhere, as in the bare script; the year has no rejects. Audited is
what a run does between pinning its inputs and recording: persist, measure, count the source, judge,
write, read back. No Dagster in either. Prints JSON.
"""

import argparse
import datetime as dt
import json
import statistics
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from backfill_assets.samples.flights import land_flights
from backfill_engine.lake.partitions import Partition, build_partitions, build_predicate
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import create_table
from backfill_engine.publishing.inputs import PinnedInputs, pin_inputs
from backfill_engine.publishing.publisher import Publisher
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import Run
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.spark.session import check_prerequisites
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS
from benchmarks.bare_tables import start_session

_LAYERS = ("raw/flights", "staging/flights", "features/carrier_delays")


def main() -> None:
    """Times both ways, layer by layer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    check_prerequisites(remote=None, jars=None)
    spark = start_session()
    first = dt.date(2013, 1, 1)
    keys = [(first + dt.timedelta(days=n)).isoformat() for n in range(arguments.days)]
    partitions = build_partitions(RAW_FLIGHTS, keys)
    seconds: dict[str, dict[str, list[float]]] = {
        layer: {"plain": [], "audited": []} for layer in _LAYERS
    }
    with tempfile.TemporaryDirectory(prefix="audit-cost-") as scratch:
        landing = str(Path(scratch, "landing"))
        land_flights(landing)
        # The first round warms the JVM up and does not count.
        for counted in range(-1, arguments.repeats):
            for way, write in (("plain", _write_plain), ("audited", _write_audited)):
                warehouse = Warehouse(str(Path(scratch, f"{way}-{counted}")))
                for layer in _LAYERS:
                    create_table(spark, read_log(warehouse, CATALOG.recipes[layer].table))
                    began = time.perf_counter()
                    write(spark, warehouse, CATALOG.recipes[layer], landing, partitions)
                    if counted >= 0:
                        seconds[layer][way].append(time.perf_counter() - began)
        spark.stop()
    print(json.dumps(_summarize(arguments.days, seconds), indent=2))


def _pin(
    warehouse: Warehouse, recipe: Recipe, landing_root: str, partitions: tuple[Partition, ...]
) -> PinnedInputs:
    return pin_inputs(
        read_log(warehouse, recipe.table),
        {table.key: read_log(warehouse, table) for table in recipe.inputs},
        recipe,
        landing_root=landing_root,
        partitions=partitions,
    )


def _write_plain(
    spark: SparkSession,
    warehouse: Warehouse,
    recipe: Recipe,
    landing_root: str,
    partitions: tuple[Partition, ...],
) -> None:
    pinned = _pin(warehouse, recipe, landing_root, partitions)
    table = recipe.table
    window = InputWindow(spark, pinned.target, partitions, pinned.inputs, pinned.listing)
    frame = recipe.compute(window).repartition(table.partition_by)
    (
        frame.select(*table.column_names)
        .write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", build_predicate(table.partition_by, window.slices))
        .save(warehouse.uri(table))
    )


def _write_audited(
    spark: SparkSession,
    warehouse: Warehouse,
    recipe: Recipe,
    landing_root: str,
    partitions: tuple[Partition, ...],
) -> None:
    pinned = _pin(warehouse, recipe, landing_root, partitions)
    publisher = Publisher(
        spark=spark,
        recipe=recipe,
        run=Run(run_id="benchmark", started_at=dt.datetime.now(tz=dt.UTC)),
        landing_root=landing_root,
        withheld_days=1,
    )
    results, _ = publisher.publish_chunk(partitions, pinned)
    withheld = [result.key for result in results if result.version is None]
    if withheld:
        raise SystemExit(f"{recipe.table.key}: withheld {withheld}, so the times mean nothing")


def _summarize(days: int, seconds: dict[str, dict[str, list[float]]]) -> dict[str, object]:
    medians = {
        layer: {way: statistics.median(times) for way, times in ways.items()}
        for layer, ways in seconds.items()
    }
    plain, audited = (
        sum(median[way] for median in medians.values()) for way in ("plain", "audited")
    )
    return {
        "days": days,
        "median_seconds": medians,
        "audited_over_plain": audited / plain,
    }


if __name__ == "__main__":
    main()
