"""What a run that applies a rehearsal is held to."""

from collections.abc import Mapping, Sequence

from dagster import DagsterRun

from backfill_engine.errors import RehearsalError
from backfill_engine.lake.table_log import TableLog
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.orchestration.runs.run_tags import REHEARSAL_TAG
from backfill_engine.publishing.as_rehearsed import Shown
from backfill_engine.rehearsal.records import Rehearsal, read_rehearsal
from backfill_engine.tables.declarations import Table

_LISTED = 7


def find_shown(
    run: DagsterRun, table: Table, keys: Sequence[str], warehouse: Warehouse
) -> tuple[str, Mapping[str, Shown]]:
    """Finds the rehearsal that a run applies to a table, and what it has shown of partitions.

    Args:
        run: the Dagster run.
        table: whose partitions are about to be published.
        keys: of these.
        warehouse: beside whose tables rehearsals are kept.

    Returns:
        Its id, empty for a run that applies none, and what was shown, by partition key.

    Raises:
        RehearsalError: if there is no such rehearsal, or it has shown nothing of a partition.
    """
    wanted = run.tags.get(REHEARSAL_TAG)
    if wanted is None:
        return "", {}
    rehearsal = read_rehearsal(warehouse, wanted)
    shown = list_shown(rehearsal, table)
    if unknown := [key for key in keys if key not in shown]:
        raise RehearsalError(
            f"rehearsal {wanted} has shown nothing to publish of {table.key} "
            f"{', '.join(shorten(unknown, _LISTED))}: rehearse these, or leave them out; nothing "
            "was written"
        )
    return rehearsal.rehearsal_id, {key: shown[key] for key in keys}


def list_unapplied(rehearsal: Rehearsal, log: TableLog) -> list[str]:
    """Lists what a rehearsal has shown of a table and isn't published as it was, ascending.

    Args:
        rehearsal: what was shown.
        log: of the table, as it is now.
    """
    publishes = log.publishes
    return sorted(
        key
        for key in list_shown(rehearsal, log.table)
        if key not in publishes or publishes[key].record.rehearsal != rehearsal.rehearsal_id
    )


def list_shown(rehearsal: Rehearsal, table: Table) -> dict[str, Shown]:
    """Lists what a rehearsal has shown of a table, without what would be withheld."""
    found = rehearsal.find_table(table.key)
    return {
        one.partition: Shown(one.rows, one.checksum, one.shown_checksum)
        for one in (found.partitions if found else ())
        if not one.withheld
    }
