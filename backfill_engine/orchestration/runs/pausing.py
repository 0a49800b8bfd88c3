"""Runs that are paused between chunks, and that go on: the Dagster instance is the only memory.

A run looks between its chunks whether somebody paused it, or its window has closed. It then ends,
with a tag that says so; a sensor asks for the rest of it once it may go on.
"""

import datetime as dt
import getpass
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from backfill_engine.errors import BackfillError
from backfill_engine.orchestration.runs.run_options import read_asset_options
from backfill_engine.orchestration.runs.run_tags import (
    DROPPED,
    GOES_ON_WITH_TAG,
    PAUSED,
    PAUSED_AT_TAG,
    PAUSED_TAG,
    WENT_ON,
    find_chain,
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
    found = Pause(getpass.getuser(), now.isoformat(timespec="seconds"), reason)
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
        return f"{found}, until `backfill-assets unpause {chain_id}`"
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
