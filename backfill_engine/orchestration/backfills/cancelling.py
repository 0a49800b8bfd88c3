"""Cancels a backfill or a run, and what is at work of it, at once; what was published stays whole.

Dagster's daemon would come to it at its next look, half a minute later, and where none is running
nobody would.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError
from backfill_engine.orchestration.backfills.backfills import (
    awaits_shell,
    find_whole_id,
    read_backfill,
)
from backfill_engine.orchestration.instance.dagster_internals import BulkActionStatus
from backfill_engine.orchestration.instance.processes import has_daemon, interrupt
from backfill_engine.orchestration.runs.chains import UNFINISHED, Chain, read_chain
from backfill_engine.orchestration.runs.claims import find_dead_runs, find_worker
from backfill_engine.orchestration.runs.pausing import drop_paused
from backfill_engine.orchestration.runs.run_tags import (
    CONTINUES_TAG,
    FOREGROUND_CANCELLED_TAG,
    find_chain,
)

_LOOK_AGAIN_SECONDS = 0.5
_ASK_AGAIN_SECONDS = 2.0


@dataclass(frozen=True)
class Cancellation:
    """What a cancellation came to.

    Attributes:
        id: of the backfill or the run.
        ended: runs that were queued or at work and have ended.
        unfinished: runs that were asked to end, and have not yet.
        by_daemon: whether a daemon is left to call the backfill cancelled, within half a minute.
        by_shell: whether the shell that makes its runs was told to make no more, and has not ended.
    """

    id: str
    ended: Sequence[str]
    unfinished: Sequence[str]
    by_daemon: bool
    by_shell: bool = False


def is_cancelled(instance: DagsterInstance, backfill_id: str) -> bool:
    """Tells whether a backfill was cancelled, or is being so: nothing goes on from its runs."""
    record = instance.get_backfill(backfill_id)
    return record is not None and record.status in (
        BulkActionStatus.CANCELING,
        BulkActionStatus.CANCELED,
    )


def describe_wanted(catalog: Catalog, instance: DagsterInstance, wanted: str) -> str:
    """Describes in a line what would be cancelled: a backfill, a chain of runs, or one run of one.

    Raises:
        HistoryError: if there is no such backfill or run.
    """
    whole = find_whole_id(catalog, instance, wanted)
    return read_backfill(catalog, instance, whole, chain=_read_wanted(instance, whole)).title


def cancel(
    catalog: Catalog,
    instance: DagsterInstance,
    wanted: str,
    *,
    wait_seconds: float,
    silent_seconds: int,
) -> Cancellation:
    """Cancels a backfill and all its runs, or one run and those that continue it.

    The first run of a chain that is of no backfill stands for the whole chain.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        wanted: id of either, or the beginning of it.
        wait_seconds: for how long to wait for the runs to end.
        silent_seconds: as in `find_dead_runs`.

    Raises:
        HistoryError: if there is no such backfill or run.
        BackfillError: if it is over.
    """
    whole = find_whole_id(catalog, instance, wanted)
    backfill = read_backfill(catalog, instance, whole, chain=_read_wanted(instance, whole))
    record, was_paused = backfill.record, drop_paused(instance, backfill.chain.runs)
    is_to_come = record is not None and not backfill.is_settled
    is_at_work = bool(backfill.unfinished_runs) or _awaits_shell(catalog, instance, whole)
    if not (was_paused or is_at_work or is_to_come):
        status = (record or backfill.chain.runs[0]).status.value.lower().replace("_", " ")
        raise BackfillError(
            f"{backfill.kind} {whole} is over ({status}): there is nothing to cancel"
        )
    if record is not None and (is_at_work or is_to_come):
        # What Dagster called failed, as a run of it paused or withheld, it looks at no more.
        status = BulkActionStatus.CANCELING if is_to_come else BulkActionStatus.CANCELED
        instance.update_backfill(record.with_status(status))
    deadline = time.monotonic() + wait_seconds
    asked = _end_runs(instance, whole, deadline=deadline, silent_seconds=silent_seconds)
    by_shell = not _end_shell(catalog, instance, whole, deadline=deadline)
    unfinished = [run.run_id for run in _find_unfinished(instance, whole)]
    record = instance.get_backfill(whole)
    by_daemon = False
    if record is not None and record.status is BulkActionStatus.CANCELING:
        by_daemon = has_daemon(instance)
        if not (by_daemon or unfinished):
            ended = record.with_status(BulkActionStatus.CANCELED)
            instance.update_backfill(ended.with_end_timestamp(datetime.now(tz=UTC).timestamp()))
    return Cancellation(whole, sorted(asked - set(unfinished)), unfinished, by_daemon, by_shell)


def _read_wanted(instance: DagsterInstance, whole: str) -> Chain:
    """Reads a backfill, a chain of runs by its first one, or one run and those that continue it."""
    run = instance.get_run_by_id(whole)
    if run is None or find_chain(run) == whole:
        return read_chain(instance, whole)
    members = (RunsFilter(run_ids=[whole]), RunsFilter(tags={CONTINUES_TAG: whole}))
    records = (record for member in members for record in instance.get_run_records(member))
    return Chain(whole, "", tuple(records))


def _find_unfinished(instance: DagsterInstance, whole: str) -> list[DagsterRun]:
    return [run for run in _read_wanted(instance, whole).runs if run.status in UNFINISHED]


def _end_runs(
    instance: DagsterInstance, whole: str, *, deadline: float, silent_seconds: int
) -> set[str]:
    """Asks runs to end, those too that appear meanwhile, and waits until they have.

    One of which nothing could be reached yet, as its process only starts, is asked again.
    """
    asked: set[str] = set()
    ask_again_at: dict[str, float] = {}
    while runs := _find_unfinished(instance, whole):
        now = datetime.now(tz=UTC)
        dead = find_dead_runs(instance, now=now, silent_seconds=silent_seconds)
        for run in runs:
            if run.run_id in dead:
                _report_cancelled(instance, run, f"cancelled; {dead[run.run_id]}")
            elif run.status is DagsterRunStatus.QUEUED:
                _report_cancelled(instance, run, "cancelled in the queue")
            elif (
                run.status is not DagsterRunStatus.NOT_STARTED
                and time.monotonic() >= ask_again_at.get(run.run_id, 0)
            ):
                reached = _interrupt_run(instance, run)
                wait = math.inf if reached else _ASK_AGAIN_SECONDS
                ask_again_at[run.run_id] = time.monotonic() + wait
            asked.add(run.run_id)
        if time.monotonic() >= deadline:
            break
        time.sleep(_LOOK_AGAIN_SECONDS)
    return asked


def _awaits_shell(catalog: Catalog, instance: DagsterInstance, chain_id: str) -> bool:
    return awaits_shell(read_backfill(catalog, instance, chain_id), now=datetime.now(tz=UTC))


def _end_shell(
    catalog: Catalog, instance: DagsterInstance, chain_id: str, *, deadline: float
) -> bool:
    """Lets a shell that is between two of its runs make no more; returns whether it has ended.

    A run that it has just begun it ends itself.
    """
    if not instance.has_run(chain_id) or not _awaits_shell(catalog, instance, chain_id):
        return True
    instance.add_run_tags(chain_id, {FOREGROUND_CANCELLED_TAG: "true"})
    while _awaits_shell(catalog, instance, chain_id):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_AGAIN_SECONDS)
    return True


def _report_cancelled(instance: DagsterInstance, run: DagsterRun, why: str) -> None:
    if run.status is not DagsterRunStatus.CANCELING:
        instance.report_run_canceling(run, why)
    instance.report_run_canceled(run, why)


def _interrupt_run(instance: DagsterInstance, run: DagsterRun) -> bool:
    """Interrupts a run that works: by its launcher, or else its process, as Ctrl-C does.

    Returns whether either could be reached.

    The launcher reaches what a code server runs; what a shell runs, and what has outlived its
    server, is a process of this machine, if of any that can be reached.
    """
    if run.remote_job_origin is not None:
        try:
            if instance.run_launcher.terminate(run.run_id):
                return True
        except Exception as error:  # whatever a server that is gone makes of it
            instance.report_engine_event(
                f"the code server can't be asked to end the run ({type(error).__name__}): "
                "its process is interrupted, if it can be seen",
                dagster_run=run,
            )
    elif run.status is not DagsterRunStatus.CANCELING:
        instance.report_run_canceling(run, "cancelled")
    worker = find_worker(run)
    return worker is not None and interrupt(worker)
