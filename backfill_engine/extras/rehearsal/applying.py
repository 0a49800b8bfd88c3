"""What a run that applies a rehearsal is held to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from backfill_engine.contents.partition_contents import Counted
from backfill_engine.errors import RehearsalError
from backfill_engine.extras.rehearsal.records import (
    Rehearsal,
    RehearsedPartition,
    read_rehearsal,
)
from backfill_engine.lake.served_versions import REHEARSAL
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.orchestration.runs.features import StepRequest
from backfill_engine.orchestration.runs.run_tags import REHEARSAL_TAG
from backfill_engine.publishing.hooks import PublishHook
from backfill_engine.rules.finding_names import CONTENT_IS_AS_REHEARSED
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Check, Finding, Outcome, Verdict

_LISTED = 7


@dataclass(frozen=True)
class Shown:
    """What a rehearsal has shown of a partition.

    Attributes:
        rows: that it would have.
        checksum: of these (see `contents.checksums`).
        over: checksum of what was published then; empty if nothing was.
    """

    rows: int
    checksum: str
    over: str


@dataclass(frozen=True)
class RehearsalHook(PublishHook):
    """Holds a run to the rehearsal that it applies.

    Attributes:
        rehearsal_id: of that.
        shown: by partition key, what it has shown; no other partition is published.
    """

    name: ClassVar[str] = REHEARSAL
    rehearsal_id: str
    shown: Mapping[str, Shown]

    def judge(
        self,
        verdicts: Mapping[str, Verdict],
        measures: Mapping[str, PartitionMeasures],
        target: TableLog,
    ) -> Mapping[str, Verdict]:
        """Adds whether each partition is as rehearsed, and still replaces what was shown."""
        checksums = target.checksums
        return {
            key: judge_as_rehearsed(
                verdict, measures[key], self.shown[key], published=checksums.get(key, "")
            )
            for key, verdict in verdicts.items()
        }

    def describe(self) -> str:
        """Names the rehearsal."""
        return self.rehearsal_id


def judge_as_rehearsed(
    verdict: Verdict, found: Counted, shown: Shown, *, published: str
) -> Verdict:
    """Adds to a verdict whether the partition is as rehearsed, and still replaces what was shown.

    Args:
        verdict: of the audit.
        found: rows and checksum that were audited.
        shown: what was rehearsed.
        published: checksum of what is published now; empty if nothing is. Where that is what was
            rehearsed, it was applied before: a crash may have kept Dagster from knowing.
    """
    is_as_shown = (found.rows, found.checksum) == (shown.rows, shown.checksum)
    is_over_shown = published in (shown.over, shown.checksum)
    bound = f"{shown.rows} rows with checksum {shown.checksum}"
    if not is_as_shown:
        bound += f" were rehearsed, found {found.checksum}"
    elif not is_over_shown:
        bound += " over other contents: somebody published the partition since"
    finding = Finding(
        CONTENT_IS_AS_REHEARSED,
        float(found.rows),
        bound,
        Outcome.of(failed=not (is_as_shown and is_over_shown)),
    )
    return verdict.add(Check.COMPLETE, finding)


def apply_rehearsal(request: StepRequest) -> RehearsalHook | None:
    """Holds a run that applies a rehearsal to what that has shown of its partitions.

    Raises:
        RehearsalError: if there is no such rehearsal, or it has shown nothing of a partition.
    """
    wanted, table = request.run.tags.get(REHEARSAL_TAG), request.recipe.table
    if wanted is None:
        return None
    rehearsal = read_rehearsal(request.warehouse, wanted)
    shown = list_shown(rehearsal.list_partitions(request.recipe.table.key))
    if unknown := [key for key in request.keys if key not in shown]:
        raise RehearsalError(
            f"rehearsal {wanted} has shown nothing to publish of {table.key} "
            f"{', '.join(shorten(unknown, _LISTED))}: rehearse these, or leave them out; nothing "
            "was written"
        )
    return RehearsalHook(rehearsal.rehearsal_id, {key: shown[key] for key in request.keys})


def list_unapplied(rehearsal: Rehearsal, log: TableLog) -> list[str]:
    """Lists what a rehearsal has shown of a table and isn't published as it was, ascending.

    Args:
        rehearsal: what was shown.
        log: of the table, as it is now.
    """
    publishes = log.publishes
    return sorted(
        key
        for key in list_shown(rehearsal.list_partitions(log.table.key))
        if key not in publishes
        or publishes[key].record.features.get(REHEARSAL) != rehearsal.rehearsal_id
    )


def list_shown(partitions: Iterable[RehearsedPartition]) -> dict[str, Shown]:
    """Lists what a rehearsal has shown of partitions, without those that would be withheld."""
    return {
        rehearsed.partition: Shown(rehearsed.rows, rehearsed.checksum, rehearsed.shown_checksum)
        for rehearsed in partitions
        if not rehearsed.withheld
    }
