"""The next run recovers from range runs that were killed with -9."""

from collections import Counter

import pytest

from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.commands import Project, confirm
from backfill_engine_tests.landing_zones import copy_days
from backfill_engine_tests.project import STAGING_FLIGHTS

pytestmark = pytest.mark.slow

TABLES = ("raw/flights", "staging/flights", "features/carrier_delays")
RANGE = "2013-01-01...2013-01-06"


@pytest.fixture(scope="module")
def landing(sample_landing, tmp_path_factory):
    return copy_days(
        sample_landing, tmp_path_factory.mktemp("landing"), first="2013-01-01", count=8
    )


@pytest.fixture(scope="module")
def undisturbed(landing, tmp_path_factory):
    """A run that nobody kills gives the expected checksums."""
    project = Project(tmp_path_factory.mktemp("undisturbed"), landing)
    confirm(project.materialize(*TABLES, partitions=RANGE))
    return project.read_checksums()


def kill_when(project, condition, *, tables=TABLES, config=None):
    """Starts a range run, in chunks of two partitions, and kills it -9 as soon as `condition()`."""
    command = project.materialize_command(*tables, partitions=RANGE, config=config)
    project.kill(command, when=condition)


def data_files(project, table):
    return list((project.warehouse / table).glob("*/*.parquet"))


def has_version(project, table, version):
    return (project.warehouse / table / f"_delta_log/{version:020}.json").exists()


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(
            lambda file: data_files(file, "raw/flights"),
            id="while files are written",
            marks=pytest.mark.by_hand,
        ),
        pytest.param(
            lambda project: has_version(project, "staging/flights", 2), id="between two chunks"
        ),
    ],
)
def test_a_run_after_a_killed_one_ends_as_if_nothing_had_happened(
    landing, undisturbed, tmp_path, moment
):
    project = Project(tmp_path, landing, (("BACKFILL_CHUNK_PARTITIONS", "2"),))
    kill_when(project, lambda: moment(project))
    published = project.read_checksums()
    assert published.items() <= undisturbed.items(), "something half-done can be read"

    run = confirm(project.materialize(*TABLES, partitions=RANGE))
    assert "was dead and is marked failed" in run.stderr
    assert project.read_checksums() == undisturbed


@pytest.mark.by_hand
@pytest.mark.parametrize("mode", ["merge", "append_once"])
def test_a_killed_merge_or_append_ends_as_if_nothing_had_happened(
    landing, undisturbed, tmp_path, mode
):
    project = Project(tmp_path, landing, (("BACKFILL_CHUNK_PARTITIONS", "2"),))
    confirm(project.materialize("raw/flights", partitions=RANGE))
    staging, config = ("staging/flights",), {"write_mode": mode}
    kill_when(project, lambda: has_version(project, *staging, 2), tables=staging, config=config)
    run = confirm(project.materialize(*staging, partitions=RANGE, config=config))
    found = {key: check for key, check in project.read_checksums().items() if key[0] == staging[0]}
    assert found == {key: checksum for key, checksum in undisturbed.items() if key[0] == staging[0]}
    log = Warehouse(str(project.warehouse))
    records = [commit.record for commit in read_log(log, STAGING_FLIGHTS).commits if commit.record]
    written = Counter(key for record in records for key in record.rows)
    if mode == "append_once":
        assert set(written.values()) == {1}, "no day was appended twice"
        assert "hold this batch already: nothing was written there" in run.stderr
