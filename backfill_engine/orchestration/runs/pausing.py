"""Runs that are paused between chunks, and that go on: the Dagster instance is the only memory.

A run looks between its chunks whether somebody paused it, or its window has closed. It then ends,
with a tag that says so; a sensor asks for the rest of it once it may go on.

A run in chunks ends between two of them where one of higher priority waits for its place. Dagster's
queue goes by priority, and takes no place from a run that has one. So what comes first, such as the
daily run, waits for one chunk of a backfill at most.

A run that waits in the queue behind others doesn't wait for ever. Dagster's queue goes by priority
first, then by age, and no run gets older there: where what comes first never ends, as with a daily
run and late data on a machine that is too small, a backfill would never begin.
"""

import datetime as dt
import getpass
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from backfill_engine.errors import BackfillError
from backfill_engine.orchestration.instance.own_runs import is_ours
from backfill_engine.orchestration.runs.run_options import read_asset_options
from backfill_engine.orchestration.runs.run_tags import (
    AT_MOST_TAG,
    DROPPED,
    FOREGROUND_TAG,
    GOES_ON_WITH_TAG,
    PAUSED,
    PAUSED_AT_TAG,
    PAUSED_TAG,
    PRIORITY_TAG,
    WENT_ON,
    find_chain,
    is_paused,
)
from backfill_engine.publishing.pacing import DailyWindow, Pace, parse_window

_LISTED_RUNS = 200


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
    _write(instance, chain_id, json.dumps(asdict(found)))
    return found


def unpause(instance: DagsterInstance, chain_id: str) -> bool:
    """Takes a pause back; returns whether there was one."""
    was_paused = find_pause(instance, chain_id) is not None
    _write(instance, chain_id, "")
    return was_paused


def find_pause(instance: DagsterInstance, chain_id: str) -> Pause | None:
    """Finds who paused a backfill or a run; None if nobody did, or it was taken back."""
    key = _name_key(chain_id)
    text = instance.daemon_cursor_storage.get_cursor_values({key}).get(key)
    return Pause(**json.loads(text)) if text else None


def check_may_go_on(
    instance: DagsterInstance,
    run: DagsterRun,
    table: str,
    pace: Pace,
    *,
    now: dt.datetime,
    left: int,
    of: int,
    has_published: bool = False,
) -> None:
    """Checks between two chunks whether a run may begin the next one.

    Args:
        instance: the Dagster instance.
        run: the run.
        table: that it works on, `layer/name`.
        pace: of it.
        now: UTC.
        left: partitions that are to come.
        of: all.
        has_published: whether it published anything: only then it gives way to another, so that
            each time it gets somewhere.

    Raises:
        PausedError: if it may not; the run is tagged then, so that it is found again.
    """
    why = find_why_paused(instance, find_chain(run), pace.window, now=now)
    if not why and has_published and pace.chunk is not None:
        why = find_why_giving_way(instance, run)
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


def _name_key(chain_id: str) -> str:
    return f"backfill_assets/paused/{chain_id}"


def _write(instance: DagsterInstance, chain_id: str, text: str) -> None:
    instance.daemon_cursor_storage.set_cursor_values({_name_key(chain_id): text})


_WITH_A_PLACE = [
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


def find_why_giving_way(instance: DagsterInstance, run: DagsterRun) -> str:
    """Finds which run of ours waits for the place of this one, in words; empty if none does.

    One that waits though there is a place waits for something else.
    """
    if FOREGROUND_TAG in run.tags:
        return ""  # It has no place in the queue.
    at_work = instance.get_runs(RunsFilter(statuses=_WITH_A_PLACE))
    queued = [
        one
        for one in instance.get_runs(RunsFilter(statuses=[DagsterRunStatus.QUEUED]))
        if is_ours(one.tags) and not _waits_for_its_own(one, at_work)
    ]
    first = max(queued, key=find_priority, default=None)
    if first is None or find_priority(first) <= find_priority(run):
        return ""
    config = instance.get_concurrency_config().run_queue_config
    places = config.max_concurrent_runs if config is not None else -1
    if places < 0 or len(at_work) < places:
        return ""
    return f"run {first.run_id[:8]} comes first, by its priority, and had no place"


def _waits_for_its_own(run: DagsterRun, at_work: Sequence[DagsterRun]) -> bool:
    """Tells whether a run waits for runs of the same launch, which bounds how many there are."""
    bounds = [(tag, value) for tag, value in run.tags.items() if tag.startswith(AT_MOST_TAG)]
    return any(
        sum(other.tags.get(tag) == value for other in at_work) >= int(tag[len(AT_MOST_TAG) :])
        for tag, value in bounds
    )


def find_priority(run: DagsterRun) -> int:
    """Finds the priority of a run in the queue; 0 where its tag is no number."""
    text = run.tags.get(PRIORITY_TAG, "0")
    return int(text) if text.lstrip("+-").isdigit() else 0


LONGEST_WAIT = dt.timedelta(hours=6)
"""After which a run comes first as the daily run does, and before those that were made later."""


def put_forward_waited(instance: DagsterInstance, *, now: dt.datetime) -> list[DagsterRun]:
    """Gives runs of ours that have waited for so long the priority of a run that names none.

    Args:
        instance: the Dagster instance.
        now: UTC.

    Returns:
        The runs.
    """
    queued = RunsFilter(statuses=[DagsterRunStatus.QUEUED], created_before=now - LONGEST_WAIT)
    waited = [
        run for run in instance.get_runs(queued) if is_ours(run.tags) and find_priority(run) < 0
    ]
    for run in waited:
        instance.add_run_tags(run.run_id, {PRIORITY_TAG: "0"})
    return waited
