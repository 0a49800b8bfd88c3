"""What a rehearsal or a promotion showed, in Markdown, for the UI."""

from collections.abc import Sequence

from backfill_engine.escaping import escape_markdown, write_row
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.rehearsal.promotions import Promotion
from backfill_engine.rehearsal.records import Rehearsal, RehearsedPartition

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


_SHIFTS_LISTED = 31
_IN_A_LINE = 7


def describe_promotion(promotion: Promotion) -> str:
    """Describes what stood against serving a version, and what came of it."""
    return "\n".join(
        [
            escape_markdown(describe_outcome(promotion)),
            "",
            *_list("missing", promotion.missing),
            *_list("beyond the gates", promotion.beyond),
        ]
    )


def _list(word: str, found: Sequence[str]) -> list[str]:
    return [f"- **{word}**: {escape_markdown(what)}" for what in shorten(found, _SHIFTS_LISTED)]


def describe_outcome(promotion: Promotion) -> str:
    """Says in a line what is served now."""
    table, version = promotion.table, promotion.version
    if promotion.is_served:
        return f"{table} serves {version} already"
    if promotion.published is not None:
        return (
            f"{table} serves {version}, as version {promotion.published}: {promotion.partitions} "
            f"partitions in one commit, instead of {promotion.before}"
        )
    if promotion.may_go:
        return (
            f"{table} may serve {version}: nothing stands against it; it serves {promotion.before}"
        )
    return f"{table} still serves {promotion.before or 'nothing'}"


def describe_refusal(promotion: Promotion) -> str:
    """Says in a line why a version is not served, and what helps."""
    if promotion.missing:
        why, cure = promotion.missing, "publish what is missing, then repeat it"
    else:
        why = promotion.beyond
        cure = "say why that is right with --accept, or widen the gates"
    listed = "; ".join(shorten(why, _IN_A_LINE))
    return f"{describe_outcome(promotion)}, and not {promotion.version}: {listed}: {cure}"
