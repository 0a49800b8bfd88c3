"""Compares range backfills with bare PySpark and with an empty Dagster run, on this machine.

Every figure is the wall time of a whole process, from an absent warehouse and a fresh
`DAGSTER_HOME`; the variants take turns, so that a slow minute of the machine hits all of them. An
untimed round over one day comes first.
"""

import argparse
import datetime as dt
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from backfill_assets.samples.flights import land_flights
from backfill_engine.spark.session import check_prerequisites
from benchmarks.contents import check_same_contents
from benchmarks.machine import describe_machine
from benchmarks.processes import time_command
from benchmarks.report import DEFAULT_FOLDER, write_report
from benchmarks.results import build_results
from benchmarks.variants import (
    TABLES,
    VARIANTS,
    Variant,
    find_warehouse,
    prepare_command,
)


def main() -> None:
    """Runs the comparison and writes the report."""
    options = _parse_arguments()
    chosen = [variant for variant in VARIANTS if variant.name in options.variants]
    check_prerequisites(remote=None, jars=None)
    seconds: dict[tuple[str, int], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="range-backfills-") as temporary:
        landing = (options.landing or Path(temporary, "landing")).resolve()
        land_flights(str(landing))
        with tempfile.TemporaryDirectory(dir=temporary) as warm_up:
            # Files cached and modules compiled for all alike; and what is broken shows at once.
            run_round(chosen, days=1, landing=landing, folder=Path(warm_up))
        for repeat in range(1, options.repeats + 1):
            for days in options.days:
                with tempfile.TemporaryDirectory(dir=temporary) as round_folder:
                    taken = run_round(chosen, days=days, landing=landing, folder=Path(round_folder))
                for variant, wall in taken.items():
                    seconds[variant.name, days].append(wall)
                    print(f"{repeat}: {days} days, {variant.name}: {wall:.2f} s", flush=True)
    results = build_results(seconds, describe_machine(), date=dt.datetime.now(tz=dt.UTC).date())
    write_report(results, options.out.resolve())


def run_round(
    variants: Sequence[Variant], *, days: int, landing: Path, folder: Path
) -> dict[Variant, float]:
    """Runs each variant once, one after another, and compares what they published.

    Returns:
        Wall seconds, by variant.

    Raises:
        DifferentContentsError: if two variants that fill the tables filled them differently.
    """
    taken = {
        variant: _time_variant(variant, days=days, landing=landing, scratch=folder / variant.name)
        for variant in variants
        if not variant.longest_days or days <= variant.longest_days
    }
    warehouses = [
        find_warehouse(folder / variant.name) for variant in taken if variant.writes_tables
    ]
    for warehouse in warehouses[1:]:
        check_same_contents(TABLES, warehouses[0], warehouse, days=days)
    return taken


def _time_variant(variant: Variant, *, days: int, landing: Path, scratch: Path) -> float:
    scratch.mkdir()
    command = prepare_command(variant, days=days, landing=landing, scratch=scratch)
    return time_command(command, scratch=scratch, name=f"{variant.name} over {days} days")


def _parse_arguments() -> argparse.Namespace:
    names = [variant.name for variant in VARIANTS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.range_backfills", description=__doc__
    )
    parser.add_argument("--repeats", type=int, default=3, help="default: 3")
    parser.add_argument(
        "--days", type=int, nargs="+", default=[31, 365], help="lengths of range; default: 31 365"
    )
    parser.add_argument(
        "--variants", nargs="+", default=names, choices=names, help="default: all of them"
    )
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help="default: docs/benchmarks")
    parser.add_argument(
        "--landing", type=Path, help="a landing zone to keep; default: landed again and removed"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
