"""A session of Sail, whose server runs in this process and ends with it."""

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

import psutil
from pyspark.sql import SparkSession

from backfill_engine.engines.sail_engine import SAIL, remove_scratch
from backfill_engine.engines.sessions import note_engine
from backfill_engine.errors import SparkUnavailableError
from backfill_engine.spark.connect import limit_retries

if TYPE_CHECKING:
    from pysail.spark import SparkConnectServer

_SHARE_OF_MEMORY = 0.4
"""Of the machine's, for the queries of a server; beside them are Python and Arrow. Without a bound
7.5 million groups took 24 GB."""

_POOL = "SAIL_RUNTIME__MEMORY_POOL__"


def check_sail() -> None:
    """Makes sure that Sail is installed.

    Raises:
        SparkUnavailableError: if it isn't.
    """
    try:
        import pysail.spark  # noqa: F401
    except ImportError as error:
        raise SparkUnavailableError(
            f"Sail can't be imported ({error}): install pysail, which is in the extra `sail`, or "
            "set BACKFILL_ENGINE=spark"
        ) from error


def start_sail() -> SparkSession:
    """Starts a session, and the server of this process with the first.

    Raises:
        SparkUnavailableError: if Sail isn't installed.
    """
    check_sail()
    with _keep_interrupts():
        host, port = _start_server().listening_address  # type: ignore[misc]
        session = SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()
        session.conf.set("spark.sql.session.timeZone", "UTC")
    # No network is between it and the server.
    limit_retries(session, retries=0)
    note_engine(session, SAIL)
    return session


def describe_lack_of_memory(error: BaseException) -> str | None:
    """Describes in one line, with its cure, a lack of memory; None for another error."""
    if not any(words in str(error) for words in ("Resources exhausted", "Failed to allocate")):
        return None
    return (
        "Sail has no memory left for a query: set BACKFILL_CHUNK_BYTES lower, or take --engine "
        "spark; what was published stays"
    )


@contextmanager
def _keep_interrupts() -> Iterator[None]:
    """Keeps what Ctrl-C does: the server, once it answers, ends by it, and a run's queries with it.

    By the C library, as Python lets only the main thread do it, and a run may have one of its own.
    """
    library, kept = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    library.sigaction(signal.SIGINT, None, kept)
    try:
        yield
    finally:
        library.sigaction(signal.SIGINT, kept, None)


@lru_cache(maxsize=1)
def _start_server() -> "SparkConnectServer":
    from pysail.spark import SparkConnectServer

    remove_scratch()
    # Its settings are variables of the environment, and it reads them once.
    os.environ.setdefault(f"{_POOL}TYPE", "fair")
    most = int(psutil.virtual_memory().total * _SHARE_OF_MEMORY)
    os.environ.setdefault(f"{_POOL}FAIR__MAX_SIZE", str(most))
    os.environ.setdefault("RUST_LOG", "error")
    server = SparkConnectServer()
    server.start()
    return server
