"""What can go on after a run: past partitions that it withheld, or with what a pause left of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from dagster import AssetKey, AssetSelection, DagsterInstance, DagsterRun

from backfill_engine.catalog import Catalog
from backfill_engine.lake.protections import read_protections
from backfill_engine.lake.served_versions import find_unread
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.due.readiness import find_readiness, get_partitions_def
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph, find_run_assets
from backfill_engine.orchestration.instance.own_runs import TAG_PREFIX
from backfill_engine.orchestration.instance.ranges import describe_ranges, find_ranges, shorten
from backfill_engine.orchestration.runs.pausing import list_paused_at
from backfill_engine.orchestration.runs.pinned_code import CODE_TAG, PINNED_TAG
from backfill_engine.orchestration.runs.protecting import split_protected
from backfill_engine.orchestration.runs.run_options import read_override
from backfill_engine.orchestration.runs.run_tags import (
    CHAIN_TAG,
    CONTINUES_TAG,
    FOREGROUND_CANCELLED_TAG,
    FOREGROUND_ENDED_TAG,
    FOREGROUND_TAG,
    GOES_ON_WITH_TAG,
    PAUSED_AT_TAG,
    PAUSED_TAG,
    PRIORITY_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    REFUSED_TAG,
    WITHHELD_TAG,
    find_chain,
    find_run_range,
)

_LISTED = 7

_OF_ONE_RUN = {
    CODE_TAG,
    CONTINUES_TAG,
    FOREGROUND_CANCELLED_TAG,
    FOREGROUND_ENDED_TAG,
    FOREGROUND_TAG,
    GOES_ON_WITH_TAG,
    PAUSED_AT_TAG,
    PAUSED_TAG,
    PINNED_TAG,
    REFUSED_TAG,
    WITHHELD_TAG,
}
"""Tags that tell what became of a run, or where it is; those that go on have their own."""


@dataclass(frozen=True)
class Continuation:
    """Runs that go on where a run stopped: each range once, for all the assets.

    Attributes:
        assets: those that did not get their turn, or were not done, upstream ones first.
        ranges: first and last keys of the partitions that can go.
        blocked: the other partitions of the first of the assets.
        reasons: why they can't go, a line each.
        protected: what could go and is left out, as it is protected, and why, a line each.
    """

    assets: tuple[AssetKey, ...] = ()
    ranges: tuple[tuple[str, str], ...] = ()
    blocked: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()

    def describe_nothing(self) -> str:
        """Says why there is no range to go on with."""
        if not self.assets:
            return "none of the run's assets comes after it"
        reasons = "; ".join(shorten((*self.reasons, *self.protected), _LISTED))
        return f"no partition of {self.assets[0].to_user_string()} can go: {reasons}"


def find_continuation(
    catalog: Catalog,
    instance: DagsterInstance,
    graph: AssetGraph,
    withheld: AssetKey | None,
    run: DagsterRun,
    *,
    warehouse: Warehouse,
) -> Continuation:
    """Finds what can go on after a run, by what is published and protected now.

    After what it withheld: the partitions whose upstream is published. Of a run that is paused:
    what it was not done with and what comes after, all of its partitions, as the chunks that are
    published are left then. A table that there is no more drops out.

    Args:
        catalog: of the code location.
        instance: knows it.
        graph: of all assets.
        withheld: the asset that withheld partitions, as Dagster ran nothing downstream of it; None
            of a run that is paused.
        run: the run that stopped.
        warehouse: the tables.

    Raises:
        BackfillError: if what is protected can't be read.
    """
    stopped_at = list_paused_at(run) if withheld is None else [withheld]
    downstream = AssetSelection.assets(*stopped_at).downstream(include_self=withheld is None)
    left = downstream.resolve(graph, allow_missing=True) & find_run_assets(instance, run)
    assets = tuple(key for key in graph.toposorted_asset_keys if key in left)
    if not assets:
        return Continuation()
    partitions_def = get_partitions_def(graph, assets[0])
    first, last = find_run_range(run) or ("", "")
    keys = [key for key in partitions_def.get_partition_keys() if first <= key <= last]
    blocked: Mapping[str, str] = {}
    if withheld is not None:
        log = read_log(warehouse, catalog.find_table(assets[0].to_user_string()))
        unread = find_unread(log)
        blocked = find_readiness(instance, graph, assets[0], keys, unread=unread).blocked
    ready = [key for key in keys if key not in blocked]
    tables = [
        catalog.find_table(key.to_user_string()) for key in assets if not read_override(run, key)
    ]
    ready, protected = split_protected(read_protections(warehouse), tables, ready)
    return Continuation(
        assets,
        tuple(find_ranges(partitions_def, ready)),
        tuple(blocked),
        tuple(describe_ranges(partitions_def, blocked)),
        tuple(protected),
    )


def build_continuing_tags(run: DagsterRun, first: str, last: str) -> dict[str, str]:
    """Builds the tags of a run that goes on after another: who asked for that one, why, and how.

    Args:
        run: the other.
        first: first partition key of the one that goes on.
        last: last partition key, included.
    """
    carried = {
        name: value
        for name, value in run.tags.items()
        if name == PRIORITY_TAG or (name.startswith(TAG_PREFIX) and name not in _OF_ONE_RUN)
    }
    return {
        **carried,
        RANGE_START_TAG: first,
        RANGE_END_TAG: last,
        CONTINUES_TAG: run.run_id,
        CHAIN_TAG: find_chain(run),
    }
