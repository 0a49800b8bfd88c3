"""Readings of meters, daily: bronze/readings → silver/readings → gold/meter_days."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_engine import (
    InputWindow,
    JsonLanding,
    Table,
    Upstream,
    build_landed_rows,
    required,
    table_asset,
)
from backfill_engine.rules import Reconciled, Rejects, RowCount, Values

READING_FIELDS = (
    required("meter", "INT", "Number of the meter"),
    required("read_at", "TIMESTAMP", "When it was read, an instant"),
    required("litres", "DOUBLE", "Litres since the reading before"),
)

BRONZE_READINGS = Table(
    layer="bronze",
    name="readings",
    partition_by="landing_date",
    columns=(
        required("landing_date", "DATE", "Day on which the reading landed"),
        *READING_FIELDS,
        required("source_file", "STRING", "Landing file, below the landing root"),
    ),
    rules=(RowCount(), Reconciled(), Rejects(at_most=0.01)),
    owners=("team:acme",),
)

SILVER_READINGS = Table(
    layer="silver",
    name="readings",
    partition_by="landing_date",
    columns=(required("landing_date", "DATE", "Day"), *READING_FIELDS),
    natural_key=("meter", "read_at"),
    rules=(RowCount(), Reconciled(), Values("litres", 0, 1_000)),
    owners=("team:acme",),
)

METER_DAYS = Table(
    layer="gold",
    name="meter_days",
    partition_by="landing_date",
    columns=(
        required("landing_date", "DATE", "Day"),
        required("meter", "INT", "Number of the meter"),
        required("readings", "BIGINT", "Readings of the day"),
        required("litres", "DOUBLE", "Litres that they add up to"),
    ),
    natural_key=("landing_date", "meter"),
    rules=(RowCount(), Reconciled(total_of="readings")),
    owners=("team:acme",),
)


@table_asset(BRONZE_READINGS, landing=JsonLanding("readings", READING_FIELDS))
def bronze_readings(window: InputWindow) -> DataFrame:
    """One row per landed reading; a partition is the day on which it landed."""
    return build_landed_rows(
        window.read_landing(), BRONZE_READINGS, READING_FIELDS, extra_fields=window.extra_fields
    )


@table_asset(SILVER_READINGS, inputs=[Upstream(BRONZE_READINGS)])
def silver_readings(window: InputWindow) -> DataFrame:
    """One row per reading."""
    readings = window.read(BRONZE_READINGS, column="landing_date")
    return readings.select("landing_date", "meter", "read_at", "litres")


@table_asset(METER_DAYS, inputs=[Upstream(SILVER_READINGS)])
def meter_days(window: InputWindow) -> DataFrame:
    """One row per meter and day."""
    readings = window.read(SILVER_READINGS, column="landing_date")
    return readings.groupBy("landing_date", "meter").agg(
        F.count("*").alias("readings"), F.sum("litres").alias("litres")
    )
