"""A backfill of all layers by a real daemon, with one bad day and nobody who helps."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from backfill_assets_tests.commands import PROJECT, Project
from backfill_assets_tests.landing_zones import copy_days, double_distances, rewrite_records

pytestmark = pytest.mark.slow

TABLES = ("raw/flights", "staging/flights", "features/carrier_delays")
FIFTEEN_DAYS = {"start": "2013-01-01", "end": "2013-01-15"}
LAUNCH = """
mutation($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""


LOCATIONS = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }"


class Dagster:
    """Webserver and daemon as `dagster dev` starts them, on loopback."""

    def __init__(self, project: Project) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
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
        )

    def query(self, query: str, variables: dict | None = None) -> dict:
        """Asks the webserver by GraphQL."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql",
            data=json.dumps({"query": query, "variables": variables or {}}).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["data"]

    def wait_until_ready(self) -> None:
        """Waits for the code location to be loaded."""
        wait_for(self._loaded, seconds=120)

    def _loaded(self) -> bool:
        try:
            answer = self.query(LOCATIONS)
        except OSError:
            return False
        return bool(answer["repositoriesOrError"].get("nodes"))

    def stop(self) -> None:
        """Stops all of it."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=60)
        finally:
            self.process.kill()
            self.log.close()


def wait_for(condition, *, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(1)
    raise AssertionError(f"not within {seconds} s")


def read_status(project, *, first, last):
    run = project.run("backfill-assets", "status", "--from", first, "--to", last, "--json")
    assert run.returncode == 0, run.stderr
    return {(one["table"], one["partition"][-2:]): one["status"] for one in json.loads(run.stdout)}


def test_a_bad_day_holds_back_only_itself_and_the_week_that_needs_it(sample_landing, tmp_path):
    landing = copy_days(sample_landing, tmp_path / "landing", first="2013-01-01", count=17)
    rewrite_records(landing, "2013-01-07", double_distances)
    project = Project(tmp_path / "project", landing)
    dagster = Dagster(project)
    try:
        dagster.wait_until_ready()
        launched = dagster.query(
            LAUNCH,
            {
                "params": {
                    "partitionsByAssets": [
                        {
                            "assetKey": {"path": table.split("/")},
                            "partitions": {"ranges": [FIFTEEN_DAYS]},
                        }
                        for table in TABLES
                    ]
                }
            },
        )["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched

        def features_after_the_bad_week_are_there():
            status = read_status(project, first="2013-01-14", last="2013-01-15")
            return status["features/carrier_delays", "14"] == "materialized"

        wait_for(features_after_the_bad_week_are_there, seconds=300)
        status = read_status(project, first="2013-01-01", last="2013-01-15")
    finally:
        dagster.stop()
    days = [f"{day:02}" for day in range(1, 16)]
    assert [status["raw/flights", day] for day in days] == ["materialized"] * 15
    not_published = {key for key, one in status.items() if one != "materialized"}
    held_back = {("features/carrier_delays", day) for day in days if "07" <= day <= "13"}
    assert not_published == {("staging/flights", "07")} | held_back
