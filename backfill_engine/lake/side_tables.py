"""What is kept beside the layers for inspection: withheld partitions, and rejected records.

Side tables hold what nothing else knows: decisions of people, where incremental runs begin, rows
kept aside. One that is gone looks like one that never was. So whoever writes one enters it at
`<warehouse>/ledger/<name>.jsonl`, and whoever reads one opens it by `open_entered`, which notices
the loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow.compute import field, scalar
from pydantic import TypeAdapter

from backfill_engine.audit_columns import REJECT_COLUMNS
from backfill_engine.errors import TableError
from backfill_engine.lake.delta_logs import has_log, open_log, query_rows, shorten_cause
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.whole_files import read_whole_file, write_whole_file
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine.uris import join_uri

Row = TypeVar("Row")

WITHHELD_ON, REJECTED_ON = "withheld_on", REJECT_COLUMNS[0]
"""DATE columns: the UTC day of the run."""


_WITHHELD_COLUMNS = (WITHHELD_ON, "run_id", "partition_key", "reason")


def name_withheld(names: Sequence[str]) -> dict[str, str]:
    """Names columns of a table as its withheld rows have them: `row_` before a name of ours."""
    taken = {name.lower() for name in (*_WITHHELD_COLUMNS, *names)}
    found = {name: name for name in names}
    for name in names:
        if name.lower() in _WITHHELD_COLUMNS:
            while found[name].lower() in taken:
                found[name] = f"row_{found[name]}"
            taken.add(found[name].lower())
    return found


def build_withheld_table(table: Table) -> Table:
    """Declares the table `withheld/<layer>_<name>`.

    It holds rows of partitions that failed their audit, by day of the run.
    """
    names = name_withheld(table.column_names)
    return Table(
        layer="withheld",
        name=f"{table.layer}_{table.name}",
        partition_by=WITHHELD_ON,
        columns=(
            required(WITHHELD_ON, "DATE", "Day of the run that withheld the partition, UTC"),
            required("run_id", "STRING", "That run"),
            required("partition_key", "STRING", "The partition"),
            required("reason", "STRING", "Failed checks with measured values and bounds"),
            *(
                # A text that doesn't fit may be why.
                Column(
                    names[column.name],
                    column.parsed_type.of_values,
                    column.comment,
                    formerly=column.formerly,
                )
                for column in table.columns
            ),
        ),
    )


def build_quarantine_table(table: Table) -> Table:
    """Declares `quarantine/<layer>_<name>`: rejected records of each partition's last run."""
    placed_by = dict.fromkeys((table.partition_by, table.folder_column))
    placing = tuple(column for column in table.columns if column.name in placed_by)
    return Table(
        layer="quarantine",
        name=f"{table.layer}_{table.name}",
        partition_by=table.partition_by,
        grain=table.grain,
        folder_by=table.folder_by,
        columns=(
            *placing,
            required(REJECTED_ON, "DATE", "Day of the run that rejected the record, UTC"),
            required("run_id", "STRING", "That run"),
            required("source_file", "STRING", "Landing file, below the landing root"),
            required("reason", "STRING", "Why it can't become a row"),
            Column("line", "STRING", "The record as it came; null for a file that can't be read"),
        ),
    )


@dataclass(frozen=True)
class _Entry:
    """A side table as it was last written; neither is known where the file is damaged."""

    table_id: str = ""
    version: int = -1


_ENTRIES = TypeAdapter(_Entry)


def enter_table(warehouse: Warehouse, name: str) -> None:
    """Writes down how far a side table has come; call it after each commit, under its lock.

    Args:
        warehouse: where the table is, which must exist.
        name: its folder below the root.
    """
    table = open_log(join_uri(warehouse.root, name))
    entry = _Entry(str(table.metadata().id), table.version())
    write_whole_file(_locate(warehouse, name), [_ENTRIES.dump_json(entry)])


def open_entered(warehouse: Warehouse, name: str) -> DeltaTable | None:
    """Opens a side table; None where there never was one.

    Args:
        warehouse: where the table is.
        name: its folder below the root.

    Raises:
        SettingsError: if nothing can ever be at the warehouse's root.
        TableError: if the table can't be read, is gone, or is older than it was.
    """
    uri, place = join_uri(warehouse.root, name), _locate(warehouse, name)
    warehouse.check_root()
    table = open_log(uri) if has_log(uri) else None
    try:
        entry = _ENTRIES.validate_json(b"".join(read_whole_file(place)))
    except FileNotFoundError:
        entry = None
    except (OSError, ValueError):
        entry = _Entry()
    if entry is None:
        return table
    # Where the entry is damaged, the next commit writes it anew.
    if (
        table is not None
        and entry.table_id in ("", str(table.metadata().id))
        and table.version() >= entry.version
    ):
        return table
    raise TableError(
        f"{uri} {'is gone' if table is None else 'is not the table that was written last'}: "
        f"restore it from a copy; or remove {place}, and what was written there is given up"
    )


def read_entered(warehouse: Warehouse, name: str, row_type: type[Row], *, cure: str) -> list[Row]:
    """Reads all rows of a small side table: milliseconds, no JVM; none where there never was one.

    Args:
        warehouse: where the table is.
        name: its folder below the root.
        row_type: a dataclass with a field for each column.
        cure: what to do once the table is given up.

    Raises:
        SettingsError: if nothing can ever be at the warehouse's root.
        TableError: if the table can't be read or is gone.
    """
    table = open_entered(warehouse, name)
    try:
        rows = query_rows(table, name, f"SELECT * FROM {name}") if table is not None else []
        return [row_type(**row) for row in rows]
    except (OSError, DeltaError, pa.ArrowException, TypeError) as error:
        raise TableError(
            f"the {name} at {join_uri(warehouse.root, name)} can't be read "
            f"({shorten_cause(error)}): restore the table from a copy, or remove its folder and "
            f"its entry in ledger/, and {cure}"
        ) from error


def _locate(warehouse: Warehouse, name: str) -> str:
    return join_uri(warehouse.root, "ledger", f"{name.replace('/', '.')}.jsonl")


@dataclass(frozen=True)
class KeptAside:
    """What one of the two tables holds of some partitions.

    Attributes:
        what: `withheld rows` or `rejected records`.
        table: where they are.
        count: how many there are.
        rows: the first of them, with run and reason.
    """

    what: str
    table: str
    count: int
    rows: Sequence[dict[str, Any]]


def read_kept_aside(
    warehouse: Warehouse, table: Table, partitions: Sequence[Partition], *, most: int
) -> list[KeptAside]:
    """Reads what is kept of partitions that follow one another, `most` rows of each kind.

    Raises:
        TableError: if a table of these can't be read or is gone.
    """
    keys = [partition.key for partition in partitions]
    in_slices = scalar(True)  # noqa: FBT003
    if table.partition_by:
        place, write = field(table.partition_by), table.grain.find_stored
        first, end = write(partitions[0].slice.start), write(partitions[-1].slice.end)
        in_slices = (place >= first) & (place < end)
        if table.grain.is_named:
            in_slices = place.isin(keys)
    found: list[KeptAside] = []
    for what, aside, wanted in (
        ("withheld rows", build_withheld_table(table), field("partition_key").isin(keys)),
        ("rejected records", build_quarantine_table(table), in_slices),
    ):
        if (kept := open_entered(warehouse, aside.key)) is not None:
            rows = kept.to_pyarrow_dataset().filter(wanted)
            listed = rows.head(most).to_pylist()
            found.append(KeptAside(what, warehouse.uri(aside), rows.count_rows(), listed))
    return found
