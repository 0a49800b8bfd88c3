"""An archive of the classes that a session loads, made once; Java maps it and loads none.

Parsing, checking and linking some ten thousand classes took a third of the time from a session's
start to its first table. Java ignores an archive of other classes than those on its class path.
An archive takes 190 MB, and each virtual environment has its own: those that no session was started
with for 30 days are removed when another one is made.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyspark

from backfill_engine.spark.cache import are_whole, find_cache, make_once, remove_unused
from backfill_engine.spark.java import locate_java

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_TRAINING_SECONDS = 300
_NAME = "classes-{}.jsa"


def find_class_archive(class_path: Sequence[Path]) -> Path | None:
    """Finds where the archive for these jars and Spark's own is, or is to be.

    Returns:
        A path that another Java, or other jars, don't share, nor the same ones installed again:
        Java takes no archive of jars with other times. None where there is no Java.
    """
    java = locate_java()
    if java is None or not Path(java).exists():
        return None
    sparks = sorted(Path(pyspark.__file__).parent.joinpath("jars").glob("*.jar"))
    files = (Path(java).resolve(), *class_path, *sparks)
    parts = [f"{file} {file.stat().st_mtime_ns if file.exists() else 0}" for file in files]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return find_cache() / _NAME.format(digest[:12])


def train_class_archive(archive: Path, conf: Mapping[str, str]) -> None:
    """Makes the archive, unless it is there, of what a session loads that does a bit of all.

    Where that fails, as on a full disk, sessions start as they did without. Archives beside it that
    were not used for 30 days are removed first.

    Args:
        archive: where it is to be.
        conf: of the sessions that are to use it.
    """
    if are_whole([archive]):
        return
    remove_unused(archive.parent, _NAME.format("*"))
    with suppress(OSError, subprocess.SubprocessError):
        make_once([archive], lambda folder: _train_into(folder / archive.name, conf))


def _train_into(archive: Path, conf: Mapping[str, str]) -> None:
    options = f"{conf[JAVA_OPTIONS]} -XX:ArchiveClassesAtExit={archive}"
    subprocess.run(
        [sys.executable, "-m", "backfill_engine.spark.training", str(archive.parent)],
        input=json.dumps({**conf, JAVA_OPTIONS: options}).encode(),
        capture_output=True,
        check=False,
        timeout=_TRAINING_SECONDS,
    )
