"""The whole story of one partition: what it holds, from what, and what the last run made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dagster import DagsterInstance

from backfill_engine.catalog import Catalog
from backfill_engine.lake.commits import Publish
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.instance.ranges import build_command
from backfill_engine.orchestration.planning.plans import Plan
from backfill_engine.orchestration.status.attempts import Attempt, find_attempts
from backfill_engine.orchestration.status.partition_statuses import (
    CHANGED,
    FAILED,
    IN_PROGRESS,
    MATERIALIZED,
    MISSING,
    NOT_DUE,
    PartitionStatus,
)
from backfill_engine.publishing.recorded_audits import read_result
from backfill_engine.publishing.results import describe_findings
from backfill_engine.rules.verdicts import Outcome


@dataclass(frozen=True)
class PublishedContents:
    """What was published of a partition last.

    Attributes:
        at: when: UTC, ISO 8601.
        version: the Delta version that did.
        run_id: by which run.
        backfill_id: of which backfill; empty if of none.
        rows: as the audit counted them.
        checksum: of them.
        code_version: of the code that computed them.
        landed: the landed files that they are from: files, bytes, fingerprint; None of a table that
            reads none, or if the commit doesn't say.
        upstream: by table, the upstream partitions that they are from, each with the checksum that
            it had; "" of one that was not there.
        input_versions: of those tables, and of the landing zone.
        provisional: what of its input was not there yet; empty if all was.
        restored: what a rollback brought back; empty if none did.
        remarks: findings that did not pass, or were accepted, with value and bound.
    """

    at: str
    version: int
    run_id: str
    backfill_id: str
    rows: int
    checksum: str
    code_version: str
    landed: Mapping[str, Any] | None
    upstream: Mapping[str, Mapping[str, str]]
    input_versions: Mapping[str, int | str]
    provisional: str
    restored: str
    remarks: Sequence[str]


@dataclass(frozen=True)
class LastAttempt:
    """The last run that published a partition, or was to.

    Attributes:
        run_id: the run.
        backfill_id: its backfill; empty if none.
        started: UTC, ISO 8601; empty if nobody knows.
        completed: likewise.
        status: as in `attempts.Attempt`.
        error: why it did not; its findings with value and bound, as its certificate has them.
        checks: outcome by check; empty where none was made.
        rows: that it published, or computed and withheld; None if nobody knows.
    """

    run_id: str
    backfill_id: str
    started: str
    completed: str
    status: str
    error: str
    checks: Mapping[str, str]
    rows: int | None


@dataclass(frozen=True)
class Story:
    """All that is known of one partition.

    Attributes:
        table: `layer/name`.
        partition: its key.
        status: as `PartitionStatus` has it.
        published: what it holds; None if it was never published.
        attempt: the last run at it; None if nobody tried.
        stale: why it would be computed from something else now; empty if it wouldn't, or if it
            isn't published.
        waits: why it can't be computed now; empty if it can.
        read_by: by table, the partitions that were computed from it.
        next: commands that help, in this order; none if nothing is to be done.
    """

    table: str
    partition: str
    status: str
    published: PublishedContents | None
    attempt: LastAttempt | None
    stale: str
    waits: str
    read_by: Mapping[str, Sequence[str]]
    next: Sequence[str]


def tell_story(
    catalog: Catalog,
    instance: DagsterInstance,
    log: TableLog,
    status: PartitionStatus,
    plan: Plan | str,
) -> Story:
    """Tells the story of one partition.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        log: of the table.
        status: of the partition.
        plan: to run the one partition of the one table, whatever its state; or why none can be
            made.
    """
    key = status.partition
    publish = log.publishes.get(key)
    attempt = find_attempts(instance, log, [key]).get(key)
    planned = None if isinstance(plan, str) else plan.tables[0]
    stale = f"nobody can tell: {plan}" if planned is None else _find_why(planned.stale)
    waits = _find_why(planned.waits) if planned else ""
    return Story(
        table=status.table,
        partition=key,
        status=status.status,
        published=_describe_publish(publish) if publish else None,
        attempt=_describe_attempt(attempt) if attempt else None,
        stale=stale,
        waits=waits,
        read_by={
            table: [first if first == last else f"{first}...{last}" for first, last in ranges]
            for table, ranges in ({} if isinstance(plan, str) else plan.downstream).items()
        },
        next=_find_next(
            catalog,
            status,
            attempt,
            waits=waits,
            is_at_work=status.status == IN_PROGRESS or bool(planned and planned.at_work),
            is_to_run=status.status in (FAILED, MISSING, CHANGED)
            or bool(planned and planned.stale),
        ),
    )


def _find_why(lines: Sequence[str]) -> str:
    """Takes the partition away from `KEY: why`."""
    return "; ".join(line.partition(": ")[2] for line in lines)


def _describe_publish(publish: Publish) -> PublishedContents:
    record, consumed = publish.record, publish.consumed
    verdict = read_result(publish).verdict
    remarks = [
        f"{check} {finding.outcome}: {describe_findings([finding])}"
        for check, findings in verdict.findings.items()
        for finding in findings
        if finding.outcome is not Outcome.PASSED
    ]
    return PublishedContents(
        at=publish.commit.committed_at.isoformat(timespec="milliseconds"),
        version=publish.version,
        run_id=record.run_id,
        backfill_id=record.backfill_id,
        rows=publish.rows,
        checksum=publish.checksum,
        code_version=record.code_version,
        landed=consumed.landed._asdict() if consumed.landed else None,
        upstream=consumed.upstream,
        input_versions=record.input_versions,
        provisional=record.provisional.get(publish.key, ""),
        restored=publish.restored,
        remarks=remarks,
    )


def _describe_attempt(attempt: Attempt) -> LastAttempt:
    return LastAttempt(
        run_id=attempt.run_id,
        backfill_id=attempt.backfill_id,
        started=attempt.started,
        completed=attempt.completed,
        status=attempt.status,
        error=attempt.error,
        checks=attempt.row.checks if attempt.row else {},
        rows=attempt.row.rows if attempt.row else None,
    )


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
    ends = f"--from {key} --to {key}"
    if is_at_work:
        return [f"backfill-assets watch {attempt.run_id[:8]}"] if attempt else []
    commands: list[str] = []
    if attempt is not None and attempt.status == "withheld":
        commands.append(f"backfill-assets withheld {table} {ends}")
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
            commands.append(f"backfill-assets accept {table} {ends} --reason WHY")
    elif status.status == MATERIALIZED and attempt is not None and attempt.run_id:
        commands.append(f"backfill-assets history {table} {ends}")
    return commands


def _find_blocking(catalog: Catalog, waits: str) -> list[tuple[str, str]]:
    """Finds table and key of the upstream partitions that are waited for, of `TABLE KEY is …`."""
    words = [one.split() for one in waits.split(", ")]
    tables = [one for one in words if len(one) > 1 and "/" in one[0]]
    return [(one[0], one[1]) for one in tables if catalog.find_table(one[0])]
