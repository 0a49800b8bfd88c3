"""The code location as Dagster loads it, and the rules of who may import whom."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from dagster import (
    AssetKey,
    BackfillPolicy,
    DailyPartitionsDefinition,
    Definitions,
    IdentityPartitionMapping,
    JobDefinition,
    OpDefinition,
    TimeWindowPartitionMapping,
)
from dagster._core.snap.snap_to_yaml import default_values_yaml_from_type_snap

from backfill_engine_tests.commands import PROJECT
from backfill_engine_tests.project import CATALOG, defs

GRAPH = defs.resolve_asset_graph()


def test_the_code_location_loads_with_all_its_jobs_and_sensors():
    Definitions.validate_loadable(defs)
    jobs = {job.name for job in defs.get_repository_def().get_all_jobs()}
    assert {
        *("sensors_days", "sensors_hours", "sensors_buckets_100000_10000000"),
        *("rollback_partitions", "reconcile", "maintain"),
        *("flights", "orders", "weather_hours", "weather_days", "serving", "serving_versions"),
    } <= jobs


def test_a_persons_job_of_what_serves_holds_no_features():
    (serving, versions) = (defs.resolve_job_def(name) for name in ("serving", "serving_versions"))
    groups = {GRAPH.get(key).group_name for key in serving.asset_layer.executable_asset_keys}
    assert groups == {"serving"}
    (version,) = versions.asset_layer.executable_asset_keys
    assert version.to_user_string() == "features/carrier_delays_v2"


def read_launchpad(job: JobDefinition) -> str:
    """What the launchpad of a job opens with: a preset, or else all defaults."""
    if job.run_config is not None:
        return yaml.safe_dump(job.run_config)
    snapshot = job.get_job_snapshot()
    (mode,) = snapshot.mode_def_snaps
    schema, key = snapshot.config_schema_snapshot, mode.root_config_key
    assert key is not None
    return default_values_yaml_from_type_snap(schema, schema.get_config_snap(key))


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("maintain", {"final_days"}),
        ("migrate_columns", {"table"}),
        ("promote", {"table", "version", "reason"}),
        ("reconcile", {"first", "last"}),
        ("rehearse", {"ranges", "reason"}),
        ("retire", {"table", "version", "reason"}),
        ("rollback_partitions", {"table", "first", "last", "reason"}),
    ],
)
def test_a_launchpad_opens_with_what_a_person_fills_in(name: str, asked: set[str]):
    shown = yaml.safe_load(read_launchpad(defs.resolve_job_def(name)))
    assert shown.keys() == {"ops"}
    (op,) = shown["ops"].values()
    assert op["config"].keys() == asked


def test_no_launchpad_shows_settings_of_resources():
    for job in defs.get_repository_def().get_all_jobs():
        shown = yaml.safe_load(read_launchpad(job))
        assert not shown.get("resources"), job.name


def test_assets_are_the_tables():
    assert [table.key for table in CATALOG.tables] == [
        "raw/flights",
        "raw/orders",
        "raw/weather",
        "staging/flights",
        "staging/orders",
        "staging/weather",
        "features/carrier_delays",
        "features/carrier_delays_v2",
        "features/customer_orders",
        "features/departure_conditions",
        "serving/carrier_delays",
        "serving/training_examples",
    ]
    about_them = {"ops/late_arrivals", "ops/backfill_health"}
    assert {table.key for table in CATALOG.tables} | about_them == {
        key.to_user_string() for key in GRAPH.materializable_asset_keys
    }


def test_what_raw_tables_read_of_the_landing_zone_is_an_external_asset_with_their_partitions():
    external = {key.to_user_string(): GRAPH.get(key) for key in GRAPH.external_asset_keys}
    assert external.keys() == {"landing/flights", "landing/weather", "landing/orders"}
    for key, node in external.items():
        raw = AssetKey(["raw", key.removeprefix("landing/")])
        assert node.child_keys == {raw}
        assert node.group_name == "landing"
        assert node.partitions_def == GRAPH.get(raw).partitions_def
        assert GRAPH.get(raw).partition_mappings == {node.key: IdentityPartitionMapping()}
    assert "year=YYYY/month=MM/day=DD/hour=HH/*.json" in str(
        external["landing/weather"].description
    )
    assert "/orders/{orders,lineitem}/*.parquet" in str(external["landing/orders"].description)


@pytest.mark.parametrize("table", CATALOG.tables, ids=lambda table: table.key)
def test_each_asset_is_grouped_owned_versioned_and_backfilled_in_one_run(table):
    node = GRAPH.get(AssetKey([table.layer, table.name]))
    assert node.group_name == table.layer
    assert node.backfill_policy == BackfillPolicy.single_run()
    assert node.owners == ["team:data-platform"]
    assert node.kinds == {"pyspark", "delta"}
    assert len(node.code_version or "") == 16
    assert node.description and "One row per" in node.description
    columns = node.metadata["dagster/column_schema"].columns
    assert tuple(column.name for column in columns) == table.column_names


def test_each_table_has_the_checks_that_ask_something():
    found = {
        table.key: {
            key.name.removeprefix("partition_is_")
            for key in GRAPH.get_check_keys_for_assets({AssetKey([table.layer, table.name])})
        }
        for table in CATALOG.tables
    }
    always = {"complete", "valid", "readable"}
    assert {key for key, checks in found.items() if "stable" in checks} == {
        "staging/flights",
        "staging/orders",
        "features/carrier_delays",
        "features/carrier_delays_v2",
        "features/departure_conditions",
        "features/customer_orders",
        "serving/carrier_delays",
    }
    assert all(checks - {"stable"} == always for checks in found.values())


@pytest.mark.parametrize(
    ("keys", "first", "last", "count"),
    [
        (
            [
                *("raw/flights", "staging/flights", "staging/weather", "features/carrier_delays"),
                *("features/carrier_delays_v2", "serving/carrier_delays"),
                "serving/training_examples",
            ],
            "2013-01-01",
            "2014-01-01",
            366,
        ),
        (["raw/weather"], "2013-01-01-00:00", "2014-01-01-23:00", 24 * 366),
        (["raw/orders", "staging/orders", "features/customer_orders"], "0000000", "9900000", 100),
    ],
)
def test_tables_of_a_grain_share_their_partitions_so_that_a_backfill_is_one_run(
    keys, first, last, count
):
    definitions = {GRAPH.get(AssetKey(key.split("/"))).partitions_def for key in keys}
    assert len(definitions) == 1
    (partitions,) = definitions
    assert partitions is not None
    found = partitions.get_partition_keys()
    assert (found[0], found[-1], len(found)) == (first, last, count)


def test_a_day_of_weather_needs_its_hours_and_a_flight_the_weather_of_two_days():
    day = DailyPartitionsDefinition("2013-01-01").subset_with_partition_keys(["2013-01-05"])
    weather = GRAPH.get(AssetKey(["staging", "weather"]))
    conditions = GRAPH.get(AssetKey(["features", "departure_conditions"]))

    def find_needed(node, *upstream):
        mapping = node.partition_mappings[AssetKey(upstream)]
        needed = mapping.get_upstream_mapped_partitions_result_for_partitions(
            day, node.partitions_def, GRAPH.get(AssetKey(upstream)).partitions_def
        )
        return sorted(needed.partitions_subset.get_partition_keys())

    hours = find_needed(weather, "raw", "weather")
    assert (hours[0], hours[-1], len(hours)) == ("2013-01-05-00:00", "2013-01-05-23:00", 24)
    assert find_needed(conditions, "staging", "weather") == ["2013-01-05", "2013-01-06"]
    assert find_needed(conditions, "staging", "flights") == ["2013-01-05"]


def test_mappings_say_which_days_a_day_needs():
    def reach(start: int, end: int) -> TimeWindowPartitionMapping:
        return TimeWindowPartitionMapping(
            start_offset=start, end_offset=end, allow_nonexistent_upstream_partitions=True
        )

    same, week, delays = IdentityPartitionMapping(), reach(-6, 0), "features/carrier_delays"
    expected = {
        "staging/flights": {"raw/flights": reach(0, 2)},
        delays: {"staging/flights": week},
        f"{delays}_v2": {"staging/flights": week},
        "serving/carrier_delays": {delays: same, f"{delays}_v2": same},
        "serving/training_examples": {
            "staging/flights": same,
            "serving/carrier_delays": reach(-1, -1),
        },
    }
    for key, mappings in expected.items():
        found = GRAPH.get(AssetKey.from_user_string(key)).partition_mappings
        assert {upstream.to_user_string(): found[upstream] for upstream in found} == mappings


def find_fields(config: Any, path: str) -> Iterator[tuple[str, str | None]]:
    """Finds the fields of a configuration at any depth, by path, each with its description."""
    for name, field in getattr(config, "fields", {}).items():
        # Dagster itself adds the field `env`, which takes the name of a variable for a scalar.
        if name != "env":
            yield f"{path}.{name}", field.description
            yield from find_fields(field.config_type, f"{path}.{name}")
    for within in ("inner_type", "scalar_type", "non_scalar_type"):
        if hasattr(config, within):
            yield from find_fields(getattr(config, within), path)


def find_described_jobs() -> Iterator[tuple[str, str | None]]:
    """Finds jobs, ops, resources and what they may be told, by name, each with its description."""
    # Dagster describes neither its own job nor the op of a check, which the check itself is for.
    for job in defs.get_repository_def().get_all_jobs():
        if job.name != "__ASSET_JOB":
            yield f"job {job.name}", job.description
        for node in job.all_node_defs:
            if not node.name.endswith("_partition_is_readable"):
                yield f"op {node.name}", node.description
            if isinstance(node, OpDefinition):
                yield from find_fields(node.config_schema.config_type, f"op {node.name}")
        for name in {"lakehouse", "spark"} & job.resource_defs.keys():
            resource = job.resource_defs[name]
            yield f"resource {name}", resource.description
            yield from find_fields(resource.config_schema.config_type, f"resource {name}")


def find_described() -> Iterator[tuple[str, str | None]]:
    """Finds all that the UI shows of this project, by name, each with its description."""
    yield from find_described_jobs()
    repository = defs.get_repository_def()
    for tick in (*repository.sensor_defs, *repository.schedule_defs):
        yield f"automation {tick.name}", tick.description
    for key in GRAPH.get_all_asset_keys():
        yield f"asset {key.to_user_string()}", GRAPH.get(key).description
    for key in GRAPH.asset_check_keys:
        yield f"check {key.name}", GRAPH.get_check_spec(key).description


def test_all_that_the_ui_shows_has_a_description():
    described = dict(find_described())
    for expected in (
        "job flights",
        "op maintain_tables.final_days",
        "op staging__flights.accept.reason",
        "resource lakehouse.wait_seconds",
        "automation maintain_nightly",
        "asset landing/flights",
        "check partition_is_readable",
    ):
        assert expected in described
    assert [name for name, description in described.items() if not description] == []
    # Markdown takes a paragraph that is indented for code; resources' are Dagster's to dedent.
    indented = [name for name, description in described.items() if "\n\n    " in str(description)]
    assert [name for name in indented if not name.startswith("resource")] == []


def test_workspace_and_pyproject_load_the_same_module():
    workspace = yaml.safe_load((PROJECT / "workspace.yaml").read_text())
    tools = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]
    (location,) = workspace["load_from"]
    assert location["python_module"] == {
        "module_name": tools["dagster"]["module_name"],
        "location_name": tools["dagster"]["code_location_name"],
    }
    assert tools["dg"]["directory_type"] == "project"
    assert tools["dg"]["project"] == {
        "root_module": "backfill_assets",
        "code_location_target_module": tools["dagster"]["module_name"],
        "code_location_name": tools["dagster"]["code_location_name"],
    }


def test_only_the_catalog_and_the_definitions_read_the_environment():
    modules = (
        "backfill_assets.tables.orders, backfill_engine.sources.input_window, "
        "backfill_engine.publishing.publisher, backfill_engine.catalog, "
        "backfill_engine.orchestration.instance.partition_definitions"
    )
    unusable = {**os.environ, "BACKFILL_BEGIN": "never", "BACKFILL_ORDER_KEY_STEP": "0"}
    run = subprocess.run([sys.executable, "-c", f"import {modules}"], check=False, env=unusable)
    assert run.returncode == 0


def test_a_process_ends_at_once_whatever_it_has_loaded():
    program = "import backfill_assets.definitions, time; print(time.process_time(), flush=True)"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        until_its_end = float(process.stdout.read())
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0
    # Seconds of CPU; without `gc.freeze` at the exit it is eight times as much.
    assert used.ru_utime + used.ru_stime - until_its_end < 0.3
