"""How backfills, their progress and their outcomes look: on a terminal, in a pipe, as JSON."""

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from backfill_engine.cli.location import load_catalog
from backfill_engine.cli.terminal import Grid, echo, echo_commands, echo_lines, write_text

if TYPE_CHECKING:
    from backfill_engine.orchestration.backfills.backfills import Backfill
    from backfill_engine.orchestration.backfills.outcomes import BackfillOutcome
    from backfill_engine.orchestration.backfills.progress_reader import Progress, TableProgress

_BAR_WIDTH = 20
_LISTED = 20
_COLOURS = {"published": "green", "running": "cyan", "held back": "red", "failed": "red"}


@dataclass
class Display:
    """Shows how a backfill comes on, each change once.

    Attributes:
        file: takes lines.
        as_json: whether each line is an object.
        live: takes bars, in place of lines; None where there is no terminal.
        last: what was shown last, but for pace and time.
        warned: what was warned of.
    """

    file: TextIO
    as_json: bool
    live: Live | None = None
    last: Any = None
    warned: set[str] = field(default_factory=set)

    def show(self, progress: "Progress") -> None:
        """Shows it; what is no terminal gets a line only of what has changed."""
        shown = (progress.state, progress.tables, progress.why_paused)
        if self.live is not None:
            self.live.update(build_bars(progress), refresh=True)
        elif shown != self.last:
            if self.as_json:
                echo_lines(json.dumps(describe_progress(progress)), file=self.file)
            else:
                echo(format_line(progress), file=self.file)
        self.last = shown

    def warn(self, text: str) -> None:
        """Warns, of each thing once: above the bars, else on stderr."""
        if text in self.warned:
            return
        self.warned.add(text)
        if self.live is not None:
            self.live.console.print(write_text(text, "yellow"))
        else:
            echo(text, err=True)


@contextmanager
def show_progress(
    backfill: "Backfill", *, as_json: bool, is_aside: bool = False, file: TextIO | None = None
) -> Iterator[Display]:
    """Shows progress: bars on a terminal, else a line a change, or an object a line.

    Args:
        backfill: of what.
        as_json: objects.
        is_aside: lines, as the terminal gets something else.
        file: takes it; None means stdout.
    """
    shown = file or sys.stdout
    if shown.isatty() and not (as_json or is_aside):
        with Live(console=Console(file=shown), transient=False, auto_refresh=False) as live:
            yield Display(shown, as_json, live)
        return
    if not as_json:
        echo(f"{backfill.kind} {backfill.id}: {backfill.title}", file=shown)
    yield Display(shown, as_json)


def build_bars(progress: "Progress") -> Group:
    """Builds the bars by table, with what is published, held back, at work, and of how many."""
    backfill = progress.backfill
    grid = Grid.grid(padding=(0, 1))
    for table in progress.tables:
        colour = "red" if table.held_back else "green"
        bar = ProgressBar(
            max(1, table.partitions),
            table.done,
            _BAR_WIDTH,
            complete_style=colour,
            finished_style=colour,
        )
        grid.add_row(table.table, bar, _format_counts(table))
    colour = _COLOURS.get(progress.state, "yellow")
    title = Text.assemble(
        backfill.id[:8], " ", (progress.state, colour), " ", write_text(backfill.title)
    )
    below = [write_text(line) for line in (_format_pause(progress), _format_pace(progress)) if line]
    return Group(title, grid, *below)


def format_line(progress: "Progress") -> str:
    """Formats it as one line, for what is no terminal."""
    tables = "; ".join(f"{table.table} {_format_counts(table)}" for table in progress.tables)
    pace = _format_pause(progress) or _format_pace(progress)
    time = f"{progress.read_at.astimezone():%H:%M:%S}"
    return f"{time} {progress.state}: {'; '.join(filter(None, (tables, pace)))}"


def _format_counts(table: "TableProgress") -> str:
    counts = (("held back", table.held_back), ("at work", table.at_work))
    others = "".join(f", {count:,} {words}" for words, count in counts if count)
    return f"{table.published:,} of {table.partitions:,}{others}"


def _format_pause(progress: "Progress") -> str:
    """Says until when it is paused, and what ends that; empty if it isn't."""
    return f"paused: {progress.why_paused}" if progress.why_paused else ""


def _format_pace(progress: "Progress") -> str:
    if progress.is_over or progress.state == "paused" or not progress.per_minute:
        return ""
    left = progress.seconds_left
    ahead = f", {_format_seconds(left)} left" if left else ""
    return f"{progress.per_minute:,.3g} partitions a minute{ahead}"


def _format_seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def describe_progress(progress: "Progress") -> dict[str, Any]:
    """Describes it as a JSON object."""
    left = progress.seconds_left
    return {
        "at": progress.read_at.isoformat(timespec="milliseconds"),
        "state": progress.state,
        "tables": [dataclasses.asdict(table) for table in progress.tables],
        "per_minute": round(progress.per_minute, 3),
        "seconds_left": None if left is None or progress.is_over else round(left, 1),
        "why_paused": progress.why_paused,
    }


def print_outcome(backfill: "Backfill", outcome: "BackfillOutcome", *, as_json: bool) -> None:
    """Prints what is published, warned about, held back and why, and the next commands."""
    from backfill_engine.orchestration.instance.ranges import shorten

    if as_json:
        echo_lines(json.dumps({"outcome": outcome.state, **dataclasses.asdict(outcome)}))
        return
    counts = ", ".join(
        f"{count:,} of {outcome.partitions[table]:,} of {table}"
        for table, count in outcome.published.items()
    )
    words = f": published {counts}" if counts else ""
    echo(f"{backfill.kind} {backfill.id} is over, {outcome.state}{words}")
    for table in outcome.held_back:
        for reason in table["reasons"][:_LISTED]:
            echo(f"{table['table']} {table['status']} {reason}")
        if len(table["reasons"]) > _LISTED:
            echo(f"{table['table']} … of {table['partitions']:,} partitions")
    for table, warned in outcome.warned.items():
        for line in shorten([f"{key}: {why}" for key, why in warned.items()], _LISTED):
            echo(f"{table} warned {line}")
    for error in outcome.errors:
        echo_lines(error)
    echo_commands("next, once the cause is mended:", outcome.commands)


def describe_backfill(progress: "Progress") -> dict[str, Any]:
    """Describes a backfill of the list as a JSON object."""
    catalog = load_catalog()
    backfill = progress.backfill
    origin = backfill.origin
    ended = None if progress.why_paused else backfill.ended_at
    return {
        "id": backfill.id,
        "title": backfill.title,
        "launched_by": origin.by,
        "reason": origin.reason,
        "command": origin.command,
        "operation": origin.operation,
        "requested": backfill.requested_at.isoformat(timespec="seconds"),
        "ended": ended.isoformat(timespec="seconds") if ended else "",
        "state": progress.state,
        "why_paused": progress.why_paused,
        "partitions": progress.partitions,
        "published": progress.published,
        "held_back": progress.done - progress.published,
        "runs": len(backfill.chain.runs),
        "error": backfill.error,
        "tables": [
            {**dataclasses.asdict(table), "ranges": ranges}
            for table, (_, ranges) in zip(
                progress.tables, backfill.list_target_ranges(catalog), strict=True
            )
        ],
    }


def build_grid(found: "Sequence[Progress]") -> Grid:
    """Builds the list of backfills; long titles take more lines."""
    heads = ("backfill", "requested", "~by", "~what and why", "state", ">published", ">held")
    grid = Grid(*heads, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    grid.columns[3].ratio = 1
    for progress in found:
        backfill = progress.backfill
        grid.add_row(
            backfill.id,
            f"{backfill.requested_at.astimezone():%m-%d %H:%M}",
            backfill.origin.by,
            _join_reason(progress),
            write_text(progress.state, _COLOURS.get(progress.state, "yellow")),
            f"{progress.published:,} of {progress.partitions:,}",
            f"{progress.done - progress.published:,}",
        )
    return grid


def _join_reason(progress: "Progress") -> str:
    title, reason = progress.backfill.title, progress.backfill.origin.reason
    joined = title if not reason or reason in title else f"{title}: {reason}"
    return "; ".join(filter(None, (joined, _format_pause(progress))))
