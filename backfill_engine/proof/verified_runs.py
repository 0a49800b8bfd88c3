"""Verifies all certificates of a run or a backfill, and that none of them is missing."""

from collections.abc import Sequence

from backfill_engine.contents.partition_reader import IN_THIS_PROCESS, PartitionReader
from backfill_engine.errors import CertificateError
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import TableLog
from backfill_engine.proof.certificates import Certificate, CertificateDocument, find_documents
from backfill_engine.proof.lines import VerifiedLine
from backfill_engine.proof.pages import build_title
from backfill_engine.proof.stated import is_stated
from backfill_engine.proof.verification import verify_certificate


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
        HistoryError: if `wanted` names none for sure, see `lake.run_ids`.
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
        log = by_key.get(table_key)
        if log is None:
            raise CertificateError(
                f"the certificate {document.path} is of {table_key}, and there is no such table: "
                f"there are {', '.join(by_key)}"
            )
        try:
            build_partitions(log.table, (row.partition for row in certificate.partitions))
        except ValueError as error:
            raise CertificateError(
                f"the certificate {document.path} names partitions that {table_key} can't have "
                f"({error}): restore it from a copy"
            ) from error
    except CertificateError as error:
        line = VerifiedLine("the certificate can be read", holds=False, found=str(error))
        return f"{table_key}, run `{run_id}`", [line]
    partitions = build_partitions(log.table, dict.fromkeys(certificate.published))
    lines = verify_certificate(log, certificate, partitions, reader=reader)
    if certificate.seal or is_stated(log, certificate):  # those of old releases have none
        lines = [_verify_seal(document, certificate), *lines]
    return build_title(certificate), lines


def _verify_seal(document: CertificateDocument, certificate: Certificate) -> VerifiedLine:
    holds = document.is_as_written(certificate)
    return VerifiedLine(
        "the document is as it was written, by its seal",
        holds,
        "" if holds else f"{document.path} was edited: restore it from a copy",
    )
