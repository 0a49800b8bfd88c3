"""Rehearsals, repairs, rollbacks, promotions and retirements killed with -9.

What is published is wholly old or new, and the command finishes when it is run again.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.commands import Project, confirm, find_program
from backfill_engine_tests.landing_zones import copy_days, rewrite_records
from backfill_engine_tests.pipeline.commanding import command as run_well
from backfill_engine_tests.project import CARRIER_DELAYS, CARRIER_DELAYS_V2, SERVED_CARRIER_DELAYS

pytestmark = [pytest.mark.slow, pytest.mark.by_hand, pytest.mark.timeout(1800)]

V1, V2, SERVED = CARRIER_DELAYS.key, CARRIER_DELAYS_V2.key, SERVED_CARRIER_DELAYS.key
RAW, STAGING = "raw/flights", "staging/flights"
FIRST, LAST = "2013-01-01", "2013-01-06"
MENDED = "2013-01-04"
REHEARSE = ("rehearse", "--select", f"{RAW},{STAGING},{V1}", "--from", MENDED, "--to", MENDED)
PROMOTE = ("version", "promote", "carrier_delays", "v2", "--accept", "by design", "--yes")


@pytest.fixture(scope="module")
def served(sample_landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Six days of both versions, v1 served. For copying."""
    root = tmp_path_factory.mktemp("served")
    landing = copy_days(sample_landing, root / "landing", first=FIRST, count=8)
    project = Project(root, landing)
    for keys in ((RAW,), (STAGING, V1, V2, SERVED)):
        confirm(project.materialize(*keys, partitions=f"{FIRST}...{LAST}"))
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


def has_scratch(project: Project, table: str) -> bool:
    return any(project.warehouse.glob(f"rehearsals/*/tables/{table}/*/*.parquet"))


def count_files(project: Project, table: str) -> int:
    return len(list((project.warehouse / table).glob("*/*.parquet")))


def find_version(project: Project, table: str) -> int:
    return len(list((project.warehouse / table / "_delta_log").glob("*.json"))) - 1


def name_moment(project: Project, moment: str, table: str) -> Callable[[], bool]:
    files, version = count_files(project, table), find_version(project, table)
    return {
        "while it is rehearsed": lambda: has_scratch(project, table),
        "while files are written": lambda: count_files(project, table) > files,
        "once it is committed": lambda: find_version(project, table) > version,
    }[moment]


def kill(project: Project, *command: str, when: Callable[[], bool]) -> None:
    project.kill([find_program("backfill-assets"), *command], when=when)


@pytest.mark.parametrize(
    "moment", ["while it is rehearsed", "while files are written", "once it is committed"]
)
def test_a_killed_promotion_has_switched_or_not_and_the_command_finishes(
    project: Project, moment: str
) -> None:
    before = read_versions(project)
    kill(project, *PROMOTE, when=name_moment(project, moment, SERVED))
    killed = read_versions(project)
    assert killed[SERVED] in (before[V1], before[V2])
    assert {key: killed[key] for key in (V1, V2)} == {key: before[key] for key in (V1, V2)}

    run_well(project, *PROMOTE)
    assert read_versions(project)[SERVED] == before[V2]
    run_well(project, "rollback", SERVED, "--yes")
    assert read_versions(project)[SERVED] == before[V1]


@pytest.fixture
def mended(project: Project) -> Project:
    """The same, and one day that landed again with fewer flights."""
    rewrite_records(project.landing, MENDED, lambda flights: flights[: len(flights) * 9 // 10])
    return project


def rehearse(project: Project) -> str:
    """Rehearses the day over three layers; returns the rehearsal's id."""
    return json.loads(run_well(project, *REHEARSE, "--json"))["rehearsal_id"]


def test_a_killed_rehearsal_has_touched_nothing_and_the_command_finishes(mended: Project) -> None:
    before = read_versions(mended)
    listing = ("status", "--from", FIRST, "--to", LAST, "--json")
    status = run_well(mended, *listing)
    kill(mended, *REHEARSE, when=lambda: has_scratch(mended, STAGING))
    assert read_versions(mended) == before
    assert run_well(mended, *listing) == status
    rehearse(mended)
    assert read_versions(mended) == before


def test_a_killed_repair_is_old_or_new_in_each_partition_and_the_command_finishes(
    mended: Project,
) -> None:
    before, rehearsal = read_versions(mended), rehearse(mended)
    version = find_version(mended, STAGING)
    command = ("apply", rehearsal, "--yes")
    kill(mended, *command, when=name_moment(mended, "once it is committed", STAGING))
    killed = read_versions(mended)
    run_well(mended, *command)
    after = read_versions(mended)
    changed = {
        (table, key)
        for table, partitions in before.items()
        for key, checksum in partitions.items()
        if after[table][key] != checksum
    }
    assert changed == {(table, MENDED) for table in (RAW, STAGING, V1)}
    for table, partitions in killed.items():
        for key, checksum in partitions.items():
            assert checksum in (before[table][key], after[table][key])
    assert killed[RAW] == after[RAW], "it was killed before anything was published"
    assert find_version(mended, STAGING) == version + 1, "what was published stands"


@pytest.mark.parametrize("moment", ["while files are written", "once it is committed"])
def test_a_killed_rollback_is_old_or_new_and_the_command_finishes(
    mended: Project, moment: str
) -> None:
    before, version = read_versions(mended), find_version(mended, RAW)
    confirm(mended.materialize(RAW, partitions=f"{MENDED}...{LAST}"))
    after = read_versions(mended)
    assert after[RAW] != before[RAW]
    days = ("--from", MENDED, "--to", LAST)
    command = ("rollback", RAW, *days, "--to-version", str(version), "--yes")
    kill(mended, *command, when=name_moment(mended, moment, RAW))
    assert read_versions(mended)[RAW] in (before[RAW], after[RAW])
    run_well(mended, *command)
    assert read_versions(mended) == before


def test_a_killed_retirement_finishes(project: Project) -> None:
    before, version = read_versions(project), find_version(project, V2)
    command = ("version", "retire", "carrier_delays", "v2", "--reason", "worse", "--yes")
    protections = project.warehouse / "protections" / "_delta_log"
    kill(project, *command, when=protections.exists)
    assert find_version(project, V2) == version
    run_well(project, *command)
    log = read_log(Warehouse(str(project.warehouse)), CARRIER_DELAYS_V2)
    assert not any(log.count_rows().values())
    assert read_versions(project)[SERVED] == before[V1]
