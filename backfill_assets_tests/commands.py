"""Runs the real command lines, each as a process of its own, on folders of the test."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[1]
_BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Project:
    """A landing zone, a warehouse and a Dagster home, all below one folder.

    Attributes:
        root: the folder.
        landing: the landing zone, which may be shared with other tests.
        settings: further environment variables.
    """

    root: Path
    landing: Path
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def warehouse(self) -> Path:
        """The Delta root."""
        return self.root / "warehouse"

    @property
    def environment(self) -> dict[str, str]:
        """What a process of this project runs with."""
        home = self.root / "dagster_home"
        home.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / "dagster.yaml", home)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("BACKFILL_")}
        return {
            **inherited,
            "DAGSTER_HOME": str(home),
            "BACKFILL_LANDING": str(self.landing),
            "BACKFILL_WAREHOUSE": str(self.warehouse),
            **dict(self.settings),
        }

    def materialize(self, *keys: str, partitions: str) -> subprocess.CompletedProcess[str]:
        """`dagster asset materialize --partition-range`."""
        select = ",".join(f'key:"{key}"' for key in keys)
        return self.run(
            *("dagster", "asset", "materialize", "-m", "backfill_assets.definitions"),
            *("--select", select, "--partition-range", partitions),
        )

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Any program of the virtual environment; output and errors are captured."""
        return subprocess.run(
            [str(_BIN / program), *arguments],
            env=self.environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
