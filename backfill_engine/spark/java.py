"""Finds Java, so that a machine without a usable one gets a sentence instead of a stack trace."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from backfill_engine.errors import SparkUnavailableError

_OLDEST = 17
_CURE = (
    f"install Java {_OLDEST} or newer (Debian: apt-get install openjdk-17-jre-headless) "
    "or point JAVA_HOME at one"
)


def find_java() -> str:
    """Finds the `java` that Spark will start.

    Raises:
        SparkUnavailableError: if there is none, or it is too old for Spark 4.
    """
    java = locate_java()
    if java is None:
        raise SparkUnavailableError(f"no Java found: {_CURE}")
    try:
        banner = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=True
        ).stderr
    except (OSError, subprocess.CalledProcessError) as error:
        raise SparkUnavailableError(f"Java at {java} does not start ({error}): {_CURE}") from error
    version = parse_java_version(banner)
    if version < _OLDEST:
        raise SparkUnavailableError(f"Java at {java} is version {version}: {_CURE}")
    return java


def locate_java() -> str | None:
    """Locates the `java` that Spark will start, whatever it may be; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else shutil.which("java")


def parse_java_version(banner: str) -> int:
    """Parses the feature release from what `java -version` prints.

    It is 17 for "17.0.15", 8 for "1.8.0_392".
    """
    match = re.search(r'version "(?:1\.)?(\d+)', banner)
    if match is None:
        raise SparkUnavailableError(f"`java -version` printed no version: {_CURE}")
    return int(match.group(1))
