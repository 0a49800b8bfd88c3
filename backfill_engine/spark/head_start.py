"""Starts Spark's Java while a step does what comes before its session.

A step takes a second to read logs and inputs, and Java takes one to start. Nothing depends on it: a
session that needs other settings starts a Java of its own.

Java is started as PySpark starts it, but with no setting on its command line. Whoever is on a
machine can read the arguments of its processes, and settings may hold passwords. Java reads them
from files that only their owner can read, and that are gone once it has.
"""

import atexit
import os
import re
import shlex
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark
from pyspark import SparkContext

from backfill_engine.errors import BackfillError, SettingsError, SparkUnavailableError
from backfill_engine.settings import Settings
from backfill_engine.spark.session import build_spark_conf, is_trained

# As spark-submit tells Python, and Python tells spark-submit, how to talk to each other.
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_CONNECTION = "_PYSPARK_DRIVER_CONN_INFO_PATH"

_JAVA_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
"""Settings that Spark's launcher makes arguments of Java."""
_DEAF_TO_CTRL_C = """trap '' INT; exec "$0" "$@\""""
_LOOK_AGAIN_SECONDS = 0.02


@dataclass(frozen=True)
class StartedJava:
    """A Java that waits for a session, and ends with its input.

    Attributes:
        conf: the session's settings.
        process: Java.
        folder: has the settings, and will have the file that says how to reach Java.
    """

    conf: Mapping[str, str]
    process: "subprocess.Popen[bytes]"
    folder: Path

    def wait_for_connection(self) -> tuple[int, str] | None:
        """Waits until Java says at which port, and with which secret; None if it ends instead.

        Java has read its settings by then: the folder is removed.
        """
        connection = _name_connection(self.folder)
        while not connection.exists():
            if self.process.poll() is not None:
                self.end()
                return None
            time.sleep(_LOOK_AGAIN_SECONDS)
        content = connection.read_bytes()
        port, length = struct.unpack_from(">ii", content)
        self._remove_folder()
        return port, content[8 : 8 + length].decode()

    def end(self) -> None:
        """Ends Java, and removes its folder."""
        self.process.kill()
        self.process.communicate()
        self._remove_folder()

    def _remove_folder(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def start_process(conf: Mapping[str, str]) -> StartedJava:
    """Starts Java for a session.

    Args:
        conf: the session's settings.

    Raises:
        SparkUnavailableError: if SPARK_HOME names no Spark.
        SettingsError: if Java's options in the settings can't be told apart.
    """
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    submit = Path(home, "bin", "spark-submit")
    if not submit.exists():
        raise SparkUnavailableError(
            f"there is no {submit}: point SPARK_HOME at a Spark, or unset it for PySpark's own"
        )
    folder = Path(tempfile.mkdtemp(prefix="backfill-assets-java-"))
    try:
        settings = _write_settings(folder, conf)
        process = subprocess.Popen(
            [
                *("sh", "-c", _DEAF_TO_CTRL_C, str(submit)),
                *("--load-spark-defaults", "--properties-file", str(settings)),
                *shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS") or "pyspark-shell"),
            ],
            stdin=subprocess.PIPE,
            env={
                **os.environ,
                "SPARK_CONNECT_MODE": "0",
                _CONNECTION: str(_name_connection(folder)),
            },
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return StartedJava(conf, process, folder)


@contextmanager
def offer_connection(port: int, secret: str) -> Iterator[None]:
    """Lets a session that is started meanwhile use the Java that is reached there."""
    names = {_PORT: str(port), _SECRET: secret}
    os.environ.update(names)
    try:
        yield
    finally:
        for name in names:  # What this process starts is to have a Java of its own.
            del os.environ[name]


def _name_connection(folder: Path) -> Path:
    return folder / "connection"


def _write_settings(folder: Path, conf: Mapping[str, str]) -> Path:
    """Writes the file of settings that spark-submit reads, and those of Java's options."""
    options = {
        name: _write_java_options(folder / name, conf[name])
        for name in _JAVA_OPTIONS
        if conf.get(name)
    }
    settings = {**conf, **options}.items()
    lines = (f"{_escape(name)}={_escape(str(value))}\n" for name, value in settings)
    return _write_privately(folder / "settings.properties", "".join(lines))


def _write_java_options(path: Path, options: str) -> str:
    """Writes options into a file that Java reads in place of an argument; returns the argument."""
    try:
        words = shlex.split(options)
    except ValueError as error:
        raise SettingsError(f"{path.name}: a quote is not closed ({error}): close it") from error
    # Java expands files of arguments, but not what such a file names in its turn.
    files = [word for word in words if word.startswith("@")]
    lines = (f'"{_quote(word)}"\n' for word in words if word not in files)
    _write_privately(path, "".join(lines))
    return shlex.join([f"@{path}", *files])


def _quote(word: str) -> str:
    escapes = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
    return re.sub(r'[\\"\n\r\t\f]', lambda found: escapes.get(found[0], f"\\{found[0]}"), word)


def _escape(text: str) -> str:
    """Escapes a name or a value for Java's properties, in which most signs may mean something."""
    units = struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass"))
    return "".join(f"\\u{unit:04x}" for (unit,) in units)


def _write_privately(path: Path, text: str) -> Path:
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(os.fsencode(text))
    return path


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
