"""Spark: in the process, on a cluster, or behind Spark Connect."""

import re
from collections.abc import Iterable
from functools import lru_cache, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine.engines.engine import FILE_PATH, Engine, LandedFiles, NewTable
from backfill_engine.uris import is_local

_PATTERN = re.compile(r"([\[\]{}*?\\])")

# A log has some hundred lines of a hundred fields: to write and compile code for them, for each
# task anew, takes longer than to go over them without.
_CONF = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    # Nor is there anything to learn from the first half of a query for the second.
    "spark.sql.adaptive.enabled": "false",
    # A hundred counters that commits carry on from checksum to checksum, and nobody here reads.
    "spark.databricks.delta.fileSizeHistogramMetrics.enabled": "false",
}


class SparkEngine(Engine):
    """Spark does all that the project needs."""

    tells_mistyped_json = True

    def read_files(self, spark: SparkSession, files: LandedFiles) -> DataFrame:
        """Reads files by Spark's own readers."""
        frames: list[DataFrame] = []
        for options, paths in plan_reads(files.root, files.uris):
            reader = spark.read.format(files.format).options(**options, **files.options)
            if files.schema is not None:
                # Of the footer of one file Spark would make the columns of all.
                reader = reader.schema(files.schema)
            frames.append(reader.load(paths).withColumn(FILE_PATH, F.col("_metadata.file_path")))
        return reduce(DataFrame.unionByName, frames)

    def keep(self, frame: DataFrame) -> DataFrame:
        """Persists a frame."""
        return frame.persist()

    def release(self, kept: DataFrame) -> None:
        """Unpersists a frame."""
        kept.unpersist()

    def create_table(self, spark: SparkSession, table: NewTable) -> None:
        """Creates a table by its path."""
        spark.sql(table.build_statement(f"delta.`{table.uri}`"))

    def append(self, frame: DataFrame, uri: str) -> None:
        """Appends rows and columns in one commit."""
        frame.write.format("delta").mode("append").option("mergeSchema", "true").save(uri)

    def add_columns(self, spark: SparkSession, uri: str, columns: str) -> None:
        """Adds columns by a statement."""
        spark.sql(f"ALTER TABLE delta.`{uri}` ADD COLUMNS ({columns})")

    def run_statement(
        self, spark: SparkSession, uri: str, statement: str, **frames: DataFrame
    ) -> None:
        """Runs a statement on a path."""
        spark.sql(statement.replace("{table}", f"delta.`{uri}`"), None, **frames)

    def read_ahead(self, spark: SparkSession, uri: str) -> None:
        """Reads the log in a session of its own; the other one finds there what this has read."""
        _open_session(spark).sql(f"DESCRIBE DETAIL delta.`{uri}`").collect()

    def overwrite(
        self,
        frame: DataFrame,
        uri: str,
        predicate: str | None,
        *,
        user_metadata: str = "",
        transaction: str | None = None,
    ) -> None:
        """Replaces rows; Delta's constraint check refuses others."""
        writer = (frame if predicate is not None else frame.limit(0)).write.format("delta")
        if user_metadata:
            writer = writer.option("userMetadata", user_metadata)
        if transaction is not None:
            writer = writer.option("txnAppId", transaction).option("txnVersion", 1)
        if predicate is not None:
            writer = writer.mode("overwrite").option("replaceWhere", predicate)
        else:
            writer = writer.mode("append")
        writer.save(uri)

    def vacuum(self, spark: SparkSession, uri: str) -> None:
        """Vacuums by a statement."""
        self.run_statement(spark, uri, "VACUUM {table}")

    def require(self, ability: str) -> None:
        """Refuses nothing."""


SPARK = SparkEngine()


def plan_reads(root: str, uris: Iterable[str]) -> list[tuple[dict[str, str], list[str]]]:
    """Plans how Spark reads landed files as they are, whatever their names.

    On local disks Hadoop would hold a file to the sums of `.name.crc` beside it, which may be of
    its predecessor, and which can't be looked for where the name has a colon.

    Args:
        root: of the landing zone.
        uris: of the files, which are beside the root or below it.

    Returns:
        The options and the paths of each reader; one reader but for very odd names.
    """
    options: dict[str, str] = {}
    if is_local(root):
        options["fs.file.impl"] = "org.apache.hadoop.fs.RawLocalFileSystem"
        # Else the one that is open already, with sums, would be taken.
        options["fs.file.impl.disable.cache"] = "true"
    paths: list[str] = []
    reads = [(options, paths)]
    for uri in uris:
        if _PATTERN.search(uri) and ":" in re.sub("^[a-z0-9]+:/", "", uri):
            # Hadoop can't look for a pattern below a colon; Spark takes a name as it is only alone.
            reads.append(({**options, "__globPaths__": "false"}, [uri]))
        else:
            # A file that is named like a pattern must still be itself.
            paths.append(_PATTERN.sub(r"\\\1", uri))
    return [read for read in reads if read[1]]


@lru_cache(maxsize=1)
def _open_session(spark: SparkSession) -> SparkSession:
    """Opens a session beside another one, which finds there what this one has read of a log."""
    if not hasattr(spark, "newSession"):
        return spark  # Of a Spark Connect server, which goes by settings of its own.
    session = spark.newSession()
    for name, value in _CONF.items():
        session.conf.set(name, value)
    return session
