"""Fixtures that need something real and dear: one Spark session, and a warehouse per test."""

import datetime as dt
import functools
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from alembic.script import ScriptDirectory
from dagster import DagsterInstance
from pyspark.sql import SparkSession
from sqlalchemy import event
from sqlalchemy.engine import Engine

from backfill_assets.samples.flights import land_flights
from backfill_assets.samples.weather import land_weather
from backfill_engine.lake.partitions import Partition, Slice
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import create_table
from backfill_engine.spark.sail import start_sail
from backfill_engine.spark.session import build_spark_conf, check_prerequisites
from backfill_engine_tests.commands import Project
from backfill_engine_tests.lake.readings import READINGS
from backfill_engine_tests.landing_zones import copy_days
from backfill_engine_tests.object_store import ObjectStore, serve_object_store
from backfill_engine_tests.pipeline.alerting import Home, open_home
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.publishing import Lake
from backfill_engine_tests.pipeline.running import (
    RAW,
    STAGING,
    Pipeline,
    copy_pipeline,
    list_days,
    open_pipeline,
)
from backfill_engine_tests.project import CATALOG

# How long an example takes says more about the machine's other work than about the code.
hypothesis.settings.register_profile("no_deadline", deadline=None)
hypothesis.settings.load_profile("no_deadline")


# Fixtures that start Spark, and what a module imports to run commands, which start their own.
_STARTERS = frozenset({"spark", "january", "Project", "run_page"})

# Rooms that see of an engine what is published, and no frame, as the tests beside the rooms do; and
# the samples, whose pipelines the parity drill compares on both engines.
_OUTER_ROOMS = frozenset(
    {"backfill_assets_tests"}
    | {"cli", "deploy", "docs", "extras", "orchestration", "pipeline", "proof"}
)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Marks with `spark` what starts Spark; `make check` runs the others where none can start.

    And with `either_engine` what `make test` runs on Sail alone.

    Of the drills those files come first that have a timeout of their own, as they take longest, and
    then those with the fewest tests. They take as long as others do, and a process that has one or
    two tests left is given its next file: at the end that file would wait there while the other
    process has nothing to do.
    """
    for test in items:
        if isinstance(test, pytest.Function) and (
            _STARTERS & {*test.fixturenames, *vars(test.module)}
        ):
            test.add_marker("spark")
        if test.path.parent.name == "spark":
            test.add_marker("only_spark")
        rooms = test.path.relative_to(config.rootpath).parts[:-1]
        is_outer = len(rooms) == 1 or not _OUTER_ROOMS.isdisjoint(rooms)
        if is_outer and not test.get_closest_marker("only_spark"):
            test.add_marker("either_engine")
    yield
    if not config.getoption("loadscopereorder", default=True):
        tests = Counter(test.path for test in items)
        items.sort(key=lambda test: (not test.get_closest_marker("timeout"), tests[test.path]))


@pytest.fixture(scope="session", autouse=True)
def wide_terminal() -> Iterator[None]:
    """Lets commands print whole lines, which tests look for; xdist says 80 columns."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("COLUMNS", "200")
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_instances() -> Iterator[None]:
    """Opens Dagster's instances of this process five times as fast.

    Their files needn't outlive a power cut, so SQLite waits for no disk. And alembic's scripts are
    read once: Dagster reads them again for each storage that it opens, and for each run.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        scripts = functools.cache(ScriptDirectory.from_config)
        monkeypatch.setattr(ScriptDirectory, "from_config", scripts)
        event.listen(Engine, "connect", _write_without_waiting)
        yield
        event.remove(Engine, "connect", _write_without_waiting)


def _write_without_waiting(connection: Any, _record: object) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark in this process, with the project's own settings; one for all tests."""
    session = start_session({"spark.driver.memory": "1g"})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def sample_landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The year's real flights, landed once; tests copy the days that they change."""
    root = tmp_path_factory.mktemp("sample_landing")
    land_flights(str(root))
    return root


@pytest.fixture(scope="session")
def weather_landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The year's real weather, landed once; tests copy the days that they need."""
    root = tmp_path_factory.mktemp("weather_landing")
    land_weather(str(root))
    return root


@pytest.fixture(scope="session")
def january(sample_landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """January over all layers, as `make backfill` does it. Tests that write copy it."""
    root = tmp_path_factory.mktemp("january")
    landing = copy_days(sample_landing, root / "landing", first="2013-01-01", count=33)
    project = Project(root, landing)
    for run in (
        project.materialize("raw/flights", partitions="2013-01-01...2013-02-02"),
        project.materialize(
            "staging/flights", "features/carrier_delays", partitions="2013-01-01...2013-01-31"
        ),
    ):
        assert run.returncode == 0, run.stdout + run.stderr
    return project


@pytest.fixture(scope="session")
def published_root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Days 1 to 12 of January landed and in raw, 1 to 10 in staging. For copying."""
    root = tmp_path_factory.mktemp("published")
    with open_pipeline(root) as pipeline:
        pipeline.zone.land(list_days(1, 12))
        for key, last in ((RAW, "2013-01-12"), (STAGING, "2013-01-10")):
            run = pipeline.run(key, first="2013-01-01", last=last)
            assert run.success, run.message
    return root


@pytest.fixture
def pipeline(published_root: Path, tmp_path: Path) -> Iterator[Pipeline]:
    """A copy of the published days, for the test to go on from."""
    with copy_pipeline(published_root, tmp_path) as copied:
        yield copied


@pytest.fixture
def empty_pipeline(spark: SparkSession, tmp_path: Path) -> Iterator[Pipeline]:
    """Nothing landed, nothing published."""
    with open_pipeline(tmp_path / "pipeline") as pipeline:
        yield pipeline


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    """A Dagster instance of its own, of which nothing is known yet."""
    home = tmp_path / "home"
    home.mkdir()
    with DagsterInstance.local_temp(str(home)) as instance:
        yield instance


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LandingZone:
    """A Dagster home, a landing zone and a warehouse for commands to find; the landing zone."""
    home = tmp_path / "dagster_home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n", encoding="utf-8")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("BACKFILL_LANDING", str(tmp_path / "landing"))
    monkeypatch.setenv("BACKFILL_WAREHOUSE", str(tmp_path / "warehouse"))
    return LandingZone(tmp_path / "landing")


@pytest.fixture
def commanded_home(installation: LandingZone, tmp_path: Path) -> Iterator[Home]:
    """What runs left in the installation that commands find."""
    with open_home(tmp_path) as other, DagsterInstance.get() as instance:
        yield Home(instance, other.warehouse, other.receiver)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A Dagster home and a warehouse in which runs leave what they leave; no Spark."""
    with open_home(tmp_path) as home:
        yield home


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """An empty warehouse on the local disk."""
    return Warehouse(str(tmp_path / "warehouse"))


@pytest.fixture
def lake(spark: SparkSession, warehouse: Warehouse) -> Lake:
    """A lake whose READINGS hold two rows that say "old" on each of seven days."""
    create_table(spark, read_log(warehouse, READINGS))
    opened = Lake(spark, warehouse)
    opened.overwrite_readings(build_days("2013-01-01", 7), "old")
    return opened


@pytest.fixture(scope="session")
def running_object_store() -> Iterator[ObjectStore]:
    """An S3 store, one for all tests."""
    with serve_object_store() as store:
        yield store


@pytest.fixture
def object_store(
    running_object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ObjectStore]:
    """The S3 store, and the environment by which it is found."""
    for name, value in running_object_store.environment.items():
        monkeypatch.setenv(name, value)
    yield running_object_store
    running_object_store.heed_conditions(heed=True)


def start_session(overrides: Mapping[str, str]) -> SparkSession:
    """A session in this process, of the engine that BACKFILL_ENGINE names."""
    settings = CATALOG.settings
    if settings.engine == "sail":
        return start_sail()
    check_prerequisites(remote=None, jars=settings.jars, s3=settings.s3 is not None)
    builder = SparkSession.builder
    conf = build_spark_conf(remote=None, jars=settings.jars, overrides=overrides, s3=settings.s3)
    for name, value in conf.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def count_jobs(spark: SparkSession) -> int:
    """Counts the Spark jobs that were begun so far, of whichever thread."""
    counted = spark.sparkContext._jsc.sc().dagScheduler().nextJobId()  # type: ignore[union-attr]
    return int(counted)


def build_days(first: str, count: int = 1) -> tuple[Partition, ...]:
    """`count` consecutive daily partitions of a DATE column, from the day `first` (YYYY-MM-DD)."""
    start = dt.date.fromisoformat(first)
    return tuple(_build_day(start + dt.timedelta(days=offset)) for offset in range(count))


def _build_day(day: dt.date) -> Partition:
    return Partition(day.isoformat(), Slice(day, day + dt.timedelta(days=1)))
