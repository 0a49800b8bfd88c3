"""Measures SQLMesh and DataCoolie beside the project and a bare script, on this machine.

Every figure is the wall time of a whole process, from absent tables; the contestants take turns,
and what each published is compared with what the project did, row by row. An untimed round over
one day comes first.
"""

import argparse
import datetime as dt
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from backfill_assets.samples.flights import land_flights
from backfill_engine.spark.session import check_prerequisites
from benchmarks.machine import describe_machine
from benchmarks.peers.contents import check_published
from benchmarks.peers.contestants import (
    CONTESTANTS,
    PROJECT,
    Contestant,
    prepare_contestant,
)
from benchmarks.peers.environments import (
    PeerUnavailableError,
    ensure_environment,
    find_default_cache,
)
from benchmarks.peers.report import FLIGHTS, SAIL, write_page, write_peers_report
from benchmarks.peers.results import build_flights, describe_measurement
from benchmarks.processes import time_command
from benchmarks.report import DEFAULT_FOLDER
from benchmarks.variants import TABLES

Programs = Mapping[Contestant, Path | None]
"""Where the programs of each contestant's environment are; None for the project's own."""


def main() -> None:
    """Runs the comparison and writes the report, or makes the page again from the JSON."""
    options = _parse_arguments()
    folder = options.out.resolve()
    if options.from_json:
        write_page(folder)
        return
    chosen = [
        contestant
        for contestant in CONTESTANTS
        if contestant.name in {PROJECT.name, *options.contestants}
    ]
    check_prerequisites(remote=None, jars=None)
    programs, unavailable = install_peers(chosen, options.cache.resolve())
    seconds: dict[tuple[str, int], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="peers-") as temporary:
        landing = (options.landing or Path(temporary, "landing")).resolve()
        land_flights(str(landing))
        with tempfile.TemporaryDirectory(dir=temporary) as warm_up:
            # Files cached and modules compiled for all alike; and what is broken shows at once.
            run_round(programs, days=1, landing=landing, folder=Path(warm_up))
        for repeat in range(1, options.repeats + 1):
            for days in options.days:
                with tempfile.TemporaryDirectory(dir=temporary) as round_folder:
                    taken = run_round(
                        programs, days=days, landing=landing, folder=Path(round_folder)
                    )
                for contestant, wall in taken.items():
                    seconds[contestant.name, days].append(wall)
                    print(f"{repeat}: {days} days, {contestant.name}: {wall:.2f} s", flush=True)
    today = dt.datetime.now(tz=dt.UTC).date()
    results = {
        **describe_measurement(describe_machine(), programs, date=today),
        **build_flights(seconds, unavailable),
    }
    write_peers_report(options.section, results, folder)


def install_peers(
    contestants: Sequence[Contestant], cache: Path
) -> tuple[Programs, dict[str, str]]:
    """Makes the environments.

    Returns:
        Where the programs of each contestant are, and for each that can't be had the reason.
    """
    programs: dict[Contestant, Path | None] = {}
    unavailable: dict[str, str] = {}
    for contestant in contestants:
        try:
            programs[contestant] = (
                ensure_environment(contestant.environment, cache)
                if contestant.environment
                else None
            )
        except PeerUnavailableError as error:
            unavailable[contestant.name] = str(error)
            print(f"{contestant.name}: {error}", file=sys.stderr)
    return programs, unavailable


def run_round(
    programs: Programs, *, days: int, landing: Path, folder: Path
) -> dict[Contestant, float]:
    """Runs each contestant once, one after another, and compares what they published.

    Returns:
        Wall seconds, by contestant.

    Raises:
        DifferentContentsError: if one published other rows than the project.
    """
    taken = {}
    for contestant, own_programs in programs.items():
        if contestant.longest_days and days > contestant.longest_days:
            continue
        scratch = folder / contestant.name
        scratch.mkdir()
        command = prepare_contestant(
            contestant, programs=own_programs, days=days, landing=landing, scratch=scratch
        )
        taken[contestant] = time_command(command, scratch=scratch, name=contestant.name)
        if contestant is not PROJECT:
            check_published(
                TABLES, folder / PROJECT.name, scratch, programs=own_programs, partitions=days
            )
    return taken


def _parse_arguments() -> argparse.Namespace:
    names = [contestant.name for contestant in CONTESTANTS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="default: 3")
    parser.add_argument(
        "--days", type=int, nargs="+", default=[31, 365], help="lengths of range; default: 31 365"
    )
    parser.add_argument(
        "--contestants",
        nargs="+",
        default=names,
        choices=names,
        help="default: all of them; the project takes part always",
    )
    parser.add_argument(
        "--section",
        choices=(FLIGHTS, SAIL),
        default=FLIGHTS,
        help="which one of the page has the results; default: flights",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=find_default_cache(),
        help="where the peers' environments are kept; default: the user's cache",
    )
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help="default: docs/benchmarks")
    parser.add_argument(
        "--landing", type=Path, help="a landing zone to keep; default: landed again and removed"
    )
    parser.add_argument(
        "--from-json", action="store_true", help="only make the page again from the results"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
