"""A local file system for Spark that starts no process: compiled once, beside the Delta jars.

Hadoop's own starts three `chmod`s for each data file, which took most of the time of writing small
partitions. A jar of somebody's would do for writing (hadoop-bare-naked-local-fs), but it takes
symbolic links for what they point to when it measures a file, and so reads less than there is.
"""

import hashlib
import subprocess
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

import pyspark
from filelock import FileLock
from platformdirs import user_cache_path

from backfill_assets.errors import SparkUnavailableError
from backfill_assets.spark.java import find_java

CLASS_NAME = "backfill_assets.ForklessLocalFileSystem"

_SOURCE = files("backfill_assets.spark") / "ForklessLocalFileSystem.scala"
_COMPILE_SECONDS = 300


def find_local_files() -> Path:
    """Finds the folder of the compiled classes, a class path; `ensure_local_files` fills it."""
    digest = hashlib.sha256(_SOURCE.read_bytes() + pyspark.__version__.encode()).hexdigest()
    return user_cache_path("backfill-assets") / f"local-files-{digest[:12]}"


def ensure_local_files() -> None:
    """Compiles the classes unless they are there, by the Scala compiler that Spark ships.

    Raises:
        SparkUnavailableError: if that fails.
    """
    folder = find_local_files()
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            _compile_into(folder)


def _compile_into(folder: Path) -> None:
    jars = Path(pyspark.__file__).parent / "jars"
    # Beside its place, so that the classes come there by a rename, all of them or none.
    with (
        tempfile.TemporaryDirectory(dir=folder.parent) as scratch,
        as_file(_SOURCE) as source,
    ):
        classes = Path(scratch, "classes")
        classes.mkdir()
        class_path = f"{jars}/*"
        command = [
            *(find_java(), "-cp", class_path, "scala.tools.nsc.Main", "-usejavacp"),
            *("-d", str(classes), str(source)),
        ]
        try:
            subprocess.run(
                command, capture_output=True, check=True, text=True, timeout=_COMPILE_SECONDS
            )
        except subprocess.CalledProcessError as error:
            said = (error.stdout or error.stderr).strip().splitlines()
            raise SparkUnavailableError(
                f"the compiler that PySpark ships can't compile {source} "
                f"({said[0] if said else error}): reinstall pyspark {pyspark.__version__}"
            ) from error
        classes.rename(folder)
