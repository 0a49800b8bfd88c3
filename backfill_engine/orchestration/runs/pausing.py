"""Runs that are paused between chunks, and what can go on after a run: the instance remembers it.

A run looks between its chunks whether somebody paused it, or its window has closed. It then ends,
with a tag that says so; a sensor asks for the rest of it once it may go on. A run that withheld
partitions goes on past these.
"""

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from dagster import (
    AssetKey,
    AssetSelection,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    RunsFilter,
)

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError
from backfill_engine.grains.grain import is_in_range
from backfill_engine.lake.origins import find_user
from backfill_engine.lake.protections import read_protections
from backfill_engine.lake.served_versions import find_unread
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.due.readiness import find_readiness, get_partitions_def
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph, find_run_assets
from backfill_engine.orchestration.instance.own_runs import TAG_PREFIX
from backfill_engine.orchestration.instance.ranges import describe_ranges, find_ranges, shorten
from backfill_engine.orchestration.runs.features import CODE_TAG
from backfill_engine.orchestration.runs.protecting import split_protected
from backfill_engine.orchestration.runs.run_options import read_asset_options, read_override
from backfill_engine.orchestration.runs.run_tags import (
    CHAIN_TAG,
    CONTINUES_TAG,
    DROPPED,
    FOREGROUND_CANCELLED_TAG,
    FOREGROUND_ENDED_TAG,
    FOREGROUND_TAG,
    GOES_ON_WITH_TAG,
    PAUSED,
    PAUSED_AT_TAG,
    PAUSED_TAG,
    PRIORITY_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    REFUSED_TAG,
    WENT_ON,
    WITHHELD_TAG,
    find_chain,
    find_run_range,
    is_paused,
)
from backfill_engine.publishing.pacing import DailyWindow, parse_window

_LISTED_RUNS = 200
_PAUSE_KEY = "backfill_assets/paused/"


class PausedError(BackfillError):
    """A run ended between two chunks, and is to go on later."""


@dataclass(frozen=True)
class Pause:
    """Who paused a backfill or a run, when (UTC, ISO 8601), and why."""

    by: str
    at: str
    reason: str

    def __str__(self) -> str:
        """Writes it for people."""
        return f"{self.by} paused it at {self.at[:16]}" + (
            f": {self.reason}" if self.reason else ""
        )


def pause(instance: DagsterInstance, chain_id: str, *, reason: str, now: dt.datetime) -> Pause:
    """Notes that a backfill, or the runs that continue a run, are to stop after their chunk.

    Args:
        instance: the Dagster instance.
        chain_id: the backfill, or the first of the runs.
        reason: why; may be empty.
        now: UTC.
    """
    found = Pause(find_user(), now.isoformat(timespec="seconds"), reason)
    text = json.dumps(asdict(found))
    instance.daemon_cursor_storage.set_cursor_values({_PAUSE_KEY + chain_id: text})
    return found


def unpause(instance: DagsterInstance, chain_id: str) -> bool:
    """Takes a pause back; returns whether there was one."""
    was_paused = find_pause(instance, chain_id) is not None
    instance.daemon_cursor_storage.set_cursor_values({_PAUSE_KEY + chain_id: ""})
    return was_paused


def find_pause(instance: DagsterInstance, chain_id: str) -> Pause | None:
    """Finds who paused a backfill or a run; None if nobody did, or it was taken back."""
    key = _PAUSE_KEY + chain_id
    text = instance.daemon_cursor_storage.get_cursor_values({key}).get(key)
    return Pause(**json.loads(text)) if text else None


def check_may_go_on(
    instance: DagsterInstance,
    run: DagsterRun,
    table: str,
    window: DailyWindow | None,
    *,
    now: dt.datetime,
    left: int,
    of: int,
) -> None:
    """Checks between two chunks whether a run may begin the next one.

    Args:
        instance: the Dagster instance.
        run: the run.
        table: that it works on, `layer/name`.
        window: in which its chunks may begin; None for always.
        now: UTC.
        left: partitions that are to come.
        of: all.

    Raises:
        PausedError: if it may not; the run is tagged then, so that it is found again.
    """
    why = find_why_paused(instance, find_chain(run), window, now=now)
    if not why:
        return
    stored = instance.get_run_by_id(run.run_id)
    assert stored is not None
    others = stored.tags.get(PAUSED_AT_TAG, "").split(",")
    tables = ",".join(filter(None, dict.fromkeys([*others, table])))
    instance.add_run_tags(run.run_id, {PAUSED_TAG: PAUSED, PAUSED_AT_TAG: tables})
    raise PausedError(
        f"{table}: paused, {left} of {of} partitions left: {why}; what was published stays, and "
        "where a daemon runs the rest of this run goes on by itself then"
    )


def find_why_paused(
    instance: DagsterInstance, chain_id: str, window: DailyWindow | None, *, now: dt.datetime
) -> str:
    """Finds why no chunk may begin now; empty if one may."""
    found = find_pause(instance, chain_id)
    if found is not None:
        return f"{found}, until `backfill-assets backfill resume {chain_id}`"
    if window is not None and not window.is_open(now):
        return f"until its window opens, {window} UTC"
    return ""


def list_paused_runs(instance: DagsterInstance) -> list[DagsterRun]:
    """Lists runs that ended paused and that none went on with, the oldest first.

    Those that another run did go on with are marked so. One that goes on just after what they
    withheld is none of these.
    """
    waiting = RunsFilter(statuses=[DagsterRunStatus.FAILURE], tags={PAUSED_TAG: PAUSED})
    found: list[DagsterRun] = []
    for run in instance.get_runs(waiting, limit=_LISTED_RUNS)[::-1]:
        if instance.get_runs(RunsFilter(tags={GOES_ON_WITH_TAG: run.run_id}), limit=1):
            instance.add_run_tags(run.run_id, {PAUSED_TAG: WENT_ON})
        else:
            found.append(run)
    return found


def list_paused_at(run: DagsterRun) -> list[AssetKey]:
    """Lists the assets between whose chunks a run ended."""
    return [AssetKey.from_user_string(key) for key in run.tags[PAUSED_AT_TAG].split(",")]


def find_why_none_may_go(
    instance: DagsterInstance, run: DagsterRun, keys: Iterable[AssetKey], *, now: dt.datetime
) -> str:
    """Finds why none of some assets may go by what a run was told; empty as soon as one may.

    Each has a window of its own, and these may never be open together: one that may not go yet
    pauses again where the run comes to it, and has lost nothing.

    Args:
        instance: the Dagster instance.
        run: the run.
        keys: of the assets, at least one.
        now: UTC.
    """
    windows = dict.fromkeys(read_asset_options(run, key).window for key in keys)
    reasons = [
        find_why_paused(
            instance, find_chain(run), parse_window(window) if window else None, now=now
        )
        for window in windows
    ]
    return " or ".join(dict.fromkeys(reasons)) if all(reasons) else ""


def drop_paused(instance: DagsterInstance, runs: Iterable[DagsterRun]) -> bool:
    """Lets nothing go on with those of the runs that are paused; returns whether any was."""
    paused = [run for run in runs if is_paused(run)]
    for run in paused:
        instance.add_run_tags(run.run_id, {PAUSED_TAG: DROPPED})
    return bool(paused)


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
    keys = [key for key in partitions_def.get_partition_keys() if is_in_range(key, first, last)]
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
