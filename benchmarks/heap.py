"""Ten times the data in the same small heap: a year's range run, worked through in chunks.

The second landing zone holds each flight ten times, under other flight numbers. A chunk is bounded
by the bytes of a year as it is, so ten times the data are ten times the chunks. The JVM's own log
of garbage collections says how much was alive.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from gzip import compress, decompress
from pathlib import Path

from backfill_assets.samples.flights import land_flights
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.spark.session import JAVA_OPTIONS, build_spark_conf, check_prerequisites
from benchmarks.variants import (
    DAGSTER_RANGE,
    REPOSITORY,
    TABLES,
    find_warehouse,
    prepare_command,
)

_FLIGHT_NUMBER = re.compile(rb'"flight":(\d+)')
_PAUSE = re.compile(r"Pause .* \d+M->(\d+)M\((\d+)M\)")
_ALIVE, _SIZE = 1, 2


@dataclass(frozen=True)
class HeapUse:
    """One range run.

    Attributes:
        copies: how often each flight of the year is there.
        rows: rows published, by table.
        commits: commits that published them, by table.
        heap_mb: the JVM's bound.
        alive_mb: most that was alive after a garbage collection.
        seconds: wall time.
    """

    copies: int
    rows: dict[str, int]
    commits: dict[str, int]
    heap_mb: int
    alive_mb: int
    seconds: float


def main() -> None:
    """Runs the year as it is, then multiplied, and prints both as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--heap-mb", type=int, default=512)
    parser.add_argument("--days", type=int, default=365)
    options = parser.parse_args()
    check_prerequisites(remote=None, jars=None)
    with tempfile.TemporaryDirectory(prefix="heap-") as temporary:
        once, often = Path(temporary, "once"), Path(temporary, "often")
        land_flights(str(once))
        multiply_flights(once, often, copies=options.copies)
        chunk_bytes = sum(path.stat().st_size for path in once.rglob("*.gz"))
        for copies, landing in ((1, once), (options.copies, often)):
            scratch = Path(temporary, f"run-{copies}")
            scratch.mkdir()
            use = measure_run(
                landing,
                scratch,
                copies=copies,
                days=options.days,
                heap_mb=options.heap_mb,
                chunk_bytes=chunk_bytes,
            )
            print(json.dumps(asdict(use)), flush=True)


def multiply_flights(source: Path, target: Path, *, copies: int) -> None:
    """Lands each file's records `copies` times, with flight numbers of their own, as one file."""
    for path in source.rglob("*.gz"):
        lines = decompress(path.read_bytes())
        multiplied = b"".join(
            _FLIGHT_NUMBER.sub(lambda m, n=number: b'"flight":%d' % (int(m[1]) + 10_000 * n), lines)
            for number in range(copies)
        )
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(compress(multiplied, compresslevel=1))


def measure_run(
    landing: Path, scratch: Path, *, copies: int, days: int, heap_mb: int, chunk_bytes: int
) -> HeapUse:
    """Runs `dagster asset materialize` over the days and all layers."""
    command = prepare_command(DAGSTER_RANGE, days=days, landing=landing, scratch=scratch)
    environment = {
        **command.environment,
        "BACKFILL_SPARK_CONF": build_heap_conf(heap_mb, scratch, landing),
        "BACKFILL_CHUNK_BYTES": str(chunk_bytes),
    }
    began = time.perf_counter()
    run = subprocess.run(
        command.arguments,
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    if run.returncode != 0:
        sys.exit(f"error: {copies} copies in {heap_mb} MB failed\n{run.stderr[-4000:]}")
    warehouse = Warehouse(str(find_warehouse(scratch)))
    return HeapUse(
        copies=copies,
        rows={table.key: sum(read_log(warehouse, table).count_rows().values()) for table in TABLES},
        commits={
            table.key: sum(
                commit.record is not None for commit in read_log(warehouse, table).commits
            )
            for table in TABLES
        },
        heap_mb=max(_read_pauses(scratch, _SIZE)),
        alive_mb=find_most_alive(scratch),
        seconds=round(seconds, 1),
    )


def build_heap_conf(heap_mb: int, scratch: Path, landing: Path) -> str:
    """Builds the `BACKFILL_SPARK_CONF` of a run whose JVM is bounded and logs its collections.

    After the project's own options, as they are for all that landed; these turn off all logs.
    """
    landed = sum(file.stat().st_size for file in landing.rglob("*") if file.is_file())
    conf = build_spark_conf(remote=None, jars=None, overrides={}, input_bytes=landed)
    options = f"{conf[JAVA_OPTIONS]} -Xlog:gc:file={scratch}/gc.%p.log"
    return json.dumps({"spark.driver.memory": f"{heap_mb}m", JAVA_OPTIONS: options})


def find_most_alive(scratch: Path) -> int:
    """Megabytes that were alive after a collection, by the logs `gc.*.log` of a run's JVMs."""
    return max(_read_pauses(scratch, _ALIVE))


def _read_pauses(scratch: Path, figure: int) -> list[int]:
    return [
        int(match[figure])
        for log in scratch.glob("gc.*.log")
        for match in _PAUSE.finditer(log.read_text())
    ]


if __name__ == "__main__":
    main()
