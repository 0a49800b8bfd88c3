"""Starts Spark's Java while a process does what comes before its session.

Dagster takes a second or two to load a code location and to plan a run, and Java takes one to
start. Nothing depends on it: a session that needs other settings starts a Java of its own.
"""

import atexit
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from backfill_assets.errors import SettingsError
from backfill_assets.settings import read_settings
from backfill_assets.spark.session import build_spark_conf, is_trained

_RUN_COMMANDS = (["asset", "materialize"], ["api", "execute_run"])
"""Of `dagster`: those whose process executes a run."""
_CODE_SERVER = ["api", "grpc"]
"""Likewise: the one whose children do, each one of a daemon or of the webserver."""

# As spark-submit tells Python, and Python tells spark-submit, how to talk to each other.
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_CONNECTION = "_PYSPARK_DRIVER_CONN_INFO_PATH"

_LOOK_AGAIN_SECONDS = 0.02


@dataclass(frozen=True)
class StartedJava:
    """A Java that waits for a session, and ends with its input.

    Attributes:
        conf: the session's settings.
        process: Java.
        connection: the file in which it will say how to reach it.
    """

    conf: Mapping[str, str]
    process: "subprocess.Popen[bytes]"
    connection: Path

    def wait_for_connection(self) -> tuple[int, str] | None:
        """Waits until Java says at which port, and with which secret; None if it ends instead."""
        while not self.connection.exists():
            if self.process.poll() is not None:
                return None
            time.sleep(_LOOK_AGAIN_SECONDS)
        told = self.connection.read_bytes()
        port, length = struct.unpack_from(">ii", told)
        return port, told[8 : 8 + length].decode()

    def end(self) -> None:
        """Ends it, and removes its file."""
        self.process.kill()
        self.process.communicate()
        self.forget_connection()

    def forget_connection(self) -> None:
        """Removes the file, which holds a secret."""
        shutil.rmtree(self.connection.parent, ignore_errors=True)


_waiting: list[StartedJava] = []
_used: list[StartedJava] = []
"""Kept, as Java ends with the input that it has from here."""


def executes_run(arguments: Sequence[str], *, is_child: bool) -> bool:
    """Tells whether a process of Dagster executes a run.

    Args:
        arguments: its command line, as in `sys.argv`.
        is_child: whether Python's multiprocessing has started it; then that is its parent's.
    """
    command = list(arguments[1:3])
    return command == _CODE_SERVER if is_child else command in _RUN_COMMANDS


def start_java() -> None:
    """Starts Java with the settings of the environment, as most sessions have them.

    Not where something is amiss, or still to be fetched or made: the session's start tells of that.
    """
    with suppress(SettingsError, OSError, ValueError):
        settings = read_settings()
        if settings.spark_remote is None and is_trained(jars=settings.jars, s3=settings.s3):
            conf = build_spark_conf(
                remote=None, jars=settings.jars, overrides=settings.spark_conf, s3=settings.s3
            )
            _waiting.append(_start(conf))
            atexit.register(_end_waiting)


def _start(conf: Mapping[str, str]) -> StartedJava:
    """Starts Java as PySpark does, but for waiting; ValueError where it isn't the main thread."""
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    options = (part for name, value in conf.items() for part in ("--conf", f"{name}={value}"))
    # It inherits that Ctrl-C is not for it.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        connection = Path(tempfile.mkdtemp(prefix="head-start-"), "connection")
        process = subprocess.Popen(
            [str(Path(home, "bin", "spark-submit")), *options, "pyspark-shell"],
            stdin=subprocess.PIPE,
            env={**os.environ, "SPARK_CONNECT_MODE": "0", _CONNECTION: str(connection)},
        )
    finally:
        signal.signal(signal.SIGINT, handler)
    return StartedJava(conf, process, connection)


@contextmanager
def use_started_java(conf: Mapping[str, str]) -> Iterator[None]:
    """Lets a session that is started meanwhile use the Java that was started with its settings.

    One that was started with others is ended.
    """
    java = _waiting.pop() if _waiting else None
    connection = _connect(java, conf) if java is not None else None
    if java is None or connection is None:
        yield
        return
    _used.append(java)
    port, secret = connection
    told = {_PORT: str(port), _SECRET: secret}
    os.environ.update(told)
    try:
        yield
    finally:
        for name in told:  # What this process starts is to have a Java of its own.
            del os.environ[name]


def _connect(java: StartedJava, conf: Mapping[str, str]) -> tuple[int, str] | None:
    connection = java.wait_for_connection() if java.conf == conf else None
    if connection is None:
        java.end()
    else:
        java.forget_connection()
    return connection


def _end_waiting() -> None:
    while _waiting:
        _waiting.pop().end()
