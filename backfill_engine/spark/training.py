"""A session that does a bit of all that range runs do, for what Java learns of it; a process.

Called with a folder for its files; the session's settings are its input, a JSON object.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from backfill_engine.spark.head_start import use_java

_ROWS = 100


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
    with use_java(conf):
        session = SparkSession.builder.config(map=conf).getOrCreate()
    train(session, Path(sys.argv[1]))
    session.stop()
