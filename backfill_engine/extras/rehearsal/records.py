"""What a rehearsal showed, as it is kept: `<warehouse>/rehearsals/<id>/rehearsal.json`."""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pyarrow import fs
from pydantic import TypeAdapter

from backfill_engine.errors import RehearsalError, UnknownRunError
from backfill_engine.escaping import escape_markdown, write_row
from backfill_engine.extras.comparison.rows import PartitionDiff
from backfill_engine.filesystems import open_filesystem
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.whole_files import find_id, join_names, read_whole_file, write_whole_file
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.uris import join_uri

_LISTED, _MOST_COLUMNS = 31, 3
_FOLDER, _DOCUMENT, _TABLES = "rehearsals", "rehearsal.json", "tables"

T = TypeVar("T")


@dataclass(frozen=True)
class RehearsedPartition:
    """One partition: what it would hold, and how that differs from what is published.

    Attributes:
        partition: its key.
        withheld: why it would be withheld; empty if it would be published. All below is nought
            then.
        rows: that it would have.
        checksum: of these (see `contents.checksums`).
        shown_checksum: of what was published when the difference was shown; empty if nothing was.
        diff: from what is published to what would be; of a partition that never was published all
            rows are added.
        changed_values: by column, the rows of the same key that have another value there; of a
            table without a natural key nothing.
    """

    partition: str
    withheld: str = ""
    rows: int = 0
    checksum: str = ""
    shown_checksum: str = ""
    diff: PartitionDiff | None = None
    changed_values: Mapping[str, int] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        """Whether publishing it would change what readers see."""
        return self.diff is not None and not (self.diff.equal and self.shown_checksum)


@dataclass(frozen=True)
class RehearsedTable:
    """What one table would become.

    Attributes:
        table: `layer/name`.
        code_version: by which it was computed.
        version: of the published table that it was compared with; -1 if there is none.
        partitions: by key, ascending.
    """

    table: str
    code_version: str
    version: int
    partitions: tuple[RehearsedPartition, ...]

    @property
    def good(self) -> list[str]:
        """Lists the keys of the partitions that would be published."""
        return [partition.partition for partition in self.partitions if not partition.withheld]

    @property
    def withheld(self) -> list[RehearsedPartition]:
        """Lists the partitions that would be withheld."""
        return [partition for partition in self.partitions if partition.withheld]


@dataclass(frozen=True)
class Gates:
    """Bounds for each partition; None is no bound.

    Attributes:
        max_changed_share: of its rows that are added, removed or changed, 0 to 1, of the more of
            those before and after.
        max_psi: of any of its columns with a drift rule, against what is published.
    """

    max_changed_share: float | None = None
    max_psi: float | None = None

    def find_exceeded(self, diff: PartitionDiff) -> Iterator[str]:
        """Says in words which bounds a partition's difference exceeds."""
        share = find_changed_share(diff)
        if self.max_changed_share is not None and share > self.max_changed_share:
            yield f"{share:.1%} of its rows differ (at most {self.max_changed_share:.1%})"
        for column, psi in diff.psi.items():
            if self.max_psi is not None and psi is not None and psi > self.max_psi:
                yield f"PSI of {column} is {psi:.3f} (at most {self.max_psi:g})"

    def list_exceeded(self, table: RehearsedTable) -> list[str]:
        """Lists in words which partitions of a table exceed which bounds."""
        return [
            f"{table.table} {partition.partition}: {what}"
            for partition in table.partitions
            if partition.diff is not None
            for what in self.find_exceeded(partition.diff)
        ]


def find_changed_share(diff: PartitionDiff) -> float:
    """Finds the share of rows that differ, 0 to 1, of the more of those before and after."""
    rows = max(diff.rows_before, diff.rows_after)
    differing = max(diff.added, diff.removed) + diff.changed
    return differing / rows if rows else 0.0


@dataclass(frozen=True)
class Rehearsal:
    """What was rehearsed, and what came of it.

    Attributes:
        rehearsal_id: of the Dagster run that rehearsed.
        at: when it began, UTC.
        reason: why, in a person's words; empty if nobody said.
        gates: bounds of what may change.
        tables: upstream ones first.
        exceeded: in words, where the gates were passed; empty where they hold.
        kept: the root of the scratch tables; empty if they were removed.
    """

    rehearsal_id: str
    at: dt.datetime
    reason: str
    gates: Gates
    tables: tuple[RehearsedTable, ...]
    exceeded: tuple[str, ...] = ()
    kept: str = ""

    def list_partitions(self, key: str) -> tuple[RehearsedPartition, ...]:
        """Lists what was rehearsed of a table, by `layer/name`; empty if nothing was."""
        return next((table.partitions for table in self.tables if table.table == key), ())


_REHEARSALS = TypeAdapter(Rehearsal)


def find_scratch(warehouse: Warehouse, rehearsal_id: str) -> Warehouse:
    """Finds the warehouse of a rehearsal's own tables, below the one that it is about."""
    root = join_names(warehouse.root, _FOLDER, rehearsal_id, _TABLES)
    return Warehouse(root, retention_days=warehouse.retention_days)


def remove_scratch(warehouse: Warehouse, rehearsal_id: str) -> None:
    """Removes the tables of a rehearsal; what it showed is kept."""
    filesystem, path = open_filesystem(find_scratch(warehouse, rehearsal_id).root)
    if filesystem.get_file_info(path).type is not fs.FileType.NotFound:
        filesystem.delete_dir(path)


def remove_abandoned(warehouse: Warehouse, *, before: dt.datetime) -> list[str]:
    """Removes the tables of rehearsals that were killed: they showed nothing.

    Only where the storage says how old a folder is, as object stores don't.

    Args:
        warehouse: whose tables were rehearsed.
        before: UTC; those that were begun later may be at work.

    Returns:
        Their ids, ascending.
    """
    tables = _find_entries(warehouse, _TABLES, fs.FileType.Directory)
    abandoned = sorted(
        rehearsal_id
        for rehearsal_id in tables.keys() - set(list_rehearsals(warehouse))
        if (begun := tables[rehearsal_id].mtime) and begun < before
    )
    for rehearsal_id in abandoned:
        remove_scratch(warehouse, rehearsal_id)
    return abandoned


def write_rehearsal(warehouse: Warehouse, rehearsal: Rehearsal) -> str:
    """Keeps what a rehearsal showed; returns where."""
    place = locate_beside_rehearsal(warehouse, rehearsal.rehearsal_id, _DOCUMENT)
    write_whole_file(place, [_REHEARSALS.dump_json(rehearsal)])
    return place


def locate_beside_rehearsal(warehouse: Warehouse, rehearsal_id: str, name: str) -> str:
    """Finds the place of a document of a rehearsal."""
    return join_names(warehouse.root, _FOLDER, rehearsal_id, name)


def read_rehearsal(warehouse: Warehouse, wanted: str) -> Rehearsal:
    """Reads what a rehearsal showed.

    Args:
        warehouse: whose tables were rehearsed.
        wanted: its id, or the beginning of it.

    Raises:
        UnknownRunError: if there is none of that name, or the beginning is too short to tell.
        RehearsalError: if it can't be read.
    """
    known = list_rehearsals(warehouse)
    rehearsal_id = find_id(wanted, known)
    if rehearsal_id is None:
        raise UnknownRunError(
            f"no rehearsal {wanted} below {join_uri(warehouse.root, _FOLDER)}: "
            "`backfill-assets rehearse` makes one, and says how it is called"
        )
    return read_beside_rehearsal(warehouse, rehearsal_id, _DOCUMENT, _REHEARSALS)


def read_beside_rehearsal(
    warehouse: Warehouse, rehearsal_id: str, name: str, kind: TypeAdapter[T]
) -> T:
    """Reads a document of a rehearsal.

    Raises:
        RehearsalError: if it can't be read.
        FileNotFoundError: if it is not there.
    """
    place = locate_beside_rehearsal(warehouse, rehearsal_id, name)
    try:
        (document,) = read_whole_file(place)
        return kind.validate_json(document)
    except ValueError as error:
        raise RehearsalError(
            f"{place} is cut off or was edited, and can't be read: rehearse again"
        ) from error


def list_rehearsals(warehouse: Warehouse) -> list[str]:
    """Lists the ids of rehearsals of which is kept what they showed."""
    return sorted(_find_entries(warehouse, _DOCUMENT, fs.FileType.File))


def _find_entries(warehouse: Warehouse, name: str, kind: fs.FileType) -> dict[str, fs.FileInfo]:
    """Finds what has a name and a kind in the folder of each rehearsal, by its id."""
    filesystem, root = open_filesystem(join_uri(warehouse.root, _FOLDER))
    folders = filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True))
    entries = filesystem.get_file_info([f"{folder.path}/{name}" for folder in folders])
    return {entry.path.split("/")[-2]: entry for entry in entries if entry.type is kind}


def describe_rehearsal(rehearsal: Rehearsal) -> str:
    """Describes what would change, table by table."""
    lines: list[str] = []
    for table in rehearsal.tables:
        differing, withheld = [row for row in table.partitions if row.differs], table.withheld
        same = len(table.partitions) - len(differing) - len(withheld)
        lines += [
            f"### {escape_markdown(table.table)}",
            "",
            f"{len(differing)} would change, {same} would not, {len(withheld)} would be withheld.",
            "",
        ]
        if differing:
            lines += [
                "| partition | rows before | rows | added | removed | changed | most changed |",
                "|---|--:|--:|--:|--:|--:|---|",
                *map(_write_row, differing[:_LISTED]),
                "",
            ]
        lines += [
            f"- {escape_markdown(f'{partition.partition} withheld: {partition.withheld}')}"
            for partition in withheld[:_LISTED]
        ]
        lines.append("")
    lines += [
        f"- **beyond the gates**: {escape_markdown(what)}"
        for what in shorten(rehearsal.exceeded, _LISTED)
    ]
    return "\n".join(lines)


def _write_row(rehearsed: RehearsedPartition) -> str:
    diff = rehearsed.diff or PartitionDiff(0, rehearsed.rows)
    counts = (diff.rows_before, diff.rows_after, diff.added, diff.removed, diff.changed)
    columns = describe_columns(rehearsed)
    return write_row(rehearsed.partition, *(f"{count:,}" for count in counts), columns)


def describe_columns(rehearsed: RehearsedPartition) -> str:
    """Names the columns that changed most, with how many values, and the largest PSI."""
    by_count = sorted(rehearsed.changed_values.items(), key=lambda item: -item[1])
    texts = [f"{column} {count:,}" for column, count in by_count[:_MOST_COLUMNS]]
    psi = rehearsed.diff.psi if rehearsed.diff else {}
    known = [(value, column) for column, value in psi.items() if value is not None]
    if known:
        texts.append("PSI {:.3f} ({})".format(*max(known)))
    return ", ".join(texts)
