"""The server of `deploy/`: its files fit together, and its commands work as they stand there.

Without containers: each service's command runs as a process of this machine, in the folders and on
the ports of the test. What the image has in it is not tested.
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster import DagsterInstance
from dagster._core.workspace.load import location_origins_from_yaml_paths

from backfill_engine.orchestration.instance.dagster_internals import InstanceRef
from backfill_engine.orchestration.instance.postgres_event_batches import (
    BatchingPostgresEventLogStorage,
)
from backfill_engine.orchestration.runs.claims import ClaimingInstance
from backfill_engine.spark.jars import jar_paths
from backfill_engine_tests.commands import PROJECT, Project
from backfill_engine_tests.landing_zones import copy_days
from backfill_engine_tests.orchestration.instance.event_storages import DEFS, TAGS
from backfill_engine_tests.ports import find_free_port
from backfill_engine_tests.postgres import Postgres, serve_postgres
from backfill_engine_tests.project import CATALOG
from backfill_engine_tests.servers import ask, wait_for

DEPLOY = PROJECT / "deploy"
LAUNCH = """
mutation($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) { __typename }
}
"""


def read_services() -> dict[str, dict[str, Any]]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with serve_postgres() as server:
        yield server


def test_the_home_stores_batches_in_postgres(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", postgres.create_database())
    ref = InstanceRef.from_dir(str(tmp_path), config_dir=str(DEPLOY))
    with DagsterInstance.from_ref(ref) as instance:
        assert isinstance(instance, ClaimingInstance)
        assert isinstance(instance.event_log_storage, BatchingPostgresEventLogStorage)
        assert instance.stores_batches
        assert instance.run_monitoring_enabled
        job = DEFS.resolve_implicit_global_asset_job_def()
        run = instance.create_run_for_job(job, tags=TAGS)
        assert len(instance.all_logs(run.run_id)) == 10


def test_the_workspace_is_the_code_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODE_SERVER_HOST", "code")
    (origin,) = location_origins_from_yaml_paths([str(DEPLOY / "workspace.yaml")])
    port = read_services()["code"]["command"][-3]
    assert (origin.host, str(origin.port)) == ("code", port)  # pyright: ignore[reportAttributeAccessIssue]


def test_what_services_are_told_of_is_there() -> None:
    services = read_services()
    image = (DEPLOY / "Containerfile").read_text()
    environment = services["webserver"]["environment"]
    assert {environment["CODE_SERVER_HOST"], "database", "spark"} <= services.keys()
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= services.keys(), name
    copied = re.findall(r"^COPY (.+) \S+$", image, flags=re.MULTILINE)
    assert [path for line in copied for path in line.split() if not (PROJECT / path).exists()] == []
    settings = {*re.findall(r"BACKFILL_[A-Z_]+", image)}
    assert {name.removeprefix("BACKFILL_").lower() for name in settings} <= {
        *type(CATALOG.settings).model_fields
    }


@dataclass(frozen=True)
class Server:
    """Runs the services as processes of this machine."""

    project: Project
    ports: Mapping[str, int]

    def describe_environment(self, service: str) -> dict[str, str]:
        """Returns the environment of a service, with the places of this machine."""
        (jars,) = {path.parent for path in jar_paths(CATALOG.settings.jars)}
        bin_folder = Path(sys.executable).parent
        inherited = self.project.environment
        places = {
            "BACKFILL_ALERT_URL": "",
            "CODE_SERVER_HOST": "127.0.0.1",
            "DAGSTER_POSTGRES_URL": inherited.pop("DAGSTER_POSTGRES_URL"),
            "SPARK_REMOTE": f"sc://127.0.0.1:{self.ports['spark']}",
        }
        return {
            **inherited,
            "PATH": f"{bin_folder}:{inherited['PATH']}",
            "BACKFILL_JARS": str(jars),
            **{name: places[name] for name in read_services()[service]["environment"]},
        }

    @contextmanager
    def run(self, service: str) -> Iterator[None]:
        """Returns the command of a service, with the ports of this machine."""
        command = [self._translate(word) for word in read_services()[service]["command"]]
        log = (self.project.root / f"{service}.log").open("w")
        with subprocess.Popen(
            command,
            env=self.describe_environment(service),
            cwd=self.project.root,
            stdout=log,
            stderr=subprocess.STDOUT,
        ) as process:
            try:
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=60)
                log.close()

    def _translate(self, word: str) -> str:
        own = {"15002": "spark", "4000": "code", "3000": "webserver"}
        for number, service in own.items():
            word = re.sub(rf"\b{number}\b", str(self.ports[service]), word)
        word = word.replace(
            "/opt/dagster/workspace.yaml", str(self.project.root / "workspace.yaml")
        )
        return word.replace("$$", "$").replace("driver.memory=4g", "driver.memory=1g")

    def query(self, text: str, variables: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Asks the webserver."""
        return ask(f"http://127.0.0.1:{self.ports['webserver']}", text, variables)

    def is_ready(self) -> bool:
        """Says whether the webserver has the code server's assets."""
        try:
            return bool(self.query("{ assetNodes { id } }")["assetNodes"])
        except OSError:
            return False


@pytest.mark.slow
@pytest.mark.by_hand
@pytest.mark.only_spark
def test_a_backfill_goes_through_all_services(
    postgres: Postgres, sample_landing: Path, tmp_path: Path
) -> None:
    landing = copy_days(sample_landing, tmp_path / "landing", first="2013-01-01", count=3)
    settings = (("DAGSTER_POSTGRES_URL", postgres.create_database()),)
    project = Project(tmp_path / "server", landing, settings, DEPLOY / "dagster.yaml")
    server = Server(
        project, {name: find_free_port() for name in ("spark", "code", "webserver", "daemon")}
    )
    project.root.mkdir()
    workspace = (DEPLOY / "workspace.yaml").read_text().replace("4000", str(server.ports["code"]))
    (project.root / "workspace.yaml").write_text(workspace)
    days = {"ranges": [{"start": "2013-01-01", "end": "2013-01-02"}]}
    target = [{"assetKey": {"path": ["raw", "flights"]}, "partitions": days}]
    with ExitStack() as services:
        for name in ("spark", "code", "daemon", "webserver"):
            services.enter_context(server.run(name))
        wait_for(server.is_ready, seconds=120)
        answer = server.query(LAUNCH, {"params": {"partitionsByAssets": target}})
        assert answer["launchPartitionBackfill"]["__typename"] == "LaunchBackfillSuccess"
        wait_for(lambda: len(project.read_checksums()) == 2, seconds=200)
        wait_for(lambda: read_statuses(project) == ["materialized"] * 2, seconds=60)


def read_statuses(project: Project) -> list[str]:
    days = ("--from", "2013-01-01", "--to", "2013-01-02")
    status = project.run("backfill-assets", "status", "--select", "raw/flights", *days, "--json")
    assert status.returncode == 0, status.stderr
    return [partition["status"] for partition in json.loads(status.stdout)]
