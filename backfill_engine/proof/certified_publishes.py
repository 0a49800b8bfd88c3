"""Keeps the index of publishes; of commits that the log has lost, from what certificates tell."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

from backfill_engine.lake.commits import Commit, CommitRecord
from backfill_engine.lake.table_log import TableLog
from backfill_engine.proof.certificates import (
    Certificate,
    CertifiedPartition,
    list_documents,
    read_readable,
)
from backfill_engine.publishing.write_modes.options import APPEND_ONCE
from backfill_engine.rules.profiles import PartitionProfile

_OPERATION = "WRITE"


def keep_publishes(log: TableLog) -> TableLog:
    """Brings the index of a table's publishes up to its log, and returns the log that goes by it.

    Nothing is written where nothing was committed since.
    """
    return log.keep_publishes(certified=find_certified_commits(log) if log.lacks_commits else ())


def find_certified_commits(log: TableLog) -> list[Commit]:
    """Finds the commits that neither log nor index has any more.

    Of what later partitions are compared with, a certificate has the rows only, and of an append a
    batch without a name stays unknown. Certificates that can't be read are left out.
    """
    known = {commit.version for commit in log.known_commits}
    documents = (one for one in list_documents(log.warehouse) if one.subject[1] == log.table.key)
    return [
        commit
        for certificate in read_readable(documents)
        for commit in _list_commits(certificate)
        if commit.version < log.begins_with and commit.version not in known
    ]


def _list_commits(certificate: Certificate) -> Iterator[Commit]:
    published: dict[int | None, list[CertifiedPartition]] = defaultdict(list)
    for row in certificate.partitions:
        if row.status == "published":
            published[row.version].append(row)
    for commit in certificate.commits:
        rows = published[commit.version]
        if not rows:
            continue
        keys = [row.partition for row in rows]
        appends = certificate.write_mode == APPEND_ONCE
        record = CommitRecord(
            commit_id="",
            run_id=certificate.run_id,
            asset_key=certificate.asset_key,
            partition_start=keys[0],
            partition_end=keys[-1],
            code_version=certificate.code_version,
            input_versions=commit.input_versions,
            write_mode=certificate.write_mode,
            predicate=commit.predicate,
            rows={row.partition: row.rows for row in rows},
            checksums={row.partition: row.checksum for row in rows},
            profiles={row.partition: PartitionProfile(row.rows).to_json() for row in rows},
            row_filter=certificate.row_filter,
            backfill_id=certificate.backfill_id or "",
            batches=dict.fromkeys(keys, certificate.batch) if appends else {},
        )
        committed_at = datetime.fromisoformat(commit.committed_at)
        yield Commit(commit.version, committed_at, _OPERATION, record)
