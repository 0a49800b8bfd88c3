"""What can go on after a step withheld partitions: the assets that come next, and their ranges."""

from dataclasses import dataclass

from dagster import AssetKey, AssetSelection, DagsterInstance, DagsterRun

from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.orchestration.dagster_internals import AssetGraph, find_run_assets
from backfill_assets.orchestration.protecting import leave_out_protected
from backfill_assets.orchestration.ranges import describe_ranges, find_ranges, shorten
from backfill_assets.orchestration.readiness import find_readiness, get_partitions_def

_LISTED = 7


@dataclass(frozen=True)
class Continuation:
    """Runs that go on where a run stopped: each range once, for all the assets.

    Attributes:
        assets: those that did not get their turn, upstream ones first.
        ranges: first and last keys of the partitions whose upstream is published.
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
    instance: DagsterInstance,
    graph: AssetGraph,
    stopped_at: AssetKey,
    run: DagsterRun,
    *,
    warehouse: Warehouse,
    first: str,
    last: str,
) -> Continuation:
    """Looks at what is published now.

    Args:
        instance: knows it.
        graph: of all assets.
        stopped_at: the asset that withheld partitions; Dagster ran nothing downstream of it.
        run: the run that stopped.
        warehouse: the tables.
        first: first partition key of the run.
        last: last partition key, included.
    """
    downstream = AssetSelection.assets(stopped_at).downstream(include_self=False).resolve(graph)
    selected = find_run_assets(instance, run)
    waiting = tuple(
        key for key in graph.toposorted_asset_keys if key in downstream and key in selected
    )
    if not waiting:
        return Continuation()
    partitions_def = get_partitions_def(graph, waiting[0])
    keys = [key for key in partitions_def.get_partition_keys() if first <= key <= last]
    blocked = find_readiness(instance, graph, waiting[0], keys).blocked
    ready = [key for key in keys if key not in blocked]
    ready, left_out = leave_out_protected(warehouse, run, waiting, ready)
    return Continuation(
        waiting,
        tuple(find_ranges(partitions_def, ready)),
        tuple(blocked),
        tuple(describe_ranges(partitions_def, blocked)),
        tuple(left_out),
    )
