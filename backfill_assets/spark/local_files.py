"""A local file system for Spark that starts no process: compiled once, beside the Delta jars.

Hadoop's own starts three `chmod`s for each data file, which took most of the time of writing small
partitions. A jar of somebody's would do for writing (hadoop-bare-naked-local-fs), but by its own
documentation it doesn't handle symbolic links, which landing zones may have.
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
    """Finds the jar of the compiled classes; `ensure_local_files` makes it."""
    digest = hashlib.sha256(_SOURCE.read_bytes() + pyspark.__version__.encode()).hexdigest()
    return user_cache_path("backfill-assets") / f"local-files-{digest[:12]}.jar"


def ensure_local_files() -> None:
    """Compiles the classes unless they are there, by the Scala compiler that Spark ships.

    Raises:
        SparkUnavailableError: if that fails.
    """
    jar = find_local_files()
    if jar.exists():
        return
    jar.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(jar.with_suffix(".lock")):
        if not jar.exists():
            _compile_into(jar)


def _compile_into(jar: Path) -> None:
    class_path = str(Path(pyspark.__file__).parent / "jars" / "*")
    # Beside its place, so that the jar comes there by a rename, whole.
    with tempfile.TemporaryDirectory(dir=jar.parent) as scratch, as_file(_SOURCE) as source:
        compiled = Path(scratch, jar.name)
        command = [
            *(find_java(), "-cp", class_path, "scala.tools.nsc.Main", "-usejavacp"),
            *("-d", str(compiled), str(source)),
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
        compiled.rename(jar)
