"""Writes down what a run did to a table, once it has done it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from backfill_engine.contents.partition_contents import IN_THIS_PROCESS, PartitionReader
from backfill_engine.lake.commits import Commit, CommitRecord, Publish, group_publishes
from backfill_engine.lake.table_log import TableLog
from backfill_engine.proof.certificates import (
    NOT_DUE,
    Certificate,
    CertifiedChunk,
    CertifiedCommit,
    CertifiedPartition,
    locate_certificate,
    write_certificate,
)
from backfill_engine.proof.pages import render_certificate
from backfill_engine.proof.untouched import prove_untouched
from backfill_engine.publishing.results import PartitionResult, Run
from backfill_engine.publishing.statements import describe_result, describe_run

_CLOCKS_DIFFER = timedelta(hours=1)
"""Most that clocks of machines which commit to one table are taken to differ."""


def certify(
    log: TableLog,
    results: Sequence[PartitionResult],
    run: Run,
    *,
    code_version: str,
    requested_at: datetime,
    reader: PartitionReader = IN_THIS_PROCESS,
    chunks: Sequence[CertifiedChunk] = (),
) -> Certificate:
    """Builds and writes the certificate of a run's results; ascending or not.

    Args:
        log: of the table, read after the run's last commit.
        results: of all partitions that were asked for.
        run: the run.
        code_version: what the partitions were computed by.
        requested_at: when the run was (UTC); it may have begun more than once.
        reader: reads partitions in folders that the run rewrote.
        chunks: of a run that was told to work in chunks, those that were begun.
    """
    ascending = sorted(results, key=lambda result: result.key)
    own = [
        (commit, commit.record)
        for commit in takewhile(
            lambda commit: commit.committed_at >= requested_at - _CLOCKS_DIFFER,
            log.iterate_commits(),
        )
        if commit.record and commit.record.run_id == run.run_id
    ][::-1]
    commits = [_certify_commit(commit, record) for commit, record in own]
    publishes = group_publishes(log.known_commits)
    keys = [result.key for result in ascending]
    proof = prove_untouched(
        log, keys, versions=[commit.version for commit, _ in own], reader=reader
    )
    stated = describe_run(
        run, asset_key=log.table.key, table_uri=log.uri, code_version=code_version
    )
    start = stated["started_at"]
    certificate = Certificate(
        **asdict(run.options),
        **stated,
        input_versions=merge_inputs((result.input_versions for result in ascending), commits),
        partition_start=keys[0],
        partition_end=keys[-1],
        seconds=round((datetime.now(tz=UTC) - run.started_at).total_seconds(), 3),
        commits=commits,
        partitions=[
            _certify_partition(
                result,
                find_before(publishes.get(result.key, ()), result, run_id=run.run_id, start=start),
            )
            for result in ascending
        ],
        touched_outside=proof.outside,
        untouched_partitions=proof.partitions,
        untouched_files=proof.files,
        compared_partitions=proof.compared,
        chunks=chunks,
        held_back_from={
            result.key: result.consumed.state
            for result in ascending
            if result.version is None and result.consumed.state
        },
    )
    place = locate_certificate(log, run.run_id, run.backfill_id)
    write_certificate(place, certificate, page=render_certificate(certificate))
    return certificate


def find_before(
    publishes: Iterable[Publish],
    row: PartitionResult | CertifiedPartition,
    *,
    run_id: str,
    start: str,
) -> Publish | None:
    """Finds the newest publish of a partition before a run judged it.

    Args:
        publishes: of the partition, newest first.
        row: what came of it.
        run_id: the run, whose own commits don't count.
        start: when the step began (ISO 8601): the bound where no commit came with the verdict.

    Returns:
        None if there is none.
    """
    version = row.stated_in if row.version is None else row.version
    began = datetime.fromisoformat(start)
    for publish in publishes:
        committed_at = publish.commit.committed_at
        earlier = committed_at < began if version is None else publish.version < version
        if earlier and publish.record.run_id != run_id:
            return publish
    return None


def merge_inputs(
    earlier: Iterable[Mapping[str, int | str]], commits: Iterable[CertifiedCommit]
) -> dict[str, int | str]:
    """Merges what partitions were computed from; of several versions, the last commit's.

    Args:
        earlier: of what no commit came of.
        commits: ascending.
    """
    merged: dict[str, int | str] = {}
    for versions in (*earlier, *(commit.input_versions for commit in commits)):
        merged |= versions
    return merged


def _find_status(result: PartitionResult) -> str:
    if result.not_due:
        return NOT_DUE
    if result.version is None:
        return "failed" if result.failed else "withheld"
    if result.unchanged:
        return "already published"
    return "already appended" if result.repeated_batch else "published"


def _certify_commit(commit: Commit, record: CommitRecord) -> CertifiedCommit:
    # A commit that takes back another of the run states nothing: the table itself is its input.
    inputs = record.input_versions if record.statement else {}
    return CertifiedCommit(commit.version, format_time(commit), record.predicate, inputs)


def format_time(commit: Commit) -> str:
    """Writes when a commit was made: UTC, ISO 8601."""
    return commit.committed_at.isoformat(timespec="milliseconds")


def _certify_partition(result: PartitionResult, before: Publish | None) -> CertifiedPartition:
    return CertifiedPartition(
        **describe_result(result),
        status=_find_status(result),
        version=result.version,
        rows_before=before.rows if before else None,
        checksum_before=before.checksum if before else None,
        stated_in=result.stated_in,
        never_came=result.not_due,
    )
