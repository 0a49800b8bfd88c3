"""What was found of a promotion, and what came of it: `<warehouse>/rehearsals/<id>/promotion.json`.

The rehearsal beside it has the differences, partition by partition.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from backfill_engine.escaping import escape_markdown
from backfill_engine.extras.rehearsal.records import (
    RehearsedPartition,
    locate_beside_rehearsal,
    read_beside_rehearsal,
)
from backfill_engine.extras.versions.column_shifts import ColumnShift
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.whole_files import write_whole_file
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.orchestration.instance.ranges import describe_ranges, format_ranges, shorten
from backfill_engine.tables.declarations import Table

_DOCUMENT = "promotion.json"


@dataclass(frozen=True)
class DriftGates:
    """How far the columns of a version may lie from those of the one before; None is no bound.

    Attributes:
        max_psi: of a column with a drift rule, of one partition.
        max_mean_shift: of the mean of a numeric column, see `column_shifts`.
        max_null_shift: of the share of nulls of a column, 0 to 1.
    """

    max_psi: float | None = None
    max_mean_shift: float | None = None
    max_null_shift: float | None = None


@dataclass(frozen=True)
class Promotion:
    """What stood against serving a version, and whether it is served.

    Attributes:
        promotion_id: the Dagster run that looked.
        table: the served one, `layer/name`.
        version: key of the table to be served.
        before: key of the one that was served then.
        at: when, UTC.
        by: who asked for it.
        why: in that person's words.
        partitions: of the served table that the switch is to replace.
        gates: bounds of drift.
        missing: what keeps it from being served whatever anyone says, a line each.
        beyond: what differs by more than the gates, a line for each column.
        accepted: why it is served all the same; empty if nobody said.
        published: the Delta version that serves it; None if it is not served.
        page: where the drift is drawn; empty if nothing was rehearsed.
    """

    promotion_id: str
    table: str
    version: str
    before: str
    at: dt.datetime
    by: str
    why: str
    partitions: int
    gates: DriftGates
    missing: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    accepted: str = ""
    published: int | None = None
    page: str = ""

    @property
    def is_served(self) -> bool:
        """Whether it was served before anybody did anything."""
        return self.version == self.before

    @property
    def may_go(self) -> bool:
        """Whether nothing stands against it that nobody has accepted."""
        return not self.missing and (not self.beyond or bool(self.accepted))

    @property
    def is_refused(self) -> bool:
        """Whether it is not served, nor may be."""
        return not (self.is_served or self.may_go)


_PROMOTIONS = TypeAdapter(Promotion)


def write_promotion(warehouse: Warehouse, promotion: Promotion) -> str:
    """Keeps what was found; returns where."""
    place = locate_beside_rehearsal(warehouse, promotion.promotion_id, _DOCUMENT)
    write_whole_file(place, [_PROMOTIONS.dump_json(promotion)])
    return place


def read_promotion(warehouse: Warehouse, promotion_id: str) -> Promotion:
    """Reads what was found.

    Raises:
        RehearsalError: if it can't be read.
        FileNotFoundError: if that run was no promotion.
    """
    return read_beside_rehearsal(warehouse, promotion_id, _DOCUMENT, _PROMOTIONS)


def find_missing(table: Table, rehearsed: Sequence[RehearsedPartition]) -> list[str]:
    """Finds what the audit withholds of a version, and keys that one side has and not the other.

    Args:
        table: the served one.
        rehearsed: partitions of it.
    """
    withheld = {
        partition.partition: f"would be withheld: {partition.withheld}"
        for partition in rehearsed
        if partition.withheld
    }
    apart = {
        partition.partition: diff
        for partition in rehearsed
        if (diff := partition.diff) and partition.shown_checksum and (diff.added or diff.removed)
    }
    keys = (
        f"the keys are not the same, {sum(diff.added for diff in apart.values())} only in the new "
        f"version, {sum(diff.removed for diff in apart.values())} only in the served one"
    )
    return describe_of(table, {**dict.fromkeys(apart, keys), **withheld})


def find_beyond(
    table: Table,
    gates: DriftGates,
    rehearsed: Iterable[RehearsedPartition],
    shifts: Iterable[ColumnShift],
) -> list[str]:
    """Finds what is beyond the gates: a line for each column says where, and how far at most.

    Args:
        table: the served one.
        gates: for each of its partitions.
        rehearsed: these.
        shifts: of their columns.
    """
    beyond: dict[tuple[str, float], dict[str, float]] = {}

    def weigh(what: str, bound: float | None, partition: str, value: float | None) -> None:
        if bound is not None and value is not None and value > bound:
            beyond.setdefault((what, bound), {})[partition] = value

    for partition in rehearsed:
        for column, psi in partition.diff.psi.items() if partition.diff else ():
            weigh(f"PSI of {column}", gates.max_psi, partition.partition, psi)
    for shift in shifts:
        mean, nulls = f"mean of {shift.column}", f"share of rows without {shift.column}"
        weigh(f"shift of the {mean}", gates.max_mean_shift, shift.partition, shift.mean_shift)
        weigh(f"shift of the {nulls}", gates.max_null_shift, shift.partition, shift.null_shift)
    partitions_def = find_partitions_def(table)
    return [
        f"{table.key} {', '.join(shorten(format_ranges(partitions_def, values), _IN_A_LINE))}: "
        f"{what} is up to {max(values.values()):.3f} (at most {bound:g})"
        for (what, bound), values in beyond.items()
    ]


def describe_of(table: Table, texts: Mapping[str, str]) -> list[str]:
    """Says a text of several partitions of a table once, with their ranges."""
    lines = describe_ranges(find_partitions_def(table), texts, most=_IN_A_LINE)
    return [f"{table.key} {line}" for line in lines]


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
    listed = "; ".join(shorten(promotion.missing or promotion.beyond, _IN_A_LINE))
    cure = describe_cure(promotion)
    return f"{describe_outcome(promotion)}, and not {promotion.version}: {listed}: {cure}"


def describe_cure(promotion: Promotion) -> str:
    """Says what helps where a version is not served."""
    if promotion.missing:
        return "publish what is missing, then repeat it"
    served = promotion.table.rpartition("/")[2]
    return (
        "if that is right, say why: `backfill-assets version promote "
        f'{served} {promotion.version} --accept "…"`, or widen the gates'
    )
