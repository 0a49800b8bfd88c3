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

from backfill_engine.orchestration.instance.own_runs import TAG_PREFIX
from backfill_engine.orchestration.runs.run_tags import (
    RANGE_END_TAG,
    RANGE_START_TAG,
)
from backfill_engine_tests.commands import PROJECT, Project
from backfill_engine_tests.ports import find_free_port

_LOCATIONS = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }"
_RELOAD = """
mutation { reloadRepositoryLocation(repositoryLocationName: "backfill_assets") {
  ... on WorkspaceLocationEntry { loadStatus }
  ... on PythonError { message }
} }
"""
_RUN = """
mutation($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } }
  }
}
"""
_BACKFILL = """
mutation($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""


class Dagster:
    """Webserver and daemon as `dagster dev` starts them, on loopback."""

    def __init__(self, project: Project, workspace: Path = PROJECT / "workspace.yaml") -> None:
        self.port = find_free_port()
        environment = project.environment  # makes the project's folder
        self.log = (project.root / "dagster.log").open("a")
        self.process = subprocess.Popen(
            [
                *(str(Path(sys.executable).parent / "dagster"), "dev"),
                *("-w", str(workspace), "-p", str(self.port)),
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

    def launch_run(self, *keys: str, first: str, last: str) -> str:
        """Runs a range of assets of the flights as the UI does; returns the run's id."""
        ends = {RANGE_START_TAG: first, RANGE_END_TAG: last}
        params = {
            "selector": {
                "repositoryLocationName": "backfill_assets",
                "repositoryName": "__repository__",
                "jobName": "flights",
                "assetSelection": [{"path": key.split("/")} for key in keys],
            },
            "runConfigData": {},
            "executionMetadata": {"tags": [{"key": k, "value": v} for k, v in ends.items()]},
        }
        answer = self.query(_RUN, {"params": params})["launchRun"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return answer["run"]["runId"]

    def launch_backfill(self, *keys: str, first: str, last: str, **tags: str) -> str:
        """Asks for a backfill as the UI does, past what `launch` checks; returns its id."""
        days = {"ranges": [{"start": first, "end": last}]}
        params = {
            "partitionsByAssets": [
                {"assetKey": {"path": key.split("/")}, "partitions": days} for key in keys
            ],
            "tags": [{"key": f"{TAG_PREFIX}{k}", "value": v} for k, v in tags.items()],
        }
        answer = self.query(_BACKFILL, {"params": params})["launchPartitionBackfill"]
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        return answer["backfillId"]

    def reload(self) -> None:
        """Loads the code location anew, as the UI does: after a deploy, or if its server is gone.

        In that case the first time starts a server, and the next one finds it.
        """
        wait_for(self._reload, seconds=300)

    def _reload(self) -> bool:
        answer = self.query(_RELOAD)["reloadRepositoryLocation"]
        assert "loadStatus" in answer, answer
        return self._loaded()

    def wait_until_ready(self) -> None:
        """Waits for the code location to be loaded."""
        wait_for(self._loaded, seconds=300)

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
def serve(project: Project, workspace: Path = PROJECT / "workspace.yaml") -> Iterator[Dagster]:
    """Servers of a project, ready to be asked; they end with the block."""
    dagster = Dagster(project, workspace)
    try:
        dagster.wait_until_ready()
        yield dagster
    finally:
        dagster.stop()


def wait_for(condition: Callable[[], bool], *, seconds: float, look_every: float = 5) -> None:
    """Raises AssertionError if it isn't met in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(look_every)
