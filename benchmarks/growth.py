"""How time and memory grow with rows and with partitions: range runs over TPC-H orders.

Every figure is of a whole process, from an absent warehouse and a fresh `DAGSTER_HOME`, with the
JVM's heap bound. Beside each, a run of empty assets stores the same events; the seconds beyond its
own are the engine's. An untimed round comes first.
"""

import argparse
import datetime as dt
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from backfill_assets.samples.orders import OrdersSampleReport, land_orders
from backfill_engine.grains.buckets import Buckets
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.spark.session import check_prerequisites
from backfill_engine_tests.project import RAW_ORDERS
from benchmarks.growth_report import RESULTS, TABLES, GrowthRun, write_growth_report
from benchmarks.heap import build_heap_conf, find_most_alive
from benchmarks.machine import describe_machine
from benchmarks.materializing import prepare_range
from benchmarks.processes import time_command
from benchmarks.report import DEFAULT_FOLDER
from benchmarks.variants import find_warehouse

_FEWEST_KEYS = 10
_LEAST_OF_LAST = 0.75


@dataclass(frozen=True)
class Sample:
    """What landed of a scale, and where."""

    scale: float
    landing: Path
    landed: OrdersSampleReport

    @property
    def rows(self) -> int:
        """Rows of `raw/orders` once all is published."""
        return self.landed.orders + self.landed.lines


def main() -> None:
    """Runs all combinations and writes the report, or makes it again from the JSON."""
    options = _parse_arguments()
    folder = options.out.resolve()
    if options.from_json:
        write_growth_report(json.loads((folder / RESULTS).read_text(encoding="utf-8")), folder)
        return
    check_prerequisites(remote=None, jars=None)
    scales, partitions = sorted(set(options.scales)), sorted(set(options.partitions))
    with tempfile.TemporaryDirectory(prefix="growth-") as temporary:
        runs = list(_measure_all(scales, partitions, options.heap_mb, Path(temporary)))
    if not runs:
        sys.exit("error: no scale has enough orders for any number of partitions")
    results = {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "machine": asdict(describe_machine()),
        "runs": [asdict(run) for run in runs],
    }
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=2, ensure_ascii=False) + "\n"
    (folder / RESULTS).write_text(text, encoding="utf-8")
    write_growth_report(results, folder)


def build_buckets(largest_key: int, nominal: int) -> Buckets:
    """At most `nominal` buckets over the keys from 0 to the largest, none above it.

    Rounded up: a bucket too many could begin a second chunk, and with it a second commit. And so
    that the last isn't much smaller than the others, which would be withheld by its row count.
    """
    space = largest_key + 1
    step = -(-space // nominal)
    while 0 < space % step < _LEAST_OF_LAST * step:
        step += 1
    return Buckets(step=step, space=space)


def measure_run(sample: Sample, nominal: int, *, heap_mb: int, folder: Path) -> GrowthRun:
    """Runs the pipeline and then the empty assets, each in an empty folder below `folder`.

    Ends the benchmark if either fails, or if `raw/orders` doesn't hold all that landed.
    """
    buckets = build_buckets(sample.landed.largest_key, nominal)
    keys = buckets.list_keys()
    engine, events = folder / "engine", folder / "events"
    seconds = _time_process(
        "backfill_assets.definitions",
        keys,
        {
            "BACKFILL_ORDER_KEY_STEP": str(buckets.step),
            "BACKFILL_ORDER_KEY_SPACE": str(buckets.space),
            "BACKFILL_SPARK_CONF": build_heap_conf(heap_mb, engine, sample.landing),
        },
        landing=sample.landing,
        scratch=engine,
    )
    event_keys = Buckets(step=1, space=len(keys)).list_keys()
    event_seconds = _time_process(
        "benchmarks.empty_buckets",
        event_keys,
        {"GROWTH_PARTITIONS": str(len(keys))},
        landing=sample.landing,
        scratch=events,
    )
    warehouse = Warehouse(str(find_warehouse(engine)))
    rows = read_log(warehouse, RAW_ORDERS).count_folder_rows()
    _check_complete(sample, rows, len(keys))
    return GrowthRun(
        scale=sample.scale,
        nominal=nominal,
        partitions=len(keys),
        rows=sum(rows.values()),
        commits={
            table.key: sum(
                commit.record is not None for commit in read_log(warehouse, table).commits
            )
            for table in TABLES
        },
        seconds=round(seconds, 2),
        event_seconds=round(event_seconds, 2),
        heap_mb=heap_mb,
        alive_mb=find_most_alive(engine),
    )


def _measure_all(
    scales: Sequence[float], partitions: Sequence[int], heap_mb: int, temporary: Path
) -> Iterator[GrowthRun]:
    warm = False
    for scale in scales:
        landing = temporary / f"landing-{scale:g}"
        sample = Sample(scale, landing, land_orders(str(landing), scale=scale))
        for nominal in partitions:
            if sample.landed.orders < nominal * _FEWEST_KEYS:
                print(f"scale {scale:g}: too few orders for {nominal} partitions", flush=True)
                continue
            if not warm:
                # Files cached and modules compiled; and what is broken shows at once.
                with tempfile.TemporaryDirectory(dir=temporary) as folder:
                    measure_run(sample, nominal, heap_mb=heap_mb, folder=Path(folder))
                warm = True
            with tempfile.TemporaryDirectory(dir=temporary) as folder:
                run = measure_run(sample, nominal, heap_mb=heap_mb, folder=Path(folder))
            print(json.dumps(asdict(run)), flush=True)
            yield run


def _time_process(
    module: str, keys: Sequence[str], settings: Mapping[str, str], *, landing: Path, scratch: Path
) -> float:
    """Materializes the three tables' assets in a module over all keys; wall seconds."""
    scratch.mkdir()
    return time_command(
        prepare_range(
            TABLES,
            *(keys[0], keys[-1]),
            landing=landing,
            scratch=scratch,
            module=module,
            settings=settings,
        ),
        scratch=scratch,
        name=f"{module}, {len(keys)} partitions,",
    )


def _check_complete(sample: Sample, rows: Mapping[str, int], partitions: int) -> None:
    published = sum(rows.values())
    if published != sample.rows or len(rows) != partitions:
        sys.exit(
            f"error: scale {sample.scale:g}: {published} rows in {len(rows)} partitions of "
            f"{RAW_ORDERS.key}, but {sample.rows} landed for {partitions}"
        )


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--scales", type=float, nargs="+", default=[0.01, 0.1, 1])
    parser.add_argument("--partitions", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--heap-mb", type=int, default=1024, help="default: 1024")
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help="default: docs/benchmarks")
    parser.add_argument("--from-json", action="store_true", help="only plot and page, runs nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
