"""Runs the real command lines, each as a process of its own, on folders of the test."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from backfill_engine.contents.partition_contents import read_back
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.project import CATALOG

PROJECT = Path(__file__).parents[1]
_BIN = Path(sys.executable).parent
QUICK_ENGINE = os.environ.get("BACKFILL_ENGINE", "sail")
"""For drills that aren't about an engine: Sail, unless all tests are told another."""
QUICKLY = (("BACKFILL_ENGINE", QUICK_ENGINE),)
"""Settings of a project that runs on it."""


@dataclass(frozen=True)
class Project:
    """A landing zone, a warehouse and a Dagster home, all below one folder.

    Attributes:
        root: the folder.
        landing: the landing zone, which may be shared with other tests.
        settings: further environment variables.
        dagster_yaml: the text of the home's `dagster.yaml`.
    """

    root: Path
    landing: Path
    settings: tuple[tuple[str, str], ...] = ()
    dagster_yaml: Path = PROJECT / "dagster.yaml"

    def copy(self, root: Path) -> "Project":
        """The same in another folder, with a landing zone of its own."""
        shutil.copytree(self.root, root)
        shutil.copytree(self.landing, root / "landing", dirs_exist_ok=True)
        return replace(self, root=root, landing=root / "landing")

    @property
    def warehouse(self) -> Path:
        """The Delta root."""
        return self.root / "warehouse"

    @property
    def environment(self) -> dict[str, str]:
        """What a process of this project runs with."""
        home = self.root / "dagster_home"
        home.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.dagster_yaml, home / "dagster.yaml")
        shutil.copy(PROJECT / "pyproject.toml", self.root)  # Commands find the definitions by it.
        own = ("BACKFILL_", "SPARK_REMOTE")
        kept = {"BACKFILL_ENGINE"}  # The tests as a whole may be of another engine.
        inherited = {k: v for k, v in os.environ.items() if k in kept or not k.startswith(own)}
        return {
            **inherited,
            "DAGSTER_HOME": str(home),
            "BACKFILL_LANDING": str(self.landing),
            "BACKFILL_WAREHOUSE": str(self.warehouse),
            **dict(self.settings),
        }

    def materialize(
        self, *keys: str, partitions: str, config: Mapping[str, Any] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """`dagster asset materialize --partition-range`; each asset is told `config`."""
        return self.run(*self.materialize_command(*keys, partitions=partitions, config=config))

    def materialize_command(
        self, *keys: str, partitions: str, config: Mapping[str, Any] | None = None
    ) -> list[str]:
        """The command of `materialize`."""
        select = ",".join(f'key:"{key}"' for key in keys)
        ops = {key.replace("/", "__"): {"config": config} for key in keys}
        return [
            *(str(_BIN / "dagster"), "asset", "materialize", "-m", "backfill_assets.definitions"),
            *("--select", select, "--partition-range", partitions),
            *(["--config-json", json.dumps({"ops": ops})] if config else []),
        ]

    def read_checksums(self) -> dict[tuple[str, str], str]:
        """By table and partition, the checksum of what an independent reader finds now."""
        return read_checksums(Warehouse(str(self.warehouse)))

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

    def kill(self, command: Sequence[str], *, when: Callable[[], bool]) -> None:
        """Starts a command, as `materialize_command` gives it; kills it and all it started -9."""
        run = subprocess.Popen(
            command,
            env=self.environment,
            cwd=self.root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 180
        while not when():
            assert run.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        started = psutil.Process(run.pid).children(recursive=True)  # some in sessions of their own
        os.killpg(run.pid, signal.SIGKILL)
        for process in started:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        run.wait()


def confirm(run: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """The same run, which has to have succeeded."""
    assert run.returncode == 0, run.stdout + run.stderr
    return run


def find_program(name: str) -> str:
    """Finds a program of the virtual environment."""
    return str(_BIN / name)


def deploy(target: Path) -> Path:
    """Copies the packages, and what loads them, to where `PYTHONPATH` can point; returns it."""
    for package in ("backfill_assets", "backfill_engine"):
        shutil.copytree(PROJECT / package, target / package)
    for name in ("requirements.lock", "workspace.yaml"):
        shutil.copy(PROJECT / name, target)
    return target


def change_code(deployed: Path) -> None:
    """Deploys code of `raw/flights` that differs from before, but makes the same rows."""
    transform = deployed / "backfill_assets" / "transforms" / "raw_flights.py"
    text = transform.read_text()
    spellings = ("range(3)", "range(1 + 2)", "range(2 + 1)")
    now = next(at for at, spelling in enumerate(spellings) if spelling in text)
    transform.write_text(text.replace(spellings[now], spellings[now + 1]))


def read_checksums(warehouse: Warehouse) -> dict[tuple[str, str], str]:
    """By table and partition, the checksum of what an independent reader finds now."""
    checksums: dict[tuple[str, str], str] = {}
    for table in CATALOG.tables:
        log = read_log(warehouse, table)
        counts = log.count_rows()
        if counts:
            found = read_back(log, build_partitions(table, counts))
            checksums |= {(table.key, key): contents.checksum for key, contents in found.items()}
    return checksums
