"""Runs the commands of `docs/versions.md` in a clone."""

from pathlib import Path

import pytest

from backfill_engine.extras.versions.described import list_switches
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.commands import Project
from backfill_engine_tests.pages import run_page
from backfill_engine_tests.project import CARRIER_DELAYS, CARRIER_DELAYS_V2, SERVED_CARRIER_DELAYS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outputs(clone: Path) -> list[str]:
    """What each command block printed, in order."""
    return run_page("versions.md", cwd=clone)


def test_each_block_says_what_the_page_promises(outputs: list[str]) -> None:
    declared, dry, promoted, followed, back, retired = outputs
    assert "served" in declared
    assert "beyond the gates" in dry
    assert "still serves features/carrier_delays" in dry
    assert "serves features/carrier_delays_v2" in promoted
    assert "better on short hauls" in promoted
    assert "published: 58 of 58" in followed
    assert "serves features/carrier_delays, as version" in back
    assert "retired" in retired


@pytest.mark.usefixtures("outputs")
def test_the_log_tells_each_switch(project: Project) -> None:
    log = read_log(Warehouse(str(project.warehouse)), SERVED_CARRIER_DELAYS)
    serves = [switch.serves for switch in list_switches(log)]
    v1, v2 = CARRIER_DELAYS.key, CARRIER_DELAYS_V2.key
    assert serves == [v1, v2, v1]
