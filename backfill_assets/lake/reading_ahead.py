"""Lets Spark read a table's log while this process has something else to do.

A commit goes over the whole log before it writes, and so does the first read after it: a third to
two thirds of a second on a table of any size, most of it planning. Spark keeps what it has read of
a version, so whoever comes next finds it there.
"""

from contextlib import suppress
from threading import Thread

from pyspark.sql import SparkSession

from backfill_assets.lake.table_log import TableLog


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
            spark.sql(f"DESCRIBE DETAIL delta.`{log.uri}`").collect()

    thread = Thread(target=read, name=f"reading {log.table.key} ahead", daemon=True)
    thread.start()
    return thread
