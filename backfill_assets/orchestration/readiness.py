"""Which partitions may be computed: those whose upstream partitions are published.

The Dagster instance knows; a partition that was withheld, or that failed, is not materialized there
even where an older version of it can still be read.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dagster import AssetKey, DagsterInstance, PartitionMapping, PartitionsDefinition

from backfill_assets.orchestration.dagster_internals import AssetGraph, AssetPartitionStatus
from backfill_assets.orchestration.materializations import find_latest_materializations
from backfill_assets.orchestration.ranges import shorten

PROVISIONAL = "provisional"
"""Metadata of a materialization: what of its upstream was not there yet, or not final."""

REQUIRED = "backfill_assets/required"
"""Metadata of an asset: by upstream table, which of its partitions are required (`Required`)."""


_LISTED = 7


class Required(StrEnum):
    """Which of the upstream partitions that a partition needs must be published before it goes."""

    ALL = "all"
    OWN = "own"
    """The one of the same key."""
    ANY = "any"
    """One of them, whichever."""


@dataclass(frozen=True)
class Readiness:
    """Why partitions can't go, or go with less than they should have; by partition key.

    Attributes:
        blocked: a required upstream partition is missing, failed or withheld: which, and how.
        provisional: an upstream partition that may still change the outcome isn't there yet.
    """

    blocked: Mapping[str, str] = field(default_factory=dict)
    provisional: Mapping[str, str] = field(default_factory=dict)


def find_readiness(
    instance: DagsterInstance, graph: AssetGraph, asset_key: AssetKey, keys: Sequence[str]
) -> Readiness:
    """Looks at the upstream partitions of `keys`, through the asset's partition mappings."""
    node = graph.get(asset_key)
    required = node.metadata.get(REQUIRED, {})
    blocked: dict[str, list[str]] = {}
    provisional: dict[str, list[str]] = {}
    for upstream_key, mapping in node.partition_mappings.items():
        needed = find_upstream_keys(graph, asset_key, upstream_key, mapping, keys)
        upstream = upstream_key.to_user_string()
        wanted = set().union(*needed.values())
        states = _find_states(instance, graph, upstream_key, wanted)
        unfinished = _find_provisional(instance, upstream_key, wanted)
        for key, upstream_keys in needed.items():
            must = required.get(upstream, Required.ALL)
            none = all(one in states for one in upstream_keys)
            for one in upstream_keys:
                if one in unfinished and one not in states:
                    provisional.setdefault(key, []).append(f"{upstream} {one} is provisional")
                if one not in states:
                    continue
                lacks = must == Required.ALL or (none if must == Required.ANY else one == key)
                reasons = blocked if lacks else provisional
                reasons.setdefault(key, []).append(f"{upstream} {one} is {states[one]}")
    return Readiness(
        {key: _describe(reasons) for key, reasons in blocked.items()},
        {key: _describe(reasons) for key, reasons in provisional.items()},
    )


def _describe(reasons: list[str]) -> str:
    return ", ".join(shorten(reasons, _LISTED))


def find_upstream_keys(
    graph: AssetGraph,
    asset_key: AssetKey,
    upstream_key: AssetKey,
    mapping: PartitionMapping,
    keys: Iterable[str],
) -> dict[str, list[str]]:
    """The upstream partitions that each of `keys` maps to, as far as they exist."""
    downstream_def = get_partitions_def(graph, asset_key)
    upstream_def = get_partitions_def(graph, upstream_key)
    mapped: dict[str, list[str]] = {}
    for key in keys:
        result = mapping.get_upstream_mapped_partitions_result_for_partitions(
            downstream_def.subset_with_partition_keys([key]), downstream_def, upstream_def
        )
        mapped[key] = sorted(result.partitions_subset.get_partition_keys())
    return mapped


def _find_states(
    instance: DagsterInstance, graph: AssetGraph, key: AssetKey, partitions: set[str]
) -> dict[str, str]:
    """In words, the partitions that are not materialized."""
    ordered = sorted(partitions)
    statuses = instance.get_status_by_partition(key, ordered, get_partitions_def(graph, key)) or {}
    words = {
        AssetPartitionStatus.FAILED: "failed or withheld",
        AssetPartitionStatus.IN_PROGRESS: "still in progress",
        None: "missing",
    }
    return {
        one: words[statuses.get(one)]
        for one in ordered
        if statuses.get(one) is not AssetPartitionStatus.MATERIALIZED
    }


def _find_provisional(
    instance: DagsterInstance, key: AssetKey, partitions: Collection[str]
) -> set[str]:
    """Those whose latest materialization says that it is to be run again."""
    latest = find_latest_materializations(instance, key, partitions)
    return {
        one
        for one, record in latest.items()
        if record.asset_materialization and PROVISIONAL in record.asset_materialization.metadata
    }


def get_partitions_def(graph: AssetGraph, key: AssetKey) -> PartitionsDefinition:
    """Of an asset that has partitions, as all of this project's have."""
    partitions_def = graph.get(key).partitions_def
    assert partitions_def is not None, f"{key.to_user_string()} has no partitions"
    return partitions_def
