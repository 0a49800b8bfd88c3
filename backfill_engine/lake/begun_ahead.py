"""Lets Spark create a table, or read its log, while this process has something else to do.

The first table of a session takes two seconds to create, as long as it takes to build a plan. A
commit goes over the whole log before it writes, and so does the first read after it: a third to
two thirds of a second on a table of any size, most of it planning. Spark keeps what it has read of
a version, so whoever comes next finds it there.
"""

import atexit
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from threading import Thread
from weakref import WeakSet

from pyspark.sql import SparkSession

from backfill_engine.lake.table_log import TableLog
from backfill_engine.lake.writer import create_table

# A log has some hundred lines of a hundred fields: to write and compile code for them, for each
# task anew, takes longer than to go over them without.
_CONF = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    # Nor is there anything to learn from the first half of a query for the second.
    "spark.sql.adaptive.enabled": "false",
    # A hundred counters that commits carry on from checksum to checksum, and nobody here reads.
    "spark.databricks.delta.fileSizeHistogramMetrics.enabled": "false",
}

_MOST_SECONDS = 5.0
_begun: WeakSet[Thread] = WeakSet()


def create_table_ahead(spark: SparkSession, log: TableLog) -> Thread:
    """Begins to create the table, and doesn't wait for it; then reads its log.

    `writer.create_table` waits for it, and does it again where it went wrong.

    Args:
        spark: the session.
        log: of the table.

    Returns:
        As `read_log_ahead`.
    """

    def create() -> None:
        with suppress(Exception):
            create_table(spark, log)
            _read(spark, log)

    return _begin(create, f"creating {log.table.key} ahead")


def read_log_ahead(spark: SparkSession, log: TableLog) -> Thread:
    """Begins to read the table's newest version, and doesn't wait for it.

    Nothing depends on it: whatever goes wrong here goes wrong again where it matters.

    Args:
        spark: the session.
        log: of the table, which should exist.

    Returns:
        What ends when it has been read; it keeps no process alive.
    """

    def read() -> None:
        with suppress(Exception):
            _read(spark, log)

    return _begin(read, f"reading {log.table.key} ahead")


def _read(spark: SparkSession, log: TableLog) -> None:
    _open_session(spark).sql(f"DESCRIBE DETAIL delta.`{log.uri}`").collect()


def _begin(what: Callable[[], None], name: str) -> Thread:
    thread = Thread(target=what, name=name, daemon=True)
    _begun.add(thread)
    thread.start()
    return thread


@atexit.register
def _end() -> None:
    """Lets it end with the process: a Java that is ended in the middle of it says so on stderr."""
    for thread in list(_begun):
        thread.join(_MOST_SECONDS)


@lru_cache(maxsize=1)
def _open_session(spark: SparkSession) -> SparkSession:
    """Opens a session beside another one, which finds there what this one has read of a log."""
    if not hasattr(spark, "newSession"):
        return spark  # Of a Spark Connect server, which goes by settings of its own.
    session = spark.newSession()
    for name, value in _CONF.items():
        session.conf.set(name, value)
    return session
