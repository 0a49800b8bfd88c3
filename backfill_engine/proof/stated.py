"""What commits vouch for in a certificate, and what of it stands in no commit."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from backfill_engine.lake.commits import CommitRecord, group_publishes
from backfill_engine.lake.table_log import TableLog
from backfill_engine.proof.certificates import Certificate, CertifiedCommit, CertifiedPartition
from backfill_engine.proof.certifying import find_before, merge_inputs
from backfill_engine.proof.pages import VerifiedLine
from backfill_engine.publishing.statements import STATED, STATED_OF_PARTITION, hash_statement
from backfill_engine.rules.measured import list_some
from backfill_engine.rules.verdicts import Check, Outcome

_READABLE = Check.READABLE.value


def find_own_records(log: TableLog, certificate: Certificate) -> dict[int, CommitRecord]:
    """Finds the records of the run's commits by version, ascending."""
    return {
        commit.version: commit.record
        for commit in reversed(log.commits)
        if commit.record and commit.record.run_id == certificate.run_id
    }


def is_stated(certificate: Certificate, own: Mapping[int, CommitRecord]) -> bool:
    """Tells whether commits of the run vouch for the certificate; those of old releases don't.

    Where the log no longer has them, the certificate's own word has to do.
    """
    if own:
        return any(record.statement for record in own.values())
    claimed = any(row.stated_in is not None for row in certificate.partitions)
    return claimed or not certificate.commits


def verify_stated(
    log: TableLog, certificate: Certificate, own: Mapping[int, CommitRecord]
) -> Iterator[VerifiedLine]:
    """Verifies all that commits and the log know of a certificate that commits vouch for.

    Args:
        log: of the certificate's table.
        certificate: what is to be verified.
        own: of `find_own_records`.
    """
    yield from _verify_statements(certificate, own)
    yield from _verify_rows(log, certificate, own)
    yield from _verify_header(certificate)


def _verify_statements(
    certificate: Certificate, own: Mapping[int, CommitRecord]
) -> Iterator[VerifiedLine]:
    rows: dict[int, list[CertifiedPartition]] = defaultdict(list)
    for row in certificate.partitions:
        if row.stated_in is not None:
            rows[row.stated_in].append(row)
    certified = {commit.version: commit for commit in certificate.commits}
    for version, record in own.items():
        if not record.statement or version not in certified:
            continue
        claimed = rows.get(version, [])
        line = (
            f"version {version} vouches for code, inputs, options and the verdicts of "
            f"{len(claimed)} partitions"
        )
        # Where nothing locks the table, a race is seen only after a commit; what it published is
        # then judged again.
        again = [
            later
            for later, other in own.items()
            if later > version and other.statement and other.rows.keys() & record.rows.keys()
        ]
        if again and not claimed:
            yield VerifiedLine(line, None, f"this run published them again as version {again[-1]}")
            continue
        holds = _hash(certificate, certified[version], claimed) == record.statement
        edits = "" if holds else _find_edits(certificate, certified[version], claimed, record)
        yield VerifiedLine(line, holds, edits)
    for version in sorted(rows.keys() - own.keys()):
        yield VerifiedLine(
            f"version {version} vouches for {list_some([row.partition for row in rows[version]])}",
            None if version in certified else False,
            "the log has no such commit of this run",
        )


def _hash(
    certificate: Certificate, commit: CertifiedCommit, rows: Sequence[CertifiedPartition]
) -> str:
    fields = {name: getattr(certificate, name) for name in STATED}
    return hash_statement(fields, certificate, commit.input_versions, map(_describe_audited, rows))


def _describe_audited(row: CertifiedPartition) -> dict[str, Any]:
    """Describes a row as it was before the partition was read back, the last check."""
    fields = {name: getattr(row, name) for name in STATED_OF_PARTITION}
    fields["checks"] = {name: row.checks[name] for name in row.checks if name != _READABLE}
    if row.checks.get(_READABLE) == Outcome.FAILED:
        fields["failures"] = row.failures.rpartition(f"{_READABLE}: ")[0].removesuffix("; ")
    return fields


def _find_edits(
    certificate: Certificate,
    commit: CertifiedCommit,
    rows: Sequence[CertifiedPartition],
    record: CommitRecord,
) -> str:
    """Names what the commit's record says otherwise, as far as it says it in the clear."""
    written = [row for row in rows if row.partition in record.rows]
    certified_and_recorded = {
        "code version": (certificate.code_version, record.code_version),
        "input versions": (commit.input_versions, record.input_versions),
        "write mode": (certificate.write_mode, record.write_mode),
        "row filter": (certificate.row_filter, record.row_filter),
        "backfill": (certificate.backfill_id or "", record.backfill_id),
        "acceptances": (
            {
                (row.partition, check, reason)
                for row in written
                for check, reason in row.accepted.items()
            },
            {(kept["partition"], kept["check"], kept["reason"]) for kept in record.audit.accepted},
        ),
        "notes of features": (
            {row.partition: row.notes for row in written if row.notes},
            record.notes,
        ),
        "features": (certificate.features, record.features),
        "partitions": ({row.partition for row in written}, {*record.rows}),
        "rows and checksums": (
            [(row.rows, row.checksum) for row in written],
            [(record.rows[row.partition], record.checksums[row.partition]) for row in written],
        ),
    }
    edits = [name for name, (said, kept) in certified_and_recorded.items() if said != kept]
    if edits:
        return f"the commit has other {', other '.join(edits)}"
    return (
        "the commit's hash is of something else: a verdict, the run's configuration or its start "
        "was edited, or the row of a withheld partition was edited, added or removed"
    )


def _verify_rows(
    log: TableLog, certificate: Certificate, own: Mapping[int, CommitRecord]
) -> Iterator[VerifiedLine]:
    """Verifies what the log tells of each row, and says it in as few lines as there are faults."""
    wrong: list[str] = []
    publishes = group_publishes(log.commits)
    records = {commit.version: commit.record for commit in log.commits}
    for row in certificate.partitions:
        if not _agrees_with_log(row, own, records):
            version = "no version" if row.version is None else f"version {row.version}"
            wrong.append(f"{row.partition} is not {row.status} as {version}")
        before = find_before(
            publishes.get(row.partition, ()),
            row,
            run_id=certificate.run_id,
            start=certificate.started_at,
        )
        found = (before.rows, before.checksum) if before else (None, None)
        if found != (row.rows_before, row.checksum_before) and (before or 0 in records):
            contents = f"{found[0]} rows with checksum {found[1]}" if before else "nothing"
            wrong.append(f"{row.partition} held {contents} before")
    yield VerifiedLine(
        "status and former contents of each partition are as the log has them",
        not wrong,
        list_some(wrong),
    )
    without_commit = [
        row.partition
        for row in certificate.partitions
        if row.stated_in is None and row.is_held_back
    ]
    if without_commit:
        yield VerifiedLine(
            f"{list_some(without_commit)} {'was' if len(without_commit) == 1 else 'were'} not "
            "published",
            None,
            "no commit came with these verdicts; the run's events have them",
        )


def _agrees_with_log(
    row: CertifiedPartition,
    own: Mapping[int, CommitRecord],
    records: Mapping[int, CommitRecord | None],
) -> bool:
    """Tells whether a row's status follows from the commits, as far as the log still has them."""
    if row.is_left:
        if row.version is None or row.version not in records:
            return row.version is not None
        record = records[row.version]
        return record is not None and (row.rows, row.checksum) == (
            record.rows.get(row.partition),
            record.checksums.get(row.partition),
        )
    stated = None if row.stated_in is None else own.get(row.stated_in)
    readable = row.checks.get(_READABLE)
    if row.status == "published":
        vouched = row.version is not None and row.version == row.stated_in
        committed = stated is None or row.partition in stated.rows
        return vouched and committed and readable == Outcome.PASSED
    taken_back = readable == Outcome.FAILED
    committed = stated is not None and row.partition in stated.rows
    return row.is_held_back and row.version is None and (taken_back or not committed)


def _verify_header(certificate: Certificate) -> Iterator[VerifiedLine]:
    """Finds what the certificate says of itself as a whole and doesn't follow from the rest."""
    faults: list[str] = []
    keys = [row.partition for row in certificate.partitions]
    if [certificate.partition_start, certificate.partition_end] != [*keys[:1], *keys[-1:]]:
        faults.append("the range isn't from the first to the last row")
    if len({*keys}) < len(keys):
        faults.append("a partition has two rows")
    inputs = merge_inputs((), certificate.commits)
    if inputs and inputs != certificate.input_versions:
        faults.append("the inputs aren't those of the commits")
    if faults:
        yield VerifiedLine(
            "range and inputs agree with the rest", holds=False, found="; ".join(faults)
        )
