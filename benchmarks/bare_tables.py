"""What the bare PySpark scripts have in common: a session, and tables that are only written.

No row for each partition, no locks, no log that is looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from backfill_engine.engines.spark_engine import SPARK
from backfill_engine.lake.stored_declarations import build_new_table
from backfill_engine.spark.session import build_spark_conf, train_sessions
from backfill_engine.tables.declarations import Table


def start_session(overrides: Mapping[str, str] | None = None) -> SparkSession:
    """Starts a session with the project's own settings, and as fast; `overrides` win."""
    train_sessions(jars=None, s3=None)  # Nothing once it is done, as in an untimed round.
    conf = build_spark_conf(remote=None, jars=None, overrides=overrides or {})
    return SparkSession.builder.config(map={**conf}).getOrCreate()


@dataclass(frozen=True)
class BareTables:
    """Delta tables below a local folder, at the places where the project has them.

    Attributes:
        spark: the session.
        warehouse: the folder.
    """

    spark: SparkSession
    warehouse: Path

    def create(self, table: Table) -> None:
        """Creates the table, empty, partitioned and kept as the project's."""
        new = build_new_table(table, self._locate(table), retention_days=90)
        SPARK.create_table(self.spark, new)

    def read(self, table: Table, condition: str) -> DataFrame:
        """Reads the rows for which the SQL condition holds, of the newest version."""
        return self.spark.read.format("delta").load(self._locate(table)).where(condition)

    def overwrite(self, table: Table, rows: DataFrame, condition: str) -> None:
        """Replaces, in one commit, the rows for which the SQL condition holds by `rows`."""
        (
            rows.select(*table.column_names)
            # One file a partition, as in the project's tables.
            .repartition(table.partition_by)
            .write.format("delta")
            .mode("overwrite")
            .option("replaceWhere", condition)
            .save(self._locate(table))
        )

    def _locate(self, table: Table) -> str:
        return str(self.warehouse / table.key)
