"""What the figures were measured on, without its name or paths."""

import importlib.metadata
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

from backfill_engine.spark.java import find_java, parse_java_version

_PACKAGES = ("dagster", "pyspark", "delta-spark", "deltalake", "pyarrow")


@dataclass(frozen=True)
class Machine:
    """Cores, memory in GiB, processor, operating system, and the versions that matter."""

    cores: int
    memory_gib: float
    processor: str
    system: str
    java: int
    python: str
    packages: dict[str, str]


def describe_machine() -> Machine:
    """Looks at this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    banner = subprocess.run([find_java(), "-version"], capture_output=True, text=True, check=True)
    return Machine(
        cores=os.cpu_count() or 1,
        memory_gib=round(memory / 2**30, 1),
        processor=_find_processor(),
        system=f"{platform.system()} {platform.machine()}",
        java=parse_java_version(banner.stderr),
        python=platform.python_version(),
        packages={name: importlib.metadata.version(name) for name in _PACKAGES},
    )


def _find_processor() -> str:
    # `platform.processor()` is empty on most Linux distributions.
    about = Path("/proc/cpuinfo")
    if about.exists():
        for line in about.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown"
