"""What a run did to a table, kept beside the tables for longer than their logs.

One JSON document and one Markdown page a run and table, at
`<warehouse>/certificates/<backfill or run>/<run>/<layer>.<table>.json` and `.md`. A document is one
line, so that any reader of JSON lines can query all of them.
"""

import datetime as dt
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, TypeAlias

from pyarrow import fs
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from backfill_engine.errors import CertificateError
from backfill_engine.filesystems import open_filesystem
from backfill_engine.lake.commits import Commit, CommitRecord
from backfill_engine.lake.table_log import TableLog
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.whole_files import find_id, is_file_name, join_names, write_file
from backfill_engine.publishing.write_modes.options import APPEND_ONCE, WriteOptions
from backfill_engine.rules.measured import PartitionProfile
from backfill_engine.uris import join_uri

NOT_DUE = "not due"
"""Status of a partition that waits for upstream partitions that never came."""


def _check_time(text: str) -> str:
    """Checks that a text is a time, of which others can be reckoned."""
    time = dt.datetime.fromisoformat(text)
    if time.tzinfo is None or not _YEARS[0] <= time.year <= _YEARS[1]:
        raise ValueError("it is no time of a run, UTC, as 2013-01-01T00:00:00.000+00:00")
    return text


_YEARS = 1970, 2999
_MOST_SECONDS = 1e9

Time: TypeAlias = Annotated[str, AfterValidator(_check_time)]
"""UTC, ISO 8601."""


@dataclass(frozen=True)
class CertifiedPartition:
    """One partition of the run.

    Attributes:
        partition: its key.
        status: `published`, `withheld`, `already appended` by a commit before the run, `already
            published` by one from the same inputs and by the same code, `not due` where upstream
            partitions never came, or `failed` where the step ended before it came to the partition.
        version: the Delta version that published it; None if it was withheld.
        rows: rows published, or computed and withheld.
        checksum: of them, see `contents.checksums`.
        rows_before: rows that were published before; None if nothing was, or nobody counted.
        checksum_before: of those.
        checks: outcome by check, of those with rules.
        failures: failed rules with value and bound, in one line; empty if none.
        accepted: reason by failed check that a person let pass.
        notes: by name of a feature, what it did to the partition; and what was `WARNED` about.
        never_came: of one that is not due, the upstream partitions that it waits for, each as
            `layer/name key`.
        stated_in: the version whose commit keeps the hash of this row, see
            `publishing.statements`; None where no commit came with the verdict.
    """

    partition: str
    status: str
    version: int | None
    rows: int
    checksum: str
    rows_before: int | None = None
    checksum_before: str | None = None
    checks: Mapping[str, str] = field(default_factory=dict)
    failures: str = ""
    accepted: Mapping[str, str] = field(default_factory=dict)
    stated_in: int | None = None
    never_came: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_held_back(self) -> bool:
        """Whether the run was to publish it and did not."""
        return self.status in ("withheld", NOT_DUE, "failed")

    @property
    def is_left(self) -> bool:
        """Whether the run found it published as it was to be, and wrote nothing."""
        return self.status in ("already published", "already appended")


@dataclass(frozen=True)
class CertifiedCommit:
    """One commit of the run.

    Attributes:
        version: the Delta version that it made.
        committed_at: UTC, ISO 8601.
        predicate: the rows that it replaced.
        input_versions: what these were computed from.
    """

    version: int
    committed_at: Time
    predicate: str
    input_versions: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class CertifiedChunk:
    """One chunk of a run that was told to work in chunks.

    Attributes:
        first: its first partition key.
        last: its last one, included.
        operation_type: the write mode; `none` where nothing was to be written.
        status: `published`, `already published`, `partly published`, `withheld`, `failed`, or `at
            work`.
        started_at: UTC, ISO 8601.
        completed_at: likewise; None while it is at work.
        partitions: how many.
        published: of them, by this run.
        withheld: of them.
        rows: that were published.
        error: what ended it; empty if nothing did.
    """

    first: str
    last: str
    operation_type: str
    status: str
    started_at: Time
    completed_at: Time | None
    partitions: int
    published: int
    withheld: int
    rows: int
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Certificate(WriteOptions):
    """What a run did to a table, and how it was told to.

    Attributes:
        run_id: the Dagster run.
        backfill_id: the backfill that it was part of; None if none.
        asset_key: `layer/name`.
        table_uri: where the table is.
        code_version: what they were computed by.
        run_config: of the run.
        input_versions: what they were computed from; of several commits, the last.
        partition_start: first partition key asked for.
        partition_end: last one.
        started_at: UTC, ISO 8601.
        seconds: from the start of the step to this certificate.
        commits: ascending.
        partitions: ascending, all that were asked for.
        touched_outside: by partition outside, the commits that changed its data; empty is the proof
            that nothing else changed.
        untouched_partitions: partitions outside at the last commit; folders, where these hold
            several.
        untouched_files: their data files.
        compared_partitions: others in the same folders, whose contents were compared.
        chunks: of a run that was told to work in chunks, those that were begun, ascending.
        held_back_from: by partition that was computed and held back, a hash of what it was computed
            from; nobody vouches for it, it only says whether another try has another input.
        features: by name of a feature, what it did to the publish.
        seal: hash of all the rest of the document; empty before it is written. It tells that the
            document is as it was written, to whoever trusts that nobody made another seal. Only
            commits vouch against that, for what was known when they were made: not for `seconds`,
            `chunks`, `held_back_from` and `never_came`.
    """

    run_id: str
    backfill_id: str | None
    asset_key: str
    table_uri: str
    code_version: str
    run_config: Mapping[str, Any]
    input_versions: Mapping[str, int | str]
    partition_start: str
    partition_end: str
    started_at: Time
    seconds: Annotated[float, Field(ge=0, le=_MOST_SECONDS, allow_inf_nan=False)]
    commits: Sequence[CertifiedCommit]
    partitions: Sequence[CertifiedPartition]
    touched_outside: Mapping[str, Sequence[int]] = field(default_factory=dict)
    untouched_partitions: int = 0
    untouched_files: int = 0
    compared_partitions: int = 0
    chunks: Sequence[CertifiedChunk] = ()
    held_back_from: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)
    seal: str = field(default="", compare=False)

    @property
    def published(self) -> list[str]:
        """Keys of the partitions that were published, ascending."""
        return [
            partition.partition for partition in self.partitions if partition.status == "published"
        ]

    def to_json(self) -> str:
        """Writes the certificate as one line of JSON, sealed."""
        content = _CERTIFICATES.dump_json(replace(self, seal=""))
        sealed = replace(self, seal=hashlib.sha256(content).hexdigest())
        return _CERTIFICATES.dump_json(sealed).decode()

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Reads what `to_json` wrote."""
        return _CERTIFICATES.validate_json(text)


_CERTIFICATES = TypeAdapter(Certificate)


def locate_certificate(log: TableLog, run_id: str, backfill_id: str | None) -> str:
    """Finds the certificate's place without the suffix, known before it is written.

    Raises:
        SettingsError: if the run or the backfill is called so that it can't name a file.
    """
    name, owner = log.table.key.replace("/", "."), backfill_id or run_id
    return join_names(log.warehouse.root, "certificates", owner, run_id, name)


def write_certificate(place: str, certificate: Certificate, *, page: str) -> None:
    """Writes the document and its page; a second one of the same run replaces the first."""
    # The page first: whoever finds the document finds both.
    for suffix, text in ((".md", page), (".json", certificate.to_json() + "\n")):
        write_file(place + suffix, text.encode())


@dataclass(frozen=True)
class CertificateDocument:
    """A certificate as it lies there, which may be unreadable.

    Attributes:
        filesystem: that it is on.
        path: on it.
        owners: the backfill or run whose folder it is in, and the run.
        written_at: when, UTC, by the clock of where it lies.
    """

    filesystem: fs.FileSystem
    path: str
    owners: tuple[str, ...]
    written_at: dt.datetime

    @property
    def subject(self) -> tuple[str, str]:
        """The run and the key of the table that it is about, by its place."""
        run_id, name = self.path.removesuffix(".json").split("/")[-2:]
        return run_id, name.replace(".", "/", 1)

    def read(self) -> Certificate:
        """Reads the certificate.

        Raises:
            CertificateError: if it isn't one, or stands in a place where one of another run or
                table belongs.
        """
        cure = "restore it from a copy; the table's own log tells what the run committed"
        try:
            certificate = Certificate.from_json(self._read_text())
        except ValueError as error:
            raise CertificateError(
                f"the certificate {self.path} is cut off or was edited, and can't be read "
                f"({_shorten(error)}): {cure}"
            ) from error
        if self.subject != (certificate.run_id, certificate.asset_key):
            raise CertificateError(
                f"the certificate {self.path} says that it is of run {certificate.run_id} and "
                f"{certificate.asset_key}, which belongs elsewhere: {cure}"
            )
        return certificate

    def is_as_written(self, certificate: Certificate) -> bool:
        """Tells whether it is, character by character, what was written of what it says."""
        return self._read_text() == certificate.to_json() + "\n"

    def _read_text(self) -> str:
        with self.filesystem.open_input_file(self.path) as document:
            return document.read().decode()


def _shorten(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return f"{where}: {first['msg']}" if where else first["msg"]
    return str(error)


def read_certificate(place: str) -> Certificate | None:
    """Reads the certificate at its place, see `locate_certificate`; None if it can't be read."""
    filesystem, path = open_filesystem(place)
    owners = tuple(path.split("/")[-3:-1])
    document = CertificateDocument(filesystem, f"{path}.json", owners, dt.datetime.now(tz=dt.UTC))
    try:
        return document.read()
    except (CertificateError, OSError):
        return None


def list_documents(warehouse: Warehouse, owner: str = "") -> list[CertificateDocument]:
    """Lists all documents, or those of one backfill or chain of runs, by path, and reads none."""
    if owner and not is_file_name(owner):
        return []
    filesystem, root = open_filesystem(join_uri(warehouse.root, "certificates"))
    folder = f"{root}/{owner}" if owner else root
    selector = fs.FileSelector(folder, recursive=True, allow_not_found=True)
    found = sorted(filesystem.get_file_info(selector), key=lambda info: info.path)
    return [
        CertificateDocument(
            filesystem,
            info.path,
            tuple(info.path[len(root) + 1 :].split("/")[:-1]),
            dt.datetime.fromtimestamp((info.mtime_ns or 0) / 1e9, tz=dt.UTC),
        )
        for info in found
        if info.path.endswith(".json")
    ]


def read_readable(documents: Iterable[CertificateDocument]) -> Iterator[Certificate]:
    """Reads documents in their order, and leaves out those that can't be read.

    Which these are, the recovery of their table tells.
    """
    for document in documents:
        with suppress(CertificateError):
            yield document.read()


def find_documents(
    warehouse: Warehouse, wanted: str, *, others: Iterable[str] = ()
) -> tuple[str | None, list[CertificateDocument]]:
    """Finds the documents of a run or a backfill.

    Args:
        warehouse: beside whose tables they are.
        wanted: the id, or the beginning of it.
        others: ids that it may mean too, of what has no document.

    Returns:
        The whole id, None if nothing is known of it, and the documents by path.

    Raises:
        HistoryError: if `wanted` names none for sure, see `lake.whole_files.find_id`.
    """
    warehouse.check_root()
    documents = list_documents(warehouse)
    meant = find_id(wanted, {*others, *(owner for found in documents for owner in found.owners)})
    return meant, [document for document in documents if meant in document.owners]


def find_certificates(warehouse: Warehouse, wanted: str) -> list[Certificate]:
    """Finds the certificates of a run or a backfill, oldest first; named as in `find_documents`.

    Raises:
        HistoryError: as `find_documents`.
        CertificateError: if one of them can't be read.
    """
    _, documents = find_documents(warehouse, wanted)
    return sorted(
        (document.read() for document in documents),
        key=lambda certificate: (certificate.started_at, certificate.asset_key),
    )


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
    documents = (
        document
        for document in list_documents(log.warehouse)
        if document.subject[1] == log.table.key
    )
    return [
        commit
        for certificate in read_readable(documents)
        for commit in _list_commits(certificate)
        if commit.version < log.begins_with and commit.version not in known
    ]


def _list_commits(certificate: Certificate) -> Iterator[Commit]:
    appends = certificate.write_mode == APPEND_ONCE
    for commit in certificate.commits:
        rows = [
            row
            for row in certificate.partitions
            if row.status == "published" and row.version == commit.version
        ]
        if not rows:
            continue
        record = CommitRecord(
            commit_id="",
            run_id=certificate.run_id,
            asset_key=certificate.asset_key,
            code_version=certificate.code_version,
            input_versions=commit.input_versions,
            predicate=commit.predicate,
            rows={row.partition: row.rows for row in rows},
            checksums={row.partition: row.checksum for row in rows},
            profiles={row.partition: PartitionProfile(row.rows).to_json() for row in rows},
            options=certificate.describe(),
            backfill_id=certificate.backfill_id or "",
            batches={row.partition: certificate.batch for row in rows} if appends else {},
        )
        committed_at = datetime.fromisoformat(commit.committed_at)
        yield Commit(commit.version, committed_at, "WRITE", record)
