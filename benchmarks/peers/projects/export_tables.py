"""Writes tables of the DuckDB file to Parquet, for the comparison of contents; isn't timed."""

import sys
from pathlib import Path

import duckdb


def main() -> None:
    """Takes the database, an absent folder, and then names of tables."""
    database, folder, *tables = sys.argv[1:]
    Path(folder).mkdir()
    with duckdb.connect(database, read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for table in tables:
            connection.sql(f"SELECT * FROM {table}").write_parquet(f"{folder}/{table}.parquet")


if __name__ == "__main__":
    main()
