"""The jars that Spark lacks: fetched once from Maven Central by Ivy, then reused.

Delta's, and for landing zones and tables on S3 Hadoop's client of it. They are checked against
pinned hashes. The delta-spark wheel has none, and letting Spark resolve them
(`spark.jars.packages`) would start Ivy in every session, print its whole report, and end in a stack
trace on a machine that is offline.

Beside the Delta jars are classes in Scala for local files, compiled once. Hadoop's own file system
starts three `chmod`s for each data file, which took most of the time of writing small partitions,
and twenty processes for each commit of Delta. A jar of somebody's would do for writing
(hadoop-bare-naked-local-fs), but by its own word it doesn't handle symbolic links. And Delta's log
store looks at every file of a log to list the newest few. Beside them is a file of settings, empty,
that Java finds before Hadoop's own.
"""

import hashlib
import os
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from zipfile import ZipFile, is_zipfile

import pyspark

from backfill_engine.errors import SparkUnavailableError
from backfill_engine.spark.cache import find_cache, make_once
from backfill_engine.spark.java import find_java

_FETCH_SECONDS = 1800  # AWS's SDK is one jar of 686 MB


@dataclass(frozen=True)
class JarSet:
    """Jars that are fetched together.

    Attributes:
        name: of the file of their hashes, and of their folder in the cache.
        title: in messages.
        configuration: of `ivy.xml`.
    """

    name: str
    title: str
    configuration: str

    def read_hashes(self) -> dict[str, str]:
        """Reads the SHA-256 of each jar, by file name."""
        pins = files("backfill_engine.spark").joinpath(f"{self.name}_jars.sha256").read_text()
        return {name: digest for digest, name in (line.split() for line in pins.splitlines())}

    def list_paths(self, folder: Path | None) -> list[Path]:
        """Lists where its jars are in `folder`, or in the user's cache."""
        place = folder or find_cache() / f"{self.name}-jars"
        return [place / name for name in self.read_hashes()]


_DELTA = JarSet("delta", "Delta", "default")
_S3 = JarSet("s3", "S3", "s3")


def pinned_jars(*, s3: bool = False) -> dict[str, str]:
    """Reads the SHA-256 of each pinned jar, by file name; with those for S3 if `s3`."""
    return {name: digest for jars in _choose(s3=s3) for name, digest in jars.read_hashes().items()}


def jar_paths(folder: Path | None, *, s3: bool = False) -> list[Path]:
    """Lists where the jars are, or will be once `ensure_jars` has run.

    A folder of None means the user's cache.
    """
    return [path for jars in _choose(s3=s3) for path in jars.list_paths(folder)]


def ensure_jars(folder: Path | None, *, s3: bool = False) -> None:
    """Makes `jar_paths` exist.

    Raises:
        SparkUnavailableError: if a given folder lacks a jar or has a broken one, or the fetch
            fails.
    """
    if folder is not None:
        _check_folder(folder, s3=s3)
        return
    for jars in _choose(s3=s3):
        make_once(
            jars.list_paths(None), partial(_fetch_into, jars=jars), digests=jars.read_hashes()
        )


def _check_folder(folder: Path, *, s3: bool) -> None:
    paths = jar_paths(folder, s3=s3)
    missing = [path.name for path in paths if not path.exists()]
    broken = [path.name for path in paths if path.exists() and not is_zipfile(path)]
    for names, fault in ((missing, "lacks"), (broken, "has broken files for")):
        if names:
            raise SparkUnavailableError(
                f"BACKFILL_JARS={folder} {fault} {', '.join(names)}: "
                "copy the jars there, or unset it so that they are fetched"
            )


def _choose(*, s3: bool) -> tuple[JarSet, ...]:
    return (_DELTA, _S3) if s3 else (_DELTA,)


def _fetch_into(folder: Path, *, jars: JarSet) -> None:
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    resources = files("backfill_engine.spark")
    with (
        as_file(resources / "ivysettings.xml") as ivy_settings,
        as_file(resources / "ivy.xml") as ivy_module,
    ):
        command = [
            *(find_java(), "-jar", str(ivy), "-warn", "-types", "jar"),
            *("-settings", str(ivy_settings), "-ivy", str(ivy_module)),
            *("-confs", jars.configuration),
            *("-cache", f"{folder}/cache", "-retrieve", f"{folder}/[artifact]-[revision].[ext]"),
        ]
        hashes = jars.read_hashes()
        try:
            subprocess.run(command, capture_output=True, check=True, timeout=_FETCH_SECONDS)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise SparkUnavailableError(
                f"the {jars.title} jars are not cached yet and Maven Central can't be reached: "
                "go online once, or set BACKFILL_JARS to a folder that holds "
                f"{', '.join(hashes)}"
            ) from error
    for name, digest in hashes.items():
        with (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != digest:
            raise SparkUnavailableError(
                f"the fetched {name} does not have its pinned hash: something on the way from "
                "Maven Central alters files; set BACKFILL_JARS to a folder of good jars"
            )


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
            output = (error.stdout or error.stderr).strip().splitlines()
            raise SparkUnavailableError(
                "the compiler that PySpark ships can't compile the local file system "
                f"({output[0] if output else error}): reinstall pyspark {pyspark.__version__}"
            ) from error
    with ZipFile(jar, "a") as archive:
        archive.writestr(_RESOURCE.name, _RESOURCE.read_bytes())
