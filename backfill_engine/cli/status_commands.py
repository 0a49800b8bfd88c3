"""What each partition holds and how its last run ended; which are missing; the story of one."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD

from backfill_engine.cli.location import load_catalog, load_graph
from backfill_engine.cli.options import (
    AsJson,
    First,
    Last,
    Select,
    is_too_wide,
    open_instance,
    prepare_planner,
    print_grid,
    print_json,
    print_line,
)
from backfill_engine.cli.terminal import Grid, echo, write_text
from backfill_engine.errors import SettingsError

if TYPE_CHECKING:
    from rich.text import Text

    from backfill_engine.orchestration.planning.stories import Story
    from backfill_engine.orchestration.status.partition_statuses import PartitionStatus

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
    statuses = _read_statuses(select, first, last, with_attempts=True)
    if as_json:
        print_json(statuses)
    else:
        print_statuses(statuses)


def _tell_stories(select: str | None, key: str) -> "list[Story]":
    from backfill_engine.orchestration.planning.stories import tell_story
    from backfill_engine.orchestration.selecting.selections import select_tables

    catalog = load_catalog()
    with open_instance() as instance:
        tables = select_tables(
            catalog, catalog.warehouse, select, first=key, last=key, load_graph=load_graph
        )
        planner = prepare_planner(instance)
        return [tell_story(planner, table, key) for table in tables]


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
    select: str | None, first: str, last: str, *, with_attempts: bool = False
) -> "list[PartitionStatus]":
    from backfill_engine.orchestration.recovery.recovery import (
        describe_dead_runs,
        describe_recovery,
    )
    from backfill_engine.orchestration.runs.claims import find_dead_runs
    from backfill_engine.orchestration.selecting.selections import select_tables
    from backfill_engine.orchestration.status.attempts import add_attempts
    from backfill_engine.orchestration.status.partition_statuses import read_statuses

    catalog = load_catalog()
    settings, warehouse = catalog.settings, catalog.warehouse
    with open_instance() as instance:
        tables = select_tables(
            catalog, warehouse, select, first=first, last=last, load_graph=load_graph
        )
        now = datetime.now(tz=UTC)
        dead = find_dead_runs(instance, now=now, silent_seconds=settings.silent_seconds)
        found = read_statuses(
            catalog, instance, warehouse, tables, first=first, last=last, dead=dead
        )
        if with_attempts:
            statuses = add_attempts(instance, found)
        else:
            statuses = [status for table in found for status in table.partitions]
    notes = describe_dead_runs(dead, done=False)
    for table in found:
        notes += describe_recovery(table.recovery, done=False)
    if notes:
        notes.append("`backfill-assets recover` records this, and so does the next run")
    for note in notes:
        echo(note, err=True)
    return statuses


_TITLE = "rows, status and Delta version by partition and table"
_COLOURS = {"materialized": "green", "failed": "red", "changed": "red"}
_LISTED = 20
"""Reasons of a table: a year of them is for --json."""


def print_statuses(statuses: "Sequence[PartitionStatus]") -> None:
    """Prints partitions by tables, or of one table with times; then why some are not published."""
    tables = list(dict.fromkeys(one.table for one in statuses))
    grid, width = _build_list(statuses, tables), 120
    if len(tables) > 1:
        beside = _build_grid(statuses, tables)
        if not is_too_wide(beside):
            grid, width = beside, 30 + 34 * len(tables)
    print_grid(grid, width=width)
    for table in tables:
        for line in describe_errors(table, statuses):
            print_line(line)


def _build_list(statuses: "Sequence[PartitionStatus]", tables: Sequence[str]) -> Grid:
    """Builds the grid of a row a status; of one table with when the last attempt was (UTC)."""
    is_one = len(tables) == 1
    names = ("rows", "status", "version")
    if is_one:
        grid = Grid(title=f"{tables[0]}, and the last attempt at each partition (UTC)")
        names = ("partition", *names, "started", "completed")
    else:
        grid = Grid(title=_TITLE, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        names = ("partition", "table", *names)
    for name in names:
        justify = "right" if name in ("rows", "version") else "left"
        is_whole = name == "partition" or (not is_one and name != "table")
        grid.add_column(name, justify=justify, no_wrap=is_whole, overflow="fold")
    by_partition: dict[str, list[PartitionStatus]] = {}
    for status in statuses:
        by_partition.setdefault(status.partition, []).append(status)
    for partition, found in by_partition.items():
        for number, status in enumerate(found):
            shown = "" if number else partition
            if is_one:
                times = _format_times(status.started, status.completed)
                grid.add_row(shown, *_format_cells(status), *times)
            else:
                grid.add_row(shown, status.table, *_format_cells(status))
    grid.add_section()
    for number, table in enumerate(tables):
        named = [] if is_one else [table]
        grid.add_row("" if number else "all", *named, f"{_sum_rows(statuses, table):,}")
    return grid


def describe_errors(table: str, statuses: "Sequence[PartitionStatus]") -> list[str]:
    """Says why the last attempt at partitions came to nothing, each reason once with its ranges."""
    from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
    from backfill_engine.orchestration.instance.ranges import describe_ranges, shorten

    catalog = load_catalog()
    errors = {one.partition: one.error for one in statuses if one.table == table and one.error}
    partitions_def = find_partitions_def(catalog.find_table(table))
    lines = shorten(describe_ranges(partitions_def, errors), _LISTED)
    return [f"{table} {line}" for line in lines]


def _build_grid(statuses: "Sequence[PartitionStatus]", tables: Sequence[str]) -> Grid:
    by_cell = {(status.partition, status.table): status for status in statuses}
    grid = Grid("partition", title=_TITLE)
    for table in tables:
        grid.add_column(table, justify="right")
    for partition in dict.fromkeys(status.partition for status in statuses):
        grid.add_row(partition, *(_format_cell(by_cell[partition, table]) for table in tables))
    grid.add_section()
    grid.add_row("all", *(f"{_sum_rows(statuses, table):,} rows" for table in tables))
    return grid


def _format_cell(status: "PartitionStatus") -> "Text":
    cells = (write_text(cell) if isinstance(cell, str) else cell for cell in _format_cells(status))
    return write_text(" ").join(cell for cell in cells if cell)


def _format_cells(status: "PartitionStatus") -> "tuple[str, Text, str]":
    """Rows, status and version; two of them empty if nothing is published."""
    if status.version is None:
        return "", _colour(status.status), ""
    return f"{status.rows:,}", _colour(status.status), f"v{status.version}"


def _format_times(started: str, completed: str) -> tuple[str, str]:
    """To the second; the day of the second only where it is another one."""
    begin, end = (datetime.fromisoformat(one) if one else None for one in (started, completed))
    same_day = begin and end and begin.date() == end.date()
    return (
        f"{begin:%Y-%m-%d %H:%M:%S}" if begin else "",
        (f"{end:%H:%M:%S}" if same_day else f"{end:%Y-%m-%d %H:%M:%S}") if end else "",
    )


def _colour(status: str) -> "Text":
    colour = _COLOURS.get(status, "yellow")
    return write_text(status, colour)


def _sum_rows(statuses: "Sequence[PartitionStatus]", table: str) -> int:
    return sum(status.rows or 0 for status in statuses if status.table == table)


_EVENTS_LISTED = 7
_INDENT = "  "


def print_stories(stories: "Sequence[Story]") -> None:
    """Prints a few lines for each table; each begins with what it is about."""
    for number, story in enumerate(stories):
        if number:
            echo()
        echo(f"{story.table} {story.partition}: {story.status}")
        for line in _describe(story):
            print_line(line, indent=_INDENT)
        for command in story.next:  # to be copied, so never broken
            echo(f"{_INDENT}next: {command}")


def _describe(story: "Story") -> Iterator[str]:
    if story.published is None:
        yield "published: never"
    else:
        yield from _describe_published(story.published)
    attempt = story.attempt
    if attempt is not None and not (
        story.published and attempt["status"] == "published" and attempt["run_id"]
    ):
        yield from _describe_attempt(attempt)
    elif attempt is not None and attempt["started"]:
        yield f"the run's step: {attempt['started']} to {attempt['completed']}"
    if story.published is not None:
        yield f"stale: {story.stale or 'no, its input and its code are the same'}"
    if story.waits:
        yield f"can't go now: {story.waits}"
    for table, ranges in story.read_by.items():
        yield f"read by: {table} {', '.join(ranges[:_EVENTS_LISTED])}"
    if not story.next:
        yield "next: nothing is to be done"


def _describe_published(published: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"published: {published['at']} as version {published['version']}, "
        f"{published['rows']:,} rows"
    )
    yield f"by: run {_name_run(published)}"
    yield f"code: {published['code_version']}"
    if landed := published["landed"]:
        yield f"from: {landed['files']:,} landed files, {landed['bytes']:,} bytes"
    for table, checksums in published["upstream"].items():
        keys = sorted(checksums)
        absent = sum(not checksum for checksum in checksums.values())
        listed = keys[0] if len(keys) == 1 else f"{keys[0]}...{keys[-1]}"
        version = published["input_versions"].get(table)
        at = "" if version is None else f", version {version}"
        yield f"from: {table} {listed}{at}" + (f", {absent} of them not there" if absent else "")
    if published["provisional"]:
        yield f"provisional: {published['provisional']}"
    if published["restored"]:
        yield f"not computed, but put there: {published['restored']}"
    for remark in published["remarks"][:_EVENTS_LISTED]:
        yield f"remark: {remark}"


def _describe_attempt(attempt: Mapping[str, Any]) -> Iterator[str]:
    yield f"last run: {_name_run(attempt)}, {attempt['status']}"
    if attempt["started"]:
        ended = f" and ended {attempt['completed']}" if attempt["completed"] else ""
        yield f"it began {attempt['started']}{ended}"
    if attempt["rows"]:
        yield f"it computed {attempt['rows']:,} rows"
    if attempt["error"]:
        yield f"why not: {attempt['error']}"


def _name_run(values: Mapping[str, Any]) -> str:
    of = f" of backfill {values['backfill_id']}" if values["backfill_id"] else ""
    return f"{values['run_id']}{of}"
