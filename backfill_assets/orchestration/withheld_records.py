"""What certificates say was withheld, of which a Dagster instance knows nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from dagster import DagsterInstance

from backfill_assets.lake.table_log import TableLog
from backfill_assets.orchestration.dagster_internals import AssetPartitionStatus
from backfill_assets.orchestration.partition_definitions import find_asset_key, find_partitions_def
from backfill_assets.orchestration.recovered_runs import is_known
from backfill_assets.proof.certificates import (
    Certificate,
    CertifiedPartition,
    find_table_certificates,
)
from backfill_assets.publishing.results import PartitionResult
from backfill_assets.rules.measured import PartitionMeasures
from backfill_assets.rules.verdicts import Check, Finding, Outcome, Verdict


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


def find_withheld_records(instance: DagsterInstance, log: TableLog) -> tuple[WithheldRecord, ...]:
    """Finds what was withheld since it was published last, by runs that the instance doesn't know.

    Those that it knows, it has told of itself.
    """
    latest: dict[str, tuple[Certificate, CertifiedPartition]] = {}
    for certificate in find_table_certificates(log.warehouse, log.table):
        latest.update({row.partition: (certificate, row) for row in certificate.partitions})
    standing = {
        key: (certificate, row)
        for key, (certificate, row) in latest.items()
        if row.status in ("withheld", "failed") and not _is_published_since(log, key, certificate)
    }
    statuses = _find_statuses(instance, log, sorted(standing))
    known = {
        certificate.run_id: is_known(instance, certificate.run_id)
        for certificate, _ in standing.values()
    }
    by_run: dict[str, list[tuple[Certificate, CertifiedPartition]]] = {}
    for key, (certificate, row) in sorted(standing.items()):
        told = statuses.get(key) in (AssetPartitionStatus.FAILED, AssetPartitionStatus.IN_PROGRESS)
        if not told and not known[certificate.run_id]:
            by_run.setdefault(certificate.run_id, []).append((certificate, row))
    return tuple(
        WithheldRecord(found[0][0], tuple(row for _, row in found)) for found in by_run.values()
    )


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
                "as_certified",
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
