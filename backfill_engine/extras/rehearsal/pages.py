"""What a rehearsal showed, in Markdown, for the UI."""

from collections.abc import Sequence

from backfill_engine.escaping import escape_markdown, write_row
from backfill_engine.extras.rehearsal.records import Rehearsal, RehearsedPartition
from backfill_engine.orchestration.instance.ranges import shorten

_LISTED = 31


def describe_rehearsal(rehearsal: Rehearsal) -> str:
    """Describes what would change, table by table; of each the partitions that differ most."""
    lines: list[str] = []
    for table in rehearsal.tables:
        differing = [one for one in table.partitions if one.differs]
        withheld = [one for one in table.partitions if one.withheld]
        same = len(table.partitions) - len(differing) - len(withheld)
        lines += [
            f"### {escape_markdown(table.table)}",
            "",
            f"{len(differing)} would change, {same} would not, {len(withheld)} would be withheld.",
            "",
        ]
        lines += _describe_differing(differing)
        lines += [
            f"- {escape_markdown(f'{one.partition} withheld: {one.withheld}')}"
            for one in withheld[:_LISTED]
        ]
        lines.append("")
    lines += [
        f"- **beyond the gates**: {escape_markdown(what)}"
        for what in shorten(rehearsal.exceeded, _LISTED)
    ]
    return "\n".join(lines)


def _describe_differing(differing: Sequence[RehearsedPartition]) -> list[str]:
    if not differing:
        return []
    most = sorted(differing, key=_count_differing, reverse=True)[:_LISTED]
    rows = [
        write_row(
            *(one.partition, f"{one.diff.rows_before:,}", f"{one.diff.rows_after:,}"),
            *(f"{one.diff.added:,}", f"{one.diff.removed:,}", f"{one.diff.changed:,}"),
            describe_columns(one),
        )
        for one in sorted(most, key=lambda one: one.partition)
        if one.diff
    ]
    return [
        "| partition | rows before | rows | added | removed | changed | most changed |",
        "|---|--:|--:|--:|--:|--:|---|",
        *rows,
        "",
    ]


def _count_differing(one: RehearsedPartition) -> int:
    return one.diff.added + one.diff.removed + one.diff.changed if one.diff else 0


def describe_columns(one: RehearsedPartition, *, most: int = 3) -> str:
    """Names the columns that changed most, with how many values, and the largest PSI."""
    by_count = sorted(one.changed_values.items(), key=lambda item: -item[1])
    texts = [f"{column} {count:,}" for column, count in by_count[:most]]
    known = {
        column: psi for column, psi in (one.diff.psi if one.diff else {}).items() if psi is not None
    }
    if known:
        column = max(known, key=lambda name: known[name])
        texts.append(f"PSI {known[column]:.3f} ({column})")
    return ", ".join(texts)
