"""Starts Spark's Java while a step does what comes before its session.

A step takes a second to read logs and inputs, and Java takes one to start. Nothing depends on it: a
session that needs other settings starts a Java of its own.
"""

import atexit
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from pyspark import SparkContext

from backfill_engine.errors import BackfillError, SparkUnavailableError
from backfill_engine.settings import Settings
from backfill_engine.spark.gateway import StartedJava, offer_connection, start_process
from backfill_engine.spark.session import build_spark_conf, is_trained

_waiting: list[StartedJava] = []
_used: list[StartedJava] = []
"""Kept, as Java ends with the input that it has from here."""


def start_java(settings: Settings) -> None:
    """Starts Java as most sessions with these settings have it.

    Not where something is amiss, or still to be fetched or made: the session's start tells of that.
    Nor where this process has a Java already, used or not: it needs one only.
    """
    if _waiting or SparkContext._gateway is not None:
        return
    with suppress(BackfillError, OSError):
        if settings.spark_remote is None and is_trained(jars=settings.jars, s3=settings.s3):
            conf = build_spark_conf(
                remote=None, jars=settings.jars, overrides=settings.spark_conf, s3=settings.s3
            )
            _waiting.append(start_process(conf))
            atexit.register(_end_waiting)


@contextmanager
def use_java(conf: Mapping[str, str]) -> Iterator[None]:
    """Lets a session that is started meanwhile use the Java that was started with its settings.

    One that was started with others is ended, and another one started. A session of Spark Connect
    needs none, and the second of a process uses the Java of the first.

    Raises:
        SparkUnavailableError: if Java does not start.
    """
    ahead = _waiting.pop() if _waiting else None
    if "spark.remote" in conf or SparkContext._gateway is not None:
        if ahead is not None:
            ahead.end()
        yield
        return
    with offer_connection(*_connect(ahead, conf)):
        yield


def _connect(ahead: StartedJava | None, conf: Mapping[str, str]) -> tuple[int, str]:
    connection = None
    if ahead is not None:
        connection = _wait(ahead) if ahead.conf == conf else ahead.end()
    if connection is None:
        java = start_process(conf)
        connection = _wait(java)
        if connection is None:
            raise SparkUnavailableError(
                f"Java ended before Spark began (exit {java.process.returncode}): mend what it "
                "printed of that; its settings are BACKFILL_SPARK_CONF, the others the project's"
            )
    return connection


def _wait(java: StartedJava) -> tuple[int, str] | None:
    connection = java.wait_for_connection()
    if connection is not None:
        _used.append(java)
    return connection


def _end_waiting() -> None:
    while _waiting:
        _waiting.pop().end()
