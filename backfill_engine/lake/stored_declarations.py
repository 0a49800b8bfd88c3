"""Whether a table on disk is as it is declared, as its Delta log says; before any work."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from backfill_engine.audit_columns import LANDED_FILE, is_reserved
from backfill_engine.engines.engine import NewTable
from backfill_engine.errors import TableError
from backfill_engine.lake.commit_files import read_migration
from backfill_engine.lake.commits import MigrationRecord
from backfill_engine.lake.table_log import TableLog
from backfill_engine.tables.column_types import is_widening, spell_stored_type
from backfill_engine.tables.declarations import Column, Table, build_ddl


def check_stored(log: TableLog, *, evolves: bool = False) -> None:
    """Refuses a table on disk that can't be written, or read, as it is declared.

    Columns in another order do no harm, as they are found by name; nor does a declared one that the
    table lacks and that may be null, as `find_missing_columns` has it.

    Args:
        log: of the table, which need not exist.
        evolves: whether it may have columns for fields that no schema declares.

    Raises:
        TableError: if it differs, with what to do; nothing was written.
    """
    if log.snapshot is None:
        return
    table = log.table
    where = f"{table.key} at {log.uri}"
    check_grain(log)
    folders = log.snapshot.metadata().partition_columns
    if folders != [name for name in [table.folder_column] if name]:
        raise TableError(
            f"{where} has folders by {', '.join(folders) or 'nothing'}, and "
            f"{table.folder_column or 'nothing'} is declared: {_START_ANEW}"
        )
    stored = _read_fields(log)
    for column in table.columns:
        if column.name in stored:
            _check_type(log, column, stored[column.name])
            if column.nullable and not stored[column.name].nullable:
                raise TableError(
                    f"{where} has `{column.name}` as required, and it is declared as one that may "
                    f'be null: declare it with required("{column.name}", …); nothing was written'
                )
        elif column.find_stored_name(stored):
            raise _describe_renamed(log, column)
        elif not column.nullable:
            raise TableError(
                f"{where} lacks `{column.name}`, which is declared as required, and what it holds "
                "has none: declare it with Column(…), and it is added; nothing was written"
            )
    for name in log.extra_fields:
        kind = spell_stored_type(stored[name].type)
        if not evolves or kind != "STRING" or not stored[name].nullable:
            raise TableError(
                f"{where} has a column `{name}`, which isn't declared: declare it again as "
                f'Column("{name}", "{kind}", …); nothing was written'
            )


def check_readable(log: TableLog) -> None:
    """Refuses an input on disk that can't be read as it is declared; it need not exist.

    Raises:
        TableError: if a declared column isn't there, or of another type; nothing was written.
    """
    check_grain(log)
    stored = _read_fields(log)
    for column in log.table.columns:
        if stored and column.name not in stored:
            if column.find_stored_name(stored):
                raise _describe_renamed(log, column)
            raise TableError(
                f"{log.table.key} at {log.uri} lacks `{column.name}`, which is declared: "
                f"materialize any partition of {log.table.key}, which adds it, then run this again"
            )
        if stored:
            _check_type(log, column, stored[column.name])


def check_grain(log: TableLog) -> None:
    """Refuses a table on disk of another grain; it need not exist.

    Partitions of another size would be replaced in part, or with their neighbours.
    """
    stored = log.properties.get(GRAIN_PROPERTY)
    if stored is not None and stored != str(log.table.grain):
        raise TableError(
            f"{log.table.key} at {log.uri} is partitioned by {stored}, not by {log.table.grain}: "
            "set it back, or use another warehouse; nothing was written"
        )


def find_missing_columns(log: TableLog, extra_fields: Sequence[str] = ()) -> tuple[Column, ...]:
    """Finds the columns that the table on disk lacks; none if there is no table.

    Args:
        log: of the table.
        extra_fields: fields that it is to have beyond its declaration.
    """
    stored = _read_fields(log)
    columns = extend_table(log.table, extra_fields).columns
    return tuple(column for column in columns if stored and column.name not in stored)


_START_ANEW = (
    "declare it as it is stored, or declare a table of another name and fill that; nothing was "
    "written"
)


@dataclass(frozen=True)
class ColumnChange:
    """What `backfill-assets migrate` changes of one column.

    Attributes:
        column: as declared.
        name: as stored.
        type: likewise.
    """

    column: Column
    name: str
    type: str

    @property
    def renames(self) -> bool:
        """Whether the name changes."""
        return self.name != self.column.name

    def __str__(self) -> str:
        declared = self.column
        renamed = f"`{self.name}` becomes `{declared.name}`" if self.renames else ""
        widened = f"{self.type} becomes {declared.type}" if self.type != declared.type else ""
        if renamed:
            return f"{renamed}, {widened}" if widened else renamed
        return f"`{self.name}`: {widened}"


def find_changes(log: TableLog) -> list[ColumnChange]:
    """Finds the columns that a table has by a former name, or of a narrower type, than declared.

    Raises:
        TableError: if one can't become what is declared; nothing was written.
    """
    stored, table = _read_fields(log), log.table
    changes: list[ColumnChange] = []
    for column in table.columns:
        name = column.find_stored_name(stored)
        if name is None:
            continue
        kind = spell_stored_type(stored[name].type)
        if is_widening(kind, column.type):
            changes.append(ColumnChange(column, name, kind))
        else:
            _check_type(log, column, stored[name])
            if name != column.name:
                changes.append(ColumnChange(column, name, column.type))
    placing = {table.partition_by, table.folder_column}
    if moved := [change for change in changes if change.column.name in placing]:
        raise TableError(
            f"{table.key} at {log.uri}: {moved[0]}, by which the table is partitioned: "
            f"{_START_ANEW}"
        )
    if changes and (fixed := [name for name, field in stored.items() if _is_fixed(field)]):
        raise TableError(
            f"{table.key} at {log.uri} has `{fixed[0]}` as Delta keeps it by rules of its own "
            f"({', '.join(sorted(stored[fixed[0]].metadata))}), which would be lost: {_START_ANEW}"
        )
    for name, condition in log.properties.items():
        words = set(re.findall(r"\w+", condition)) if name.startswith(_CONSTRAINTS) else set()
        if named := [change.name for change in changes if change.renames and change.name in words]:
            raise TableError(
                f"{table.key} at {log.uri} has the constraint {condition}, which names "
                f"`{named[0]}`: ALTER TABLE … DROP CONSTRAINT {name.removeprefix(_CONSTRAINTS)}, "
                "and add it again afterwards; nothing was written"
            )
    return changes


MIGRATED = "backfill_engine.migrated"
"""The property of a Delta table that holds the version of the last migration that was compared."""


def find_uncompared(log: TableLog) -> tuple[int, MigrationRecord] | None:
    """Finds the version and the record of the last migration, if it was stopped uncompared.

    One that was taken back is none.
    """
    newest = next((commit for commit in log.iterate_commits() if commit.is_migration), None)
    if newest is None or newest.restores is not None:
        return None
    if newest.version <= int(log.properties.get(MIGRATED, -1)):
        return None
    record = read_migration(log.uri, newest.version)
    return None if record is None else (newest.version, record)


_CONSTRAINTS = "delta.constraints."


def _is_fixed(field: Any) -> bool:
    """Tells whether a column is computed or mapped by Delta, or a CHAR, which Spark rewrites."""
    properties = dict(field.metadata or {})
    if properties.get(INVARIANTS) == build_not_null(field.name):
        del properties[INVARIANTS]
    of_delta = any(name.startswith("delta.") for name in properties)
    return of_delta or str(properties.get(_CHARACTERS, "")).lower().startswith("char")


INVARIANTS = "delta.invariants"
"""Under this Delta keeps, of a column, a condition that each row must meet."""


def build_not_null(name: str) -> str:
    """Builds the condition that a column has no nulls."""
    return json.dumps({"expression": {"expression": f"`{name}` IS NOT NULL"}})


_CURE_OF_MIGRATION = "run `backfill-assets migrate {}`; nothing was written"


def _describe_renamed(log: TableLog, column: Column) -> TableError:
    name = column.find_stored_name(_read_fields(log))
    return TableError(
        f"{log.table.key} at {log.uri} has `{column.name}` by its former name `{name}`: "
        + _CURE_OF_MIGRATION.format(log.table.key)
    )


def _check_type(log: TableLog, column: Column, field: Any) -> None:
    stored, declared = spell_stored_type(field.type), column.parsed_type.of_values
    limit = (field.metadata or {}).get(_CHARACTERS)
    if limit and column.parsed_type.digits:
        stored, declared = Column("", limit).type, column.type
    if stored != declared:
        is_placing = column.name in (log.table.partition_by, log.table.folder_column)
        can_widen = is_widening(stored, declared) and not is_placing
        cure = _CURE_OF_MIGRATION.format(log.table.key) if can_widen else _START_ANEW
        raise TableError(
            f"{log.table.key} at {log.uri} has `{column.name}` as {stored}, and {column.type} is "
            f"declared: {cure}"
        )


def _read_fields(log: TableLog) -> Mapping[str, Any]:
    fields = log.snapshot.schema().fields if log.snapshot is not None else ()
    return {field.name: field for field in fields}


_CHARACTERS = "__CHAR_VARCHAR_TYPE_STRING"
"""Under this Spark keeps what it calls a STRING column that is a CHAR or a VARCHAR."""

_COLUMN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def find_new_fields(table: Table, known: Iterable[str], seen: Iterable[str]) -> list[str]:
    """Finds fields seen in the source that the table has no column for, but could; sorted.

    A name that Delta can't store, that differs from a column's only by case, or that the engine has
    a column of, can't become one.
    """
    taken = {name.lower() for name in (*table.column_names, *known, LANDED_FILE)}
    new: list[str] = []
    for name in sorted(set(seen)):
        if name.lower() in taken or is_reserved(name):
            continue
        if _COLUMN_NAME.fullmatch(name):
            taken.add(name.lower())
            new.append(name)
    return new


def extend_table(table: Table, extra_fields: Iterable[str]) -> Table:
    """Returns the table with its extra columns, texts that no schema declares, as it is stored."""
    seen = "Seen in the source; no schema declares it"
    extra = (Column(name, "STRING", seen) for name in extra_fields)
    return replace(table, columns=(*table.columns, *extra))


GRAIN_PROPERTY = "backfill_engine.grain"
"""The property of a Delta table that holds its grain."""

# One takes as long as a small commit, and is one more job. Delta's default is 10; commits are few
# here, as each is of a range, and a log is read in a third of a second with or without twenty more.
_COMMITS_PER_CHECKPOINT = 30

_TIMES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"})
STATISTICS = "delta.dataSkippingStatsColumns"
"""The property of a Delta table that lists the columns of which the log keeps statistics."""

# Of these Delta keeps no least and greatest values, and refuses to be asked for them.
_UNORDERED = frozenset({"BOOLEAN", "BINARY"})


def build_new_table(table: Table, uri: str, *, retention_days: int) -> NewTable:
    """Builds what an engine creates at `uri` of a declaration."""
    properties = build_table_properties(table, retention_days=retention_days)
    return NewTable(uri, build_ddl(table.columns), table.folder_column, properties)


def build_table_properties(table: Table, *, retention_days: int) -> dict[str, str]:
    """Builds what `TBLPROPERTIES` says of a new table.

    Args:
        table: as declared.
        retention_days: for how long old versions stay readable: Delta's default of a week for data
            files and a month for the log would put undo out of reach.
    """
    kept = f"interval {retention_days} days"
    return {
        "delta.logRetentionDuration": kept,
        "delta.deletedFileRetentionDuration": kept,
        "delta.enableInCommitTimestamps": "true",
        "delta.checkpointInterval": str(_COMMITS_PER_CHECKPOINT),
        **choose_statistics(table),
        GRAIN_PROPERTY: str(table.grain),
    }


def choose_statistics(table: Table) -> dict[str, str]:
    """Chooses columns of which the log has each file's least and greatest value and its nulls.

    A file is a whole partition: by its key and its times it differs from others, and readers skip
    it. Other columns have all their values in each file; to note these of up to 32 columns, as
    Delta does by default, takes a tenth of a small commit, and again of each reading of the log.
    Row counts are noted in any case.
    """
    chosen = [
        f"`{column.name}`"
        for column in table.columns
        if column.name != table.folder_column
        and column.parsed_type.kind not in _UNORDERED
        and (column.name in table.natural_key or column.parsed_type.kind in _TIMES)
    ]
    if not chosen:
        return {"delta.dataSkippingNumIndexedCols": "0"}
    return {STATISTICS: ",".join(chosen)}
