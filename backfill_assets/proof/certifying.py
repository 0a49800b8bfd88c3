"""Writes down what a run did to a table, once it has done it."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from backfill_assets.lake.commits import CommitRecord
from backfill_assets.lake.table_log import TableLog
from backfill_assets.proof.certificates import (
    Certificate,
    CertifiedCommit,
    CertifiedPartition,
    locate_certificate,
    write_certificate,
)
from backfill_assets.proof.pages import render_certificate
from backfill_assets.proof.untouched import prove_untouched
from backfill_assets.publishing.results import PartitionResult, describe_failures
from backfill_assets.publishing.runs import Run
from backfill_assets.rules.verdicts import find_outcome


def certify(
    log: TableLog, results: Sequence[PartitionResult], run: Run, *, code_version: str
) -> str:
    """Builds and writes the certificate of a run's results; ascending or not.

    Args:
        log: of the table, read after the run's last commit.
        results: of all partitions that were asked for.
        run: the run.
        code_version: what the partitions were computed by.

    Returns:
        Where it is, without suffix.
    """
    ascending = sorted(results, key=lambda result: result.key)
    own = [
        (commit, commit.record)
        for commit in reversed(log.commits)
        if commit.record and commit.record.run_id == run.run_id
    ]
    keys = [result.key for result in ascending]
    proof = prove_untouched(log, keys, versions=[commit.version for commit, _ in own])
    certificate = Certificate(
        **asdict(run.options),
        run_id=run.run_id,
        backfill_id=run.backfill_id,
        asset_key=log.table.key,
        table_uri=log.uri,
        code_version=code_version,
        run_config=run.config,
        input_versions={k: v for result in ascending for k, v in result.input_versions.items()},
        partition_start=keys[0],
        partition_end=keys[-1],
        started_at=run.started_at.isoformat(timespec="seconds"),
        seconds=round((datetime.now(tz=UTC) - run.started_at).total_seconds(), 3),
        commits=[
            CertifiedCommit(
                commit.version,
                commit.committed_at.isoformat(timespec="milliseconds"),
                record.predicate,
            )
            for commit, record in own
        ],
        partitions=[
            _certify_partition(result, _find_before(log, result, run.run_id))
            for result in ascending
        ],
        touched_outside=proof.outside,
        untouched_partitions=proof.partitions,
        untouched_files=proof.files,
        compared_partitions=proof.compared,
    )
    place = locate_certificate(log, run.run_id, run.backfill_id)
    write_certificate(place, certificate, page=render_certificate(certificate))
    return place


def _find_before(log: TableLog, result: PartitionResult, run_id: str) -> CommitRecord | None:
    """Finds the record of the newest commit that published the partition before this run did.

    It is of another run; None if there is none.
    """
    for commit in log.commits:
        earlier = result.version is None or commit.version < result.version
        record = commit.record
        if earlier and record and record.run_id != run_id and result.key in record.rows:
            return record
    return None


def _find_status(result: PartitionResult) -> str:
    if result.version is None:
        return "withheld"
    return "already appended" if result.repeated_batch else "published"


def _certify_partition(result: PartitionResult, before: CommitRecord | None) -> CertifiedPartition:
    return CertifiedPartition(
        partition=result.key,
        status=_find_status(result),
        version=result.version,
        rows=result.measures.rows,
        checksum=result.measures.checksum,
        rows_before=before.rows[result.key] if before else None,
        checksum_before=before.checksums[result.key] if before else None,
        checks={
            check.value: find_outcome(findings).value
            for check, findings in result.verdict.findings.items()
            if findings
        },
        failures=describe_failures(result.verdict),
        accepted={acceptance.check: acceptance.reason for acceptance in result.verdict.accepted},
    )
