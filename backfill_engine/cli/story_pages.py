"""How the story of a partition looks in a terminal."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from backfill_engine.cli.options import print_line
from backfill_engine.cli.terminal import echo

if TYPE_CHECKING:
    from backfill_engine.orchestration.planning.stories import LastAttempt, PublishedContents, Story

_LISTED = 7
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
        story.published and attempt.status == "published" and attempt.run_id
    ):
        yield from _describe_attempt(attempt)
    elif attempt is not None and attempt.started:
        yield f"the run's step: {attempt.started} to {attempt.completed}"
    if story.published is not None:
        yield f"stale: {story.stale or 'no, its input and its code are the same'}"
    if story.waits:
        yield f"can't go now: {story.waits}"
    for table, ranges in story.read_by.items():
        yield f"read by: {table} {', '.join(ranges[:_LISTED])}"
    if not story.next:
        yield "next: nothing is to be done"


def _describe_published(published: "PublishedContents") -> Iterator[str]:
    of = f" of backfill {published.backfill_id}" if published.backfill_id else ""
    yield f"published: {published.at} as version {published.version}, {published.rows:,} rows"
    yield f"by: run {published.run_id}{of}"
    yield f"code: {published.code_version}"
    if published.landed:
        landed = published.landed
        yield f"from: {landed['files']:,} landed files, {landed['bytes']:,} bytes"
    for table, checksums in published.upstream.items():
        keys = sorted(checksums)
        absent = sum(not checksum for checksum in checksums.values())
        listed = keys[0] if len(keys) == 1 else f"{keys[0]}...{keys[-1]}"
        version = published.input_versions.get(table)
        at = "" if version is None else f", version {version}"
        yield f"from: {table} {listed}{at}" + (f", {absent} of them not there" if absent else "")
    if published.provisional:
        yield f"provisional: {published.provisional}"
    if published.restored:
        yield f"not computed, but put there: {published.restored}"
    for remark in published.remarks[:_LISTED]:
        yield f"remark: {remark}"


def _describe_attempt(attempt: "LastAttempt") -> Iterator[str]:
    of = f" of backfill {attempt.backfill_id}" if attempt.backfill_id else ""
    yield f"last run: {attempt.run_id}{of}, {attempt.status}"
    if attempt.started:
        yield f"it began {attempt.started}" + (
            f" and ended {attempt.completed}" if attempt.completed else ""
        )
    if attempt.rows:
        yield f"it computed {attempt.rows:,} rows"
    if attempt.error:
        yield f"why not: {attempt.error}"
