"""A range at once, in chunks, and in DataCoolie's chunks, in turns on this machine; prints JSON.

Every figure is the wall time of a whole process, from absent tables. DataCoolie makes one write a
chunk of so many days, without an audit, a read-back or a record of each partition. What the
project's two ways published is compared, every value.
"""

import argparse
import datetime as dt
import json
import statistics
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from backfill_assets.samples.flights import land_flights
from backfill_engine.spark.session import check_prerequisites
from benchmarks.contents import check_same_contents
from benchmarks.peers.contestants import DATACOOLIE_DAILY, prepare_contestant
from benchmarks.peers.environments import ensure_environment, find_default_cache
from benchmarks.processes import time_command
from benchmarks.variants import (
    DAGSTER_RANGE,
    TABLES,
    Command,
    find_warehouse,
    prepare_command,
)

_ONCE, _CHUNKS, _PEER = "at once", "in chunks", "DataCoolie, in chunks"


def main() -> None:
    """Times all of them in turns."""
    options = _parse_arguments()
    check_prerequisites(remote=None, jars=None)
    programs = ensure_environment("datacoolie", find_default_cache()) if options.peer_days else None
    seconds: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="chunks-") as temporary:
        landing = Path(temporary, "landing")
        land_flights(str(landing))
        for repeat in range(options.repeats):
            folder = Path(temporary, str(repeat))
            for name in (_ONCE, _CHUNKS, *([_PEER] if programs else [])):
                scratch = folder / name.replace(" ", "-")
                scratch.mkdir(parents=True)
                command = _prepare(name, options, programs, landing=landing, scratch=scratch)
                seconds[name].append(time_command(command, scratch=scratch, name=name))
                print(f"{repeat + 1}: {name}: {seconds[name][-1]:.1f} s", flush=True)
            warehouses = [find_warehouse(folder / name.replace(" ", "-")) for name in seconds]
            check_same_contents(TABLES, warehouses[0], warehouses[1], days=options.days)
    medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    found = {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "days": options.days,
        "chunk": options.chunk,
        "peer_chunk_days": options.peer_days,
        "seconds": seconds,
        "chunks_over_once": medians[_CHUNKS] / medians[_ONCE],
    }
    print(json.dumps(found, indent=2))


def _prepare(
    name: str,
    options: argparse.Namespace,
    programs: Path | None,
    *,
    landing: Path,
    scratch: Path,
) -> Command:
    if name == _PEER:
        contestant = replace(DATACOOLIE_DAILY, chunk_days=options.peer_days)
        return prepare_contestant(
            contestant, programs=programs, days=options.days, landing=landing, scratch=scratch
        )
    command = prepare_command(DAGSTER_RANGE, days=options.days, landing=landing, scratch=scratch)
    if name == _ONCE:
        return command
    configs = {
        table.key.replace("/", "__"): {"config": {"chunk": options.chunk}} for table in TABLES
    }
    config = ["--config-json", json.dumps({"ops": configs})]
    return replace(command, arguments=[*command.arguments, *config])


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chunks", description=__doc__)
    parser.add_argument("--days", type=int, default=365, help="default: 365")
    parser.add_argument("--chunk", default="months=1", help="default: months=1")
    parser.add_argument(
        "--peer-days", type=int, default=31, help="of DataCoolie's chunks; 0: without it"
    )
    parser.add_argument("--repeats", type=int, default=1, help="default: 1")
    return parser.parse_args()


if __name__ == "__main__":
    main()
