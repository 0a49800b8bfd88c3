"""`staging/flights` → `features/carrier_delays`: a carrier at an airport over seven days."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.flights import LATE_MINUTES, WINDOW_DAYS


def build_carrier_delays(flights: DataFrame) -> DataFrame:
    """Aggregates flights over trailing windows of seven days, wherever a window has a flight.

    Days are summed up first and each sum then counts for seven windows. All sums are integers and
    divided last, so that no partitioning changes a bit of the means.

    Args:
        flights: columns of `STAGING_FLIGHTS`.

    Returns:
        The columns of `CARRIER_DELAYS`, for windows that end from the first day of `flights` to six
        days after the last; a window is complete only if `flights` holds all its days.
    """
    daily = flights.groupBy("flight_date", "carrier", "origin").agg(
        F.count("*").alias("flights"),
        F.count_if("cancelled").alias("cancelled"),
        F.sum("dep_delay").alias("dep_delay_minutes"),
        F.count("dep_delay").alias("departed"),
        F.sum("arr_delay").alias("arr_delay_minutes"),
        F.count("arr_delay").alias("arrived"),
        F.count_if(F.col("arr_delay") > LATE_MINUTES).alias("late"),
    )
    last_days = F.sequence("flight_date", F.date_add("flight_date", WINDOW_DAYS - 1))
    return (
        daily.withColumn("flight_date", F.explode(last_days))
        .groupBy("flight_date", "carrier", "origin")
        .agg(
            F.sum("flights").alias("flights_7d"),
            F.sum("cancelled").alias("cancelled_7d"),
            _ratio("dep_delay_minutes", "departed").alias("mean_dep_delay_7d"),
            _ratio("arr_delay_minutes", "arrived").alias("mean_arr_delay_7d"),
            _ratio("late", "arrived").alias("late_share_7d"),
        )
    )


def _ratio(numerator: str, denominator: str) -> Column:
    """Divides the sum of one column by that of another; null where the latter is 0."""
    return F.try_divide(F.sum(numerator), F.sum(denominator))
