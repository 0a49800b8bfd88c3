"""Trips of taxis: a file a month → staging/trips by day → features/zone_weeks, of 7 days.

Their zones are a table that another program keeps; with it, features/borough_days.
"""

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_engine import ExternalDelta, ParquetFiles, required, sql_table, table, window
from backfill_engine.rules import RowCount

FILES = ParquetFiles(
    "trips/yellow_tripdata_{partition:%Y-%m}.parquet", where="tpep_pickup_datetime"
)
ZONES = ExternalDelta(
    "theirs",
    "zones",
    columns=(required("zone", "INT"), required("borough", "STRING")),
    location=str(Path(__file__).parents[1] / "data" / "zones"),
)


@table("staging/trips", partition_by="pickup_date", inputs={"trips": FILES}, rules=[RowCount()])
def staging_trips(trips: DataFrame) -> DataFrame:
    """One row per trip."""
    return trips.select("pickup_date", F.col("PULocationID").alias("zone"), "total_amount")


@table("features/zone_weeks", partition_by="day", inputs={"trips": window(staging_trips, days=7)})
def zone_weeks(trips: DataFrame) -> DataFrame:
    """One row per day and zone: its trips of the seven days up to this day."""
    return trips.groupBy("day", "zone").agg(
        F.count("*").alias("trips"), F.sum("total_amount").alias("total_amount")
    )


borough_days = sql_table(
    "features/borough_days",
    partition_by="pickup_date",
    inputs={"trips": staging_trips, "zones": ZONES},
    sql="""
        SELECT pickup_date, borough, count(*) AS trips
        FROM trips JOIN zones ON trips.zone = zones.zone
        GROUP BY pickup_date, borough
    """,
)
