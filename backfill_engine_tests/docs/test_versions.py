"""Runs the commands of `docs/versions.md` as they stand there, on January."""

import pytest

from backfill_engine.extras.versions.described import list_switches
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.commands import PROJECT, Project
from backfill_engine_tests.pages import run_page
from backfill_engine_tests.project import CARRIER_DELAYS, CARRIER_DELAYS_V2, SERVED_CARRIER_DELAYS

pytestmark = [pytest.mark.slow, pytest.mark.by_hand, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def story(january: Project, tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, list[str]]:
    """The project afterwards, and what each command block printed, in order."""
    project = january.copy(tmp_path_factory.mktemp("versions") / "project")
    return project, run_page("versions.md", cwd=PROJECT, environment=project.environment)


def test_each_block_says_what_the_page_promises(story: tuple[Project, list[str]]) -> None:
    declared, dry, promoted, followed, back, retired = story[1]
    assert "served" in declared
    assert "beyond the gates" in dry
    assert "still serves features/carrier_delays" in dry
    assert "serves features/carrier_delays_v2" in promoted
    assert "better on short hauls" in promoted
    assert "published: 30 of 30" in followed
    assert "serves features/carrier_delays, as version" in back
    assert "retired" in retired


def test_the_log_tells_each_switch(story: tuple[Project, list[str]]) -> None:
    log = read_log(Warehouse(str(story[0].warehouse)), SERVED_CARRIER_DELAYS)
    serves = [switch.serves for switch in list_switches(log)]
    v1, v2 = CARRIER_DELAYS.key, CARRIER_DELAYS_V2.key
    assert serves == [v1, v2, v1]
