"""Where the event pointer lies: what Dagster takes for new, now and once there are more events."""

from collections.abc import Iterable, Mapping

import pytest
from dagster import (
    AssetDep,
    AssetMaterialization,
    DagsterInstance,
    DailyPartitionsDefinition,
    Definitions,
    TimeWindowPartitionMapping,
    asset,
)

from backfill_engine.lake.commits import Consumed
from backfill_engine.orchestration.due.input_tags import find_input_tags
from backfill_engine.publishing.results import PartitionResult
from backfill_engine.rules.verdicts import Verdict
from backfill_engine_tests.pipeline.running import find_unsynced
from backfill_engine_tests.project import STAGING_FLIGHTS

X, Y = "2013-01-01", "2013-01-02"
DAYS = DailyPartitionsDefinition(X, end_date="2013-01-03")
CODE = {"dagster/code_version": "1"}


@asset(partitions_def=DAYS)
def upstream() -> None:
    """Its data versions are letters."""


@asset(
    partitions_def=DAYS,
    code_version="1",
    deps=[AssetDep("upstream", partition_mapping=TimeWindowPartitionMapping(start_offset=-1))],
)
def downstream() -> None:
    """Y is computed from X and Y."""


GRAPH = Definitions([upstream, downstream]).get_repository_def().asset_graph


@pytest.mark.parametrize(
    ("earlier", "consumed", "unsynced", "later", "unsynced_later"),
    [
        pytest.param(
            [(X, "a"), (Y, "b")], {X: "a", Y: "b"}, False, [(X, "a")], False, id="the same again"
        ),
        pytest.param(
            [(X, "a"), (Y, "b")], {X: "a", Y: "b"}, False, [(X, "c")], True, id="changed later"
        ),
        pytest.param(
            [(X, "a"), (Y, "b"), (X, "c")],
            {X: "a", Y: "b"},
            True,
            [(X, "a")],
            False,
            id="changed and back",
        ),
        pytest.param(
            [(X, "a"), (Y, "b"), (X, "c"), (Y, "c")],
            {X: "a", Y: "b"},
            True,
            [(X, "a")],
            True,
            id="one of two is back",
        ),
        pytest.param([(X, "a")], {X: "a", Y: ""}, False, [(Y, "b")], True, id="published later"),
        pytest.param([(X, "a"), (Y, "b")], {X: "a", Y: ""}, True, [], True, id="published since"),
        pytest.param(
            [(X, "c"), (Y, "b")], {X: "a", Y: "b"}, True, [(X, "a")], True, id="never told of it"
        ),
        pytest.param(
            [(Y, "b")], {X: "a", Y: "b"}, False, [(X, "a")], True, id="not told of it yet"
        ),
    ],
)
def test_unsynced_is_what_consumed_other_versions_than_the_latest(
    earlier: list[tuple[str, str]],
    consumed: Mapping[str, str],
    later: list[tuple[str, str]],
    *,
    unsynced: bool,
    unsynced_later: bool,
) -> None:
    result = PartitionResult(Verdict(Y, {}), consumed=Consumed(upstream={"upstream": consumed}))
    with DagsterInstance.ephemeral() as instance:
        report(instance, earlier)
        found = find_input_tags(instance, [result], STAGING_FLIGHTS)
        tags = {**CODE, "dagster/data_version": "1", **found[Y]}
        instance.report_runless_asset_event(
            AssetMaterialization(downstream.key, partition=Y, tags=tags)
        )
        assert find_unsynced(instance, GRAPH, downstream.key, [Y]) == [Y] * unsynced
        report(instance, later)
        assert find_unsynced(instance, GRAPH, downstream.key, [Y]) == [Y] * unsynced_later


def report(instance: DagsterInstance, versions: Iterable[tuple[str, str]]) -> None:
    for key, version in versions:
        instance.report_runless_asset_event(
            AssetMaterialization(
                upstream.key, partition=key, tags={"dagster/data_version": version}
            )
        )
