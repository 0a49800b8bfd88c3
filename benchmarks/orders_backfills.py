"""Compares a range run over TPC-H's orders with a bare PySpark script of the same three layers.

Every figure is of a whole process, from an absent warehouse and a fresh `DAGSTER_HOME`, with the
JVM's heap bound alike; the variants take turns, and after each round the contents of all tables are
compared. An untimed round over little comes first. Scales that the JSON has already stay there, if
they were measured on the same machine with the same versions.
"""

import argparse
import datetime as dt
import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from backfill_assets.samples.orders import OrdersSampleReport, land_orders
from backfill_engine.grains.buckets import Buckets
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.spark.session import check_prerequisites
from backfill_engine.tables.declarations import Table
from benchmarks.contents import check_same_checksums
from benchmarks.growth import build_buckets
from benchmarks.growth_report import TABLES
from benchmarks.heap import build_heap_conf, find_most_alive
from benchmarks.machine import describe_machine
from benchmarks.materializing import PROJECT as PROJECT_MODULE
from benchmarks.materializing import prepare_range
from benchmarks.orders_report import (
    BARE,
    EVENTS,
    PROJECT,
    OrdersScale,
    merge_results,
    read_results,
    write_orders_report,
)
from benchmarks.processes import time_command
from benchmarks.report import DEFAULT_FOLDER
from benchmarks.variants import BARE_RANGE, Command, find_warehouse, prepare_command

_WARM_UP_SCALE = 0.01


@dataclass(frozen=True)
class Sample:
    """What landed of a scale, where, and in which buckets it is published."""

    landing: Path
    landed: OrdersSampleReport
    buckets: Buckets

    @property
    def tables(self) -> list[Table]:
        """The three tables, with these buckets."""
        return [replace(table, grain=self.buckets) for table in TABLES]


Variants = Mapping[str, Callable[[Sample, Path, int], Command]]
"""How the process of each is prepared, from what landed, a folder of its own and the heap's MB."""


@dataclass(frozen=True)
class Round:
    """Each variant once: wall seconds and megabytes alive by letter, commits of b by table."""

    seconds: dict[str, float]
    alive_mb: dict[str, int]
    commits: dict[str, int]


def main() -> None:
    """Runs the comparison and writes the report, or only its section from the JSON."""
    options = _parse_arguments()
    folder: Path = options.out.resolve()
    results = read_results(folder)
    if options.from_json:
        if results is None:
            sys.exit(f"error: {folder} holds no results of orders")
        write_orders_report(results, folder)
        return
    check_prerequisites(remote=None, jars=None)
    machine = asdict(describe_machine())
    bounds = {"buckets": options.buckets, "heap_mb": options.heap_mb}
    with tempfile.TemporaryDirectory(prefix="orders-", dir=options.scratch) as temporary:
        warm_up = Path(temporary, "warm-up")
        # Files cached and modules compiled for all alike; and what is broken shows at once.
        measure_scale(_WARM_UP_SCALE, warm_up, PREPARING, repeats=1, **bounds)
        for scale in sorted(set(options.scales)):
            scratch = Path(temporary, f"scale-{scale:g}")
            variants = PREPARING if scale <= options.bare_up_to else WITHOUT_BARE
            measured = measure_scale(scale, scratch, variants, repeats=options.repeats, **bounds)
            # After each scale: a larger one that fails leaves what the smaller ones said.
            results = merge_results(results, [measured], machine, date=measured.date)
            write_orders_report(results, folder)


def measure_scale(
    scale: float, scratch: Path, variants: Variants, *, buckets: int, heap_mb: int, repeats: int
) -> OrdersScale:
    """Lands a scale below `scratch` and runs the rounds of the variants.

    Ends the benchmark if a process fails, or if `raw/orders` doesn't hold all that landed.

    Raises:
        DifferentContentsError: if a and b published different rows.
    """
    landing = scratch / "landing"
    landed = land_orders(str(landing), scale=scale)
    sample = Sample(landing, landed, build_buckets(landed.largest_key, buckets))
    rounds = list[Round]()
    for number in range(1, repeats + 1):
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            rounds.append(run_round(sample, Path(folder), variants, heap_mb=heap_mb))
        print(f"{number}: scale {scale:g}: {rounds[-1]}", flush=True)
    seconds: dict[str, list[float]] = defaultdict(list)
    for finished in rounds:
        for letter, wall in finished.seconds.items():
            seconds[letter].append(round(wall, 2))
    return OrdersScale(
        scale=scale,
        date=dt.datetime.now(tz=dt.UTC).date().isoformat(),
        landed_bytes=sum(path.stat().st_size for path in landing.rglob("*.parquet")),
        rows=landed.orders + landed.lines,
        buckets=len(sample.buckets.list_keys()),
        commits=rounds[-1].commits,
        heap_mb=heap_mb,
        alive_mb={
            name: max(finished.alive_mb[name] for finished in rounds)
            for name in rounds[-1].alive_mb
        },
        seconds=dict(seconds),
    )


def run_round(sample: Sample, folder: Path, variants: Variants, *, heap_mb: int) -> Round:
    """Runs each variant once, one after another, and compares what a and b published."""
    commands = {
        letter: prepare(sample, _make(folder / letter), heap_mb)
        for letter, prepare in variants.items()
    }
    seconds = {
        letter: time_command(command, scratch=folder / letter, name=f"{letter} of orders")
        for letter, command in commands.items()
    }
    project = find_warehouse(folder / PROJECT)
    if BARE in variants:
        bare, partitions = find_warehouse(folder / BARE), len(sample.buckets.list_keys())
        check_same_checksums(sample.tables, bare, project, partitions=partitions)
    logs = [read_log(Warehouse(str(project)), table) for table in sample.tables]
    rows, landed = sum(logs[0].count_rows().values()), sample.landed.orders + sample.landed.lines
    if rows != landed:
        sys.exit(f"error: {rows} rows of {logs[0].table.key}, of {landed} that landed")
    return Round(
        seconds,
        {name: find_most_alive(folder / name) for name in variants if name != EVENTS},
        {log.table.key: sum(commit.record is not None for commit in log.commits) for log in logs},
    )


def _make(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _prepare_bare(sample: Sample, scratch: Path, heap_mb: int) -> Command:
    environment = prepare_command(
        BARE_RANGE, days=1, landing=sample.landing, scratch=scratch
    ).environment
    arguments = [
        *(sys.executable, "-m", "benchmarks.bare_orders"),
        *(str(sample.buckets.step), str(sample.buckets.space)),
        *("--landing", str(sample.landing), "--warehouse", str(find_warehouse(scratch))),
        *("--spark-conf", build_heap_conf(heap_mb, scratch, sample.landing)),
    ]
    return Command(arguments, environment)


def _prepare_project(sample: Sample, scratch: Path, heap_mb: int) -> Command:
    keys = sample.buckets.list_keys()
    settings = {
        "BACKFILL_ORDER_KEY_STEP": str(sample.buckets.step),
        "BACKFILL_ORDER_KEY_SPACE": str(sample.buckets.space),
        "BACKFILL_SPARK_CONF": build_heap_conf(heap_mb, scratch, sample.landing),
    }
    return _prepare_range(PROJECT_MODULE, keys, settings, sample, scratch)


def _prepare_events(sample: Sample, scratch: Path, heap_mb: int) -> Command:
    del heap_mb  # It starts no JVM.
    count = len(sample.buckets.list_keys())
    keys = Buckets(step=1, space=count).list_keys()
    settings = {"GROWTH_PARTITIONS": str(count)}
    return _prepare_range("benchmarks.empty_buckets", keys, settings, sample, scratch)


def _prepare_range(
    module: str, keys: list[str], settings: dict[str, str], sample: Sample, scratch: Path
) -> Command:
    return prepare_range(
        TABLES,
        *(keys[0], keys[-1]),
        landing=sample.landing,
        scratch=scratch,
        module=module,
        settings=settings,
    )


PREPARING: Variants = {BARE: _prepare_bare, PROJECT: _prepare_project, EVENTS: _prepare_events}
WITHOUT_BARE: Variants = {name: PREPARING[name] for name in (PROJECT, EVENTS)}


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.orders_backfills", description=__doc__
    )
    parser.add_argument("--scales", type=float, nargs="+", default=[1], help="default: 1")
    parser.add_argument("--repeats", type=int, default=3, help="default: 3")
    bare_help = "largest scale at which the bare script runs too; default: all"
    parser.add_argument("--bare-up-to", type=float, default=math.inf, help=bare_help)
    parser.add_argument("--buckets", type=int, default=60, help="default: 60")
    parser.add_argument("--heap-mb", type=int, default=2048, help="of both; default: 2048")
    parser.add_argument("--scratch", type=Path, help="a folder with room; default: the system's")
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help="default: docs/benchmarks")
    parser.add_argument("--from-json", action="store_true", help="only the page, runs nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
