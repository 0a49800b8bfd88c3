"""Recomputes a certificate from the tables, and says which of its lines still hold.

Commits vouch for most of it, by the hash that each has of what the certificate says of the commit.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from backfill_engine.contents.partition_contents import (
    IN_THIS_PROCESS,
    UNREADABLE,
    PartitionReader,
    ReadBack,
)
from backfill_engine.errors import BackfillError, CertificateError, HistoryError
from backfill_engine.lake.commits import CommitRecord, group_publishes
from backfill_engine.lake.partitions import Partition, build_partitions
from backfill_engine.lake.table_log import TableLog
from backfill_engine.proof.certificates import (
    Certificate,
    CertificateDocument,
    CertifiedPartition,
    find_documents,
)
from backfill_engine.proof.certifying import find_before, format_time, merge_inputs
from backfill_engine.proof.pages import VerifiedLine, build_title
from backfill_engine.proof.untouched import prove_untouched
from backfill_engine.publishing.statements import STATED, STATED_OF_PARTITION, hash_statement
from backfill_engine.rules.measured import list_some
from backfill_engine.rules.verdicts import Check, Outcome

_READABLE = Check.READABLE.value
_NO_VERSION = "the table has no such version"
_EDITED = (
    "the commit's hash is of something else: code, inputs, options or the run's configuration was "
    "edited, or a row was edited, added or removed, that of a withheld partition perhaps"
)


def verify_certificate(
    log: TableLog,
    certificate: Certificate,
    partitions: tuple[Partition, ...],
    *,
    reader: PartitionReader = IN_THIS_PROCESS,
) -> list[VerifiedLine]:
    """Reads the certified versions again.

    Args:
        log: of the certificate's table.
        certificate: what is to be verified.
        partitions: its published partitions.
        reader: reads them.
    """
    own = {
        commit.version: commit.record
        for commit in reversed(log.commits)
        if commit.record and commit.record.run_id == certificate.run_id
    }
    # Where the log no longer has the commits, the certificate's own word has to do.
    claimed = any(row.stated_in is not None for row in certificate.partitions)
    claimed = claimed or not certificate.commits
    stated = any(record.statement for record in own.values()) if own else claimed
    return [
        *_verify_commits(log, certificate, own),
        *(_verify_statements(certificate, own) if stated else ()),
        *(_verify_rows(log, certificate, own) if stated else ()),
        *(_verify_header(certificate) if stated else ()),
        *_verify_contents(reader, log, certificate, partitions),
        *_verify_untouched(reader, log, certificate, counts=stated),
    ]


def _verify_commits(
    log: TableLog, certificate: Certificate, own: Mapping[int, CommitRecord]
) -> Iterator[VerifiedLine]:
    """Verifies that the certificate's commits are those of the run, and all of these."""
    commits = {commit.version: commit for commit in log.commits}
    for certified in certificate.commits:
        statement = f"version {certified.version} was committed by this run"
        commit = commits.get(certified.version)
        if commit is None:
            # Old versions leave a log in time; the newest only with the log, or with a part of it.
            is_old = certified.version <= log.version
            found = "the log no longer has that version" if is_old else _NO_VERSION
            yield VerifiedLine(statement, None if is_old else False, found)
            continue
        record, time = own.get(commit.version), format_time(commit)
        holds = record is not None and (record.predicate, time) == (
            *(certified.predicate, certified.committed_at),
        )
        run_id = commit.record.run_id if commit.record else "others"
        found = "" if holds else f"it is {commit.operation} of {run_id}, {time}"
        yield VerifiedLine(statement, holds, found)
    for version in sorted(own.keys() - {certified.version for certified in certificate.commits}):
        yield VerifiedLine(
            f"all commits of this run to {certificate.asset_key} are listed",
            holds=False,
            found=f"version {version} was committed by it too",
        )


def _verify_contents(
    reader: PartitionReader,
    log: TableLog,
    certificate: Certificate,
    partitions: tuple[Partition, ...],
) -> Iterator[VerifiedLine]:
    rows = {row.partition: row for row in certificate.partitions}
    by_version: dict[tuple[int, int], list[Partition]] = defaultdict(list)
    migrated = next((commit.version for commit in log.commits if commit.is_migration), -1)
    for partition in partitions:
        version = rows[partition.key].version
        if version is None or (log.exists and not 0 <= version <= log.version):
            statement = f"{partition.key} was published as version {version}"
            yield VerifiedLine(statement, holds=False, found=_NO_VERSION)
        else:
            newest = log.publishes.get(partition.key)
            stands = newest is not None and newest.version == version
            # Its rows were written anew since then, and these are what readers get.
            is_migrated = stands and partition.key not in log.foreign_changes
            read_at = max(version, migrated) if is_migrated else version
            by_version[read_at, version].append(partition)
    for (read_at, version), published in sorted(by_version.items()):
        known = log.with_columns_of(version)  # Of the columns then the checksums are.
        for key, (found, gone) in _read_version(reader, known, read_at, published).items():
            row, newest, foreign = rows[key], log.publishes.get(key), log.foreign_changes.get(key)
            is_newest = newest is not None and newest.version == version
            statement = f"{key} holds {row.rows} rows with checksum {row.checksum}"
            holds, remark = True, ""
            if gone:
                holds, remark = False if is_newest else None, gone
            elif not found.agrees_with(row):
                holds, remark = False, f"{found.rows} rows with checksum {found.checksum}"
            elif is_newest and foreign is not None:
                holds, remark = False, f"at version {version}; since {foreign.describe_foreign()}"
            elif read_at != version:
                remark = f"at version {read_at}, which migrated columns"
            elif newest is not None and newest.version > version:
                replaced_by = newest.record.run_id
                remark = f"at version {version}; run {replaced_by} has replaced it since"
            yield VerifiedLine(statement, holds, remark)


def _read_version(
    reader: PartitionReader, log: TableLog, version: int, partitions: list[Partition]
) -> dict[str, tuple[ReadBack, str]]:
    """Reads partitions at a version: what each holds, and by name what of it is gone."""
    try:
        then = log.as_of(version)
    except HistoryError as error:
        return {partition.key: (UNREADABLE, str(error)) for partition in partitions}
    contents = reader.read_back(then, partitions)
    missing = {
        partition.key: then.find_missing_files([partition])
        for partition in partitions
        if contents[partition.key] == UNREADABLE
    }
    return {
        key: (found, f"{', '.join(missing[key])} is gone" if missing.get(key) else "")
        for key, found in contents.items()
    }


def _verify_untouched(
    reader: PartitionReader, log: TableLog, certificate: Certificate, *, counts: bool
) -> Iterator[VerifiedLine]:
    """Looks at the commits again; and at what was counted then, where `counts` says so."""
    if not certificate.commits:
        return
    statement = "no partition outside the range was changed"
    meant = [partition.partition for partition in certificate.partitions]
    versions = [commit.version for commit in certificate.commits]
    try:
        proof = prove_untouched(log, meant, versions=versions, reader=reader)
    except BackfillError as error:
        yield VerifiedLine(statement, None, str(error))
        return
    listed = ", ".join(proof.outside)
    yield VerifiedLine(statement, proof.holds, f"changed: {listed}" if listed else "")
    certified = (
        *(certificate.untouched_partitions, certificate.untouched_files),
        certificate.compared_partitions,
    )
    counted = (proof.partitions, proof.files, proof.compared)
    outside = {key: tuple(touched) for key, touched in certificate.touched_outside.items()}
    if counts and (certified, outside) != (counted, proof.outside):
        yield VerifiedLine(
            "{} other partitions kept their {} files, and {} were compared".format(*certified),
            holds=False,
            found="{}, {} and {}; changed: {}".format(*counted, listed or "none"),
        )


def verify_run(
    logs: Sequence[TableLog], wanted: str, *, reader: PartitionReader = IN_THIS_PROCESS
) -> dict[str, list[VerifiedLine]]:
    """Verifies every document of a run or a backfill, and looks for commits without one.

    A document that can't be read is a line that doesn't hold; the others are verified all the same.

    Args:
        logs: of all tables of the warehouse, at least one.
        wanted: the id, or the beginning of it.
        reader: reads the certified versions.

    Returns:
        The lines of each document by its title, and of what has none; empty if nothing is known
        of `wanted`.

    Raises:
        HistoryError: if `wanted` names none for sure, see `lake.whole_files.find_id`.
    """
    records = [
        (log.table.key, commit.version, commit.record)
        for log in logs
        for commit in reversed(log.commits)
        if commit.record
    ]
    ids = {id_ for _, _, record in records for id_ in (record.run_id, record.backfill_id) if id_}
    meant, documents = find_documents(logs[0].warehouse, wanted, others=ids)
    verified: dict[str, list[VerifiedLine]] = {}
    for document in documents:
        title, lines = _verify_document(reader, logs, document)
        verified[title] = lines
    certified = {document.subject for document in documents}
    missing = [
        VerifiedLine(
            f"{table} version {version} was committed by run {record.run_id}",
            holds=False,
            found="no certificate tells of it",
        )
        for table, version, record in records
        if meant in (record.run_id, record.backfill_id) and (record.run_id, table) not in certified
    ]
    return {**verified, **({f"without a certificate: {meant}": missing} if missing else {})}


def _verify_document(
    reader: PartitionReader, logs: Sequence[TableLog], document: CertificateDocument
) -> tuple[str, list[VerifiedLine]]:
    by_key = {log.table.key: log for log in logs}
    run_id, table_key = document.subject
    try:
        certificate = document.read()
        log = by_key[table_key]
        build_partitions(log.table, (row.partition for row in certificate.partitions))
    except CertificateError as error:
        fault = str(error)
    except KeyError:
        fault = (
            f"the certificate {document.path} is of {table_key}, and there is no such table: "
            f"there are {', '.join(by_key)}"
        )
    except ValueError as error:
        fault = (
            f"the certificate {document.path} names partitions that {table_key} can't have "
            f"({error}): restore it from a copy"
        )
    else:
        return build_title(certificate), [*_verify_readable(reader, log, document, certificate)]
    line = VerifiedLine("the certificate can be read", holds=False, found=fault)
    return f"{table_key}, run `{run_id}`", [line]


def _verify_readable(
    reader: PartitionReader, log: TableLog, document: CertificateDocument, certificate: Certificate
) -> Iterator[VerifiedLine]:
    holds = document.is_as_written(certificate)
    found = "" if holds else f"{document.path} was edited: restore it from a copy"
    yield VerifiedLine("the document is as it was written, by its seal", holds, found)
    partitions = build_partitions(log.table, dict.fromkeys(certificate.published))
    yield from verify_certificate(log, certificate, partitions, reader=reader)


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
        stated = hash_statement(
            {name: getattr(certificate, name) for name in STATED},
            certificate,
            certified[version].input_versions,
            map(_describe_audited, claimed),
        )
        holds = stated == record.statement
        yield VerifiedLine(line, holds, "" if holds else _EDITED)
    for version in sorted(rows.keys() - own.keys()):
        yield VerifiedLine(
            f"version {version} vouches for {list_some([row.partition for row in rows[version]])}",
            None if version in certified else False,
            "the log has no such commit of this run",
        )


def _describe_audited(row: CertifiedPartition) -> dict[str, Any]:
    """Describes a row as it was before the partition was read back, the last check."""
    fields = {name: getattr(row, name) for name in STATED_OF_PARTITION}
    fields["checks"] = {name: row.checks[name] for name in row.checks if name != _READABLE}
    if row.checks.get(_READABLE) == Outcome.FAILED:
        fields["failures"] = row.failures.rpartition(f"{_READABLE}: ")[0].removesuffix("; ")
    return fields


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
    """Finds whether what the certificate says of itself as a whole follows from the rest."""
    keys = [row.partition for row in certificate.partitions]
    header = (certificate.partition_start, certificate.partition_end, certificate.input_versions)
    inputs = merge_inputs((), certificate.commits) or certificate.input_versions
    if not keys or len({*keys}) < len(keys) or header != (keys[0], keys[-1], inputs):
        yield VerifiedLine(
            "range and inputs agree with the rest",
            holds=False,
            found="the range isn't from the first to the last row, a partition has two rows, or "
            "the inputs aren't those of the commits",
        )
