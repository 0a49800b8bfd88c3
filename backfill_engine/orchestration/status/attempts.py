"""The last attempt at each partition: when, by which run, and why it came to nothing.

Told by the log and the certificates, and by the Dagster instance where neither tells.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

from dagster import DagsterInstance, DagsterRun

from backfill_engine.lake.commits import Publish
from backfill_engine.lake.table_log import TableLog
from backfill_engine.lake.whole_files import is_file_name
from backfill_engine.orchestration.instance.dagster_internals import BACKFILL_TAG
from backfill_engine.orchestration.instance.materializations import find_planning_runs
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.orchestration.runs.chains import UNFINISHED, FailureReasons, is_left_by_pause
from backfill_engine.orchestration.runs.run_tags import CHAIN_TAG, was_dropped
from backfill_engine.orchestration.status.partition_statuses import (
    CHANGED,
    PartitionStatus,
    TableStatuses,
)
from backfill_engine.proof.certificates import (
    Certificate,
    CertificateDocument,
    CertifiedPartition,
    list_documents,
    locate_certificate,
    read_certificate,
    read_readable,
)


@dataclass(frozen=True)
class Attempt:
    """The last run that published a partition, or was to.

    Attributes:
        run_id: the run.
        backfill_id: the backfill that it was part of or continued; empty if none.
        started: when the step began, or else the run: UTC, ISO 8601; empty if nobody knows.
        completed: when the partition was published, or the step ended without it; likewise.
        status: `published`, `withheld`, `failed`, `held up`, `cancelled`, `paused`,
            `not due`, or `in progress`.
        error: why it was not published, in one line; empty if it was, or may be yet.
        checks: outcome by check; empty where none was made.
        rows: that it published, or computed and withheld; None if nobody knows.
        certificate: of the run and the table; None if there is none.
    """

    run_id: str
    backfill_id: str
    started: str
    completed: str
    status: str
    error: str = ""
    checks: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None
    certificate: Certificate | None = None


def add_attempts(
    instance: DagsterInstance, found: Iterable[TableStatuses]
) -> list[PartitionStatus]:
    """Adds to each status when the last attempt was, and why it came to nothing."""
    statuses: list[PartitionStatus] = []
    for table in found:
        keys = [status.partition for status in table.partitions]
        attempts = find_attempts(instance, table.recovery.log, keys)
        for status in table.partitions:
            attempt = attempts.get(status.partition)
            if status.status == CHANGED:
                status = replace(status, error=table.recovery.changed[status.partition])
            elif attempt is not None:
                times = {"started": attempt.started, "completed": attempt.completed}
                status = replace(status, error=attempt.error, **times)
            statuses.append(status)
    return statuses


def find_attempts(
    instance: DagsterInstance, log: TableLog, keys: Collection[str]
) -> dict[str, Attempt]:
    """Finds the last attempt at each partition, by key; those that nobody tried are absent."""
    reader = _Reader(instance, log)
    planned_by = find_planning_runs(instance, find_asset_key(log.table))
    publishes = log.publishes
    found: dict[str, Attempt] = {}
    for key in keys:
        if key in planned_by:
            found[key] = reader.describe_planned(key, planned_by[key])
        elif key in publishes:
            found[key] = reader.describe_published(publishes[key])
    return found


@dataclass(frozen=True)
class _Reader:
    """Reads runs and certificates, each once."""

    instance: DagsterInstance
    log: TableLog
    runs: dict[str, DagsterRun | None] = field(default_factory=dict)
    certificates: dict[str, Certificate | None] = field(default_factory=dict)
    rows: dict[str, dict[str, CertifiedPartition]] = field(default_factory=dict)

    @cached_property
    def reasons(self) -> FailureReasons:
        """Why runs failed."""
        return FailureReasons(self.instance)

    @cached_property
    def documents(self) -> list[CertificateDocument]:
        """All that there are."""
        return list_documents(self.log.warehouse)

    def describe_published(self, publish: Publish) -> Attempt:
        """Describes the attempt that published a partition."""
        record = publish.record
        attempt, _ = self._begin(record.run_id, record.backfill_id, publish.key)
        return replace(
            attempt,
            started=attempt.certificate.started_at if attempt.certificate else "",
            completed=publish.commit.committed_at.isoformat(timespec="milliseconds"),
            status="published",
        )

    def describe_planned(self, key: str, run_id: str) -> Attempt:
        """Describes the attempt of a run that has not published a partition, or not told so."""
        if run_id not in self.runs:
            self.runs[run_id] = self.instance.get_run_by_id(run_id)
        run = self.runs[run_id]
        tags = run.tags if run else {}
        owner = tags.get(BACKFILL_TAG) or tags.get(CHAIN_TAG) or ""
        attempt, row = self._begin(run_id, owner, key)
        if run is not None and run.status in UNFINISHED and (row is None or row.is_held_back):
            started, _ = self._find_times(run_id)
            return replace(attempt, started=started, status="in progress")
        if attempt.certificate is not None and row is not None:
            status, error = row.status, row.failures if row.is_held_back else ""
            if run is not None and is_left_by_pause(run, self.log.table, row):
                status, why = self.reasons.find(run)
                error = why if was_dropped(run) else error
            times = _find_step_times(attempt.certificate)
            return replace(attempt, **times, status=status, error=error)
        if run is None:
            return replace(attempt, error=f"its run {run_id} is not in this Dagster home")
        started, completed = self._find_times(run_id)
        status, error = self.reasons.find(run)
        return replace(attempt, started=started, completed=completed, status=status, error=error)

    def _begin(
        self, run_id: str, owner: str, key: str
    ) -> tuple[Attempt, CertifiedPartition | None]:
        """Begins an attempt by what the certificate says of the partition; returns its row, too."""
        certificate = self._read_certificate(run_id, owner)
        if certificate is not None and run_id not in self.rows:
            self.rows[run_id] = {row.partition: row for row in certificate.partitions}
        row = self.rows.get(run_id, {}).get(key)
        checks, rows = (row.checks, row.rows) if row else ({}, None)
        return Attempt(run_id, owner, "", "", "failed", "", checks, rows, certificate), row

    def _read_certificate(self, run_id: str, owner: str) -> Certificate | None:
        if run_id not in self.certificates:
            found = None
            if is_file_name(owner or run_id):  # another run was refused, and has left none
                found = read_certificate(locate_certificate(self.log, run_id, owner or None))
            if found is None and run_id in self.runs:  # of a run that another home had, perhaps
                subject = (run_id, self.log.table.key)
                documents = [found for found in self.documents if found.subject == subject]
                found = next(read_readable(documents), None)
            self.certificates[run_id] = found
        return self.certificates[run_id]

    def _find_times(self, run_id: str) -> tuple[str, str]:
        record = self.instance.get_run_record_by_id(run_id)
        times = (record.start_time, record.end_time) if record else (None, None)
        started, completed = (
            datetime.fromtimestamp(time, tz=UTC).isoformat(timespec="milliseconds") if time else ""
            for time in times
        )
        return started, completed


def _find_step_times(certificate: Certificate) -> dict[str, str]:
    started = datetime.fromisoformat(certificate.started_at)
    completed = started + timedelta(seconds=certificate.seconds)
    return {
        "started": certificate.started_at,
        "completed": completed.isoformat(timespec="milliseconds"),
    }
