"""From which size on DuckDB no longer wins: orders at growing scales, by SQLMesh and the project.

`python -m benchmarks.peers.orders` times whole processes, from absent tables, in turn. What both
published is compared row by row, up to a scale that the comparison's memory bears.
"""

import argparse
import datetime as dt
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backfill_assets.samples.orders import OrdersSampleReport, land_orders
from backfill_engine.grains.buckets import Buckets
from backfill_engine.spark.session import check_prerequisites
from benchmarks.growth import build_buckets
from benchmarks.growth_report import TABLES
from benchmarks.machine import describe_machine
from benchmarks.peers.contents import check_published
from benchmarks.peers.contestants import (
    ON_SAIL,
    PROJECT,
    SQLMESH_DUCKDB_ORDERS,
    Contestant,
    prepare_contestant,
)
from benchmarks.peers.environments import ensure_environment, find_default_cache
from benchmarks.peers.report import ORDERS, write_peers_report
from benchmarks.peers.results import describe_measurement, summarize
from benchmarks.processes import time_command
from benchmarks.report import DEFAULT_FOLDER
from benchmarks.variants import Command

_CONTESTANTS = (PROJECT, ON_SAIL, SQLMESH_DUCKDB_ORDERS)
_LARGEST_COMPARED = 1
_HEAP = "4g"
# Sail's sorts and joins; with Python, Arrow and its threads a run stays below 4 GB, too.
_POOL = 1_200_000_000


@dataclass(frozen=True)
class Sample:
    """What landed of a scale, where, and the buckets that it is published in."""

    scale: float
    landing: Path
    landed: OrdersSampleReport
    buckets: Buckets


def main() -> None:
    """Runs all scales and writes the page's section."""
    options = _parse_arguments()
    check_prerequisites(remote=None, jars=None)
    cache = options.cache.resolve()
    programs = {
        contestant: ensure_environment(contestant.environment, cache)
        if contestant.environment
        else None
        for contestant in _CONTESTANTS
    }
    runs = []
    with tempfile.TemporaryDirectory(prefix="peer-orders-") as temporary:
        for scale in sorted(options.scales):
            landing = Path(temporary, f"landing-{scale:g}")
            landed = land_orders(str(landing), scale=scale)
            buckets = build_buckets(landed.largest_key, options.partitions)
            sample = Sample(scale, landing, landed, buckets)
            runs += measure_scale(sample, programs, options.repeats, Path(temporary))
    today = dt.datetime.now(tz=dt.UTC).date()
    results = {**describe_measurement(describe_machine(), programs, date=today), "runs": runs}
    write_peers_report(ORDERS, results, options.out.resolve())


def measure_scale(
    sample: Sample, programs: Mapping[Contestant, Path | None], repeats: int, temporary: Path
) -> list[dict[str, Any]]:
    """Runs each contestant `repeats` times, in turn.

    Returns:
        A run for each, as the report has them.

    Raises:
        DifferentContentsError: if one published other rows than the project.
    """
    seconds: dict[Contestant, list[float]] = {contestant: [] for contestant in programs}
    for repeat in range(1, repeats + 1):
        with tempfile.TemporaryDirectory(dir=temporary) as folder:
            for contestant, own_programs in programs.items():
                scratch = Path(folder, contestant.name)
                scratch.mkdir()
                command = _prepare(contestant, own_programs, sample, scratch)
                wall = time_command(command, scratch=scratch, name=contestant.name)
                seconds[contestant].append(wall)
                print(
                    f"{repeat}: scale {sample.scale:g}, {contestant.name}: {wall:.2f} s", flush=True
                )
                if contestant is not PROJECT and sample.scale <= _LARGEST_COMPARED:
                    check_published(
                        TABLES,
                        Path(folder, PROJECT.name),
                        scratch,
                        programs=own_programs,
                        partitions=len(sample.buckets.list_keys()),
                    )
    return [
        {
            "contestant": contestant.name,
            "label": contestant.label,
            "scale": sample.scale,
            "rows": sample.landed.orders + sample.landed.lines,
            "partitions": len(sample.buckets.list_keys()),
            **summarize(taken),
        }
        for contestant, taken in seconds.items()
    ]


def _prepare(
    contestant: Contestant, programs: Path | None, sample: Sample, scratch: Path
) -> Command:
    # The home and the environment of a run over flights; the range is another.
    command = prepare_contestant(
        contestant, programs=programs, days=1, landing=sample.landing, scratch=scratch
    )
    buckets = sample.buckets
    if programs is not None:
        settings = {"PEER_BUCKET_STEP": str(buckets.step)}
        return Command(command.arguments, {**command.environment, **settings}, command.folder)
    keys = buckets.list_keys()
    selection = ",".join(f'key:"{table.key}"' for table in TABLES)
    arguments = [
        *(command.arguments[0], "asset", "materialize", "-m", "backfill_assets.definitions"),
        *("--select", selection, "--partition-range", f"{keys[0]}...{keys[-1]}"),
    ]
    settings = {
        "BACKFILL_ORDER_KEY_STEP": str(buckets.step),
        "BACKFILL_ORDER_KEY_SPACE": str(buckets.space),
        "BACKFILL_SPARK_CONF": f'{{"spark.driver.memory": "{_HEAP}"}}',
        "SAIL_RUNTIME__MEMORY_POOL__FAIR__MAX_SIZE": str(_POOL),
    }
    return Command(arguments, {**command.environment, **settings}, command.folder)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.orders", description=__doc__)
    parser.add_argument("--scales", type=float, nargs="+", default=[0.1, 1], help="default: 0.1 1")
    parser.add_argument("--partitions", type=int, default=30, help="at most; default: 30")
    parser.add_argument("--repeats", type=int, default=3, help="default: 3")
    parser.add_argument("--cache", type=Path, default=find_default_cache())
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help="default: docs/benchmarks")
    return parser.parse_args()


if __name__ == "__main__":
    main()
