"""What is private in Dagster, each with what this project expects of it.

When a new version of Dagster breaks one, its test says which, and why it is needed: see the module.
"""

import ast
import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetDep,
    AssetKey,
    AssetMaterialization,
    AssetPartitionStatus,
    DagsterInstance,
    DailyPartitionsDefinition,
    Definitions,
    MaterializeResult,
    TimeWindowPartitionMapping,
    asset,
    materialize,
)

from backfill_engine.orchestration.instance.dagster_internals import (
    AUTO_RETRY_RUN_ID_TAG,
    BACKFILL_TAG,
    EVENTS_ARE_LOGGED,
    HIDDEN_TAG_PREFIX,
    ROOT_RUN_ID_TAG,
    RUN_KEY_TAG,
    UNCOMPARED_PARTITIONS,
    WILL_RETRY_TAG,
    AssetGraph,
    CheckStatus,
    ReconstructableRepository,
    TargetMaterialization,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
    make_new_backfill_id,
)
from backfill_engine_tests.commands import PROJECT
from backfill_engine_tests.pipeline.requesting import add_backfill, get_backfill, read_target
from backfill_engine_tests.pipeline.running import find_unsynced
from backfill_engine_tests.project import defs

DAYS = DailyPartitionsDefinition("2013-01-01", end_date="2013-01-05")
MODULE = "orchestration/instance/dagster_internals.py"
PACKAGE = PROJECT / "backfill_engine"
PRIVATE_NAME = re.compile(r"dagster(_\w+)?\._[\w.]+|__source_asset_observation__")
MOST_PRIVATE_NAMES = 28


def list_mentioned(path: Path) -> Iterator[str]:
    """Lists what a module imports, in full, and its texts: a text may name a module as well."""
    # A template's module is no Python before its name is filled in.
    for node in ast.walk(ast.parse(path.read_text().replace("{{name}}", "name"))):
        match node:
            case ast.ImportFrom(module=str(module)):
                yield from (f"{module}.{name.name}" for name in node.names)
            case ast.Import():
                yield from (name.name for name in node.names)
            case ast.Constant(value=str(text)):
                yield text
            case _:
                pass


def test_few_names_are_private():
    """One that is added takes the place of another, or has this number raised for all to see."""
    mentioned = {name for path in PACKAGE.rglob("*.py") for name in list_mentioned(path)}
    private = sorted(filter(PRIVATE_NAME.fullmatch, mentioned))
    assert len(private) <= MOST_PRIVATE_NAMES, private


def test_nothing_else_imports_what_is_private():
    private = re.compile(r"(from|import) dagster(_\w+)?\._|__source_asset_observation__")
    found = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if private.search(path.read_text())
    ]
    assert found == [MODULE]


def test_every_name_is_still_there():
    module = importlib.import_module("backfill_engine.orchestration.instance.dagster_internals")
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_a_locations_graph_is_an_asset_graph():
    graph = defs.get_repository_def().asset_graph
    assert isinstance(graph, AssetGraph)
    assert AssetKey(["raw", "flights"]) in graph.toposorted_asset_keys


def test_a_job_of_the_location_can_be_reconstructed():
    location = ReconstructableRepository.for_module("backfill_assets.definitions", "defs")
    assert location.get_reconstructable_job("maintain").job_name == "maintain"


def test_an_evaluation_takes_the_materialization_that_it_is_about():
    target = TargetMaterialization(storage_id=1, run_id="run", timestamp=1.0)
    evaluation = AssetCheckEvaluation(
        asset_key=AssetKey("a"), check_name="c", passed=True, target_materialization_data=target
    )
    assert evaluation.target_materialization_data == target


@pytest.mark.parametrize("logged", [True, False])
def test_an_output_whose_events_are_logged_gets_none_for_all_partitions(logged, tmp_path: Path):
    @asset(partitions_def=DAYS)
    def plain() -> MaterializeResult:
        return MaterializeResult(metadata=EVENTS_ARE_LOGGED if logged else {})

    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        materialize([plain], partition_key="2013-01-02", instance=instance)
        statuses = instance.get_status_by_partition(AssetKey("plain"), ["2013-01-02"], DAYS) or {}
    expected = None if logged else AssetPartitionStatus.MATERIALIZED
    assert statuses["2013-01-02"] is expected


def test_an_instance_takes_a_backfill_of_chosen_partitions(tmp_path: Path):
    key, days = AssetKey(["raw", "flights"]), ["2013-01-02", "2013-01-03"]
    backfill = make_new_backfill_id()
    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        add_backfill(instance, backfill, key, days=days, title="title")
        stored = get_backfill(instance, backfill)
        assert (stored.title, read_target(stored)) == ("title", {"raw/flights": days})


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        (AUTO_RETRY_RUN_ID_TAG, "AUTO_RETRY_RUN_ID_TAG"),
        (BACKFILL_TAG, "BACKFILL_ID_TAG"),
        (HIDDEN_TAG_PREFIX, "HIDDEN_TAG_PREFIX"),
        (ROOT_RUN_ID_TAG, "ROOT_RUN_ID_TAG"),
        (RUN_KEY_TAG, "RUN_KEY_TAG"),
        (WILL_RETRY_TAG, "WILL_RETRY_TAG"),
    ],
)
def test_a_tag_of_runs_is_dagsters(tag: str, name: str):
    assert tag == getattr(importlib.import_module("dagster._core.storage.tags"), name)


@pytest.mark.parametrize("get_tag", [get_input_data_version_tag, get_input_event_pointer_tag])
def test_a_tag_of_what_was_read_is_dagsters(get_tag: Callable[[AssetKey], str]):
    dagsters = importlib.import_module("dagster._core.definitions.data_version")
    key = AssetKey(["raw", "flights"])
    assert get_tag(key) == getattr(dagsters, get_tag.__name__)(key)


def test_words_of_dagster_are_what_they_were():
    assert CheckStatus.FAILED.value == "FAILED"
    assert {status.value for status in AssetPartitionStatus} == {
        "FAILED",
        "IN_PROGRESS",
        "MATERIALIZED",
    }


@pytest.mark.parametrize(
    ("pointer", "window", "unsynced"),
    [
        (None, 2, True),
        (0, 2, False),
        (-2, 2, True),
        (-2, UNCOMPARED_PARTITIONS - 1, True),
        (-2, UNCOMPARED_PARTITIONS, False),
    ],
    ids=["no tags", "the newest event", "before all", "compared", "not compared"],
)
def test_an_upstream_is_new_if_its_data_version_is_another_than_at_the_event_pointer(
    pointer: int | None, window: int, *, unsynced: bool
) -> None:
    days = DailyPartitionsDefinition("2013-01-01", end_date="2014-01-01")
    mapping = TimeWindowPartitionMapping(start_offset=1 - window)

    @asset(partitions_def=days)
    def upstream() -> None: ...

    @asset(
        partitions_def=days,
        code_version="1",
        deps=[AssetDep("upstream", partition_mapping=mapping)],
    )
    def downstream() -> None: ...

    graph = Definitions([upstream, downstream]).get_repository_def().asset_graph
    keys = days.get_partition_keys()
    tags = {"dagster/data_version": "1"}
    with DagsterInstance.ephemeral() as instance:
        instance.report_runless_asset_event(
            AssetMaterialization(upstream.key, partition=keys[-1], tags=tags)
        )
        newest = instance.event_log_storage.get_maximum_record_id()
        if pointer is not None:
            tags[get_input_data_version_tag(upstream.key)] = "1"
            tags[get_input_event_pointer_tag(upstream.key)] = str(pointer or newest)
        instance.report_runless_asset_event(
            AssetMaterialization(
                downstream.key, partition=keys[-1], tags={**tags, "dagster/code_version": "1"}
            )
        )
        found = find_unsynced(instance, graph, downstream.key, keys[-1:])
    assert found == (keys[-1:] if unsynced else [])
