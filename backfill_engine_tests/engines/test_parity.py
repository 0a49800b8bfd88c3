"""The three pipelines publish the same rows by Sail as by Spark; each engine goes on after both."""

from dataclasses import replace
from pathlib import Path

import pytest

from backfill_assets.samples.orders import land_orders
from backfill_engine_tests.commands import Project
from backfill_engine_tests.landing_zones import copy_days

pytestmark = pytest.mark.slow

RUNS = (
    (("raw/flights",), "2013-01-01...2013-01-04"),
    (("staging/flights", "features/carrier_delays"), "2013-01-01...2013-01-03"),
    (("raw/weather",), "2013-01-01-00:00...2013-01-02-23:00"),
    (("staging/weather",), "2013-01-01...2013-01-02"),
    (("raw/orders", "staging/orders", "features/customer_orders"), "0000000...0004000"),
)
ORDER_KEYS = (("BACKFILL_ORDER_KEY_STEP", "1000"), ("BACKFILL_ORDER_KEY_SPACE", "10000"))


@pytest.fixture(scope="module")
def landing(
    sample_landing: Path, weather_landing: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Days of flights and weather, and a few orders."""
    root = tmp_path_factory.mktemp("landing")
    copy_days(sample_landing, root, first="2013-01-01", count=5)
    copy_days(weather_landing, root, first="2013-01-01", count=3, dataset="weather")
    land_orders(str(root), scale=0.001)
    return root


@pytest.fixture(scope="module")
def projects(landing: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Project]:
    """The same runs by each engine, in a warehouse of its own."""
    made: dict[str, Project] = {}
    for engine in ("spark", "sail"):
        settings = (("BACKFILL_ENGINE", engine), *ORDER_KEYS)
        project = Project(tmp_path_factory.mktemp(engine), landing, settings)
        for keys, partitions in RUNS:
            run = project.materialize(*keys, partitions=partitions)
            assert run.returncode == 0, run.stdout + run.stderr
        made[engine] = project
    return made


def test_each_partition_has_the_same_rows(projects: dict[str, Project]) -> None:
    by_spark, by_sail = (projects[engine].read_checksums() for engine in ("spark", "sail"))
    assert by_spark == by_sail
    assert {table for table, _ in by_sail} == {key for keys, _ in RUNS for key in keys}


def test_spark_goes_on_in_the_tables_of_sail(projects: dict[str, Project], tmp_path: Path) -> None:
    before = projects["sail"].read_checksums()
    project = projects["sail"].copy(tmp_path / "both")
    project = replace(project, settings=projects["spark"].settings)
    for keys, partitions in RUNS[:2]:
        run = project.materialize(*keys, partitions=partitions)
        assert run.returncode == 0, run.stdout + run.stderr
    assert project.read_checksums() == before
    days = ("--from", "2013-01-01", "--to", "2013-01-03")
    run = project.run("backfill-assets", "proof", "reconcile", "--select", "raw/flights", *days)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_run_may_name_sail_and_starts_no_java(landing: Path, tmp_path: Path) -> None:
    nowhere = (("JAVA_HOME", "/dev/null"), ("SPARK_HOME", "/dev/null"))
    project = Project(tmp_path, landing, nowhere)
    days = ("--select", "raw/flights", "--from", "2013-01-01", "--to", "2013-01-02", "--yes")
    run = project.run("backfill-assets", "run", *days, "--engine", "sail")
    assert run.returncode == 0, run.stdout + run.stderr
    assert len(project.read_checksums()) == 2
    without = project.run("backfill-assets", "run", *days)
    assert without.returncode == 1
