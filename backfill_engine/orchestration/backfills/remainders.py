"""What a pause kept Dagster from requesting of a backfill, to be requested once its runs are done.

Dagster takes a run that paused for one that failed, and requests nothing that reads from it: days
that read hours, or tables of other ranges. The runs that go on after it Dagster doesn't wait for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from dagster import AssetKey, DagsterRun, DagsterRunStatus, RunsFilter

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError
from backfill_engine.orchestration.backfills.backfills import find_never_requested, read_backfill
from backfill_engine.orchestration.backfills.resuming import (
    Resumer,
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
        ends: first and last partition key.
    """

    told: DagsterRun
    continues: str
    assets: tuple[AssetKey, ...]
    ends: tuple[str, str]


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
    as what it reads was withheld, is left to `backfill retry`.

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
        before = len(found.requested)
        try:
            why = _look(resumer, chain_id, runs[-1].run_id, found, now=now)
        except BackfillError as error:
            why = str(error)
        if why:
            found.waiting.append(f"backfill {chain_id}: {why}")
        elif len(found.requested) == before:
            for run in runs:
                instance.add_run_tags(run.run_id, {PAUSED_TAG: SETTLED})
    return found


def _look(
    resumer: Resumer, chain_id: str, continues: str, found: Remainders, *, now: datetime
) -> str:
    """Looks at one backfill; returns why not all of it can be requested yet."""
    catalog, instance, graph = resumer.catalog, resumer.instance, resumer.graph
    backfill = read_backfill(catalog, instance, chain_id)
    if backfill.record is None or backfill.is_cancelled:
        return ""
    if why := find_why_at_work(instance, backfill.chain, now=now, settle_seconds=SETTLE_SECONDS):
        return why
    if backfill.error:  # Of Dagster's own: a person is to look at it first.
        return ""
    left = resumer.find_ready(backfill, find_never_requested(catalog, instance, backfill))
    found.left_alone += left.describe_left_alone()
    ranges = {
        key.to_user_string(): find_ranges(get_partitions_def(graph, key), keys)
        for key, keys in left.partitions.items()
    }
    told, reasons = find_told_run(backfill), []
    for tables in group_tables(catalog, graph, ranges):
        if _reads_others(graph, tables, ranges):
            continue  # It comes at a later look.
        assets = tuple(map(AssetKey.from_user_string, tables))
        if why := find_why_none_may_go(instance, told, assets, now=now):
            reasons.append(why)
        else:
            ends = ranges[tables[0]]
            found.requested += [Remainder(told, continues, assets, each) for each in ends]
    return "; ".join(dict.fromkeys(reasons))


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


def _reads_others(graph: AssetGraph, group: Sequence[str], ranges: Mapping[str, Ranges]) -> bool:
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
