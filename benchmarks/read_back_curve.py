"""How fast a publish is read back: in one process, and in tasks on one core after the other.

Writes a table of 24 partitions with delta-rs, then reads it by `contents.partition_contents`, and
by Spark's tasks in sessions of `local[1]` up to the machine's cores, each in a process of its own
and twice: the first reading starts the Python workers. All must find the same. Prints a Markdown
table.
"""

import argparse
import datetime as dt
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
from deltalake import WriterProperties, write_deltalake
from pyspark.sql import SparkSession

from backfill_engine.contents.partition_contents import PartitionReader, ReadBack, read_back
from backfill_engine.lake.partitions import Partition, build_partitions
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.spark.session import build_spark_conf, check_prerequisites
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine_tests.project import CATALOG

_PARTITIONS = 24
_FIRST = dt.date(2013, 1, 1)
_NUMBERS, _TEXTS, _DOUBLES = 5, 4, 4
TABLE = Table(
    "raw",
    "measured",
    "day",
    (
        required("day", "DATE", "Day"),
        *(Column(f"number_{at}", "INT", "Any number") for at in range(_NUMBERS)),
        *(Column(f"text_{at}", "STRING", "One of some thousands") for at in range(_TEXTS)),
        *(Column(f"double_{at}", "DOUBLE", "Any number") for at in range(_DOUBLES)),
        Column("at", "TIMESTAMP", "Any time"),
        Column("remark", "STRING", "Another one in each row"),
    ),
)


def main() -> None:
    """Measures all sizes and prints the table, or, called by itself, one of its sessions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[500_000, 2_000_000, 8_000_000])
    parser.add_argument("--warehouse", help="of a session that is measured")
    parser.add_argument("--cores", type=int, default=0, help="of that session; 0 for no Spark")
    arguments = parser.parse_args()
    if arguments.warehouse:
        _measure(Warehouse(arguments.warehouse), arguments.cores)
        return
    print("| rows | MB | cores of tasks | s, first reading | s, second | rows/s, second |")
    print("|---:|---:|---|---:|---:|---:|")
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory() as scratch:
            megabytes = _write(Warehouse(scratch), rows) / 1e6
            contents: set[str] = set()
            for cores in range((os.cpu_count() or 1) + 1):
                first, second, found = _start(scratch, cores)
                contents.add(found)
                where = str(cores) if cores else "(one process)"
                print(
                    f"| {rows:,} | {megabytes:.0f} | {where} | {first:.2f} | {second:.2f} "
                    f"| {rows / second:,.0f} |",
                    flush=True,
                )
            if len(contents) != 1:
                sys.exit("the readers found different contents")


def _write(warehouse: Warehouse, rows: int) -> int:
    """Writes random rows, a file a partition; returns the bytes of all files."""
    generator = np.random.default_rng(20130101)
    count = rows // _PARTITIONS
    texts = pa.array([f"text {number:05}" for number in range(5000)])
    for day in range(_PARTITIONS):
        columns: dict[str, object] = {"day": [_FIRST + dt.timedelta(days=day)] * count}
        columns |= {
            f"number_{at}": pa.array(generator.integers(0, 10_000, count), pa.int32())
            for at in range(_NUMBERS)
        }
        columns |= {
            f"text_{at}": texts.take(pa.array(generator.integers(0, 5000, count)))
            for at in range(_TEXTS)
        }
        columns["remark"] = [f"remark {number:x}" for number in generator.integers(0, 2**60, count)]
        columns |= {
            f"double_{at}": generator.normal(0, 1000, count).round(2) for at in range(_DOUBLES)
        }
        columns["at"] = pa.array(
            generator.integers(10**15, 2 * 10**15, count), pa.timestamp("us", "UTC")
        )
        write_deltalake(
            warehouse.uri(TABLE),
            pa.table(columns),
            mode="append",
            partition_by=["day"],
            writer_properties=WriterProperties(compression="SNAPPY"),
        )
    return sum(size for _, size in read_log(warehouse, TABLE).list_files("size_bytes"))


def _start(warehouse: str, cores: int) -> tuple[float, float, str]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.read_back_curve"),
            *("--warehouse", warehouse, "--cores", str(cores)),
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    first, second, found = done.stdout.splitlines()[-1].split(maxsplit=2)
    return float(first), float(second), found


def _measure(warehouse: Warehouse, cores: int) -> None:
    log = read_log(warehouse, TABLE)
    partitions = build_partitions(TABLE, log.count_rows())
    spark = _start_session(cores) if cores else None
    seconds: list[str] = []
    found: dict[str, ReadBack] = {}
    for _ in range(2):
        began = time.perf_counter()
        found = _read(spark, log, partitions)
        seconds.append(f"{time.perf_counter() - began:.3f}")
    print(
        *seconds, sorted((key, contents.rows, contents.checksum) for key, contents in found.items())
    )
    if spark is not None:
        spark.stop()


def _read(
    spark: SparkSession | None, log: TableLog, partitions: tuple[Partition, ...]
) -> dict[str, ReadBack]:
    if spark is None:
        return read_back(log, partitions)
    return PartitionReader(lambda: spark, task_bytes=0).read_back(log, partitions)


def _start_session(cores: int) -> SparkSession:
    settings = CATALOG.settings
    check_prerequisites(remote=None, jars=settings.jars)
    overrides = {"spark.master": f"local[{cores}]", "spark.log.level": "ERROR"}
    builder = SparkSession.builder
    conf = build_spark_conf(remote=None, jars=settings.jars, overrides=overrides)
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.range(1).collect()
    return spark


if __name__ == "__main__":
    main()
