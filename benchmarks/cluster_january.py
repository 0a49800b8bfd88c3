"""January of flights on a standalone cluster, through Spark Connect, and the same here.

Starts a master, two workers of one core each and a Connect server on loopback, from the pyspark
wheel alone; materializes January over three layers there; stops them; does the same with Spark in
the process; and compares all partitions by checksum.
"""

import sys
import tempfile
import time
from pathlib import Path

from backfill_assets.samples.flights import land_flights
from backfill_engine_tests.commands import Project
from backfill_engine_tests.spark_cluster import list_processes, serve_spark_cluster

_RAW = ("raw/flights",)
_OTHERS = ("staging/flights", "features/carrier_delays")


def main() -> None:
    """Prints what it does and how long that takes; exits with 1 if the contents differ."""
    with tempfile.TemporaryDirectory(prefix="cluster-january-") as temporary:
        folder = Path(temporary)
        landing = folder / "landing"
        report = land_flights(str(landing))
        print(f"landed {report.records:,} flights of 2013", flush=True)
        started = time.perf_counter()
        with serve_spark_cluster(folder / "cluster") as cluster:
            print(f"\nstarted in {time.perf_counter() - started:.0f} s")
            print(f"  master at {cluster.master_url}, Connect server at {cluster.connect_url}")
            remote = Project(folder / "remote", landing, (("SPARK_REMOTE", cluster.connect_url),))
            print(f"January, with SPARK_REMOTE={cluster.connect_url}", flush=True)
            for turn in ("first", "again, with the server warm"):
                print(f"  {turn}: {_run_january(remote):.0f} s", flush=True)
            print("\n".join(f"  {line}" for line in list_processes(cluster)), flush=True)
        print("stopped\n\nJanuary, with Spark in the process", flush=True)
        local = Project(folder / "local", landing)
        print(f"  {_run_january(local):.0f} s", flush=True)
        found, expected = remote.read_checksums(), local.read_checksums()
        if found != expected:
            names = {*found, *expected}
            different = sorted(name for name in names if found.get(name) != expected.get(name))
            sys.exit(f"error: {len(different)} partitions differ, such as {different[0]}")
        print(f"\nthe {len(found)} partitions of both have the same checksums")


def _run_january(project: Project) -> float:
    """Materializes what `make backfill` does; returns the wall seconds."""
    started = time.perf_counter()
    for run in (
        project.materialize(*_RAW, partitions="2013-01-01...2013-02-02"),
        project.materialize(*_OTHERS, partitions="2013-01-01...2013-01-31"),
    ):
        if run.returncode != 0:
            sys.exit(run.stdout + run.stderr)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
