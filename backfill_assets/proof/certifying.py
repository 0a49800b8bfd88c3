"""Writes down what a run did to a table, once it has done it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from backfill_assets.lake.table_log import Commit, read_commits
from backfill_assets.lake.warehouse import Warehouse
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
from backfill_assets.publishing.write_options import OVERWRITE, WriteOptions
from backfill_assets.rules.verdicts import find_outcome
from backfill_assets.tables.declarations import Table


@dataclass(frozen=True)
class RunFacts:
    """What the run itself knows.

    Attributes:
        run_id: the Dagster run.
        backfill_id: the backfill that it is part of; None if none.
        run_config: its configuration, as JSON values.
        started_at: of the step, UTC.
        code_version: what the partitions were computed by.
        options: how it wrote.
    """

    run_id: str
    backfill_id: str | None
    run_config: Mapping[str, Any]
    started_at: datetime
    code_version: str
    options: WriteOptions = OVERWRITE


def certify(
    warehouse: Warehouse, table: Table, results: Sequence[PartitionResult], facts: RunFacts
) -> str:
    """Builds and writes the certificate of a run's results; ascending or not.

    Returns:
        Where it is, without suffix.
    """
    ascending = sorted(results, key=lambda one: one.key)
    commits = read_commits(warehouse, table)
    own = [one for one in reversed(commits) if one.record and one.record.run_id == facts.run_id]
    keys = [one.key for one in ascending]
    proof = prove_untouched(warehouse, table, keys, versions=[one.version for one in own])
    certificate = Certificate(
        run_id=facts.run_id,
        backfill_id=facts.backfill_id,
        asset_key=table.key,
        table_uri=warehouse.uri(table),
        write_mode=facts.options.mode,
        row_filter=facts.options.row_filter,
        delete_missing=facts.options.delete_missing,
        batch=facts.options.batch,
        code_version=facts.code_version,
        run_config=facts.run_config,
        input_versions={k: v for one in ascending for k, v in one.input_versions.items()},
        partition_start=keys[0],
        partition_end=keys[-1],
        started_at=facts.started_at.isoformat(timespec="seconds"),
        seconds=round((datetime.now(tz=UTC) - facts.started_at).total_seconds(), 3),
        commits=[
            CertifiedCommit(
                one.version,
                one.committed_at.isoformat(timespec="milliseconds"),
                one.record.predicate if one.record else "",
            )
            for one in own
        ],
        partitions=[
            _certify_partition(one, _find_before(commits, one, facts.run_id)) for one in ascending
        ],
        touched_outside=proof.outside,
        untouched_partitions=proof.partitions,
        untouched_files=proof.files,
        compared_partitions=proof.compared,
    )
    place = locate_certificate(warehouse, table, run_id=facts.run_id, backfill_id=facts.backfill_id)
    write_certificate(place, certificate, page=render_certificate(certificate))
    return place


def _find_before(commits: Sequence[Commit], result: PartitionResult, run_id: str) -> Commit | None:
    """The newest commit of another run that published the partition before this run did."""
    for one in commits:
        earlier = result.version is None or one.version < result.version
        if earlier and one.record and one.record.run_id != run_id and result.key in one.record.rows:
            return one
    return None


def _find_status(result: PartitionResult) -> str:
    if result.version is None:
        return "withheld"
    return "already appended" if result.repeated_batch else "published"


def _certify_partition(result: PartitionResult, before: Commit | None) -> CertifiedPartition:
    record = before.record if before else None
    return CertifiedPartition(
        partition=result.key,
        status=_find_status(result),
        version=result.version,
        rows=result.measures.rows,
        checksum=result.measures.checksum,
        rows_before=record.rows[result.key] if record else None,
        checksum_before=record.checksums[result.key] if record else None,
        checks={
            check.value: find_outcome(findings).value
            for check, findings in result.verdict.findings.items()
            if findings
        },
        failures=describe_failures(result.verdict),
        accepted={one.check: one.reason for one in result.verdict.accepted},
    )
