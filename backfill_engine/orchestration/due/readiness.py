"""Which partitions may be computed: those whose upstream partitions are published.

The Dagster instance knows; a partition that was withheld, or that failed, is not materialized there
even where an older version of it can still be read.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dagster import (
    AllPartitionMapping,
    AssetKey,
    AssetPartitionStatus,
    DagsterInstance,
    IdentityPartitionMapping,
    LastPartitionMapping,
    MultiPartitionsDefinition,
    MultiToSingleDimensionPartitionMapping,
    PartitionMapping,
    PartitionsDefinition,
    SpecificPartitionsPartitionMapping,
    StaticPartitionMapping,
    TimeWindowPartitionMapping,
)

from backfill_engine.grains.grain import KEY_PARTS
from backfill_engine.lake.commits import describe_foreign_changes
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.materializations import (
    PartitionStatusCache,
    find_latest_materializations,
    find_planning_runs,
)
from backfill_engine.orchestration.instance.partition_definitions import LANDING
from backfill_engine.orchestration.instance.ranges import shorten

PROVISIONAL = "provisional"
"""Metadata of a materialization: what of its upstream was not there yet, or not final."""

REQUIRED = "backfill_assets/required"
"""Metadata of an asset: by upstream table, which of its partitions are required (`Required`)."""

EXTERNAL = "backfill_assets/external"
"""Metadata of an asset that stands for a table that somebody else writes: true."""

ROWS_FOR = "backfill_assets/rows_for"
"""Metadata of an asset: by upstream table, the column that says which partition a row is for."""

_SAME_FOR_ALL = AllPartitionMapping, LastPartitionMapping, SpecificPartitionsPartitionMapping
"""Mappings that give each partition the same ones."""

_LISTED = 7
_IN_PROGRESS = "still in progress"
_MISSING = "missing"
_LOST = "failed or withheld"


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
        not_due: of these, the ones that only wait for upstream partitions that never came: which.
        provisional: an upstream partition that may still change the outcome isn't there yet.
        in_progress: upstream partitions that other runs work on, or are queued for.
        windows: by upstream table, all upstream partitions that the asset's mapping gives.
    """

    blocked: Mapping[str, str] = field(default_factory=dict)
    not_due: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    provisional: Mapping[str, str] = field(default_factory=dict)
    in_progress: frozenset[str] = frozenset()
    windows: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)


def find_readiness(
    instance: DagsterInstance,
    graph: AssetGraph,
    asset_key: AssetKey,
    keys: Sequence[str],
    *,
    run_id: str = "",
    expected: Mapping[AssetKey, Collection[str]] | None = None,
    refused: Mapping[AssetKey, Collection[str]] | None = None,
    windows: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    unread: Collection[str] = (),
    unfinished: Mapping[str, Collection[str]] | None = None,
    statuses: PartitionStatusCache | None = None,
    inputs: Mapping[str, TableLog] | None = None,
    foreign: Mapping[str, Mapping[str, str]] | None = None,
) -> Readiness:
    """Looks at the upstream partitions of `keys`, through the asset's partition mappings.

    Args:
        instance: the Dagster instance.
        graph: of all assets.
        asset_key: the asset.
        keys: its partitions.
        run_id: the run that asks; what it does itself is no other run's progress.
        expected: upstream partitions that will be published before, and are taken as if they were.
        refused: upstream partitions that would be withheld, and are taken as if they were.
        windows: by upstream table, what the asset's mapping gives, if it was found before.
        unread: upstream tables that it could read and doesn't, as it serves another version.
        unfinished: by upstream table, the partitions that are published and provisional, as far as
            that is known; None to read it from their events.
        statuses: those that were asked for already; None to ask the instance.
        inputs: logs of upstream tables, by table key. Of a table that nobody publishes here only
            its log tells what there is; without it all counts as there.
        foreign: by upstream table, the partitions that another writer changed, and how: nobody has
            audited their rows, so that they block what reads them, required or not. None to go by
            `inputs`.
    """
    statuses, inputs = statuses or PartitionStatusCache(instance), inputs or {}
    if foreign is None:
        foreign = {
            key: describe_foreign_changes(log.foreign_changes) for key, log in inputs.items()
        }
    node = graph.get(asset_key)
    required = node.metadata.get(REQUIRED, {})
    blocked: dict[str, list[str]] = defaultdict(list)
    never_came: dict[str, list[str]] = defaultdict(list)
    provisional: dict[str, list[str]] = defaultdict(list)
    in_progress: set[str] = set()
    found = find_windows(graph, asset_key, keys, unread) if windows is None else windows
    for upstream in found:
        upstream_asset = AssetKey.from_user_string(upstream)
        needed = {key: found[upstream][key] for key in keys}
        wanted = set[str]().union(*needed.values())
        coming = (expected or {}).get(upstream_asset, ())
        # In the graph of a job, assets that it doesn't select can't be materialized either.
        if graph.get(upstream_asset).metadata.get(EXTERNAL):
            held = inputs[upstream].count_rows() if upstream in inputs else wanted
            states = dict.fromkeys(wanted.difference(held), _MISSING)
        else:
            states = _find_states(statuses, graph, upstream_asset, wanted.difference(coming))
        how = foreign.get(upstream, {})
        changed = wanted.intersection(how).difference(coming)
        states |= {upstream_key: how[upstream_key] for upstream_key in changed}
        states |= dict.fromkeys(wanted.intersection((refused or {}).get(upstream_asset, ())), _LOST)
        at_work = {key for key, state in states.items() if state == _IN_PROGRESS}
        runs = find_planning_runs(instance, upstream_asset) if at_work else {}
        others = (key for key in at_work if runs.get(key) != run_id)
        in_progress |= {f"{upstream} {upstream_key}" for upstream_key in others}
        if unfinished is None:
            not_final = _find_provisional(instance, upstream_asset, wanted - set(states))
        else:
            not_final = wanted.intersection(unfinished.get(upstream, ())).difference(states)
        for key, upstream_keys in needed.items():
            must = required.get(upstream, Required.ALL)
            lacks_all = all(upstream_key in states for upstream_key in upstream_keys)
            for upstream_key in upstream_keys:
                if upstream_key in not_final:
                    provisional[key].append(f"{upstream} {upstream_key} is provisional")
                if upstream_key in states:
                    lacks = {
                        Required.ALL: True,
                        Required.OWN: upstream_key == key,
                        Required.ANY: lacks_all,
                    }[Required(must)]
                    lacks = lacks or upstream_key in changed
                    reasons = blocked if lacks else provisional
                    reasons[key].append(f"{upstream} {upstream_key} is {states[upstream_key]}")
                    if lacks and states[upstream_key] == _MISSING:
                        never_came[key].append(f"{upstream} {upstream_key}")
    return Readiness(
        {key: _describe(reasons) for key, reasons in blocked.items()},
        {key: tuple(came) for key, came in never_came.items() if len(came) == len(blocked[key])},
        {key: _describe(reasons) for key, reasons in provisional.items()},
        frozenset(in_progress),
        found,
    )


def find_windows(
    graph: AssetGraph, asset_key: AssetKey, keys: Collection[str], unread: Collection[str] = ()
) -> dict[str, dict[str, list[str]]]:
    """Finds, by upstream table, the upstream partitions that each of `keys` maps to.

    But for `unread` ones.
    """
    return {
        upstream.to_user_string(): find_upstream_keys(graph, asset_key, upstream, mapping, keys)
        for upstream, mapping in find_upstream_tables(graph, asset_key).items()
        if upstream.to_user_string() not in unread
    }


def _describe(reasons: list[str]) -> str:
    return ", ".join(shorten(reasons, _LISTED))


def find_upstream_tables(
    graph: AssetGraph, asset_key: AssetKey
) -> Mapping[AssetKey, PartitionMapping]:
    """Finds the assets of the tables that an asset reads, and which of their partitions.

    What lands is left out: nobody materializes it, so it is never published, missing or pending.
    """
    mappings = graph.get(asset_key).partition_mappings
    return {key: mapping for key, mapping in mappings.items() if LANDING not in key.path[-2:-1]}


def find_upstream_keys(
    graph: AssetGraph,
    asset_key: AssetKey,
    upstream_key: AssetKey,
    mapping: PartitionMapping,
    keys: Iterable[str],
) -> dict[str, list[str]]:
    """Finds the upstream partitions that each of `keys` maps to, as far as they exist."""
    downstream_def = get_partitions_def(graph, asset_key)
    return map_keys(mapping, downstream_def, get_partitions_def(graph, upstream_key), keys)


def map_keys(
    mapping: PartitionMapping,
    downstream_def: PartitionsDefinition,
    upstream_def: PartitionsDefinition,
    keys: Iterable[str],
) -> dict[str, list[str]]:
    """Finds the upstream partitions that a mapping gives for each of `keys`."""
    if isinstance(mapping, IdentityPartitionMapping) and downstream_def == upstream_def:
        return {key: [key] for key in keys}
    if isinstance(mapping, TimeWindowPartitionMapping) and downstream_def == upstream_def:
        return _find_neighbours(downstream_def, mapping, keys)
    if isinstance(mapping, StaticPartitionMapping):
        return _find_listed(mapping, keys)
    if isinstance(mapping, MultiToSingleDimensionPartitionMapping):
        return _find_days_of_pairs(downstream_def, upstream_def, keys)
    mapped: dict[str, list[str]] = {}
    upstream: list[str] | None = None
    for key in keys:
        if upstream is None or not isinstance(mapping, _SAME_FOR_ALL):
            result = mapping.get_upstream_mapped_partitions_result_for_partitions(
                downstream_def.subset_with_partition_keys([key]), downstream_def, upstream_def
            )
            upstream = sorted(result.partitions_subset.get_partition_keys())
        mapped[key] = upstream
    return mapped


def _find_neighbours(
    partitions_def: PartitionsDefinition, mapping: TimeWindowPartitionMapping, keys: Iterable[str]
) -> dict[str, list[str]]:
    """Finds what an offset gives among the same partitions: Dagster would ask cron for each key."""
    every = list(partitions_def.get_partition_keys())
    places = {key: place for place, key in enumerate(every)}
    return {
        key: every[
            max(places[key] + mapping.start_offset, 0) : max(
                places[key] + mapping.end_offset + 1, 0
            )
        ]
        for key in keys
    }


def _find_listed(mapping: StaticPartitionMapping, keys: Iterable[str]) -> dict[str, list[str]]:
    """Finds what a list gives: Dagster would look at all partitions for each key."""
    found: dict[str, list[str]] = {key: [] for key in keys}
    listed = mapping.downstream_partition_keys_by_upstream_partition_key
    for upstream_key in sorted(listed):
        downstream = listed[upstream_key]
        for key in [downstream] if isinstance(downstream, str) else downstream:
            if key in found:
                found[key].append(upstream_key)
    return found


def _find_days_of_pairs(
    downstream_def: PartitionsDefinition, upstream_def: PartitionsDefinition, keys: Iterable[str]
) -> dict[str, list[str]]:
    """Finds the day of each pair, or the pairs of each day: Dagster would look at all of them."""
    if isinstance(downstream_def, MultiPartitionsDefinition):
        days = {key: key.partition(KEY_PARTS)[0] for key in keys}
        known = {*upstream_def.get_partition_keys()}
        return {key: [day] if day in known else [] for key, day in days.items()}
    found: dict[str, list[str]] = {key: [] for key in keys}
    for key in upstream_def.get_partition_keys():
        found.get(key.partition(KEY_PARTS)[0], []).append(str(key))
    return found


def find_downstream_keys(
    graph: AssetGraph,
    asset_key: AssetKey,
    upstream_key: AssetKey,
    mapping: PartitionMapping,
    keys: Iterable[str],
) -> set[str]:
    """Finds the partitions that any of the upstream `keys` maps to, as far as they exist."""
    upstream_def = get_partitions_def(graph, upstream_key)
    subset = mapping.get_downstream_partitions_for_partitions(
        upstream_def.subset_with_partition_keys(keys),
        upstream_def,
        get_partitions_def(graph, asset_key),
    )
    return set(subset.get_partition_keys())


def _find_states(
    cache: PartitionStatusCache, graph: AssetGraph, asset_key: AssetKey, partitions: set[str]
) -> dict[str, str]:
    """Finds the partitions that are not materialized, and their states in words."""
    statuses = cache.find(asset_key, sorted(partitions), get_partitions_def(graph, asset_key))
    words = {
        AssetPartitionStatus.FAILED: _LOST,
        AssetPartitionStatus.IN_PROGRESS: _IN_PROGRESS,
        None: _MISSING,
    }
    return {
        key: words[status]
        for key, status in statuses.items()
        if status is not AssetPartitionStatus.MATERIALIZED
    }


def _find_provisional(
    instance: DagsterInstance, asset_key: AssetKey, partitions: Collection[str]
) -> set[str]:
    """Finds those whose latest materialization says that it is to be run again."""
    latest = find_latest_materializations(instance, asset_key, partitions)
    return {
        key
        for key, record in latest.items()
        if record.asset_materialization and PROVISIONAL in record.asset_materialization.metadata
    }


def get_partitions_def(graph: AssetGraph, key: AssetKey) -> PartitionsDefinition:
    """Returns those of an asset that has partitions, as all of this project's have."""
    partitions_def = graph.get(key).partitions_def
    assert partitions_def is not None, f"{key.to_user_string()} has no partitions"
    return partitions_def
