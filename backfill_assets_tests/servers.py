"""A webserver and a daemon, as `dagster dev` starts them."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from backfill_assets_tests.commands import PROJECT, Project
from backfill_assets_tests.ports import find_free_port

_LOCATIONS = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }"


class Dagster:
    """Webserver and daemon as `dagster dev` starts them, on loopback."""

    def __init__(self, project: Project) -> None:
        self.port = find_free_port()
        environment = project.environment  # makes the project's folder
        self.log = (project.root / "dagster.log").open("w")
        self.process = subprocess.Popen(
            [
                *(str(Path(sys.executable).parent / "dagster"), "dev"),
                *("-w", str(PROJECT / "workspace.yaml"), "-p", str(self.port)),
            ],
            env=environment,
            cwd=project.root,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_heed_interrupts,
        )

    @property
    def address(self) -> str:
        """Of the webserver."""
        return f"http://127.0.0.1:{self.port}"

    def query(self, query: str, variables: dict | None = None) -> dict:
        """Asks the webserver by GraphQL."""
        return ask(self.address, query, variables)

    def wait_until_ready(self) -> None:
        """Waits for the code location to be loaded."""
        wait_for(self._loaded, seconds=120)

    def _loaded(self) -> bool:
        try:
            answer = self.query(_LOCATIONS)
        except OSError:
            return False
        return bool(answer["repositoriesOrError"].get("nodes"))

    def stop(self) -> None:
        """Stops all of it."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=60)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.log.close()


def ask(address: str, query: str, variables: Mapping[str, Any] | None = None) -> dict:
    """Asks a webserver by GraphQL."""
    request = urllib.request.Request(
        f"{address}/graphql",
        data=json.dumps({"query": query, "variables": variables or {}}).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["data"]


def _heed_interrupts() -> None:
    """Undoes what a shell does to what it starts in the background, and all that this starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def serve(project: Project) -> Iterator[Dagster]:
    """Servers of a project, ready to be asked; they end with the block."""
    dagster = Dagster(project)
    try:
        dagster.wait_until_ready()
        yield dagster
    finally:
        dagster.stop()


def wait_for(condition: Callable[[], bool], *, seconds: float) -> None:
    """Raises AssertionError if it isn't met in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(5)
