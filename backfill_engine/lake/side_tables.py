"""What is kept beside the layers for inspection: withheld partitions, and rejected records."""

from collections.abc import Sequence

from backfill_engine.audit_columns import REJECT_COLUMNS
from backfill_engine.tables.declarations import Column, Table, required

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
            *(Column(names[one.name], one.type, one.comment) for one in table.columns),
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
