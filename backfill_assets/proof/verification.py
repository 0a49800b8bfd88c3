"""Recomputes a certificate from the tables, and says which of its lines still hold."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from deltalake.exceptions import DeltaError

from backfill_assets.contents.read_back import read_back
from backfill_assets.errors import BackfillError
from backfill_assets.lake.slices import Partition
from backfill_assets.lake.table_log import TableLog
from backfill_assets.proof.certificates import Certificate
from backfill_assets.proof.untouched import prove_untouched


@dataclass(frozen=True)
class VerifiedLine:
    """One statement of a certificate.

    Attributes:
        statement: what it says.
        holds: whether it still does; None if that can't be told any more.
        found: what was found instead, or what has come since; empty if there is nothing to say.
    """

    statement: str
    holds: bool | None
    found: str = ""


def verify_certificate(
    log: TableLog, certificate: Certificate, partitions: tuple[Partition, ...]
) -> list[VerifiedLine]:
    """Reads the certified versions again, without Spark.

    Args:
        log: of the certificate's table.
        certificate: what is to be verified.
        partitions: its published partitions.
    """
    return [
        *_verify_commits(log, certificate),
        *_verify_contents(log, certificate, partitions),
        *_verify_untouched(log, certificate),
    ]


def _verify_commits(log: TableLog, certificate: Certificate) -> Iterator[VerifiedLine]:
    commits = {commit.version: commit for commit in log.commits}
    for one in certificate.commits:
        statement = f"version {one.version} was committed by this run"
        commit = commits.get(one.version)
        if commit is None:
            yield VerifiedLine(statement, None, "the log no longer has that version")
            continue
        record = commit.record
        same = (
            record is not None
            and record.run_id == certificate.run_id
            and record.predicate == one.predicate
        )
        found = (
            "" if same else f"it is {commit.operation} of {record.run_id if record else 'others'}"
        )
        yield VerifiedLine(statement, same, found)


def _verify_contents(
    log: TableLog, certificate: Certificate, partitions: tuple[Partition, ...]
) -> Iterator[VerifiedLine]:
    certified = {one.partition: one for one in certificate.partitions}
    by_version: dict[int, list[Partition]] = defaultdict(list)
    for partition in partitions:
        version = certified[partition.key].version
        assert version is not None
        by_version[version].append(partition)
    for version, some in sorted(by_version.items()):
        try:
            then = log.as_of(version)
            gone = _find_gone(then, some)
            seen = read_back(then, [one for one in some if one.key not in gone])
        except DeltaError as error:  # the log no longer has the version
            gone, seen = {one.key: str(error) for one in some}, {}
        for partition in some:
            one = certified[partition.key]
            statement = f"{one.partition} holds {one.rows} rows with checksum {one.checksum}"
            there = seen.get(one.partition)
            if there is None:
                newest = log.publishes.get(one.partition)
                current = newest is not None and newest.version == version
                holds = False if current else None
                yield VerifiedLine(statement, holds, gone[one.partition])
                continue
            holds = there.agrees_with(one)
            found = "" if holds else f"{there.rows} rows with checksum {there.checksum}"
            newest = log.publishes.get(one.partition)
            if holds and newest is not None and newest.version > version:
                replaced_by = newest.record.run_id
                found = f"at version {version}; run {replaced_by} has replaced it since"
            yield VerifiedLine(statement, holds, found)


def _find_gone(log: TableLog, partitions: list[Partition]) -> dict[str, str]:
    """By partition key, which of its files are no longer there."""
    if not log.find_missing_files(partitions):
        return {}
    files = {partition.key: log.find_missing_files([partition]) for partition in partitions}
    return {key: f"{', '.join(missing)} is gone" for key, missing in files.items() if missing}


def _verify_untouched(log: TableLog, certificate: Certificate) -> Iterator[VerifiedLine]:
    if not certificate.commits:
        return
    statement = "no partition outside the range was changed"
    meant = [one.partition for one in certificate.partitions]
    try:
        proof = prove_untouched(log, meant, versions=[one.version for one in certificate.commits])
    except BackfillError as error:
        yield VerifiedLine(statement, None, str(error))
        return
    listed = ", ".join(proof.outside)
    yield VerifiedLine(statement, proof.holds, f"changed: {listed}" if listed else "")
