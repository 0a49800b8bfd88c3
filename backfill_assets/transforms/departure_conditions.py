"""`staging/flights`, `staging/weather` → `features/departure_conditions`."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from backfill_assets.tables.weather import AS_OF_HOURS, DEPARTURE_CONDITIONS, MEASURED


def build_departure_conditions(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Joins each flight with the latest report as of its scheduled departure, never a later one.

    Args:
        flights: columns of `STAGING_FLIGHTS`.
        weather: columns of `STAGING_WEATHER`, without gaps from two hours before the first flight
            to the hour of the last.

    Returns:
        The columns of `DEPARTURE_CONDITIONS`, a row for each flight. A report is used for flights
        scheduled from its hour on and for less than three hours more; without one its columns are
        null.
    """
    names = ["observed_at", *(column.name for column in MEASURED)]
    report = F.when(F.col("observed_at").isNotNull(), F.struct(*names))
    recent = Window.partitionBy("origin").orderBy("hour").rowsBetween(1 - AS_OF_HOURS, 0)
    known = weather.select(
        F.col("origin").alias("station"),
        F.col("hour").alias("known_at"),
        F.last(report, ignorenulls=True).over(recent).alias("report"),
    )
    is_as_of = (F.col("origin") == F.col("station")) & (
        F.date_trunc("hour", "scheduled_departure") == F.col("known_at")
    )
    return flights.join(known, is_as_of, "left").select(
        *(name for name in DEPARTURE_CONDITIONS.column_names if name not in names),
        *(F.col("report").getField(name).alias(name) for name in names),
    )
