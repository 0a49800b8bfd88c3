"""What a pause kept Dagster from requesting of a backfill, to be requested once its runs are done.

Dagster takes a run that paused for one that failed, and requests nothing that reads from it: days
that read hours, or tables of other ranges. The runs that go on after it Dagster doesn't wait for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError
from backfill_engine.orchestration.backfills.backfills import find_never_requested, read_backfill
from backfill_engine.orchestration.backfills.cancelling import is_cancelled
from backfill_engine.orchestration.backfills.resuming import (
    Resumer,
    Resumption,
    find_told_run,
)
from backfill_engine.orchestration.due.readiness import find_upstream_tables, get_partitions_def
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.ranges import find_ranges
from backfill_engine.orchestration.runs.chains import SETTLE_SECONDS, find_why_at_work
from backfill_engine.orchestration.runs.pausing import find_why_none_may_go
from backfill_engine.orchestration.runs.run_tags import PAUSED_TAG, SETTLED, WENT_ON, find_chain

_LISTED_RUNS = 200


@dataclass(frozen=True)
class Remainder:
    """A run that no run of a backfill was requested for before.

    Attributes:
        told: a run that was told what this is to be told; its id is the backfill's.
        continues: the paused run that it goes on after.
        assets: upstream ones first.
        first: first partition key.
        last: last one, included.
    """

    told: DagsterRun
    continues: str
    assets: tuple[AssetKey, ...]
    first: str
    last: str


@dataclass
class Remainders:
    """What a look at backfills that were paused came to; filled while it goes on.

    Attributes:
        requested: the runs to request.
        waiting: backfills that are not done yet, and why, a line each.
        left_alone: what was never requested and can't go, and why, a line each.
    """

    requested: list[Remainder] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    left_alone: list[str] = field(default_factory=list)


def look_for_remainders(resumer: Resumer, *, now: datetime) -> Remainders:
    """Looks at the backfills of which a paused run was gone on with; each until nothing is left.

    What reads from a remainder comes at the next look, once that is published. What can't go then,
    as what it reads was withheld, is left to `resume`.

    Args:
        resumer: finds what can go.
        now: UTC.
    """
    found, instance = Remainders(), resumer.instance
    paused = RunsFilter(statuses=[DagsterRunStatus.FAILURE], tags={PAUSED_TAG: WENT_ON})
    by_chain: dict[str, list[DagsterRun]] = {}
    for run in instance.get_runs(paused, limit=_LISTED_RUNS)[::-1]:
        by_chain.setdefault(find_chain(run), []).append(run)
    for chain_id, runs in by_chain.items():
        if instance.get_backfill(chain_id) is None or is_cancelled(instance, chain_id):
            _settle(instance, runs)
            continue
        try:
            why = _look(resumer, chain_id, runs, found, now=now)
        except BackfillError as error:
            why = str(error)
        if why:
            found.waiting.append(f"backfill {chain_id}: {why}")
    return found


def _look(
    resumer: Resumer,
    chain_id: str,
    paused: Sequence[DagsterRun],
    found: Remainders,
    *,
    now: datetime,
) -> str:
    """Looks at one backfill; returns why nothing of it can be requested yet."""
    instance = resumer.instance
    backfill = read_backfill(resumer.catalog, instance, chain_id)
    if why := find_why_at_work(instance, backfill.chain, now=now, settle_seconds=SETTLE_SECONDS):
        return why
    if backfill.error:  # Of Dagster's own: a person is to look at it first.
        _settle(instance, paused)
        return ""
    left = resumer.find_ready(backfill, find_never_requested(resumer.catalog, instance, backfill))
    found.left_alone += left.describe_left_alone()
    if not left.partitions:
        _settle(instance, paused)
        return ""
    told, reasons = find_told_run(backfill), []
    for assets, ranges in _list_first_groups(resumer.catalog, resumer.graph, left):
        if why := find_why_none_may_go(instance, told, assets, now=now):
            reasons.append(why)
            continue
        found.requested += [
            Remainder(told, paused[-1].run_id, assets, first, last) for first, last in ranges
        ]
    return "; ".join(dict.fromkeys(reasons))


def _list_first_groups(
    catalog: Catalog, graph: AssetGraph, left: Resumption
) -> list[tuple[tuple[AssetKey, ...], Sequence[tuple[str, str]]]]:
    """Lists what reads nothing else that is left: tables of one run each, and their ranges."""
    ranges = {
        key.to_user_string(): find_ranges(get_partitions_def(graph, key), keys)
        for key, keys in left.partitions.items()
    }
    return [
        (tuple(map(AssetKey.from_user_string, tables)), ranges[tables[0]])
        for tables in group_tables(catalog, graph, ranges)
        if not reads_others(graph, tables, ranges)
    ]


def _settle(instance: DagsterInstance, runs: Sequence[DagsterRun]) -> None:
    for run in runs:
        instance.add_run_tags(run.run_id, {PAUSED_TAG: SETTLED})


Ranges = Sequence[tuple[str, str]]


def group_tables(
    catalog: Catalog, graph: AssetGraph, ranges: Mapping[str, Ranges]
) -> list[tuple[str, ...]]:
    """Groups tables so that each group can be one run for each of its ranges.

    Run in their order, each finds what it reads.

    Args:
        catalog: of the code location.
        graph: of all assets.
        ranges: first and last keys by table, upstream ones first.
    """
    groups: list[list[str]] = []
    placed: dict[str, int] = {}
    for table in ranges:
        at = max((placed.get(key, -1) for key in _list_upstream(graph, table)), default=-1)
        if at < 0 or not _is_alike(catalog, ranges, groups[at][0], table):
            groups.append([])
            at = len(groups) - 1
        groups[at].append(table)
        placed[table] = at
    return [tuple(group) for group in groups]


def reads_others(graph: AssetGraph, group: Sequence[str], ranges: Mapping[str, Ranges]) -> bool:
    """Tells whether any of a group reads a table of `ranges` that is not of the group."""
    return any(
        upstream in ranges and upstream not in group
        for table in group
        for upstream in _list_upstream(graph, table)
    )


def _list_upstream(graph: AssetGraph, table: str) -> list[str]:
    upstream = find_upstream_tables(graph, AssetKey.from_user_string(table))
    return [key.to_user_string() for key in upstream]


def _is_alike(catalog: Catalog, ranges: Mapping[str, Ranges], one: str, other: str) -> bool:
    same_grain = catalog.find_table(one).grain == catalog.find_table(other).grain
    return same_grain and list(ranges[one]) == list(ranges[other])
