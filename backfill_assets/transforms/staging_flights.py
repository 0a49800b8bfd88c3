"""`raw/flights` → `staging/flights`: one typed row a flight, as last reported."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.flights import STAGING_FLIGHTS
from backfill_assets.transforms.latest import keep_latest
from backfill_engine.audit_columns import DUPLICATES, IDENTICAL

AIRPORTS_TIME_ZONE = "America/New_York"
"""All origins are New York's, and local times in the source are theirs."""


def build_staging_flights(raw: DataFrame) -> DataFrame:
    """Keeps the latest landed record of each flight.

    Of two records that landed on the same day the one of the later file (by name) wins, then the
    greater by its columns in order.

    Args:
        raw: columns of `RAW_FLIGHTS`.

    Returns:
        The columns of `STAGING_FLIGHTS`, and the audit columns `_duplicates` and `_identical`;
        records that landed before their flight date are not in it.
    """
    landed = raw.where(F.col("landing_date") >= F.col("flight_date"))
    latest = keep_latest(landed, STAGING_FLIGHTS.natural_key, ("landing_date", "source_file"))
    local_departure = F.try_make_timestamp("year", "month", "day", "hour", "minute", F.lit(0))
    return latest.select(
        "flight_date",
        "carrier",
        "flight",
        "origin",
        "dest",
        "tailnum",
        F.to_utc_timestamp(local_departure, AIRPORTS_TIME_ZONE).alias("scheduled_departure"),
        F.col("dep_time").isNull().alias("cancelled"),
        "dep_time",
        "sched_dep_time",
        "dep_delay",
        "arr_time",
        "sched_arr_time",
        "arr_delay",
        "air_time",
        "distance",
        "hour",
        "minute",
        "landing_date",
        "source_file",
        DUPLICATES,
        IDENTICAL,
    )
