"""What each partition holds and how its last run ended; which are missing; the story of one."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_engine.cli.location import load_catalog, load_graph
from backfill_engine.cli.options import (
    AsJson,
    First,
    Last,
    Select,
    open_instance,
    prepare_planner,
    print_json,
)
from backfill_engine.cli.status_grid import print_statuses
from backfill_engine.cli.story_pages import print_stories
from backfill_engine.cli.terminal import echo
from backfill_engine.errors import BackfillError, SettingsError

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from backfill_engine.orchestration.planning.stories import Story
    from backfill_engine.orchestration.status.partition_statuses import (
        PartitionStatus,
        TableStatuses,
    )

    _Teller = Callable[[DagsterInstance, Sequence[TableStatuses]], list[PartitionStatus]]

_WAITING_EXIT = 3


def status(
    first: Annotated[str | None, typer.Option("--from", help="First partition key.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last partition key, included.")] = None,
    select: Select = None,
    why: Annotated[
        str | None, typer.Option(metavar="KEY", help="Tell the whole story of one partition.")
    ] = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show rows, status and Delta version of partitions by layer, and why some came to nothing.

    Of one table, and with --json, also when the last attempt at each began and ended. With --why
    KEY, in place of a range, all that is known of that partition: when it was published, by which
    run and code, from which input; what the last run made of it; whether it is stale; who reads it;
    and what to do next.
    """
    if why is not None:
        if first is not None or last is not None:
            raise SettingsError("--why is about one partition: leave out --from and --to")
        stories = _tell_stories(select, why)
        if as_json:
            print_json(stories)
        else:
            print_stories(stories)
        return
    if first is None or last is None:
        raise SettingsError("give --from and --to, or --why KEY for all about one partition")
    from backfill_engine.orchestration.status.attempts import tell_attempts

    statuses = _read_statuses(select, first, last, told_by=tell_attempts)
    if as_json:
        print_json(statuses)
    else:
        print_statuses(statuses)


def _tell_stories(select: str | None, key: str) -> "list[Story]":
    from backfill_engine.lake.table_log import read_log
    from backfill_engine.orchestration.planning.stories import tell_story
    from backfill_engine.orchestration.runs.claims import find_dead_runs
    from backfill_engine.orchestration.selecting.selections import select_tables
    from backfill_engine.orchestration.status.partition_statuses import read_statuses

    catalog = load_catalog()
    settings = catalog.settings
    warehouse, now = catalog.warehouse, datetime.now(tz=UTC)
    with open_instance() as instance:
        tables = select_tables(
            catalog, warehouse, select, first=key, last=key, load_graph=load_graph
        )
        dead = find_dead_runs(instance, now=now, silent_seconds=settings.silent_seconds)
        planner = prepare_planner(instance, tables)
        stories: list[Story] = []
        for table in tables:
            found = read_statuses(
                catalog, instance, warehouse, [table], first=key, last=key, dead=dead
            )
            try:
                plan = planner.plan({table: (key, key)})
            except BackfillError as error:  # what is known of it is told all the same
                plan = str(error)
            (one,) = found[0].partitions
            stories.append(tell_story(catalog, instance, read_log(warehouse, table), one, plan))
    return stories


def missing(
    first: First,
    last: Last,
    select: Select = None,
    failed: Annotated[bool, typer.Option(help="Leave out what no run ever tried.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Print what is missing or failed as ranges: table, then what --partition-range takes.

    What another program has changed since it was published is among them. What runs are at work
    on, or queued for, is named on stderr, and what is not due, as its upstream never came, and what
    landed beyond BACKFILL_END. Exit 0: there is none of either, and nothing is missing; 1:
    something is missing, failed or changed; 3: all the rest is in progress or not due.
    """
    from backfill_engine.orchestration.due.due_partitions import describe_landed_beyond
    from backfill_engine.orchestration.status.partition_statuses import (
        CHANGED,
        FAILED,
        IN_PROGRESS,
        MISSING,
        NOT_DUE,
        find_ranges_of,
    )

    catalog = load_catalog()
    statuses = _read_statuses(select, first, last)
    asked = {status.table for status in statuses}
    recipes = {key: recipe for key, recipe in catalog.recipes.items() if key in asked}
    for line in describe_landed_beyond(recipes, catalog.settings.landing):
        echo(line, err=True)
    ranges = find_ranges_of(
        catalog, statuses, {FAILED, CHANGED} if failed else {FAILED, CHANGED, MISSING}
    )
    waiting = {
        words: find_ranges_of(catalog, statuses, {status})
        for words, status in (("in progress", IN_PROGRESS), ("not due", NOT_DUE))
    }
    if as_json:
        print_json(ranges)
    else:
        for missing_range in ranges:
            echo(f"{missing_range.table}\t{missing_range}")
    for words, found in waiting.items():
        for waiting_range in found:
            echo(f"{words}: {waiting_range.table} {waiting_range}", err=True)
    if ranges or any(waiting.values()):
        raise typer.Exit(1 if ranges else _WAITING_EXIT)


def _read_statuses(
    select: str | None,
    first: str,
    last: str,
    *,
    told_by: "_Teller | None" = None,
) -> "list[PartitionStatus]":
    from backfill_engine.orchestration.recovery.recovering import (
        describe_dead_runs,
        describe_recovery,
    )
    from backfill_engine.orchestration.runs.claims import find_dead_runs
    from backfill_engine.orchestration.selecting.selections import select_tables
    from backfill_engine.orchestration.status.partition_statuses import read_statuses

    catalog = load_catalog()
    settings = catalog.settings
    warehouse = catalog.warehouse
    with open_instance() as instance:
        tables = select_tables(
            catalog, warehouse, select, first=first, last=last, load_graph=load_graph
        )
        now = datetime.now(tz=UTC)
        dead = find_dead_runs(instance, now=now, silent_seconds=settings.silent_seconds)
        found = read_statuses(
            catalog, instance, warehouse, tables, first=first, last=last, dead=dead
        )
        if told_by is None:
            statuses = [status for table in found for status in table.partitions]
        else:
            statuses = told_by(instance, found)
    notes = describe_dead_runs(dead, done=False)
    for table in found:
        notes += describe_recovery(table.recovery, done=False)
    if notes:
        notes.append("`backfill-assets recover` records this, and so does the next run")
    for note in notes:
        echo(note, err=True)
    return statuses
