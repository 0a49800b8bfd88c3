"""What certificates say was withheld, of which a Dagster instance knows nothing."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from dagster import AssetPartitionStatus, DagsterInstance

from backfill_engine.errors import CertificateError
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.instance.materializations import find_plans
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.proof.certificates import (
    NOT_DUE,
    Certificate,
    CertifiedPartition,
    list_documents,
)
from backfill_engine.publishing.results import PartitionResult
from backfill_engine.rules.finding_names import AS_CERTIFIED
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Check, Finding, Outcome, Verdict


@dataclass(frozen=True)
class WithheldRecord:
    """Partitions of one table that a run withheld, or failed at, and that stand so since.

    Attributes:
        certificate: of the run.
        rows: what it says of these partitions, ascending.
    """

    certificate: Certificate
    rows: tuple[CertifiedPartition, ...]

    @property
    def keys(self) -> list[str]:
        """The partitions, ascending."""
        return [row.partition for row in self.rows]

    @property
    def results(self) -> list[PartitionResult]:
        """The partitions with their findings, as far as the certificate has them."""
        return [_read_result(row) for row in self.rows]


@dataclass(frozen=True)
class WithheldRecords:
    """What certificates say of a table: by run, and which of them can't be read, in words."""

    runs: tuple[WithheldRecord, ...] = ()
    unreadable: tuple[str, ...] = ()


def find_withheld_records(
    instance: DagsterInstance, log: TableLog, *, entered: Collection[str] = ()
) -> WithheldRecords:
    """Finds what was withheld since it was published last, and of which the instance has no trace.

    A trace is the plan of that run, or of another one that is at work or failed.

    Args:
        instance: the Dagster instance.
        log: of the table.
        entered: partitions whose publish is to be entered, which then hides any earlier trace.
    """
    certificates, unreadable = _read_certificates(log)
    latest: dict[str, tuple[Certificate, CertifiedPartition]] = {}
    for certificate in certificates:
        latest.update({row.partition: (certificate, row) for row in certificate.partitions})
    standing = {
        key: (certificate, row)
        for key, (certificate, row) in sorted(latest.items())
        if row.is_held_back
        and row.status != NOT_DUE
        and not _is_published_since(log, key, certificate)
    }
    statuses = _find_statuses(instance, log, list(standing))
    plans = find_plans(instance, find_asset_key(log.table), standing)
    planned = {key for _, key in plans}
    by_run: dict[str, list[tuple[Certificate, CertifiedPartition]]] = {}
    for key, (certificate, row) in standing.items():
        # The status alone may be one that Dagster has noted down, of events that are gone.
        is_failed = statuses.get(key) in (
            AssetPartitionStatus.FAILED,
            AssetPartitionStatus.IN_PROGRESS,
        )
        has_trace = (certificate.run_id, key) in plans or (is_failed and key in planned)
        if key in entered or not has_trace:
            by_run.setdefault(certificate.run_id, []).append((certificate, row))
    records = (
        WithheldRecord(found[0][0], tuple(row for _, row in found)) for found in by_run.values()
    )
    return WithheldRecords(tuple(records), unreadable)


def _read_certificates(log: TableLog) -> tuple[list[Certificate], tuple[str, ...]]:
    """Reads all certificates of the table, oldest first; and says which can't be read."""
    found: list[Certificate] = []
    unreadable: list[str] = []
    for document in list_documents(log.warehouse):
        if document.subject[1] == log.table.key:
            try:
                found.append(document.read())
            except CertificateError as error:
                unreadable.append(str(error))
    return sorted(found, key=lambda certificate: certificate.started_at), tuple(unreadable)


def _is_published_since(log: TableLog, key: str, certificate: Certificate) -> bool:
    publish = log.publishes.get(key)
    begun = datetime.fromisoformat(certificate.started_at)
    ended = begun + timedelta(seconds=certificate.seconds)
    return publish is not None and publish.commit.committed_at > ended


def _find_statuses(
    instance: DagsterInstance, log: TableLog, keys: list[str]
) -> Mapping[str, AssetPartitionStatus | None]:
    if not keys:
        return {}
    asset_key, partitions_def = find_asset_key(log.table), find_partitions_def(log.table)
    return instance.get_status_by_partition(asset_key, keys, partitions_def) or {}


def _read_result(row: CertifiedPartition) -> PartitionResult:
    findings = {
        Check(check): (
            Finding(
                AS_CERTIFIED,
                None,
                row.failures if outcome == Outcome.FAILED else "see its certificate",
                Outcome(outcome),
            ),
        )
        for check, outcome in row.checks.items()
    }
    return PartitionResult(
        Verdict(row.partition, findings), PartitionMeasures(rows=row.rows, checksum=row.checksum)
    )
