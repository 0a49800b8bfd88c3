"""A report on one partition: what it holds, from what, and what the last run made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError
from backfill_engine.lake.commits import Publish
from backfill_engine.lake.origins import TO_FILL_IN
from backfill_engine.orchestration.instance.ranges import (
    build_command,
    build_range_options,
)
from backfill_engine.orchestration.planning.planning import Planner
from backfill_engine.orchestration.status.attempts import Attempt, find_attempts
from backfill_engine.orchestration.status.partition_statuses import (
    CHANGED,
    FAILED,
    IN_PROGRESS,
    MATERIALIZED,
    MISSING,
    NOT_DUE,
    PartitionStatus,
    read_table_statuses,
)
from backfill_engine.publishing.results import describe_findings
from backfill_engine.publishing.statements import read_result
from backfill_engine.rules.verdicts import Outcome
from backfill_engine.tables.declarations import Table


@dataclass(frozen=True)
class PartitionReport:
    """All that is known of one partition.

    Attributes:
        table: `layer/name`.
        partition: its key.
        status: as `PartitionStatus` has it.
        published: what it holds, as JSON values; None if it was never published.
        attempt: the last run at it, likewise, without its certificate; None if nobody tried.
        stale: why it would be computed from something else now; empty if it wouldn't, or if it
            isn't published.
        waits: why it can't be computed now; empty if it can.
        read_by: by table, the partitions that were computed from it.
        next: commands that help, in this order; none if nothing is to be done.
    """

    table: str
    partition: str
    status: str
    published: Mapping[str, Any] | None
    attempt: Mapping[str, Any] | None
    stale: str
    waits: str
    read_by: Mapping[str, Sequence[str]]
    next: Sequence[str]


def describe_partition(planner: Planner, table: Table, key: str) -> PartitionReport:
    """Reports on one partition.

    Raises:
        PartitionRangeError: if the table has no such partition.
    """
    catalog, instance, log = planner.catalog, planner.statuses.instance, planner.logs[table.key]
    (status,) = read_table_statuses(
        catalog, instance, log, first=key, last=key, dead=planner.dead
    ).partitions
    publish = log.publishes.get(key)
    attempt = find_attempts(instance, log, [key]).get(key)
    downstream: Mapping[str, Sequence[tuple[str, str]]] = {}
    waits, at_work = "", False
    try:
        plan = planner.plan({table: (key, key)})
        planned, downstream = plan.tables[0], plan.downstream
        stale, waits, at_work = _find_why(planned.stale), _find_why(planned.waits), planned.at_work
        is_stale = bool(planned.stale)
    except BackfillError as error:  # what is known of it is told all the same
        stale, is_stale = f"nobody can tell: {error}", False
    return PartitionReport(
        table=table.key,
        partition=key,
        status=status.status,
        published=_describe_publish(publish) if publish else None,
        attempt={name: value for name, value in vars(attempt).items() if name != "certificate"}
        if attempt
        else None,
        stale=stale,
        waits=waits,
        read_by={
            name: [first if first == last else f"{first}...{last}" for first, last in ranges]
            for name, ranges in downstream.items()
        },
        next=_find_next(
            catalog,
            status,
            attempt,
            waits=waits,
            is_at_work=status.status == IN_PROGRESS or bool(at_work),
            is_to_run=status.status in (FAILED, MISSING, CHANGED) or is_stale,
        ),
    )


def _find_why(lines: Sequence[str]) -> str:
    """Takes the partition away from `KEY: why`."""
    return "; ".join(line.partition(": ")[2] for line in lines)


def _describe_publish(publish: Publish) -> dict[str, Any]:
    record, consumed = publish.record, publish.consumed
    remarks = [
        f"{check} {finding.outcome}: {describe_findings([finding])}"
        for check, findings in read_result(publish).verdict.findings.items()
        for finding in findings
        if finding.outcome is not Outcome.PASSED
    ]
    return {
        "at": publish.commit.committed_at.isoformat(timespec="milliseconds"),
        "version": publish.version,
        "run_id": record.run_id,
        "backfill_id": record.backfill_id,
        "rows": publish.rows,
        "checksum": publish.checksum,
        "code_version": record.code_version,
        "landed": consumed.landed._asdict() if consumed.landed else None,
        "upstream": consumed.upstream,
        "input_versions": record.input_versions,
        "provisional": record.provisional.get(publish.key, ""),
        "restored": publish.restored,
        "remarks": remarks,
    }


def _find_next(
    catalog: Catalog,
    status: PartitionStatus,
    attempt: Attempt | None,
    *,
    waits: str,
    is_at_work: bool,
    is_to_run: bool,
) -> list[str]:
    table, key = status.table, status.partition
    ends = build_range_options([key])
    if is_at_work:
        return [f"backfill-assets backfill watch {attempt.run_id[:8]}"] if attempt else []
    commands: list[str] = []
    if attempt is not None and attempt.status == "withheld":
        commands.append(f"backfill-assets status --withheld --select {table} {ends}")
    if status.status == NOT_DUE:  # it goes by itself once what it waits for is published
        return commands
    if waits:
        commands += [
            f"backfill-assets status --why {upstream} --select {name}"
            for name, upstream in _find_blocking(catalog, waits)
        ]
    elif is_to_run:
        commands.append(build_command(catalog, [table], key, key, {}))
        if status.status == CHANGED:
            commands.append(f"backfill-assets accept {table} {ends} --reason {TO_FILL_IN}")
    elif status.status == MATERIALIZED and attempt is not None and attempt.run_id:
        commands.append(f"backfill-assets history {table} {ends}")
    return commands


def _find_blocking(catalog: Catalog, waits: str) -> list[tuple[str, str]]:
    """Finds table and key of the upstream partitions that are waited for, of `TABLE KEY is …`."""
    words = [word.split() for word in waits.split(", ")]
    tables = [word for word in words if len(word) > 1 and "/" in word[0]]
    return [(word[0], word[1]) for word in tables if catalog.find_table(word[0])]
