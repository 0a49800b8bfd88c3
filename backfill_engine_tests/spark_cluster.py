"""A standalone cluster and a Spark Connect server on loopback, from the pyspark wheel alone.

A master, workers of one core each, and a Connect server whose executors they start. What a drill
kills, it kills by number of process.
"""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

from backfill_engine.spark.jars import jar_paths
from backfill_engine.spark.session import check_prerequisites
from backfill_engine_tests.ports import find_free_port
from backfill_engine_tests.project import CATALOG

HOST = "127.0.0.1"
SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_SUBMIT = "org.apache.spark.deploy.SparkSubmit"
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
_EXECUTOR = "CoarseGrainedExecutorBackend"
# SPARK_REMOTE would turn Connect into a client; SPARK_DAEMON_MEMORY is for masters and workers.
_LEFT_OUT = re.compile(r"SPARK_(REMOTE|DAEMON_MEMORY)|BACKFILL_.*|MASTER")
_START_SECONDS = 90


@dataclass
class SparkCluster:
    """What runs on this machine.

    Attributes:
        folder: of logs, and of what executors write while they work.
        master_port: that workers and drivers reach.
        connect_port: that clients reach.
        workers: by name.
        connect: the Connect server.
    """

    folder: Path
    master_port: int = field(default_factory=find_free_port)
    connect_port: int = field(default_factory=find_free_port)
    master: subprocess.Popen[bytes] | None = None
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    connect: subprocess.Popen[bytes] | None = None

    @property
    def master_url(self) -> str:
        """What `spark.master` is set to."""
        return f"spark://{HOST}:{self.master_port}"

    @property
    def connect_url(self) -> str:
        """What `SPARK_REMOTE` is set to."""
        return f"sc://{HOST}:{self.connect_port}"

    def start(self, *, workers: int = 2) -> None:
        """Starts all of it, and returns when the Connect server listens."""
        self.start_master()
        for number in range(1, workers + 1):
            self.start_worker(f"worker-{number}")
        self.start_connect()

    def start_master(self) -> None:
        """Starts the master, and waits for it."""
        places = ("--host", HOST, "--port", str(self.master_port), "--webui-port", "0")
        self.master = self._start("master", _MASTER, *places)
        self._wait_for_port(self.master_port, self.master, "master")

    def start_worker(self, name: str) -> None:
        """Starts a worker of a core and a gigabyte; it finds the master by itself."""
        self.workers[name] = self._start(
            name,
            _WORKER,
            *("--host", HOST, "--webui-port", "0", "--cores", "1", "--memory", "1g"),
            *("--work-dir", str(self.folder / name), self.master_url),
        )

    def start_connect(self) -> None:
        """Starts a Connect server whose executors the workers are to start, and waits for it."""
        conf = {
            "spark.master": self.master_url,
            "spark.driver.host": HOST,
            "spark.executor.memory": "768m",
        }
        words = describe_connect(self.connect_port, self.folder / "catalog", conf)
        self.connect = self._start("connect", *words)
        self._wait_for_port(self.connect_port, self.connect, "connect")

    def find_executors(self, worker: str | None = None) -> list[psutil.Process]:
        """Finds the running executors of all workers, or of a single worker."""
        parents = [self.workers[worker]] if worker else list(self.workers.values())
        found: list[psutil.Process] = []
        for parent in parents:
            try:
                children = psutil.Process(parent.pid).children(recursive=True)
                found += [child for child in children if _EXECUTOR in " ".join(child.cmdline())]
            except psutil.NoSuchProcess:
                continue  # ended while it was looked at
        return found

    def count_shuffle_files(self) -> int:
        """Counts what the executors at work have written for each other."""
        return len(list((self.folder / "scratch").rglob("shuffle_*.data")))

    def kill_worker(self, name: str) -> None:
        """Kills a worker -9. Its executor ends by itself, when it misses it."""
        _kill(self.workers.pop(name))

    def kill_connect(self) -> None:
        """Kills the Connect server -9, and with it the driver of all that it runs."""
        assert self.connect is not None
        _kill(self.connect)

    def stop(self) -> None:
        """Ends all that was started, and returns when it has ended."""
        for process in (self.connect, *self.workers.values(), self.master):
            if process is not None and process.poll() is None:
                process.terminate()
        for process in (self.connect, *self.workers.values(), self.master):
            if process is not None:
                try:
                    process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    _kill(process)

    def _start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [SPARK_CLASS, *words],
                env=self._build_environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _build_environment(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not _LEFT_OUT.fullmatch(name)}
        return {**kept, "SPARK_LOCAL_DIRS": str(self.folder / "scratch"), "SPARK_LOCAL_IP": HOST}

    def _wait_for_port(self, port: int, process: subprocess.Popen[bytes], name: str) -> None:
        if not listens(port, process, seconds=_START_SECONDS):
            log = (self.folder / f"{name}.log").read_text()[-2000:]
            raise AssertionError(f"{name} does not listen on port {port}: {log}")


def describe_connect(port: int, catalog: Path, others: Mapping[str, str]) -> list[str]:
    """Words that make `spark-class` a Connect server, with other settings beside its own."""
    conf = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(catalog),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        **others,
    }
    return [
        *(_SUBMIT, "--class", _CONNECT),
        *("--jars", ",".join(map(str, jar_paths(CATALOG.settings.jars)))),
        *(word for name, value in conf.items() for word in ("--conf", f"{name}={value}")),
    ]


def listens(port: int, process: subprocess.Popen[bytes], *, seconds: float) -> bool:
    """Whether a process listens in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return True
    return False


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=20)


@contextmanager
def serve_spark_cluster(folder: Path, *, workers: int = 2) -> Iterator[SparkCluster]:
    """A cluster that ends with the block."""
    check_prerequisites(remote=None, jars=CATALOG.settings.jars)
    folder.mkdir(parents=True, exist_ok=True)
    cluster = SparkCluster(folder)
    try:
        cluster.start(workers=workers)
        yield cluster
    finally:
        cluster.stop()


def list_processes(cluster: SparkCluster) -> Sequence[str]:
    """Describes what runs, a line each."""
    servers = {"master": cluster.master, **cluster.workers, "Connect server": cluster.connect}
    lines = [
        f"{name}: process {server.pid}" for name, server in servers.items() if server is not None
    ]
    executors = ", ".join(str(executor.pid) for executor in cluster.find_executors())
    return [*lines, f"executors: {executors or 'none yet'}"]
