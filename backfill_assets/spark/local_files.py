"""A local file system for Spark that starts no process: compiled once, beside the Delta jars.

Hadoop's own starts three `chmod`s for each data file, which took most of the time of writing small
partitions. A jar of somebody's would do for writing (hadoop-bare-naked-local-fs), but by its own
documentation it doesn't handle symbolic links, which landing zones may have.
"""

import hashlib
import subprocess
from importlib.resources import as_file, files
from pathlib import Path

import pyspark

from backfill_assets.errors import SparkUnavailableError
from backfill_assets.spark.cache import find_cache, make_once
from backfill_assets.spark.java import find_java

CLASS_NAME = "backfill_assets.ForklessLocalFileSystem"

_SOURCE = files("backfill_assets.spark") / "ForklessLocalFileSystem.scala"
_COMPILE_SECONDS = 300


def find_local_files() -> Path:
    """Finds the jar of the compiled classes; `ensure_local_files` makes it."""
    digest = hashlib.sha256(_SOURCE.read_bytes() + pyspark.__version__.encode()).hexdigest()
    return find_cache() / f"local-files-{digest[:12]}.jar"


def ensure_local_files() -> None:
    """Compiles the classes unless they are there, by the Scala compiler that Spark ships.

    Raises:
        SparkUnavailableError: if that fails.
    """
    jar = find_local_files()
    make_once([jar], lambda folder: _compile_into(folder / jar.name))


def _compile_into(jar: Path) -> None:
    class_path = str(Path(pyspark.__file__).parent / "jars" / "*")
    with as_file(_SOURCE) as source:
        command = [
            *(find_java(), "-cp", class_path, "scala.tools.nsc.Main", "-usejavacp"),
            *("-d", str(jar), str(source)),
        ]
        try:
            subprocess.run(
                command, capture_output=True, check=True, text=True, timeout=_COMPILE_SECONDS
            )
        except subprocess.TimeoutExpired as error:
            raise SparkUnavailableError(
                f"the compiler that PySpark ships took over {_COMPILE_SECONDS} s for {source}: "
                "try again when this machine has less to do"
            ) from error
        except subprocess.CalledProcessError as error:
            said = (error.stdout or error.stderr).strip().splitlines()
            raise SparkUnavailableError(
                f"the compiler that PySpark ships can't compile {source} "
                f"({said[0] if said else error}): reinstall pyspark {pyspark.__version__}"
            ) from error
