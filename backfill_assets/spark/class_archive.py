"""An archive of the classes that a session loads, made once; Java maps it and loads none.

Parsing, checking and linking some ten thousand classes took a third of the time from a session's
start to its first table. Java ignores an archive of other classes than those on its class path.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyspark
from filelock import FileLock
from platformdirs import user_cache_path

from backfill_assets.spark.java import locate_java

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_TRAINING_SECONDS = 300


def find_class_archive(class_path: Sequence[Path]) -> Path | None:
    """Finds where the archive for these jars and Spark's own is, or is to be.

    Returns:
        A path that another Java, or other jars, don't share; None where there is no Java.
    """
    java = locate_java()
    if java is None or not Path(java).exists():
        return None
    binary = Path(java).resolve()
    parts = (binary, binary.stat().st_mtime_ns, sys.prefix, pyspark.__version__, *class_path)
    digest = hashlib.sha256(" ".join(map(str, parts)).encode()).hexdigest()
    return user_cache_path("backfill-assets") / f"classes-{digest[:12]}.jsa"


def train_class_archive(archive: Path, conf: Mapping[str, str]) -> None:
    """Makes the archive, unless it is there, of what a session loads that does a bit of all.

    Where that fails, as on a full disk, sessions start as they did without.

    Args:
        archive: where it is to be.
        conf: of the sessions that are to use it.
    """
    if archive.exists():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with (
        FileLock(archive.with_suffix(".lock")),
        # Beside its place, so that the archive comes there by a rename, whole.
        tempfile.TemporaryDirectory(dir=archive.parent) as scratch,
    ):
        if archive.exists():
            return
        made = Path(scratch, archive.name)
        options = f"{conf[JAVA_OPTIONS]} -XX:ArchiveClassesAtExit={made}"
        command = [sys.executable, "-m", "backfill_assets.spark.training", scratch]
        told = json.dumps({**conf, JAVA_OPTIONS: options})
        subprocess.run(
            [*command, told], capture_output=True, check=False, timeout=_TRAINING_SECONDS
        )
        if made.exists():
            made.rename(archive)
