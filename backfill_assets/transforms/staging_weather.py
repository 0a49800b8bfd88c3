"""`raw/weather` → `staging/weather`: every hour of a day at every station, reported or not."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.weather import FASTEST_WIND, MEASURED, STAGING_WEATHER, STATIONS
from backfill_assets.transforms.latest import keep_latest
from backfill_engine.audit_columns import DUPLICATES, IDENTICAL


def build_staging_weather(raw: DataFrame, days: DataFrame) -> DataFrame:
    """Fills in the hours that nothing reported; winds that can't be are null.

    Of several reports of one hour the one of the later file (by name) counts, then the greater by
    its columns.

    Args:
        raw: columns of `RAW_WEATHER`, of the days.
        days: `weather_date` DATE, the days to make; one row each.

    Returns:
        The columns of `STAGING_WEATHER`, and the audit columns `_duplicates` and `_identical`: for
        each day 24 rows a station.
    """
    midnight = F.col("weather_date").cast("timestamp")
    last = midnight + F.make_dt_interval(hours=F.lit(23))
    all_hours = F.sequence(midnight, last, F.make_dt_interval(hours=F.lit(1)))
    hours = days.select("weather_date", F.explode(all_hours).alias("hour")).withColumn(
        "origin", F.explode(F.array(*(F.lit(station) for station in STATIONS)))
    )
    names = [column.name for column in MEASURED]
    hourly = raw.select("origin", F.col("time_hour").alias("hour"), "source_file", *names)
    reports = keep_latest(hourly, ("origin", "hour"), ("source_file",)).select(
        "*", F.col("hour").alias("observed_at"), (F.col(DUPLICATES) + 1).alias("reports")
    )
    possible = {
        name: F.when(F.col(name).between(0, FASTEST_WIND), F.col(name))
        for name in ("wind_speed", "wind_gust")
    }
    return (
        hours.join(reports, ["origin", "hour"], "left")
        .withColumn("reports", F.coalesce("reports", F.lit(0)))
        .withColumns(possible)
        .select(*STAGING_WEATHER.column_names, DUPLICATES, IDENTICAL)
    )
