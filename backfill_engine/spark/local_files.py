"""Local files for Spark without waste: classes in Scala, compiled once, beside the Delta jars.

Hadoop's own starts three `chmod`s for each data file, which took most of the time of writing small
partitions, and twenty processes for each commit of Delta. A jar of somebody's would do for writing
(hadoop-bare-naked-local-fs), but by its own word it doesn't handle symbolic links. And Delta's log
store looks at every file of a log to list the newest few. Beside them is a file of settings, empty,
that Java finds before Hadoop's own.
"""

import hashlib
import os
import subprocess
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from zipfile import ZipFile

import pyspark

from backfill_engine.errors import SparkUnavailableError
from backfill_engine.spark.cache import find_cache, make_once
from backfill_engine.spark.jars import jar_paths, pinned_jars
from backfill_engine.spark.java import find_java

LOCAL_CONF = {
    "spark.hadoop.fs.file.impl": "backfill_assets.ForklessLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "backfill_assets.ForklessLocalFs",
    "spark.delta.logStore.file.impl": "backfill_assets.NamesFirstLogStore",
}

_SOURCES = tuple(
    files("backfill_engine.spark") / name
    for name in ("ForklessLocalFileSystem.scala", "NamesFirstLogStore.scala")
)
_RESOURCE = files("backfill_engine.spark") / "yarn-default.xml"
_COMPILE_SECONDS = 300


def find_local_files() -> Path:
    """Finds the jar of the compiled classes; `ensure_local_files` makes it."""
    digest = hashlib.sha256(pyspark.__version__.encode())
    parts = (source.read_bytes() for source in (*_SOURCES, _RESOURCE))
    for part in (*parts, *map(str.encode, pinned_jars())):
        digest.update(part)
    return find_cache() / f"local-files-{digest.hexdigest()[:12]}.jar"


def ensure_local_files(jars: Path | None) -> None:
    """Compiles the classes unless they are there, by the Scala compiler that Spark ships.

    Args:
        jars: the folder with Delta's jars, which must be there; None means the user's cache.

    Raises:
        SparkUnavailableError: if that fails.
    """
    target = find_local_files()
    make_once([target], lambda folder: _compile_into(folder / target.name, jars))


def _compile_into(jar: Path, jars: Path | None) -> None:
    class_path = [Path(pyspark.__file__).parent / "jars" / "*", *jar_paths(jars)]
    with ExitStack() as opened:
        sources = [opened.enter_context(as_file(source)) for source in _SOURCES]
        command = [
            *(find_java(), "-cp", os.pathsep.join(map(str, class_path))),
            *("scala.tools.nsc.Main", "-usejavacp", "-d", str(jar), *map(str, sources)),
        ]
        try:
            subprocess.run(
                command, capture_output=True, check=True, text=True, timeout=_COMPILE_SECONDS
            )
        except subprocess.TimeoutExpired as error:
            raise SparkUnavailableError(
                f"the compiler that PySpark ships took over {_COMPILE_SECONDS} s for the local "
                "file system: try again when this machine has less to do"
            ) from error
        except subprocess.CalledProcessError as error:
            said = (error.stdout or error.stderr).strip().splitlines()
            raise SparkUnavailableError(
                "the compiler that PySpark ships can't compile the local file system "
                f"({said[0] if said else error}): reinstall pyspark {pyspark.__version__}"
            ) from error
    with ZipFile(jar, "a") as archive:
        archive.writestr(_RESOURCE.name, _RESOURCE.read_bytes())
