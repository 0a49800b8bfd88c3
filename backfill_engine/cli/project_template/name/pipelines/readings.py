"""How each table is computed: from a window of pinned inputs to rows, plain PySpark."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_engine import (
    InputWindow,
    JsonLanding,
    Upstream,
    build_landed_rows,
    table_asset,
)
from {{name}}.tables import BRONZE_READINGS, METER_DAYS, READING_FIELDS, SILVER_READINGS


@table_asset(BRONZE_READINGS, landing=JsonLanding("readings", READING_FIELDS))
def bronze_readings(window: InputWindow) -> DataFrame:
    """One row per landed reading; a partition is the day on which it landed."""
    return build_landed_rows(
        window.read_landing(), BRONZE_READINGS, READING_FIELDS, extra_fields=window.extra_fields
    )


@table_asset(SILVER_READINGS, inputs=[Upstream(BRONZE_READINGS)])
def silver_readings(window: InputWindow) -> DataFrame:
    """One row per reading; what was not legible counts as nothing."""
    return fill_litres(window.read(BRONZE_READINGS, column="landing_date"))


@table_asset(METER_DAYS, inputs=[Upstream(SILVER_READINGS)])
def meter_days(window: InputWindow) -> DataFrame:
    """One row per meter and day."""
    return sum_days(window.read(SILVER_READINGS, column="landing_date"))


def fill_litres(readings: DataFrame) -> DataFrame:
    """Fills in 0 where litres are null."""
    litres = F.coalesce("litres", F.lit(0.0)).alias("litres")
    return readings.select("landing_date", "meter", "read_at", litres)


def sum_days(readings: DataFrame) -> DataFrame:
    """Sums readings to one row per meter and day."""
    return readings.groupBy("landing_date", "meter").agg(
        F.count("*").alias("readings"), F.sum("litres").alias("litres")
    )
