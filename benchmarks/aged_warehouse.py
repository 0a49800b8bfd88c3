"""What a warehouse and a Dagster home cost by their age: CPU seconds of commands, old over new.

Twelve days of flights over three layers are published twice over: once as they are, and once with
thousands of commits and events behind them (`benchmarks/aging.py`). Then the commands run
in turn in both; CPU is that of a process and all its children, the JVM's too, and memory the most
that the command's own process took. Prints a table in Markdown.
"""

import argparse
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil

from backfill_assets.samples.flights import land_flights
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.project import CATALOG
from benchmarks.aging import age_home, age_log, count_events, shift_log
from benchmarks.variants import prepare_home

_TABLES = ("raw/flights", "staging/flights", "features/carrier_delays")
_ALL = ",".join(f'key:"{key}"' for key in _TABLES)
_LATER = ",".join(f'key:"{key}"' for key in _TABLES[1:])
_RANGE = ("--from", "2013-01-01", "--to", "2013-01-10")
_BIN = Path(sys.executable).parent
_DAYS_OLD = 60
_POLL_SECONDS = 0.1


def main() -> None:
    """Makes both, measures in turn, prints the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=5000, help="of each table")
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aged-") as scratch:
        root = Path(scratch)
        land_flights(str(root / "landing"))
        _publish(root, root / "new")
        shutil.copytree(root / "new", root / "old")
        _age(root / "old", arguments.commits, arguments.events)
        for side in ("new", "old"):  # what is published last is of real runs in both
            _publish(root, root / side)
        _report(root, arguments.repeats)


def _publish(root: Path, side: Path) -> None:
    _measure(root, side, "dagster", *_materialize('key:"raw/flights"', "2013-01-01...2013-01-12"))
    _measure(root, side, "dagster", *_materialize(_LATER, "2013-01-01...2013-01-10"))


def _materialize(selection: str, partitions: str) -> tuple[str, ...]:
    module = ("-m", "backfill_assets.definitions")
    return ("asset", "materialize", *module, "--select", selection, "--partition-range", partitions)


def _age(side: Path, commits: int, events: int) -> None:
    warehouse, home = Warehouse(str(side / "warehouse")), side / "home"
    until = datetime.now(tz=UTC) - timedelta(days=1)
    for key in _TABLES:
        shift_log(warehouse, CATALOG.find_table(key), _DAYS_OLD)
        age_log(warehouse, CATALOG.find_table(key), commits, until=until)
    with sqlite3.connect(home / "history" / "runs.db") as runs:
        (run_id,) = runs.execute("SELECT run_id FROM runs ORDER BY id DESC LIMIT 1").fetchone()
    before = count_events(home)
    age_home(home, run_id, 1)
    of_a_run = count_events(home) - before
    age_home(home, run_id, events // of_a_run)


def _report(root: Path, repeats: int) -> None:
    commands = {
        "a run of one day, three layers": (
            "dagster",
            *_materialize(_ALL, "2013-01-06...2013-01-06"),
        ),
        "`status`": ("backfill-assets", "status", *_RANGE),
        "`status --missing`": ("backfill-assets", "status", "--missing", *_RANGE),
        "`history`, of 10 commits and of the few there are": (
            *("backfill-assets", "history", "staging/flights"),
        ),
        "`history --limit 3`": (
            *("backfill-assets", "history", "staging/flights", "--limit", "3"),
        ),
    }
    old = root / "old"
    commits = len(list((old / "warehouse/staging/flights/_delta_log").glob("[0-9]*.json")))
    print(f"{commits:,} commits a table, {count_events(old / 'home'):,} events; CPU seconds, MB")
    print("\n| command | new | old | old / new | memory, new | old |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, command in commands.items():
        seconds: dict[str, list[float]] = {"new": [], "old": []}
        memory = {"new": 0, "old": 0}
        for _ in range(repeats):
            for side in seconds:
                spent, most = _measure(root, root / side, *command)
                seconds[side].append(spent)
                memory[side] = max(memory[side], most)
        new, aged = (statistics.median(seconds[side]) for side in ("new", "old"))
        megabytes = " | ".join(f"{memory[side] / 2**20:.0f}" for side in ("new", "old"))
        print(f"| {name} | {new:.2f} | {aged:.2f} | {aged / new:.2f} | {megabytes} |", flush=True)


def _measure(root: Path, side: Path, program: str, *arguments: str) -> tuple[float, int]:
    """Runs a command; returns CPU seconds of it and its children, and its most bytes of memory."""
    home = side / "home"
    prepare_home(home)
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "BACKFILL_LANDING": str(root / "landing"),
        "BACKFILL_WAREHOUSE": str(side / "warehouse"),
    }
    spent: dict[int, float] = {}
    most, before = 0, resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as output:
        running = psutil.Popen(
            [_BIN / program, *arguments], env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        while running.poll() is None:
            try:
                for process in (running, *running.children(recursive=True)):
                    times = process.cpu_times()
                    spent[process.pid] = times.user + times.system
                most = max(most, running.memory_info().rss)
            except psutil.NoSuchProcess:
                continue  # it ended between two looks
            time.sleep(_POLL_SECONDS)
        if running.returncode:
            output.seek(0)
            sys.exit(f"{program} {arguments[0]} failed:\n{output.read().decode()[-3000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # What was waited for is exact; a JVM that outlives its parent was only looked at.
    waited_for = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return max(sum(spent.values()), waited_for), most


if __name__ == "__main__":
    main()
