"""Compares what a peer published with what the project did: rows a day, and every value."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from backfill_engine.tables.declarations import Table
from benchmarks.contents import DifferentContentsError, find_differing

_DUCKDB_FILE = "warehouse.duckdb"


def read_published(scratch: Path, table: Table, programs: Path | None = None) -> pa.Table:
    """Reads what a process left in its scratch folder, wherever its program keeps it.

    Args:
        scratch: the folder that the process was given.
        table: whose columns to read.
        programs: of the process's environment; needed for DuckDB's files, which only DuckDB reads.

    Raises:
        DifferentContentsError: if the table isn't there.
    """
    warehouse = scratch / "warehouse"
    columns = list(table.column_names)
    database = warehouse / _DUCKDB_FILE
    if database.exists() and programs is not None:
        return pq.read_table(_export(database, table, programs), columns=columns)
    return DeltaTable(_find_delta_table(scratch, table)).to_pyarrow_table(columns=columns)


def count_versions_without(scratch: Path, table: Table, key: str) -> tuple[int, int] | None:
    """Counts the versions that lack a partition which an earlier version has.

    Args:
        scratch: the folder that the process was given.
        table: a Delta table there.
        key: the partition.

    Returns:
        How many lack it, of how many versions; None if the table isn't one of Delta's.
    """
    if (scratch / "warehouse" / _DUCKDB_FILE).exists():
        return None
    folder = _find_delta_table(scratch, table)
    latest = DeltaTable(folder).version()
    has = [
        any(
            partition[table.partition_by] == key
            for partition in DeltaTable(folder, version).partitions()
        )
        for version in range(latest + 1)
    ]
    return sum(not now and any(has[:version]) for version, now in enumerate(has)), len(has)


def _find_delta_table(scratch: Path, table: Table) -> Path:
    """Finds it by its path, or in SQLMesh's physical schema with a hash behind its name."""
    warehouse = scratch / "warehouse"
    own = [warehouse / table.layer / table.name]
    hashed = warehouse.glob(f"sqlmesh__{table.layer}.db/{table.layer}__{table.name}__*")
    found = [folder for folder in (*own, *hashed) if (folder / "_delta_log").exists()]
    if len(found) != 1:
        raise DifferentContentsError(f"{table.key} is there {len(found)} times: {scratch.name}")
    return found[0]


def check_published(
    tables: Sequence[Table],
    expected: Path,
    scratch: Path,
    *,
    programs: Path | None,
    partitions: int,
) -> None:
    """Compares all tables, rows per partition and then every value.

    Args:
        tables: what both filled.
        expected: the scratch folder of a process of the project's own environment.
        scratch: of another process.
        programs: of the other's environment; None for the project's.
        partitions: how many partitions each table must have.

    Raises:
        DifferentContentsError: naming the first table that differs and how.
    """
    for table in tables:
        published = read_published(expected, table)
        # Types of another engine are compared as the project's: a timestamp's unit, a string's
        # width. A cast that would lose something fails.
        other = read_published(scratch, table, programs).cast(published.schema)
        check_same_rows(table, published, other, partitions=partitions, name=scratch.name)


def check_same_rows(
    table: Table, published: pa.Table, other: pa.Table, *, partitions: int, name: str
) -> None:
    """Compares two readings of a table, whatever the order of their rows.

    Raises:
        DifferentContentsError: naming the partitions, or the columns, that differ.
    """
    counts, other_counts = (_count_rows(rows, table.partition_by) for rows in (published, other))
    if counts != other_counts or len(counts) != partitions:
        differing = find_differing(counts, other_counts)
        raise DifferentContentsError(
            f"{table.key} of {name}: {len(other_counts)} partitions of {partitions}; rows differ "
            f"in {', '.join(differing) or 'none'}"
        )
    order = [(column, "ascending") for column in table.column_names]
    published, other = published.sort_by(order), other.sort_by(order)
    differing = [
        column for column in published.column_names if not published[column].equals(other[column])
    ]
    if differing:
        raise DifferentContentsError(
            f"{table.key} of {name}: equal numbers of rows, other values in {', '.join(differing)}"
        )


def _count_rows(rows: pa.Table, partition_by: str) -> dict[str, int]:
    counts = rows[partition_by].value_counts().to_pylist()
    return {str(count["values"]): count["counts"] for count in counts}


def _export(database: Path, table: Table, programs: Path) -> Path:
    folder = database.parent / f"exported-{table.layer}-{table.name}"
    shutil.rmtree(folder, ignore_errors=True)
    script = Path(__file__).parent / "projects" / "export_tables.py"
    view = f"{table.layer}.{table.name}"
    arguments = [str(programs / "python"), str(script), str(database), str(folder), view]
    subprocess.run(arguments, check=True)
    (file,) = folder.iterdir()
    return file
