"""What is being written in the landing zone is waited for. No Spark."""

from pathlib import Path

from dagster import DagsterInstance

from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.due.due_partitions import Memory
from backfill_engine.orchestration.planning.run_requests import find_run_requests
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.running import RAW, list_days
from backfill_engine_tests.project import CATALOG, defs

FIRST, SECOND, THIRD = list_days(1, 3)


def list_due(root: Path) -> list[tuple[str, str]]:
    """What the sensor would request of raw: ranges."""
    home = root / "home"
    home.mkdir(exist_ok=True)
    with DagsterInstance.local_temp(str(home)) as instance:
        found = find_run_requests(
            CATALOG,
            instance,
            defs.get_repository_def().asset_graph,
            Warehouse(str(root / "warehouse")),
            Memory(),
            landing_root=str(root / "landing"),
            late_days=90,
        )
    return [(work.first, work.last) for work in found.requested if work.table == RAW]


def test_a_day_is_due_once_nothing_of_it_is_being_written(tmp_path: Path) -> None:
    zone = LandingZone(tmp_path / "landing")
    zone.land([FIRST, SECOND, THIRD])
    part = zone.path(SECOND).with_name(".more.json.gz.Ab3dE9")
    part.write_bytes(b"")
    assert list_due(tmp_path) == [(FIRST, FIRST), (THIRD, THIRD)]
    part.rename(part.with_name("more.json.gz"))
    assert list_due(tmp_path) == [(FIRST, THIRD)]
