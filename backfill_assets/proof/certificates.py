"""What a run did to a table, kept beside the tables for longer than their logs.

One JSON document and one Markdown page a run and table, at
`<warehouse>/certificates/<backfill or run>/<run>/<layer>.<table>.json` and `.md`. A document is one
line, so that any reader of JSON lines can query all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyarrow import fs
from pydantic import TypeAdapter

from backfill_assets.lake.filesystems import open_filesystem
from backfill_assets.lake.table_log import TableLog
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.publishing.write_modes.options import WriteOptions
from backfill_assets.tables.declarations import Table
from backfill_assets.uris import join_uri


@dataclass(frozen=True)
class CertifiedPartition:
    """One partition of the run.

    Attributes:
        partition: its key.
        status: `published`, `withheld`, `already appended` by a commit before the run, or `failed`
            where the step ended before it came to the partition.
        version: the Delta version that published it; None if it was withheld.
        rows: rows published, or computed and withheld.
        checksum: of them, see `contents.checksums`.
        rows_before: rows that were published before; None if nothing was, or nobody counted.
        checksum_before: of those.
        checks: outcome by check, of those with rules.
        failures: failed rules with value and bound, in one line; empty if none.
        accepted: reason by failed check that a person let pass.
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


@dataclass(frozen=True)
class CertifiedCommit:
    """One commit of the run: version, UTC time (ISO 8601), and the rows that it replaced."""

    version: int
    committed_at: str
    predicate: str


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
        input_versions: what they were computed from.
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
    started_at: str
    seconds: float
    commits: Sequence[CertifiedCommit]
    partitions: Sequence[CertifiedPartition]
    touched_outside: Mapping[str, Sequence[int]] = field(default_factory=dict)
    untouched_partitions: int = 0
    untouched_files: int = 0
    compared_partitions: int = 0

    @property
    def published(self) -> list[str]:
        """Keys of the partitions that were published, ascending."""
        return [
            partition.partition for partition in self.partitions if partition.status == "published"
        ]

    @property
    def is_whole(self) -> bool:
        """Whether nothing was withheld, and nothing failed."""
        return all(partition.status not in ("withheld", "failed") for partition in self.partitions)

    def to_json(self) -> str:
        """Writes the certificate as one line of JSON."""
        return _CERTIFICATES.dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Reads what `to_json` wrote."""
        return _CERTIFICATES.validate_json(text)


_CERTIFICATES = TypeAdapter(Certificate)


def locate_certificate(log: TableLog, run_id: str, backfill_id: str | None) -> str:
    """Finds the certificate's place without the suffix, known before it is written."""
    owner = backfill_id or run_id
    return join_uri(log.warehouse.root, "certificates", owner, run_id, _name(log.table))


def write_certificate(place: str, certificate: Certificate, *, page: str) -> None:
    """Writes the document and its page; a second one of the same run replaces the first."""
    filesystem, path = open_filesystem(place)
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    # The page first: whoever finds the document finds both.
    for suffix, text in ((".md", page), (".json", certificate.to_json() + "\n")):
        with filesystem.open_output_stream(path + suffix) as out:
            out.write(text.encode())


def find_table_certificates(warehouse: Warehouse, table: Table) -> list[Certificate]:
    """Finds all certificates of a table, oldest first."""
    return _read_below(join_uri(warehouse.root, "certificates"), name=f"{_name(table)}.json")


def find_run_certificates(
    warehouse: Warehouse, run_id: str, backfill_id: str | None
) -> list[Certificate]:
    """Finds the certificates of one run, of the backfill that it is part of if any."""
    return _read_below(
        join_uri(warehouse.root, "certificates", backfill_id or run_id, run_id), name=".json"
    )


def _read_below(place: str, *, name: str) -> list[Certificate]:
    """Reads the certificates below a folder whose names end with `name`, oldest first."""
    filesystem, root = open_filesystem(place)
    found: list[Certificate] = []
    for info in filesystem.get_file_info(
        fs.FileSelector(root, recursive=True, allow_not_found=True)
    ):
        if info.base_name.endswith(name):
            with filesystem.open_input_file(info.path) as document:
                found.append(Certificate.from_json(document.read().decode()))
    return sorted(found, key=lambda certificate: certificate.started_at)


def _name(table: Table) -> str:
    return table.key.replace("/", ".")


def find_certificates(warehouse: Warehouse, wanted: str) -> list[Certificate]:
    """Finds the certificates of a run or a backfill, oldest first.

    It is named by its id or the beginning of it.
    """
    filesystem, root = open_filesystem(join_uri(warehouse.root, "certificates"))
    everything = filesystem.get_file_info(
        fs.FileSelector(root, recursive=True, allow_not_found=True)
    )
    found: list[Certificate] = []
    for info in everything:
        owners = info.path[len(root) + 1 :].split("/")[:-1]
        if info.path.endswith(".json") and any(owner.startswith(wanted) for owner in owners):
            with filesystem.open_input_file(info.path) as document:
                found.append(Certificate.from_json(document.read().decode()))
    return sorted(found, key=lambda certificate: (certificate.started_at, certificate.asset_key))
