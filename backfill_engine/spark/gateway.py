"""Starts Spark's Java with no setting on its command line.

Whoever is on a machine can read the arguments of its processes, and settings may hold passwords.
PySpark makes an argument of each. Here Java reads settings from files that only their owner can
read, and that are removed once it has.
"""

import os
import re
import shlex
import shutil
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from backfill_engine.errors import SettingsError, SparkUnavailableError

_SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_JAVA_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
"""Settings that Spark's launcher makes arguments of Java."""


def start_context(conf: Mapping[str, str]) -> None:
    """Starts Spark in this process, for the session that is made next.

    A session of Spark Connect needs none, and a process that has a Java goes on with that.

    Args:
        conf: the session's settings.

    Raises:
        SettingsError: if Java's options in the settings can't be told apart.
        SparkUnavailableError: if SPARK_HOME names no Spark, or Java does not start.
    """
    if "spark.remote" in conf or SparkContext._gateway is not None:
        return
    folder = Path(tempfile.mkdtemp(prefix="backfill-assets-java-"))
    given = os.environ.get(_SUBMIT_ARGUMENTS) or "pyspark-shell"
    try:
        settings = shlex.quote(str(_write_settings(folder, conf)))
        os.environ[_SUBMIT_ARGUMENTS] = (
            f"--load-spark-defaults --properties-file {settings} {given}"
        )
        gateway = launch_gateway()
    except FileNotFoundError as error:
        raise SparkUnavailableError(
            f"there is no {error.filename}: point SPARK_HOME at a Spark, or unset it for PySpark's"
        ) from error
    except PySparkRuntimeError as error:
        raise SparkUnavailableError(
            "Java ended before Spark began: mend what it printed of that; its settings are "
            "BACKFILL_SPARK_CONF, the others the project's"
        ) from error
    finally:
        os.environ[_SUBMIT_ARGUMENTS] = given
        shutil.rmtree(folder, ignore_errors=True)
    SparkContext(conf=SparkConf().setAll(list(conf.items())), gateway=gateway)


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
