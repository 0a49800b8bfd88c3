"""Landed lines become rows of a raw table; a fault rejects a line whose fields are right."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from backfill_engine.audit_columns import REJECT_REASON, REJECTED_LINE
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine.transforms.landed_rows import build_landed_rows

FIELDS = (required("id", "INT", "Number"), Column("name", "STRING", "Name"))
ROWS = Table(
    layer="raw",
    name="rows",
    partition_by="landing_date",
    columns=(
        required("landing_date", "DATE", "Day"),
        *FIELDS,
        required("doubled", "INT", "Twice the number"),
    ),
)


def test_faults_reject_and_lines_are_kept_of_rejected_records_only(spark: SparkSession) -> None:
    landed = ['{"id": 1, "name": "x", "more": 7}', '{"id": 2}', '{"name": "x"}', '{"id": 3}']
    lines = spark.createDataFrame(
        [(partition,) for partition in landed], "value string"
    ).withColumn("landing_date", F.to_date(F.lit("2013-01-01")))
    found = build_landed_rows(
        lines,
        ROWS,
        FIELDS,
        extra_fields=["more"],
        derived={"doubled": F.col("id") * 2},
        fault=F.when(F.col("doubled") == 4, "four is too much"),
    )
    assert found.columns[:5] == [*ROWS.column_names, "more"]
    assert {
        (row.id, row.doubled, row.more, row[REJECT_REASON], row[REJECTED_LINE])
        for row in found.collect()
    } == {
        (1, 2, "7", None, None),
        (2, 4, None, "four is too much", '{"id": 2}'),
        (None, None, None, "`id` is missing", '{"name": "x"}'),
        (3, 6, None, None, None),
    }
