"""Promotions and retirements killed with -9: what is served is whole, and the command finishes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backfill_assets.lake.table_log import read_log
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.tables.flights import CARRIER_DELAYS, CARRIER_DELAYS_V2
from backfill_assets.tables.serving import SERVED_CARRIER_DELAYS
from backfill_assets_tests.commands import Project, find_program
from backfill_assets_tests.landing_zones import copy_days

pytestmark = [pytest.mark.slow, pytest.mark.by_hand, pytest.mark.timeout(1800)]

V1, V2, SERVED = CARRIER_DELAYS.key, CARRIER_DELAYS_V2.key, SERVED_CARRIER_DELAYS.key
FIRST, LAST = "2013-01-01", "2013-01-06"
PROMOTE = ("promote", "carrier_delays", "v2", "--accept", "by design")


@pytest.fixture(scope="module")
def served(sample_landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Six days of both versions, v1 served. For copying."""
    root = tmp_path_factory.mktemp("served")
    landing = copy_days(sample_landing, root / "landing", first=FIRST, count=8)
    project = Project(root, landing)
    for keys in (("raw/flights",), ("staging/flights", V1, V2, SERVED)):
        run = project.materialize(*keys, partitions=f"{FIRST}...{LAST}")
        assert run.returncode == 0, run.stdout + run.stderr
    return project


@pytest.fixture
def project(served: Project, tmp_path: Path) -> Iterator[Project]:
    yield served.copy(tmp_path / "project")


def read_versions(project: Project) -> dict[str, dict[str, str]]:
    """By table, the checksum of each partition."""
    found: dict[str, dict[str, str]] = {}
    for (table, key), checksum in project.read_checksums().items():
        found.setdefault(table, {})[key] = checksum
    return found


def has_scratch(project: Project) -> bool:
    return any(project.warehouse.glob("rehearsals/*/tables/serving/carrier_delays/*/*.parquet"))


def count_files(project: Project) -> int:
    return len(list((project.warehouse / SERVED).glob("*/*.parquet")))


def find_version(project: Project, table: str) -> int:
    return len(list((project.warehouse / table / "_delta_log").glob("*.json"))) - 1


def name_moment(project: Project, moment: str) -> Callable[[], bool]:
    files, version = count_files(project), find_version(project, SERVED)
    return {
        "while it is rehearsed": lambda: has_scratch(project),
        "while files are written": lambda: count_files(project) > files,
        "once it is committed": lambda: find_version(project, SERVED) > version,
    }[moment]


@pytest.mark.parametrize(
    "moment", ["while it is rehearsed", "while files are written", "once it is committed"]
)
def test_a_killed_promotion_has_switched_or_not_and_the_command_finishes(
    project: Project, moment: str
) -> None:
    before = read_versions(project)
    command = [find_program("backfill-assets"), *PROMOTE]
    project.kill(command, when=name_moment(project, moment))
    killed = read_versions(project)
    assert killed[SERVED] in (before[V1], before[V2])
    assert {key: killed[key] for key in (V1, V2)} == {key: before[key] for key in (V1, V2)}

    again = project.run("backfill-assets", *PROMOTE)
    assert again.returncode == 0, again.stdout + again.stderr
    assert read_versions(project)[SERVED] == before[V2]
    back = project.run("backfill-assets", "rollback", SERVED)
    assert back.returncode == 0, back.stdout + back.stderr
    assert read_versions(project)[SERVED] == before[V1]


def test_a_killed_retirement_finishes(project: Project) -> None:
    before, version = read_versions(project), find_version(project, V2)
    command = ("retire", "carrier_delays", "v2", "--reason", "worse")
    protections = project.warehouse / "protections" / "_delta_log"
    project.kill([find_program("backfill-assets"), *command], when=protections.exists)
    assert find_version(project, V2) == version
    again = project.run("backfill-assets", *command)
    assert again.returncode == 0, again.stdout + again.stderr
    log = read_log(Warehouse(str(project.warehouse)), CARRIER_DELAYS_V2)
    assert not any(log.count_rows().values())
    assert read_versions(project)[SERVED] == before[V1]
