"""A run that a shell started and that takes minutes, of assets that need no Spark."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backfill_engine_tests.commands import PROJECT, Project
from backfill_engine_tests.pipeline.running import RAW


@contextmanager
def materialize_slowly(root: Path) -> Iterator[tuple[Project, subprocess.Popen[bytes]]]:
    """A run over some days that a shell started, which takes minutes; no Spark."""
    project = Project(root, root / "landing", (("SECONDS_A_DAY", "2"),))
    command = [
        *(str(Path(sys.executable).parent / "dagster"), "asset", "materialize"),
        *("-m", "backfill_engine_tests.pipeline.slow_tables", "--select", f'key:"{RAW}"'),
        *("--partition-range", "2013-01-01...2013-03-31"),
    ]
    with (root / "log").open("wb") as log:
        run = subprocess.Popen(
            command, env=project.environment, cwd=PROJECT, stdout=log, stderr=log
        )
        try:
            yield project, run
        finally:
            run.kill()
            run.wait()
