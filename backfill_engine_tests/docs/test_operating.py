"""Runs the commands of `docs/operating.md` in a clone."""

from itertools import chain
from pathlib import Path

import pytest

from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.commands import Project
from backfill_engine_tests.pages import run_page
from backfill_engine_tests.project import CARRIER_DELAYS, RAW_FLIGHTS, STAGING_FLIGHTS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outputs(clone: Path) -> list[str]:
    """What each command block printed, in order."""
    return run_page("operating.md", cwd=clone)


def test_each_block_says_what_the_page_promises(outputs: list[str]) -> None:
    why, protection, plan, run, proof = outputs
    assert "staging/flights 2013-01-12" in why
    assert "INC-7: under investigation" in protection
    assert "no longer protected" in protection
    assert (
        "downstream, at most: features/carrier_delays 2013-01-08...2013-01-09, 2013-01-15" in plan
    )
    assert run.count("published") >= 3
    assert proof.count("2013-01-1") >= 15
    assert "the rows differ" not in proof


@pytest.mark.usefixtures("outputs")
def test_five_days_of_three_layers_were_published_in_three_chunks_each(project: Project) -> None:
    warehouse = Warehouse(str(project.warehouse))
    for table in (RAW_FLIGHTS, STAGING_FLIGHTS, CARRIER_DELAYS):
        published = [
            [*commit.record.rows]
            for commit in read_log(warehouse, table).commits[:3]
            if commit.record is not None
        ]
        assert sorted(map(len, published)) == [1, 2, 2]
        assert {*chain(*published)} == {f"2013-01-{day}" for day in range(10, 15)}
