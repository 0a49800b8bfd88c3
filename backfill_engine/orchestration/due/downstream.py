"""What depends on partitions of a table, and how Dagster is asked to rebuild it."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dagster import AssetKey, AssetPartitionStatus, AssetSelection, DagsterInstance

from backfill_engine.orchestration.due.readiness import (
    find_downstream_keys,
    find_readiness,
    find_upstream_tables,
    get_partitions_def,
)
from backfill_engine.orchestration.instance.dagster_internals import (
    AssetGraph,
    AssetGraphSubset,
    PartitionBackfill,
    make_new_backfill_id,
)
from backfill_engine.orchestration.instance.materializations import PartitionStatusCache
from backfill_engine.publishing.recipes import Recipe

_MOST_OF_TITLE = 100


def find_dependent_partitions(
    instance: DagsterInstance,
    graph: AssetGraph,
    asset_key: AssetKey,
    keys: Collection[str],
    moved: Mapping[AssetKey, Collection[str]],
    *,
    unread: Mapping[AssetKey, Collection[str]],
    known: Mapping[AssetKey, Collection[str]] | None = None,
    statuses: PartitionStatusCache | None = None,
) -> dict[AssetKey, list[str]]:
    """Finds materialized partitions of downstream assets that were computed from `keys`.

    Directly or not.

    Args:
        instance: knows what is materialized.
        graph: of all assets.
        asset_key: the asset.
        keys: its partitions.
        moved: by asset that reads it, those of its partitions for which rows moved, where rows say
            so; the asset's mapping is not asked then.
        unread: by asset of a served table, the versions that it doesn't read.
        known: by asset, partitions that needn't be told of; what was computed from them is.
        statuses: those that were asked for already; None to ask the instance.

    Returns:
        By asset, upstream ones first; assets without any are left out.
    """
    statuses = statuses or PartitionStatusCache(instance)
    downstream = AssetSelection.assets(asset_key).downstream(include_self=False).resolve(graph)
    affected: dict[AssetKey, set[str]] = {asset_key: set(keys)}
    for key in graph.toposorted_asset_keys:
        if key not in downstream:
            continue
        found: set[str] = set()
        for upstream, mapping in find_upstream_tables(graph, key).items():
            if upstream.to_user_string() in unread.get(key, ()):
                continue
            if upstream == asset_key and key in moved:
                found.update(moved[key])
            elif affected.get(upstream):
                found |= find_downstream_keys(graph, key, upstream, mapping, affected[upstream])
        affected[key] = found
    return {
        key: materialized
        for key, found in affected.items()
        if key != asset_key
        and (rest := found.difference((known or {}).get(key, ())))
        and (materialized := _keep_materialized(statuses, graph, key, sorted(rest)))
    }


def request_backfill(
    instance: DagsterInstance,
    graph: AssetGraph,
    partitions: Mapping[AssetKey, Sequence[str]],
    *,
    title: str,
    tags: Mapping[str, str],
    run_config: Mapping[str, Any] | None = None,
) -> str:
    """Asks Dagster for a backfill of just these partitions; its daemon carries it out.

    Returns:
        The backfill's id.
    """
    subsets = {
        key: get_partitions_def(graph, key).subset_with_partition_keys(keys)
        for key, keys in partitions.items()
    }
    backfill_id = make_new_backfill_id()
    instance.add_backfill(
        PartitionBackfill.from_asset_graph_subset(
            backfill_id=backfill_id,
            backfill_timestamp=time.time(),
            tags=dict(tags),
            dynamic_partitions_store=instance,
            asset_graph_subset=AssetGraphSubset(partitions_subsets_by_asset_key=subsets),
            title=fit_title(title),
            description=None,
            run_config=run_config,
        )
    )
    return backfill_id


def fit_title(title: str) -> str:
    """Makes of a title what Dagster takes for one: of 100 characters, without three of them."""
    taken = title.translate(str.maketrans('%*"', "   "))
    return taken if len(taken) <= _MOST_OF_TITLE else f"{taken[: _MOST_OF_TITLE - 1]}…"


def _keep_materialized(
    cache: PartitionStatusCache, graph: AssetGraph, key: AssetKey, partitions: list[str]
) -> list[str]:
    statuses = cache.find(key, partitions, get_partitions_def(graph, key))
    return [
        partition
        for partition, status in statuses.items()
        if status is AssetPartitionStatus.MATERIALIZED
    ]


@dataclass(frozen=True)
class Reader:
    """A table that reads another, and its partitions that can be built.

    Attributes:
        recipe: how it is made.
        reads: by each of these partitions, which of the other it reads.
        provisional: by partition, what of its input is not there yet, or not final.
    """

    recipe: Recipe
    reads: Mapping[str, Sequence[str]]
    provisional: Mapping[str, str]


def find_reader(
    instance: DagsterInstance,
    graph: AssetGraph,
    recipe: Recipe,
    read: AssetKey,
    keys: Sequence[str],
    *,
    among: Collection[str] | None = None,
) -> Reader:
    """Finds the partitions of a reader that any of `keys` gives, once these are published.

    Those that another input keeps back are left out.

    Args:
        instance: the Dagster instance.
        graph: of all assets.
        recipe: of the reader.
        read: the asset that it reads.
        keys: partitions of that, taken as published.
        among: only these partitions of the reader; None for all.
    """
    reader = AssetKey.from_user_string(recipe.table.key)
    mapping = find_upstream_tables(graph, reader)[read]
    reached = find_downstream_keys(graph, reader, read, mapping, keys)
    chosen = sorted(reached if among is None else reached.intersection(among))
    readiness = find_readiness(instance, graph, reader, chosen, expected={read: keys})
    windows = readiness.windows[read.to_user_string()]
    return Reader(
        recipe,
        {key: windows[key] for key in chosen if key not in readiness.blocked},
        readiness.provisional,
    )


def list_readers(recipes: Iterable[Recipe], key: str) -> Iterator[Recipe]:
    """Lists how each table is made that reads the one of this key."""
    return (recipe for recipe in recipes if key in {table.key for table in recipe.inputs})
