"""How a Delta table is created, and with what properties."""

from backfill_engine.tables.declarations import Table, build_ddl

GRAIN_PROPERTY = "backfill_engine.grain"
"""The property of a Delta table that holds its grain."""

# One takes as long as a small commit, and is one more job. Delta's default is 10; commits are few
# here, as each is of a range, and a log is read in a third of a second with or without twenty more.
_COMMITS_PER_CHECKPOINT = 30

_TIMES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"})
# Of these Delta keeps no least and greatest values, and refuses to be asked for them.
_UNORDERED = frozenset({"BOOLEAN", "BINARY"})


def build_create_table(table: Table, uri: str, *, retention_days: int) -> str:
    """Builds the statement that creates the empty table at `uri`, unless it is there."""
    properties = build_table_properties(table, retention_days=retention_days)
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    return (
        f"CREATE TABLE IF NOT EXISTS delta.`{uri}` ({build_ddl(table.columns)}) USING DELTA "
        f"PARTITIONED BY (`{table.folder_column}`) TBLPROPERTIES ({listed})"
    )


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
        **_choose_statistics(table),
        GRAIN_PROPERTY: str(table.grain),
    }


def _choose_statistics(table: Table) -> dict[str, str]:
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
    return {"delta.dataSkippingStatsColumns": ",".join(chosen)}
