"""What a run did to a table, kept beside the tables for longer than their logs.

One JSON document and one Markdown page a run and table, at
`<warehouse>/certificates/<backfill or run>/<run>/<layer>.<table>.json` and `.md`. A document is one
line, so that any reader of JSON lines can query all of them.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyarrow import fs

from backfill_assets.lake.filesystems import open_filesystem
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.tables.declarations import Table
from backfill_assets.uris import join_uri


@dataclass(frozen=True)
class CertifiedPartition:
    """One partition of the run.

    Attributes:
        partition: its key.
        status: `published`, `withheld`, or `already appended` by a commit before the run.
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


@dataclass(frozen=True)
class Certificate:
    """What a run did to a table.

    Attributes:
        run_id: the Dagster run.
        backfill_id: the backfill that it was part of; None if none.
        asset_key: `layer/name`.
        table_uri: where the table is.
        write_mode: how the rows came about.
        compared_partitions: others in the same folders, whose contents were compared.
        row_filter: which computed rows a merge took; empty means all.
        delete_missing: whether a merge deleted rows that were not computed.
        batch: name of the batch that was appended; empty if it has none.
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
    """

    run_id: str
    backfill_id: str | None
    asset_key: str
    table_uri: str
    write_mode: str
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
    row_filter: str = ""
    delete_missing: bool = False
    batch: str = ""

    @property
    def published(self) -> list[str]:
        """Keys of the partitions that were published, ascending."""
        return [one.partition for one in self.partitions if one.status == "published"]

    def to_json(self) -> str:
        """One line."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """The inverse of `to_json`."""
        fields = json.loads(text)
        commits = tuple(CertifiedCommit(**one) for one in fields.pop("commits"))
        partitions = tuple(CertifiedPartition(**one) for one in fields.pop("partitions"))
        return cls(**fields, commits=commits, partitions=partitions)


def locate_certificate(
    warehouse: Warehouse, table: Table, *, run_id: str, backfill_id: str | None
) -> str:
    """Its place without the suffix, known before it is written."""
    name = table.key.replace("/", ".")
    return join_uri(warehouse.root, "certificates", backfill_id or run_id, run_id, name)


def write_certificate(place: str, certificate: Certificate, *, page: str) -> None:
    """Writes the document and its page; a second one of the same run replaces the first."""
    filesystem, path = open_filesystem(place)
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    # The page first: whoever finds the document finds both.
    for suffix, text in ((".md", page), (".json", certificate.to_json() + "\n")):
        with filesystem.open_output_stream(path + suffix) as out:
            out.write(text.encode())


def find_certificates(warehouse: Warehouse, wanted: str) -> list[Certificate]:
    """Of a run or a backfill, by its id or the beginning of it; oldest first."""
    filesystem, root = open_filesystem(join_uri(warehouse.root, "certificates"))
    everything = filesystem.get_file_info(
        fs.FileSelector(root, recursive=True, allow_not_found=True)
    )
    found: list[Certificate] = []
    for info in everything:
        owners = info.path[len(root) + 1 :].split("/")[:-1]
        if info.path.endswith(".json") and any(one.startswith(wanted) for one in owners):
            with filesystem.open_input_file(info.path) as document:
                found.append(Certificate.from_json(document.read().decode()))
    return sorted(found, key=lambda one: (one.started_at, one.asset_key))
