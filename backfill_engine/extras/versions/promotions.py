"""What was found of a promotion, and what came of it: `<warehouse>/rehearsals/<id>/promotion.json`.

The rehearsal beside it has the differences, partition by partition.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from backfill_engine.escaping import escape_markdown
from backfill_engine.extras.rehearsal.records import (
    RehearsedTable,
    locate_beside_rehearsal,
    read_beside_rehearsal,
)
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.whole_files import write_whole_file
from backfill_engine.orchestration.instance.ranges import shorten

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
        beyond: what differs by more than the gates, a line each.
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


def find_missing(served: RehearsedTable) -> list[str]:
    """Finds what the audit withholds of a version, and keys that one side has and not the other.

    Args:
        served: the served table, as it was rehearsed.
    """
    missing: list[str] = []
    for rehearsed in served.partitions:
        where, diff = f"{served.table} {rehearsed.partition}", rehearsed.diff
        if rehearsed.withheld:
            missing.append(f"{where} would be withheld: {rehearsed.withheld}")
        elif diff and rehearsed.shown_checksum and (diff.added or diff.removed):
            missing.append(
                f"{where}: the keys are not the same, {diff.added} only in the new version, "
                f"{diff.removed} only in the served one"
            )
    return missing


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
