"""What was launched: a list, a look at one while it goes on, its end, and what is left of it."""

import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_engine.cli.location import load_catalog, load_graph, open_instance
from backfill_engine.cli.options import AsJson, Yes, build_origin
from backfill_engine.cli.terminal import confirm, echo, print_answer, print_grid, print_json
from backfill_engine.errors import HistoryError

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from backfill_engine.orchestration.backfills.cancelling import Cancellation
    from backfill_engine.orchestration.backfills.progress_reader import Progress

BackfillId = Annotated[
    str, typer.Argument(metavar="ID", help="A backfill, or a run; its id, or the beginning of it.")
]

_STILL_AT_WORK_EXIT = 3
_CANCELLED_EXIT = 130
_LOOK_AGAIN_SECONDS = 1.0
_MOST_LISTED = 100_000

app = typer.Typer(
    no_args_is_help=True, help="Backfills that were launched: listed, watched, paused, retried."
)


@app.command("list")
def list_launched(
    limit: Annotated[
        int, typer.Option(min=1, max=_MOST_LISTED, help="Most backfills to list.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """List backfills, newest first: who launched what, why, when, and what came of it.

    Published counts what was published by a backfill, the runs that continue it, or others since;
    held back is what was withheld, failed, cancelled, or never requested.

    Example: backfill-assets backfill list --limit 5
    """
    from backfill_engine.cli.progress_lines import build_grid, describe_backfill
    from backfill_engine.orchestration.backfills.backfills import list_backfills
    from backfill_engine.orchestration.backfills.progress_reader import ProgressReader

    catalog = load_catalog()
    with open_instance() as instance:
        reader = ProgressReader(catalog, instance, planners={})
        now = datetime.now(tz=UTC)
        listed = [
            reader.measure(backfill, now=now)
            for backfill in list_backfills(catalog, instance, limit=limit)
        ]
    if as_json:
        print_json([describe_backfill(progress) for progress in listed])
    elif listed:
        print_grid(build_grid(listed))
    else:
        echo("no backfill was ever asked for in this Dagster home")


@app.command()
def watch(
    backfill: BackfillId,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Seconds after which to stop watching.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Watch a backfill until it is over: partitions done by table, pace, time left, its outcome.

    Retries of its runs and runs that continue it count as it. A paused backfill is not over. Ctrl-C
    ends only the watching. With --json each change is a line, an object; the last is the outcome.

    Exit 0: all is published; 1: something was withheld or failed; 3: what isn't published waits for
    what never came, or the time is over; 130: it was cancelled, or the watching was.

    Example: backfill-assets backfill watch 0a1b2c3d
    """
    from backfill_engine.cli.progress_lines import print_outcome, show_progress
    from backfill_engine.orchestration.backfills.backfills import find_backfill
    from backfill_engine.orchestration.backfills.outcomes import find_outcome
    from backfill_engine.orchestration.backfills.progress_reader import ProgressReader

    catalog = load_catalog()
    with open_instance() as instance:
        watched = find_backfill(catalog, instance, backfill)
        reader = ProgressReader(catalog, instance)
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            with show_progress(watched, as_json=as_json) as display:
                while True:
                    progress = reader.read(watched.id, now=datetime.now(tz=UTC))
                    display.show(progress)
                    _warn_of_what_is_in_the_way(instance, progress, display.warn)
                    is_late = deadline is not None and time.monotonic() >= deadline
                    if progress.is_over or is_late:
                        break
                    time.sleep(_LOOK_AGAIN_SECONDS)
        except KeyboardInterrupt:
            echo(f"nobody watches {watched.kind} {watched.id} now; it goes on", err=True)
            raise typer.Exit(_CANCELLED_EXIT) from None
        if not progress.is_over:
            echo(f"{watched.kind} {watched.id} is still at work: {progress.at_work}", err=True)
            raise typer.Exit(_STILL_AT_WORK_EXIT)
        outcome = find_outcome(catalog, instance, catalog.warehouse, progress)
    print_outcome(watched, outcome, as_json=as_json)
    if outcome.state == "cancelled":
        raise typer.Exit(_CANCELLED_EXIT)
    if outcome.state != "published":
        raise typer.Exit(_STILL_AT_WORK_EXIT if outcome.only_waits else 1)


def _warn_of_what_is_in_the_way(
    instance: "DagsterInstance", progress: "Progress", warn: Callable[[str], None]
) -> None:
    """Says what keeps a backfill from coming on, however long one watches."""
    from backfill_engine.orchestration.runs.claims import find_dead_runs

    if progress.is_over or progress.has_daemon:
        return  # A daemon marks dead runs failed, too.
    backfill = progress.backfill
    waits = any(run.status.value == "QUEUED" for run in backfill.chain.runs)
    if waits or not backfill.is_settled or progress.why_paused:
        warn(_describe_missing_daemon())
    silent_seconds = load_catalog().settings.silent_seconds
    dead = find_dead_runs(instance, now=progress.read_at, silent_seconds=silent_seconds)
    for run in backfill.unfinished_runs:
        if why := dead.get(run.run_id):
            warn(f"run {run.run_id} is dead: {why}; `backfill-assets recover` marks it failed")


def _describe_missing_daemon() -> str:
    from backfill_engine.orchestration.instance.processes import DAEMON_COMMANDS, NO_DAEMON

    return f"{NO_DAEMON}: it waits for {DAEMON_COMMANDS}"


@app.command()
def pause(
    backfill: BackfillId,
    reason: Annotated[str, typer.Option(help="Why, for whoever wonders.")] = "",
    as_json: AsJson = False,
) -> None:
    """Let a backfill, or a run, stop after the chunk that it works on; nothing is lost.

    Its runs end then, and those that are still queued do before they begin. What they published
    stays; `backfill resume` lets the rest go on.

    Example: backfill-assets backfill pause 0a1b2c3d --reason "the disk is full"
    """
    from backfill_engine.orchestration.backfills.backfills import find_backfill
    from backfill_engine.orchestration.runs.pausing import pause as note_pause
    from backfill_engine.orchestration.runs.run_tags import is_paused

    with open_instance() as instance:
        named = find_backfill(load_catalog(), instance, backfill)
        if named.ended_at is not None and not any(map(is_paused, named.chain.runs)):
            raise HistoryError(f"{named.kind} {named.id} is over: there is nothing to pause")
        note = note_pause(instance, named.id, reason=reason, now=datetime.now(tz=UTC))
    answer = {"id": named.id, "kind": named.kind, **asdict(note)}
    line = f"{named.kind} {named.id}: {note}; it ends after the chunk at work"
    print_answer(answer, lambda _: echo(line), as_json=as_json)


@app.command()
def resume(backfill: BackfillId, as_json: AsJson = False) -> None:
    """Let what is left of a paused backfill go on; the daemon's sensor asks for it.

    Example: backfill-assets backfill resume 0a1b2c3d
    """
    from backfill_engine.orchestration.backfills.backfills import find_backfill
    from backfill_engine.orchestration.instance.processes import has_daemon
    from backfill_engine.orchestration.runs.pausing import unpause

    with open_instance() as instance:
        named = find_backfill(load_catalog(), instance, backfill)
        if not unpause(instance, named.id):
            raise HistoryError(f"{named.kind} {named.id} is not paused: nothing was changed")
        is_served = has_daemon(instance)
    answer = {"id": named.id, "kind": named.kind, "has_daemon": is_served}
    line = f"{named.kind} {named.id}: the sensor go_on_after_pause asks for what is left"
    print_answer(answer, lambda _: echo(line), as_json=as_json)
    if not is_served:
        echo(_describe_missing_daemon(), err=True)


@app.command()
def retry(
    backfill: BackfillId,
    take_all: Annotated[
        bool, typer.Option("--all", help="Also what was withheld and has the same input and code.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Ask Dagster for a backfill of just what is not published of another, and can be now.

    That is what failed, was cancelled or never came to its turn; what was withheld, if its input or
    its code is another one since; and what waited for these. Reason, tags and configuration are
    those of the other. Refused while runs of it are at work.

    Example: backfill-assets backfill retry 0a1b2c3d --yes
    """
    from backfill_engine.orchestration.backfills.backfills import find_backfill
    from backfill_engine.orchestration.backfills.progress_reader import ProgressReader
    from backfill_engine.orchestration.backfills.resuming import Resumer, request_resumption

    catalog, graph = load_catalog(), load_graph()
    catalog.warehouse.check_root()
    with open_instance() as instance:
        wanted, now = find_backfill(catalog, instance, backfill).id, datetime.now(tz=UTC)
        progress = ProgressReader(catalog, instance).read(wanted, now=now)
        resumer = Resumer(instance, graph, catalog.warehouse, catalog, catalog.settings.landing)
        rest = resumer.find(progress, take_all=take_all)
        ranges, left_alone = rest.describe_partitions(), rest.describe_left_alone()
        for line in left_alone:
            echo(f"left alone: {line}", err=True)
        requested, title = "", ""
        if rest.count:
            for table, listed in ranges.items():
                echo(f"{table} {', '.join(listed)}", err=as_json)
            if not yes:
                confirm(f"ask for these {rest.count} partitions?", is_aside=as_json)
            requested, title = request_resumption(instance, graph, rest, build_origin())
    answer = {
        "backfill_id": requested,
        "title": title,
        "resumes": rest.backfill.id,
        "partitions": rest.count,
        "ranges": ranges,
        "left_alone": left_alone,
    }
    why = "nothing can go now" if left_alone else "all of it is published"
    nothing = f"nothing is left to retry of {rest.backfill.id}: {why}"
    line = f"requested backfill {requested}: {title}" if requested else nothing
    print_answer(answer, lambda _: echo(line), as_json=as_json)
    if requested and not progress.has_daemon:
        echo(_describe_missing_daemon(), err=True)


@app.command()
def cancel(
    backfill: BackfillId,
    yes: Yes = False,
    timeout: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for its runs to end.")
    ] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Cancel a backfill and all its runs, or one run and those that continue it.

    The first run of a chain that is of no backfill stands for all of the chain. What was published
    stays. Exit 1: it is over, or not all of its runs have ended in time.

    Example: backfill-assets backfill cancel 0a1b2c3d --yes
    """
    from backfill_engine.orchestration.backfills import cancelling

    catalog = load_catalog()
    with open_instance() as instance:
        if not yes:
            described = cancelling.describe_wanted(catalog, instance, backfill)
            confirm(f"cancel {backfill} ({described})?", is_aside=as_json)
        done = cancelling.cancel(
            catalog,
            instance,
            backfill,
            wait_seconds=timeout,
            silent_seconds=catalog.settings.silent_seconds,
        )
    print_answer(done, _print_cancellation, as_json=as_json)
    if done.by_shell:
        echo(
            f"the shell that makes its runs has not ended within {timeout:g} s; it was told to: "
            "the same command asks again",
            err=True,
        )
    if done.unfinished:
        echo(
            f"not ended within {timeout:g} s: {', '.join(done.unfinished)}; they were asked to: "
            f"`backfill-assets backfill watch {done.id[:8]}` waits for them, the same command asks "
            "again",
            err=True,
        )
    if done.unfinished or done.by_shell:
        raise typer.Exit(1)


def _print_cancellation(done: "Cancellation") -> None:
    echo(f"cancelled {done.id}: {len(done.ended)} of its runs have ended by it")
    if done.by_daemon:
        echo("the UI shows it as cancelled once the daemon looks again: within 30 s")
