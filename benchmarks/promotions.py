"""A promotion of the year's features as they are, and of ten times as many, in the same small heap.

Both versions are computed with each row multiplied, served, and switched by `version promote`,
which rehearses, compares and publishes all partitions in one commit. The JVM's own log of garbage
collections says how much was alive; prints JSON.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from backfill_assets.samples.flights import land_flights
from backfill_engine.lake.served_versions import find_served
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.spark.session import check_prerequisites
from backfill_engine_tests.project import (
    CARRIER_DELAYS_V2,
    RAW_FLIGHTS,
    SERVED_CARRIER_DELAYS,
    STAGING_FLIGHTS,
    TRAINING_EXAMPLES,
)
from benchmarks.heap import build_heap_conf, find_most_alive
from benchmarks.materializing import PROJECT, prepare_range
from benchmarks.processes import time_command
from benchmarks.variants import FIRST_DAY, find_warehouse
from benchmarks.watching import watch_command
from benchmarks.wide_features import VERSIONS

_BACKFILL_ASSETS = str(Path(sys.executable).with_name("backfill-assets"))
_LAST_DAY = "2013-12-31"


@dataclass(frozen=True)
class MeasuredPromotion:
    """One promotion.

    Attributes:
        copies: how often each row of the features is there.
        rows: served.
        partitions: served.
        commits: that switched them.
        heap_mb: the JVM's bound.
        alive_mb: most that was alive after a garbage collection.
        python_mb: most memory of the promotion's own process.
        seconds: wall time.
    """

    copies: int
    rows: int
    partitions: int
    commits: int
    heap_mb: int
    alive_mb: int
    python_mb: int
    seconds: float


def main() -> None:
    """Promotes the year as it is, then multiplied."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--heap-mb", type=int, default=512)
    parser.add_argument("--last-day", default=_LAST_DAY)
    options = parser.parse_args()
    check_prerequisites(remote=None, jars=None)
    with tempfile.TemporaryDirectory(prefix="promotions-") as temporary:
        landing = Path(temporary, "landing")
        land_flights(str(landing))
        for copies in options.copies:
            scratch = Path(temporary, f"times-{copies}")
            scratch.mkdir()
            found = measure_promotion(
                landing, scratch, copies=copies, heap_mb=options.heap_mb, last_day=options.last_day
            )
            print(json.dumps(asdict(found)), flush=True)


def measure_promotion(
    landing: Path, scratch: Path, *, copies: int, heap_mb: int, last_day: str
) -> MeasuredPromotion:
    """Publishes both versions, serves the first, and promotes the second."""
    for tables, module in (
        ((RAW_FLIGHTS, STAGING_FLIGHTS), PROJECT),
        (VERSIONS, "benchmarks.wide_features"),
        ((SERVED_CARRIER_DELAYS, TRAINING_EXAMPLES), PROJECT),
    ):
        command = prepare_range(
            tables,
            *(str(FIRST_DAY), last_day),
            landing=landing,
            scratch=scratch,
            module=module,
            settings={"FEATURE_COPIES": str(copies)},
        )
        time_command(command, scratch=scratch, name=f"{tables[0].key} and on")
    warehouse = Warehouse(str(find_warehouse(scratch)))
    before = read_log(warehouse, SERVED_CARRIER_DELAYS)
    promote = [
        _BACKFILL_ASSETS,
        "version",
        "promote",
        "carrier_delays",
        "v2",
        "--accept",
        "so",
        "--yes",
    ]
    heap = {"BACKFILL_SPARK_CONF": build_heap_conf(heap_mb, scratch, landing)}
    command = replace(command, arguments=promote, environment={**command.environment, **heap})
    watched = watch_command(command, scratch=scratch, name="the promotion")
    log = before.reread()
    assert find_served(log) == CARRIER_DELAYS_V2.key
    rows = log.count_rows()
    return MeasuredPromotion(
        copies=copies,
        rows=sum(rows.values()),
        partitions=len(rows),
        commits=log.version - before.version,
        heap_mb=heap_mb,
        alive_mb=find_most_alive(scratch),
        python_mb=watched.own // 2**20,
        seconds=round(watched.seconds, 1),
    )


if __name__ == "__main__":
    main()
