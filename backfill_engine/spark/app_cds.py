"""An archive of the classes that a session loads, made once; Java maps it and loads none.

Parsing, checking and linking some ten thousand classes took a third of the time from a session's
start to its first table. Java ignores an archive of other classes than those on its class path.
An archive takes 190 MB, and each virtual environment has its own: those that no session was started
with for 30 days are removed when another one is made.

An archive is made of what a session has loaded that does a bit of all that range runs do: this
module as a process, called with a folder for the session's files, its settings as JSON on stdin.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from backfill_engine.spark.cache import are_whole, find_cache, make_once, remove_unused
from backfill_engine.spark.gateway import start_context
from backfill_engine.spark.java import locate_java

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_TRAINING_SECONDS = 300
_NAME = "classes-{}.jsa"
_ROWS = 100


def find_class_archive(class_path: Sequence[Path]) -> Path | None:
    """Finds where the archive for these jars and Spark's own is, or is to be.

    Returns:
        A path that another Java, or other jars, don't share, nor the same ones installed again:
        Java takes no archive of jars with other times. None where there is no Java.
    """
    java = locate_java()
    if java is None or not Path(java).exists():
        return None
    sparks = sorted(Path(pyspark.__file__).parent.joinpath("jars").glob("*.jar"))
    files = (Path(java).resolve(), *class_path, *sparks)
    parts = [f"{file} {file.stat().st_mtime_ns if file.exists() else 0}" for file in files]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return find_cache() / _NAME.format(digest[:12])


def train_class_archive(archive: Path, conf: Mapping[str, str]) -> None:
    """Makes the archive, unless it is there, of what a session loads that does a bit of all.

    Where that fails, as on a full disk, sessions start as they did without. Archives beside it that
    were not used for 30 days are removed first.

    Args:
        archive: where it is to be.
        conf: of the sessions that are to use it.
    """
    if are_whole([archive]):
        return
    remove_unused(archive.parent, _NAME.format("*"))
    with suppress(OSError, subprocess.SubprocessError):
        make_once([archive], lambda folder: _train_into(folder / archive.name, conf))


def _train_into(archive: Path, conf: Mapping[str, str]) -> None:
    options = f"{conf[JAVA_OPTIONS]} -XX:ArchiveClassesAtExit={archive}"
    subprocess.run(
        [sys.executable, "-m", "backfill_engine.spark.app_cds", str(archive.parent)],
        input=json.dumps({**conf, JAVA_OPTIONS: options}).encode(),
        capture_output=True,
        check=False,
        timeout=_TRAINING_SECONDS,
    )


def train(spark: SparkSession, folder: Path) -> None:
    """Lands lines, parses, measures, publishes, reads back and aggregates them."""
    landed, table = str(folder / "landed"), f"delta.`{folder / 'table'}`"
    rows = spark.range(_ROWS).selectExpr("id", "id % 2 day", "string(id) name", "id / 3 share")
    rows.selectExpr("to_json(struct(*)) value").write.option("compression", "gzip").text(landed)
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, day BIGINT NOT NULL, name STRING, share DOUBLE) "
        "USING DELTA PARTITIONED BY (day) TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')"
    )
    lines = spark.read.text(landed).where(F.col("value").rlike(r"\S"))
    fields = F.from_json("value", "id string, day string, name string, share string")
    parsed = lines.select(
        F.json_object_keys("value").alias("keys"),
        *(fields[name].try_cast(type_).alias(name) for name, type_ in rows.dtypes),
    )
    latest = F.row_number().over(Window.partitionBy("id").orderBy(F.desc("share")))
    parsed = parsed.withColumn("latest", latest).where("latest = 1")
    frame = parsed.repartition("day").persist()
    frame.groupBy("day").agg(
        F.sum(F.shiftright(F.xxhash64("id", "name"), 32)),
        F.expr("count_if(share > 1)"),
        F.collect_set("keys"),
    ).collect()
    (
        frame.select(*rows.columns)
        .write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", "day >= 0 AND day < 2")
        .option("userMetadata", "training")
        .save(str(folder / "table"))
    )
    frame.unpersist()
    published = spark.read.format("delta").option("versionAsOf", 1).load(str(folder / "table"))
    published.where("day >= 1").groupBy("day").agg(F.avg("share")).join(rows, "day").collect()


if __name__ == "__main__":
    conf = json.load(sys.stdin)
    start_context(conf)
    session = SparkSession.builder.config(map=conf).getOrCreate()
    train(session, Path(sys.argv[1]))
    session.stop()
