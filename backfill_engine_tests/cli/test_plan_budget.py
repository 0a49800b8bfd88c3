"""A plan over a published year of all tables stays within its time. It needs no Spark."""

import json
from pathlib import Path

import pytest
from dagster import AssetKey, AssetMaterialization, DagsterInstance, DagsterRun, DagsterRunStatus

from backfill_assets.samples.orders import land_orders
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.materializations import DATA_VERSION
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.orchestration.instance.recovered_runs import enter_materialization
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.written_tables import commit_as_now
from backfill_engine_tests.project import CATALOG, RAW_WEATHER, defs
from backfill_engine_tests.shared_fixtures import build_days
from backfill_engine_tests.timed_commands import time_command

pytestmark = [pytest.mark.slow, pytest.mark.by_hand]

MOST = 1.0
MOST_FOR_ALL = 1.7
"""In times what importing the definitions takes."""
YEAR = [day.key for day in build_days("2013-01-01", 365)]
HOURS = [f"{day}-{hour:02}:00" for day in YEAR for hour in range(24)]
DAILY = [
    table.key for table in CATALOG.tables if find_partitions_def(table).has_partition_key(YEAR[0])
]
CHUNK = ("--chunk", "months=1")

CONFIG = """
telemetry:
  enabled: false
instance_class:
  module: backfill_engine.orchestration.runs.claims
  class: ClaimingInstance
"""


@pytest.fixture(scope="module")
def environment(weather_landing: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A year has landed and is published, with one commit for each table."""
    root = tmp_path_factory.mktemp("year")
    landing, home, warehouse = root / "landing", root / "home", Warehouse(str(root / "warehouse"))
    LandingZone(landing).land([*YEAR, "2014-01-01"])
    (landing / "weather").symlink_to(weather_landing / "weather")
    land_orders(str(landing), scale=0.001)
    home.mkdir()
    (home / "dagster.yaml").write_text(CONFIG, encoding="utf-8")
    tables = {table.key: table for table in CATALOG.tables}
    ordered = defs.get_repository_def().asset_graph.toposorted_asset_keys
    with DagsterInstance.from_config(str(home)) as instance:
        for key in (
            asset_key.to_user_string()
            for asset_key in ordered
            if asset_key.to_user_string() in tables
        ):
            keys = find_partitions_def(tables[key]).get_partition_keys()
            run_id = f"run-of-{key.replace('/', '-')}"
            commit_as_now(warehouse, str(landing), key, keys, run_id=run_id)
            record(instance, run_id, key, read_log(warehouse, tables[key]))
    return {
        "DAGSTER_HOME": str(home),
        "BACKFILL_LANDING": str(landing),
        "BACKFILL_WAREHOUSE": warehouse.root,
    }


def record(instance: DagsterInstance, run_id: str, key: str, log: TableLog) -> None:
    """Records that the run is over and has told Dagster of each partition."""
    instance.add_run(DagsterRun("__ASSET_JOB", run_id=run_id, status=DagsterRunStatus.SUCCESS))
    asset_key, metadata = AssetKey.from_user_string(key), {"delta_version": log.version}
    with store_together(instance):
        for partition, checksum in log.checksums.items():
            tags = {DATA_VERSION: checksum}
            event = AssetMaterialization(
                asset_key, partition=partition, metadata=metadata, tags=tags
            )
            enter_materialization(instance, run_id, event)


def plan(
    environment: dict[str, str], *arguments: str, most: float
) -> tuple[float, dict[str, dict]]:
    """Returns a plan's time, as a multiple of importing the definitions, and its tables."""
    times, output = time_command(environment, "plan", *arguments, "--json", most=most)
    return times, {table["table"]: table for table in json.loads(output)["tables"]}


@pytest.mark.parametrize("chunk", [(), CHUNK])
def test_a_year_of_days_of_all_tables_is_planned_in_time(
    environment: dict[str, str], chunk: tuple[str, ...]
) -> None:
    ends = ("--from", YEAR[0], "--to", YEAR[-1])
    times, found = plan(environment, "--select", ",".join(DAILY), *ends, *chunk, most=MOST)
    assert sorted(found) == sorted(DAILY)
    for table in found.values():
        assert (table["states"], table["stale"]) == ({"materialized": 365}, [])
        assert (table["partitions"], table["stands"]) == (365, 365 if chunk else 0)
    assert times < MOST


@pytest.mark.parametrize("chunk", [(), CHUNK, (*CHUNK, "--restart")])
def test_a_year_of_hours_that_are_published_is_planned_in_time(
    environment: dict[str, str], chunk: tuple[str, ...]
) -> None:
    ends = ("--from", HOURS[0], "--to", HOURS[-1])
    times, found = plan(environment, "--select", RAW_WEATHER.key, *ends, *chunk, most=MOST)
    table = found[RAW_WEATHER.key]
    assert (table["states"], table["stale"]) == ({"materialized": 8760}, [])
    assert table["stands"] == (8760 if chunk == CHUNK else 0)
    assert times < MOST


def test_all_tables_are_planned_in_time(environment: dict[str, str]) -> None:
    """Plans what is stale among all days, hours and buckets of keys."""
    times, found = plan(environment, "--only", "stale", most=MOST_FOR_ALL)
    assert len(found) == len(CATALOG.tables)
    assert not any(table["partitions"] for table in found.values())
    assert times < MOST_FOR_ALL
