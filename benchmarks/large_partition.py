"""A partition larger than a chunk: all of TPC-H's orders as one bucket, over three layers.

Spark's heap is bounded, and the bounds of a chunk and of the read-back are the project's own. The
JVM's log of garbage collections says how much was alive; the processes are looked at while they
run. Rewrites the section of `docs/performance.md`, unless told another folder.
"""

import argparse
import datetime as dt
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from backfill_assets.samples.orders import land_orders
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.spark.session import check_prerequisites
from benchmarks.growth import build_buckets
from benchmarks.growth_report import TABLES
from benchmarks.heap import build_heap_conf, find_most_alive
from benchmarks.machine import describe_machine
from benchmarks.materializing import prepare_range
from benchmarks.report import DEFAULT_FOLDER, describe_briefly
from benchmarks.sections import write_results, write_section
from benchmarks.variants import find_warehouse
from benchmarks.watching import watch_command

BEGIN, END = "<!-- large partition: begin -->", "<!-- large partition: end -->"
_RESULTS = "large_partition.json"
_SPARK = "spark"


@dataclass(frozen=True)
class LargePartition:
    """One range run of one partition.

    Attributes:
        scale: TPC-H scale factor.
        landed_bytes: of the Parquet files that it is computed from.
        rows: of the partition, by table.
        file_bytes: of its data files, by table.
        files: their number, by table.
        commits: commits that published it, by table.
        heap_mb: the JVM's bound.
        alive_mb: most that was alive after a garbage collection.
        python_mb: most memory of the run's own process.
        workers_mb: most memory of the Python processes of Spark's tasks, together.
        spark_mb: most disk that Spark took for shuffled and persisted rows.
        seconds: wall time.
        cpu_seconds: of the run and all that it started.
    """

    scale: float
    landed_bytes: int
    rows: dict[str, int]
    file_bytes: dict[str, int]
    files: dict[str, int]
    commits: dict[str, int]
    heap_mb: int
    alive_mb: int
    python_mb: int
    workers_mb: int
    spark_mb: int
    seconds: float
    cpu_seconds: float


def main() -> None:
    """Lands, runs, and writes JSON and section; or only the section, from the JSON."""
    options = _parse_arguments()
    folder: Path = options.out.resolve()
    if not options.from_json:
        check_prerequisites(remote=None, jars=None)
        with tempfile.TemporaryDirectory(prefix="large-", dir=options.scratch) as scratch:
            run = measure_partition(options.scale, options.heap_mb, Path(scratch))
        results = {
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "machine": asdict(describe_machine()),
            "run": asdict(run),
        }
        write_results(results, folder / _RESULTS)
    results = json.loads((folder / _RESULTS).read_text(encoding="utf-8"))
    section = f"{describe_briefly(results, folder / _RESULTS)}\n\n{build_section(results)}"
    write_section(section, folder, markers=(BEGIN, END))
    print(section)


def measure_partition(scale: float, heap_mb: int, folder: Path) -> LargePartition:
    """Lands orders below `folder`, an empty one, and materializes them as one partition.

    Ends the benchmark if the run fails, or if `raw/orders` doesn't hold all that landed.
    """
    landing, scratch = folder / "landing", folder / "run"
    landed = land_orders(str(landing), scale=scale)
    scratch.mkdir()
    buckets = build_buckets(landed.largest_key, 1)
    (key,) = buckets.list_keys()
    settings = {
        "BACKFILL_ORDER_KEY_STEP": str(buckets.step),
        "BACKFILL_ORDER_KEY_SPACE": str(buckets.space),
        "BACKFILL_SPARK_CONF": build_heap_conf(heap_mb, scratch, landing),
        "SPARK_LOCAL_DIRS": str(scratch / _SPARK),
    }
    command = prepare_range(TABLES, key, key, landing=landing, scratch=scratch, settings=settings)
    watched = watch_command(command, scratch=scratch, name="the run", folder=scratch / _SPARK)
    warehouse = Warehouse(str(find_warehouse(scratch)))
    logs = {table.key: read_log(warehouse, table) for table in TABLES}
    rows = {table: sum(log.count_folder_rows().values()) for table, log in logs.items()}
    if rows[TABLES[0].key] != landed.orders + landed.lines:
        sys.exit(f"error: {rows} rows, of {landed.orders + landed.lines} that landed")
    return LargePartition(
        scale=scale,
        landed_bytes=sum(path.stat().st_size for path in landing.rglob("*.parquet")),
        rows=rows,
        file_bytes={table: sum(log.sum_folder_bytes().values()) for table, log in logs.items()},
        files={table: len(log.list_files("path")) for table, log in logs.items()},
        commits={
            table: sum(commit.record is not None for commit in log.commits)
            for table, log in logs.items()
        },
        heap_mb=heap_mb,
        alive_mb=find_most_alive(scratch),
        python_mb=watched.own // 2**20,
        workers_mb=watched.workers // 2**20,
        spark_mb=watched.folder // 2**20,
        seconds=round(watched.seconds, 1),
        cpu_seconds=round(sum(watched.cpu_seconds.values()), 1),
    )


def build_section(results: Mapping[str, Any]) -> str:
    """What was measured, as Markdown."""
    run = LargePartition(**results["run"])
    seconds_per_million = run.seconds / (run.rows[TABLES[0].key] / 1e6)
    raw = TABLES[0].key
    lines = [
        f"- {run.landed_bytes / 1e9:.2f} GB of Parquet landed (TPC-H, scale {run.scale:g}); "
        f"`{raw}`: {run.rows[raw]:,} rows, {run.file_bytes[raw] / 1e9:.2f} GB, data files: "
        f"{run.files[raw]}, commits: {run.commits[raw]}.",
        f"- {run.seconds:,.0f} s for the three layers, {seconds_per_million:.1f} s per million raw "
        f"rows; {run.cpu_seconds:,.0f} CPU seconds, so that {run.cpu_seconds / run.seconds:.1f} "
        "cores were at work.",
        f"- Alive in the heap after a collection: {run.alive_mb:,} of {run.heap_mb:,} MB. Python: "
        f"{run.python_mb:,} MB in the run, {run.workers_mb:,} MB in all its tasks. Spark's disk: "
        f"{run.spark_mb:,} MB.",
    ]
    return "\n".join(lines)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_partition")
    parser.add_argument("--scale", type=float, default=1, help="of TPC-H; 30 is about 10 GB landed")
    parser.add_argument("--heap-mb", type=int, default=2048, help="default: 2048")
    parser.add_argument("--scratch", type=Path, help="a folder with room; default: the system's")
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help="default: docs/benchmarks")
    parser.add_argument("--from-json", action="store_true", help="only the page, runs nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
