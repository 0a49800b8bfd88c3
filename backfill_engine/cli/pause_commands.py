"""`pause` and `unpause`: a backfill, or the runs of a chain, between two chunks."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_engine.cli.backfill_commands import BackfillId
from backfill_engine.cli.location import load_catalog
from backfill_engine.cli.options import AsJson, open_instance, print_json
from backfill_engine.cli.terminal import echo
from backfill_engine.errors import HistoryError

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from backfill_engine.orchestration.backfills.backfills import Backfill


def pause(
    backfill: BackfillId,
    reason: Annotated[str, typer.Option(help="Why, for whoever wonders.")] = "",
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Let a backfill, or a run, stop after the chunk that it works on; nothing is lost.

    Its runs end then, and those that are still queued do before they begin. What they published
    stays; `unpause` lets the rest go on.
    """
    from backfill_engine.orchestration.runs.pausing import pause as note_pause
    from backfill_engine.orchestration.runs.run_tags import is_paused

    with open_instance() as instance:
        named = _find_backfill(instance, backfill)
        if named.ended_at is not None and not any(map(is_paused, named.chain.runs)):
            raise HistoryError(f"{named.kind} {named.id} is over: there is nothing to pause")
        found = note_pause(instance, named.id, reason=reason, now=datetime.now(tz=UTC))
    if as_json:
        print_json({"id": named.id, "kind": named.kind, **asdict(found)})
    else:
        echo(f"{named.kind} {named.id}: {found}; it ends after the chunk at work")


def unpause(
    backfill: BackfillId,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Let what is left of a paused backfill go on; the daemon's sensor asks for it."""
    from backfill_engine.orchestration.instance.daemons import (
        DAEMON_COMMANDS,
        NO_DAEMON,
        has_daemon,
    )
    from backfill_engine.orchestration.runs.pausing import unpause as take_back

    with open_instance() as instance:
        named = _find_backfill(instance, backfill)
        was_paused = take_back(instance, named.id)
        has_one = has_daemon(instance)
    if not was_paused:
        raise HistoryError(f"{named.kind} {named.id} is not paused: nothing was changed")
    if as_json:
        print_json({"id": named.id, "kind": named.kind, "has_daemon": has_one})
    else:
        echo(f"{named.kind} {named.id}: the sensor go_on_after_pause asks for what is left")
    if not has_one:
        echo(f"{NO_DAEMON}: it waits for {DAEMON_COMMANDS}", err=True)


def _find_backfill(instance: "DagsterInstance", wanted: str) -> "Backfill":
    from backfill_engine.orchestration.backfills.backfills import find_backfill

    catalog = load_catalog()
    return find_backfill(catalog, instance, wanted)
