"""What a run that applies a rehearsal is held to."""

from collections.abc import Iterable

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
from backfill_engine.publishing.as_rehearsed import RehearsalHook, Shown

_LISTED = 7


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
