"""Recomputes a certificate from the tables, and says which of its lines still hold."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from backfill_engine.contents.partition_contents import (
    IN_THIS_PROCESS,
    UNREADABLE,
    PartitionReader,
    ReadBack,
)
from backfill_engine.errors import BackfillError, CertificateError, HistoryError
from backfill_engine.lake.partitions import Partition, build_partitions
from backfill_engine.lake.table_log import TableLog
from backfill_engine.proof.certificates import Certificate, CertificateDocument, find_documents
from backfill_engine.proof.certifying import format_time
from backfill_engine.proof.pages import VerifiedLine, build_title
from backfill_engine.proof.stated import find_own_records, is_stated, verify_stated
from backfill_engine.proof.untouched import UntouchedProof, prove_untouched


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
    own = find_own_records(log, certificate)
    stated = is_stated(certificate, own)
    return [
        *_verify_commits(log, certificate),
        *(verify_stated(log, certificate, own) if stated else ()),
        *_verify_contents(reader, log, certificate, partitions),
        *_verify_untouched(reader, log, certificate, counts=stated),
    ]


def _verify_commits(log: TableLog, certificate: Certificate) -> Iterator[VerifiedLine]:
    """Verifies that the certificate's commits are those of the run, and all of these."""
    commits = {commit.version: commit for commit in log.commits}
    for certified in certificate.commits:
        statement = f"version {certified.version} was committed by this run"
        commit = commits.pop(certified.version, None)
        if certified.version > log.version:
            # Old versions leave a log in time; the newest only with the log, or with a part of it.
            yield VerifiedLine(statement, holds=False, found="the table has no such version")
            continue
        if commit is None:
            yield VerifiedLine(statement, None, "the log no longer has that version")
            continue
        record, time = commit.record, format_time(commit)
        run_id, predicate = (record.run_id, record.predicate) if record else ("others", "")
        holds = (run_id, predicate, time) == (
            *(certificate.run_id, certified.predicate, certified.committed_at),
        )
        found = "" if holds else f"it is {commit.operation} of {run_id}, {time}"
        yield VerifiedLine(statement, holds, found)
    for commit in reversed(commits.values()):
        if commit.record and commit.record.run_id == certificate.run_id:
            yield VerifiedLine(
                f"all commits of this run to {certificate.asset_key} are listed",
                holds=False,
                found=f"version {commit.version} was committed by it too",
            )


def _verify_contents(
    reader: PartitionReader,
    log: TableLog,
    certificate: Certificate,
    partitions: tuple[Partition, ...],
) -> Iterator[VerifiedLine]:
    rows = {row.partition: row for row in certificate.partitions}
    by_version: dict[int, list[Partition]] = defaultdict(list)
    for partition in partitions:
        version = rows[partition.key].version
        if version is None or (log.exists and not 0 <= version <= log.version):
            statement = f"{partition.key} was published as version {version}"
            yield VerifiedLine(statement, holds=False, found="the table has no such version")
        else:
            by_version[version].append(partition)
    for version, published in sorted(by_version.items()):
        for key, (found, gone) in _read_version(reader, log, version, published).items():
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
    certified = UntouchedProof(
        proof.versions,
        {key: tuple(touched) for key, touched in certificate.touched_outside.items()},
        partitions=certificate.untouched_partitions,
        files=certificate.untouched_files,
        compared=certificate.compared_partitions,
    )
    if counts and certified != proof:
        yield VerifiedLine(
            f"{certified.partitions} other partitions kept their {certified.files} files, and "
            f"{certified.compared} were compared",
            holds=False,
            found=f"{proof.partitions}, {proof.files} and {proof.compared}; "
            f"changed: {listed or 'none'}",
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
        HistoryError: if `wanted` names none for sure, see `lake.file_names.find_id`.
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
        return build_title(certificate), _verify_readable(reader, log, document, certificate)
    line = VerifiedLine("the certificate can be read", holds=False, found=fault)
    return f"{table_key}, run `{run_id}`", [line]


def _verify_readable(
    reader: PartitionReader, log: TableLog, document: CertificateDocument, certificate: Certificate
) -> list[VerifiedLine]:
    partitions = build_partitions(log.table, dict.fromkeys(certificate.published))
    lines = verify_certificate(log, certificate, partitions, reader=reader)
    # Those of old releases have no seal.
    if certificate.seal or is_stated(certificate, find_own_records(log, certificate)):
        holds = document.is_as_written(certificate)
        found = "" if holds else f"{document.path} was edited: restore it from a copy"
        seal = VerifiedLine("the document is as it was written, by its seal", holds, found)
        lines = [seal, *lines]
    return lines
