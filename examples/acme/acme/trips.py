"""Trips of taxis: a file a month → staging/trips by day → features/zone_weeks, of 7 days."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_engine import ParquetFiles, table, window
from backfill_engine.rules import RowCount

FILES = ParquetFiles(
    "trips/yellow_tripdata_{partition:%Y-%m}.parquet", where="tpep_pickup_datetime"
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
