"""What the log of a new table notes of its files, as a second reader sees it."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from backfill_engine.lake.stored_declarations import build_table_properties
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import create_table
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine_tests.lake.readings import READINGS

STRANGE = Table(
    layer="raw",
    name="strange",
    partition_by="day",
    columns=(
        required("day", "DATE", "Day of the reading"),
        required("sensor-no", "INT", "Number of the sensor"),
        required("größe", "STRING", "Unit of the reading"),
        required("indoors", "BOOLEAN", "Whether the sensor hangs in a room"),
        Column("read_at", "TIMESTAMP", "When it was read"),
        Column("value", "STRING", "What the sensor's display said"),
    ),
    natural_key=("day", "sensor-no", "größe", "indoors"),
)


def list_files(warehouse: Warehouse, table: Table) -> list[dict[str, Any]]:
    return pa.table(warehouse.open(table).get_add_actions(flatten=True)).to_pylist()


@pytest.mark.only_spark
def test_statistics_are_of_keys_and_times_and_of_nothing_else(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    log = read_log(warehouse, STRANGE)
    create_table(spark, log)
    row = "DATE'2013-01-01', {}, 'cm', true, TIMESTAMP'2013-01-01 08:00', 'x'"
    values = ", ".join(f"({row.format(number)})" for number in (3, 5))
    spark.sql(f"INSERT INTO delta.`{log.uri}` SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
    (file,) = list_files(warehouse, STRANGE)
    noted = {name: value for name, value in file.items() if name.startswith(("min.", "max."))}
    assert {name: noted[name] for name in ("min.sensor-no", "max.sensor-no")} == {
        "min.sensor-no": 3,
        "max.sensor-no": 5,
    }
    assert noted["min.größe"] == "cm"
    assert noted["min.read_at"] is not None
    assert not {"min.value", "min.indoors"} & set(noted)
    assert file["num_records"] == 2


def test_a_table_without_key_and_times_notes_row_counts_only(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    table = replace(READINGS, natural_key=())
    assert (
        build_table_properties(table, retention_days=90)["delta.dataSkippingNumIndexedCols"] == "0"
    )
    log = read_log(warehouse, table)
    create_table(spark, log)
    frame = spark.sql("SELECT DATE'2013-01-01' AS day, 7 AS id, 'x' AS value")
    frame.write.format("delta").mode("append").save(log.uri)
    (file,) = list_files(warehouse, table)
    assert file["num_records"] == 1
    assert not [name for name in file if name.startswith(("min.", "max."))]
