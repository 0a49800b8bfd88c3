"""`status`: what partitions hold and how their last run ended; what lacks; reports on some."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD

from backfill_engine.cli.kept_aside import print_kept_aside, read_kept_aside
from backfill_engine.cli.location import (
    load_catalog,
    open_instance,
    prepare_planner,
    select_tables,
)
from backfill_engine.cli.options import AsJson, MaybeFirst, MaybeLast, Select
from backfill_engine.cli.terminal import (
    Grid,
    echo,
    echo_lines,
    fits,
    print_answer,
    print_grid,
    write_text,
)
from backfill_engine.errors import SettingsError

if TYPE_CHECKING:
    from rich.text import Text

    from backfill_engine.lake.watermarks import Watermark
    from backfill_engine.orchestration.planning.partition_reports import PartitionReport
    from backfill_engine.orchestration.status.partition_statuses import (
        MissingRange,
        PartitionStatus,
    )

_WAITING_EXIT = 3
_MOST_ROWS = 20


def status(
    first: MaybeFirst = None,
    last: MaybeLast = None,
    select: Select = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Print what is missing or failed, as ranges.")
    ] = False,
    failed: Annotated[
        bool, typer.Option("--failed", help="Of these, leave out what no run ever tried.")
    ] = False,
    withheld: Annotated[
        bool, typer.Option("--withheld", help="Show rows that were withheld or rejected.")
    ] = False,
    most: Annotated[
        int | None, typer.Option(min=1, help=f"Of these, rows of each kind; else {_MOST_ROWS}.")
    ] = None,
    watermark: Annotated[
        bool, typer.Option("--watermark", help="Show how far incremental runs have come.")
    ] = False,
    why: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Explain one partition."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show rows, status and Delta version of partitions by table, and why some came to nothing.

    --missing prints lines of a table, a tab, and what --partition-range takes. What other programs
    changed is among them; what is at work, not due, or landed beyond BACKFILL_END is on stderr.
    Exit 0: nothing is missing; 1: something is; 3: all the rest is at work or not due.

    --why, in place of a range, tells when and by which run, code and input the partition was
    published, what the last run made of it, whether it is stale, who reads it, and what to do next.

    Example: backfill-assets status --select raw/flights --why 2013-01-12
    """
    question = _find_question(
        {
            "--missing": missing,
            "--withheld": withheld,
            "--watermark": watermark,
            "--why": why is not None,
        },
        has_range=first is not None or last is not None,
    )
    if failed and not missing:
        raise SettingsError("--failed is about what is missing: give --missing too")
    if most is not None and not withheld:
        raise SettingsError("--most is about withheld rows: give --withheld too")
    if why is not None:
        print_answer(_report_partitions(select, why), print_reports, as_json=as_json)
    elif watermark:
        watermarks = _read_watermarks(select)
        print_answer(watermarks, _print_watermarks, as_json=as_json)
        if not (watermarks or as_json):  # beside what programs read, a line for each
            echo("no run has saved a watermark yet: incremental runs do", err=True)
    elif first is None or last is None:
        other = "" if question else ", or --why KEY for all about one partition"
        raise SettingsError(f"give --from and --to{other}")
    elif withheld:
        kept_aside = read_kept_aside(select, first, last, most or _MOST_ROWS)
        print_answer(kept_aside, print_kept_aside, as_json=as_json)
    elif missing:
        _show_missing(select, first, last, failed=failed, as_json=as_json)
    else:
        statuses = _read_statuses(select, first, last, with_attempts=True)
        print_answer(statuses, print_statuses, as_json=as_json)


def _find_question(questions: Mapping[str, bool], *, has_range: bool) -> str:
    """Finds which question is asked; empty for that of the statuses of a range.

    Raises:
        SettingsError: if several are, or a range is given where none is meant.
    """
    given = [name for name, is_given in questions.items() if is_given]
    if len(given) > 1:
        raise SettingsError(f"{' and '.join(given)} are questions apart: ask one at a time")
    for name, subject in (("--why", "one partition"), ("--watermark", "whole tables")):
        if has_range and name in given:
            raise SettingsError(f"{name} is about {subject}: leave out --from and --to")
    return given[0] if given else ""


def _report_partitions(select: str | None, key: str) -> "list[PartitionReport]":
    from backfill_engine.orchestration.planning.partition_reports import describe_partition

    with open_instance() as instance:
        tables = select_tables(select, key, key)
        planner = prepare_planner(instance)
        return [describe_partition(planner, table, key) for table in tables]


def _read_watermarks(select: str | None) -> "list[Watermark]":
    from backfill_engine.lake.watermarks import read_watermarks

    watermarks = list(read_watermarks(load_catalog().warehouse).values())
    if select is None:
        return watermarks
    keys = {table.key for table in select_tables(select)}
    return [watermark for watermark in watermarks if watermark.table in keys]


def _print_watermarks(watermarks: "Sequence[Watermark]") -> None:
    for watermark in watermarks:
        moved = f"{watermark.moved_at:%Y-%m-%d %H:%M}"
        echo(f"{watermark.table}\tbefore {watermark.next_key}\t{moved}\t{watermark.run_id}")


def _show_missing(
    select: str | None, first: str, last: str, *, failed: bool, as_json: bool
) -> None:
    """Prints what is missing; says on stderr what is at work or not due, and exits by both."""
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
    keys = {status.table for status in statuses}
    recipes = {key: recipe for key, recipe in catalog.recipes.items() if key in keys}
    for line in describe_landed_beyond(recipes, catalog.settings.landing):
        echo(line, err=True)
    wanted = {FAILED, CHANGED} if failed else {FAILED, CHANGED, MISSING}
    ranges = find_ranges_of(catalog, statuses, wanted)
    print_answer(ranges, _print_ranges, as_json=as_json)
    is_waiting = False
    for words, state in (("in progress", IN_PROGRESS), ("not due", NOT_DUE)):
        for waiting_range in find_ranges_of(catalog, statuses, {state}):
            is_waiting = True
            echo(f"{words}: {waiting_range.table} {waiting_range}", err=True)
    if not (ranges or as_json):
        echo("nothing of it is " + ("failed" if failed else "missing or failed"), err=True)
    if ranges or is_waiting:
        raise typer.Exit(1 if ranges else _WAITING_EXIT)


def _print_ranges(ranges: "Sequence[MissingRange]") -> None:
    for missing_range in ranges:
        echo(f"{missing_range.table}\t{missing_range}")


def _read_statuses(
    select: str | None, first: str, last: str, *, with_attempts: bool = False
) -> "list[PartitionStatus]":
    from backfill_engine.orchestration.recovery.recovery import (
        describe_dead_runs,
        describe_recovery,
    )
    from backfill_engine.orchestration.runs.claims import find_dead_runs
    from backfill_engine.orchestration.status.attempts import add_attempts
    from backfill_engine.orchestration.status.partition_statuses import read_statuses

    catalog = load_catalog()
    with open_instance() as instance:
        tables = select_tables(select, first, last)
        now = datetime.now(tz=UTC)
        dead = find_dead_runs(instance, now=now, silent_seconds=catalog.settings.silent_seconds)
        found = read_statuses(
            catalog, instance, catalog.warehouse, tables, first=first, last=last, dead=dead
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
    tables = list(dict.fromkeys(status.table for status in statuses))
    grid = _build_grid(statuses, tables)
    if len(tables) == 1 or not fits(grid):
        grid = _build_list(statuses, tables)
    print_grid(grid)
    for table in tables:
        for line in (*describe_errors(table, statuses), *_describe_warnings(table, statuses)):
            echo(line)


def _build_list(statuses: "Sequence[PartitionStatus]", tables: Sequence[str]) -> Grid:
    """Builds the grid of a row a status; of one table with when the last attempt was (UTC)."""
    is_one = len(tables) == 1
    if is_one:
        title = f"{tables[0]}, and the last attempt at each partition (UTC)"
        times = ("started", "completed")
        grid = Grid("partition", ">rows", "status", ">version", *times, title=title)
    else:
        heads = ("partition", "~table", ">rows", "status", ">version")
        grid = Grid(*heads, title=_TITLE, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    partition = ""
    for status in sorted(statuses, key=lambda status: status.partition):
        shown = "" if status.partition == partition else status.partition
        partition = status.partition
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
    errors = {
        status.partition: status.error
        for status in statuses
        if status.table == table and status.error
    }
    partitions_def = find_partitions_def(catalog.find_table(table))
    lines = shorten(describe_ranges(partitions_def, errors), _LISTED)
    return [f"{table} {line}" for line in lines]


def _describe_warnings(table: str, statuses: "Sequence[PartitionStatus]") -> list[str]:
    """Says what the audit of published partitions warned about, with value and bound."""
    from backfill_engine.orchestration.instance.ranges import shorten

    warned = [status for status in statuses if status.table == table and status.warned]
    lines = [f"{table} {status.partition} warned: {status.warned}" for status in warned]
    return shorten(lines, _LISTED)


def _build_grid(statuses: "Sequence[PartitionStatus]", tables: Sequence[str]) -> Grid:
    by_cell = {(status.partition, status.table): status for status in statuses}
    grid = Grid("partition", *(f">{table}" for table in tables), title=_TITLE)
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
    colour = "yellow" if status.warned else _COLOURS.get(status.status, "yellow")
    state = write_text(status.status, colour)
    if status.version is None:
        return "", state, ""
    return f"{status.rows:,}", state, f"v{status.version}"


def _format_times(started: str, completed: str) -> tuple[str, str]:
    """To the second; the day of the second only where it is another one."""
    begin, end = (datetime.fromisoformat(time) if time else None for time in (started, completed))
    same_day = begin and end and begin.date() == end.date()
    return (
        f"{begin:%Y-%m-%d %H:%M:%S}" if begin else "",
        (f"{end:%H:%M:%S}" if same_day else f"{end:%Y-%m-%d %H:%M:%S}") if end else "",
    )


def _sum_rows(statuses: "Sequence[PartitionStatus]", table: str) -> int:
    return sum(status.rows or 0 for status in statuses if status.table == table)


_EVENTS_LISTED = 7
_INDENT = "  "


def print_reports(reports: "Sequence[PartitionReport]") -> None:
    """Prints a few lines for each table; each begins with what it is about."""
    for number, report in enumerate(reports):
        if number:
            echo()
        echo(f"{report.table} {report.partition}: {report.status}")
        for line in _describe(report):
            echo(f"{_INDENT}{line}")
        for command in report.next:  # to be copied, so never broken
            echo_lines(f"{_INDENT}next: {command}")


def _describe(report: "PartitionReport") -> Iterator[str]:
    if report.published is None:
        yield "published: never"
    else:
        yield from _describe_published(report.published)
    attempt = report.attempt
    if attempt is not None and not (
        report.published and attempt["status"] == "published" and attempt["run_id"]
    ):
        yield from _describe_attempt(attempt)
    elif attempt is not None and attempt["started"]:
        yield f"the run's step: {attempt['started']} to {attempt['completed']}"
    if report.published is not None:
        yield f"stale: {report.stale or 'no, its input and its code are the same'}"
    if report.waits:
        yield f"can't go now: {report.waits}"
    for table, ranges in report.read_by.items():
        yield f"read by: {table} {', '.join(ranges[:_EVENTS_LISTED])}"
    if not report.next:
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
