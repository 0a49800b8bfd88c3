"""All pipeline code against a real Spark Connect server."""

import os
import subprocess
import sys

import pytest

from backfill_assets.samples.orders import land_orders
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.watermarks import read_watermarks
from backfill_engine_tests.commands import Project
from backfill_engine_tests.landing_zones import copy_days, rewrite_records
from backfill_engine_tests.ports import find_free_port
from backfill_engine_tests.project import STAGING_FLIGHTS
from backfill_engine_tests.spark_cluster import SPARK_CLASS, describe_connect, listens

pytestmark = pytest.mark.slow

FLIGHTS = ("raw/flights", "staging/flights", "features/carrier_delays")
ORDERS = ("raw/orders", "staging/orders", "features/customer_orders")
THREE_DAYS = "2013-01-01...2013-01-03"
FILTER = "origin IN ('JFK', 'LGA') AND NOT cancelled AND flight_date >= DATE'2013-01-01'"


@pytest.fixture(scope="module")
def connect_url(tmp_path_factory):
    port = find_free_port()
    # Not UTC, so that only the session's own settings can make it so.
    conf = {"spark.driver.host": "localhost", "spark.sql.session.timeZone": "Asia/Tokyo"}
    server = subprocess.Popen(
        [SPARK_CLASS, *describe_connect(port, tmp_path_factory.mktemp("catalog"), conf)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Its tasks read back what is published, and need what this Python has.
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    try:
        assert listens(port, server, seconds=120), "the Spark Connect server did not start"
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.mark.by_hand
def test_a_range_is_published_the_same_through_spark_connect(connect_url, sample_landing, tmp_path):
    landing = copy_days(sample_landing, tmp_path / "landing", first="2013-01-01", count=4)
    land_orders(str(landing), scale=0.002)
    # A rejected line and a new field, so that the side tables and the evolution run there too.
    rewrite_records(landing, "2013-01-02", lambda records: [*records, {"year": "?", "gate": "B7"}])
    checksums, watermarks = {}, {}
    for name, remote in (("connect", connect_url), ("classic", "")):
        project = Project(tmp_path / name, landing, (("SPARK_REMOTE", remote),))
        for run in (
            project.materialize(*FLIGHTS, partitions=THREE_DAYS),
            # This run merges filtered rows, and moves the watermark on.
            project.materialize(
                FLIGHTS[1],
                partitions=THREE_DAYS,
                config={"write_mode": "merge", "filter": FILTER, "save_watermark": True},
            ),
            project.materialize(*ORDERS, partitions="0000000...0000000"),
        ):
            assert run.returncode == 0, run.stdout + run.stderr
        checksums[name] = project.read_checksums()
        marks = read_watermarks(Warehouse(str(project.warehouse)))
        watermarks[name] = {key: watermark.next_key for key, watermark in marks.items()}
    assert checksums["connect"] == checksums["classic"]
    assert len(checksums["connect"]) == 3 * 3 + 3
    # The second day is provisional: its last landing day is not there.
    assert watermarks["connect"] == watermarks["classic"] == {FLIGHTS[1]: "2013-01-02"}


@pytest.mark.by_hand
def test_a_run_in_chunks_goes_by_the_server_that_it_names(connect_url, sample_landing, tmp_path):
    landing = copy_days(sample_landing, tmp_path / "landing", first="2013-01-01", count=5)
    in_chunks = ("--from", "2013-01-01", "--to", "2013-01-03", "--chunk", "days=1", "--yes")
    by_column = ("--column", "landing_date", "--start", "2013-01-02", "--end", "2013-01-04")
    checksums = []
    for name, remote in (("connect", ("--spark-remote", connect_url)), ("classic", ())):
        project = Project(tmp_path / name, landing)
        for select, *options in (
            (",".join(FLIGHTS),),
            (FLIGHTS[1], *by_column, "--write-mode", "merge"),
        ):
            command = ("run", "--select", select, *in_chunks, *options, *remote)
            run = project.run("backfill-assets", *command)
            assert run.returncode == 0, run.stdout + run.stderr
        checksums.append(project.read_checksums())
        log = read_log(Warehouse(str(project.warehouse)), STAGING_FLIGHTS)
        modes = [commit.record.write_mode for commit in log.commits if commit.record]
        assert modes == 3 * ["merge"] + 3 * ["overwrite"]
    assert checksums[0] == checksums[1]
    assert len(checksums[0]) == 3 * 3


def test_a_server_that_is_not_there_is_one_sentence(sample_landing, tmp_path):
    project = Project(tmp_path, sample_landing, (("SPARK_REMOTE", "sc://127.0.0.1:9"),))
    run = project.materialize("raw/flights", partitions="2013-01-01...2013-01-01")
    assert run.returncode != 0
    assert "no Spark Connect server answers at SPARK_REMOTE=sc://127.0.0.1:9" in run.stderr


READ_BACK = """
import sys
from pyspark.sql import SparkSession
from backfill_engine.contents import partition_contents
from backfill_engine.contents.partition_contents import read_back
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.contents.test_read_back import EVENTS, build_parts, write_events

warehouse, parts = Warehouse(sys.argv[1]), build_parts(0, 1, 2)
write_events(warehouse, {0: ["a", "b"], 2: ["c"]})
log = read_log(warehouse, EVENTS)
in_process, partition_contents.read_back = read_back(log, parts), None
spark = SparkSession.builder.remote(sys.argv[2]).create()
found = partition_contents.PartitionReader(lambda: spark, 0).read_back(log, parts)
print(found == in_process, [one.rows for one in found.values()])
"""


def test_tasks_of_a_server_read_back_what_one_process_does(connect_url, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", READ_BACK, str(tmp_path), connect_url],
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1:] == ["True [2, 0, 1]"], done.stderr
