"""Delta's jars: fetched once from Maven Central by Ivy, checked against pinned hashes, then reused.

The delta-spark wheel has none. Letting Spark resolve them (`spark.jars.packages`) would start Ivy
in every session, print its whole report, and end in a stack trace on a machine that is offline.
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

_FETCH_SECONDS = 300


def pinned_jars() -> dict[str, str]:
    """Reads the SHA-256 of each pinned jar, by file name."""
    lines = files("backfill_assets.spark").joinpath("delta_jars.sha256").read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def jar_paths(folder: Path | None) -> list[Path]:
    """Lists where the jars are, or will be once `ensure_jars` has run.

    A folder of None means the user's cache.
    """
    return [(folder or _cache_folder()) / name for name in pinned_jars()]


def ensure_jars(folder: Path | None) -> None:
    """Makes `jar_paths` exist.

    Raises:
        SparkUnavailableError: if a given folder lacks a jar, or the fetch fails.
    """
    missing = [path for path in jar_paths(folder) if not path.exists()]
    if not missing:
        return
    if folder is not None:
        raise SparkUnavailableError(
            f"BACKFILL_JARS={folder} lacks {', '.join(path.name for path in missing)}: "
            "copy the jars there, or unset it so that they are fetched"
        )
    cache = _cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / ".lock"):
        if any(not path.exists() for path in jar_paths(None)):
            _fetch_into(cache)


def _cache_folder() -> Path:
    return user_cache_path("backfill-assets") / "delta-jars"


def _fetch_into(cache: Path) -> None:
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    resources = files("backfill_assets.spark")
    # Below the cache, so that moving a jar into place is a rename: a killed fetch leaves no half
    # jar.
    with (
        tempfile.TemporaryDirectory(dir=cache) as scratch,
        as_file(resources / "ivysettings.xml") as ivy_settings,
        as_file(resources / "ivy.xml") as ivy_module,
    ):
        command = [
            *(find_java(), "-jar", str(ivy), "-warn", "-types", "jar"),
            *("-settings", str(ivy_settings), "-ivy", str(ivy_module)),
            *("-cache", f"{scratch}/cache", "-retrieve", f"{scratch}/[artifact]-[revision].[ext]"),
        ]
        try:
            subprocess.run(command, capture_output=True, check=True, timeout=_FETCH_SECONDS)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise SparkUnavailableError(
                "the Delta jars are not cached yet and Maven Central can't be reached: "
                "go online once, or set BACKFILL_JARS to a folder that holds "
                f"{', '.join(pinned_jars())}"
            ) from error
        for name, digest in pinned_jars().items():
            jar = Path(scratch, name)
            if hashlib.sha256(jar.read_bytes()).hexdigest() != digest:
                raise SparkUnavailableError(
                    f"the fetched {name} does not have its pinned hash: something on the way from "
                    "Maven Central alters files; set BACKFILL_JARS to a folder of good jars"
                )
            jar.rename(cache / name)
