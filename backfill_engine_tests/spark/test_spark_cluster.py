"""Executors, a worker and the Connect server of a standalone cluster, killed -9 under a run."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from backfill_engine.orchestration.runs.run_tags import RANGE_END_TAG, RANGE_START_TAG
from backfill_engine.spark.remotes import SPARK_REMOTE_TAG
from backfill_engine_tests.commands import Project
from backfill_engine_tests.landing_zones import copy_days
from backfill_engine_tests.spark_cluster import SparkCluster, serve_spark_cluster

pytestmark = [pytest.mark.slow, pytest.mark.by_hand]

TABLES = ("raw/flights", "staging/flights", "features/carrier_delays")
FIRST, LAST = "2013-01-01", "2013-01-02"
CHUNKS = ("BACKFILL_CHUNK_PARTITIONS", "1")
LOST = "error: the Spark Connect server "


@pytest.fixture(scope="module")
def landing(sample_landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("landing")
    return copy_days(sample_landing, root, first=FIRST, count=4)


@pytest.fixture(scope="module")
def undisturbed(landing: Path, tmp_path_factory: pytest.TempPathFactory):
    """Checksums of a run with Spark in its process."""
    project = Project(tmp_path_factory.mktemp("undisturbed"), landing)
    run = project.materialize(*TABLES, partitions=f"{FIRST}...{LAST}")
    assert run.returncode == 0, run.stdout + run.stderr
    return project.read_checksums()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with serve_spark_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def project(cluster: SparkCluster, landing: Path, tmp_path: Path) -> Project:
    """A project whose runs go by the cluster, in chunks of a day."""
    return Project(tmp_path, landing, (("SPARK_REMOTE", cluster.connect_url), CHUNKS))


class RunAtWork:
    """A range run in chunks of a day, while the test goes on."""

    def __init__(self, project: Project, log: Path) -> None:
        self.log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(
                project.materialize_command(*TABLES, partitions=f"{FIRST}...{LAST}"),
                env=project.environment,
                cwd=project.root,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Raises AssertionError if the run ends before it is met."""
        deadline = time.monotonic() + 300
        while not condition():
            assert self.process.poll() is None, f"ended too early: {self.read()}"
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def read(self) -> str:
        """What the run said so far."""
        return self.log.read_text()


@contextmanager
def start_run(project: Project) -> Iterator[RunAtWork]:
    run = RunAtWork(project, project.root / "run.log")
    try:
        yield run
        run.process.wait(timeout=180)
    finally:
        run.process.kill()
        run.process.wait()


@contextmanager
def start_audited_run(project: Project, cluster: SparkCluster) -> Iterator[RunAtWork]:
    """A run whose first chunk is being audited."""
    shuffled = cluster.count_shuffle_files()
    with start_run(project) as run:
        run.wait_until(lambda: cluster.count_shuffle_files() > shuffled)
        yield run


def count_files(project: Project, table: str) -> int:
    return len(list((project.warehouse / table).glob("*/*.parquet")))


def test_killed_executors_and_a_killed_worker_cost_nothing_but_time(
    cluster: SparkCluster, project: Project, undisturbed
) -> None:
    with start_audited_run(project, cluster) as run:
        kill_executor(cluster)
        run.wait_until(lambda: count_files(project, TABLES[0]) > 0)
        kill_executor(cluster)  # while its files are written
        run.wait_until(lambda: count_files(project, TABLES[1]) > 0)
        cluster.kill_worker("worker-1")  # while a commit is due
    assert run.process.returncode == 0, run.read()
    cluster.start_worker("worker-1")
    assert project.read_checksums() == undisturbed


def test_a_run_whose_server_is_gone_fails_with_one_line(
    cluster: SparkCluster, project: Project, undisturbed
) -> None:
    with start_audited_run(project, cluster) as run:
        cluster.kill_connect()
        killed = time.monotonic()
    cluster.start_connect()
    assert run.process.returncode != 0
    assert time.monotonic() - killed < 120, "Spark's own patience is ten minutes a call"
    assert "no longer answers" in find_error(run)
    assert project.read_checksums().items() <= undisturbed.items(), "half-done"


def test_the_work_of_a_run_whose_server_started_anew_is_finished_by_the_next(
    cluster: SparkCluster, project: Project, undisturbed
) -> None:
    with start_run(project) as run:
        run.wait_until(lambda: count_files(project, TABLES[1]) > 0)
        cluster.kill_connect()  # while a second table's files are written
        cluster.start_connect()  # at once, as a service manager does it
    assert run.process.returncode != 0
    assert find_error(run)
    published = project.read_checksums()
    assert published, "the first table was published before"
    assert published.items() <= undisturbed.items(), "half-done"

    run = finish_at_tagged_server(project, cluster)
    assert run.returncode == 0, run.stdout + run.stderr
    assert project.read_checksums() == undisturbed


def find_error(run: RunAtWork) -> str:
    """The one line that says that the server was lost."""
    (line,) = (line for line in run.read().splitlines() if line.startswith(LOST))
    return line


def finish_at_tagged_server(
    project: Project, cluster: SparkCluster
) -> subprocess.CompletedProcess[str]:
    """Runs the range where Spark can't be had but by the run's tag."""
    elsewhere = replace(
        project,
        settings=(
            ("SPARK_REMOTE", "sc://127.0.0.1:9"),  # nobody listens there
            ("BACKFILL_SPARK_CONF", '{"spark.master": "local[1]"}'),  # no remote session has one
        ),
    )
    tags = {
        SPARK_REMOTE_TAG: cluster.connect_url,
        RANGE_START_TAG: FIRST,
        RANGE_END_TAG: LAST,
    }
    module = ("-m", "backfill_assets.definitions")
    execute = ("dagster", "job", "execute", *module, "-j", "flights")
    return elsewhere.run(*execute, "--tags", json.dumps(tags))


def kill_executor(cluster: SparkCluster) -> None:
    """Kills one -9; its worker starts another."""
    cluster.find_executors()[0].kill()
