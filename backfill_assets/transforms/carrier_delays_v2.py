"""`staging/flights` → `features/carrier_delays_v2`: delays of late, the last days' above all.

It shares nothing with `carrier_delays`, so that one version stays what it is when the other's
logic changes.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.flights import DAY_WEIGHTS, LATE_MINUTES, LEAST_DELAY, MOST_DELAY


def build_carrier_delays_v2(flights: DataFrame) -> DataFrame:
    """Aggregates flights over trailing windows of seven days, wherever a window has a flight.

    Counts are of flights, as in the version before; means and the share weigh a flight by how many
    days before the window's last it was, and delays are clipped. All sums are integers and divided
    last, so that no partitioning changes a bit of the means.

    Args:
        flights: columns of `STAGING_FLIGHTS`.

    Returns:
        The columns of `CARRIER_DELAYS_V2`, for windows that end from the first day of `flights` to
        six days after the last; a window is complete only if `flights` holds all its days.
    """
    daily = flights.groupBy("flight_date", "carrier", "origin").agg(
        F.count("*").alias("flights"),
        F.count_if("cancelled").alias("cancelled"),
        F.sum(_clip("dep_delay")).alias("dep_delay_minutes"),
        F.count("dep_delay").alias("departed"),
        F.sum(_clip("arr_delay")).alias("arr_delay_minutes"),
        F.count("arr_delay").alias("arrived"),
        F.count_if(F.col("arr_delay") > LATE_MINUTES).alias("late"),
    )
    # A struct for each window that a day is in: its last day, and the weight of the day there.
    windows = F.array(
        *(
            F.struct(
                F.date_add("flight_date", days).alias("last_day"), F.lit(weight).alias("weight")
            )
            for days, weight in enumerate(DAY_WEIGHTS)
        )
    )
    return (
        daily.withColumn("window", F.explode(windows))
        .groupBy(F.col("window.last_day").alias("flight_date"), "carrier", "origin")
        .agg(
            F.sum("flights").alias("flights_7d"),
            F.sum("cancelled").alias("cancelled_7d"),
            _weighted_ratio("dep_delay_minutes", "departed").alias("mean_dep_delay_7d"),
            _weighted_ratio("arr_delay_minutes", "arrived").alias("mean_arr_delay_7d"),
            _weighted_ratio("late", "arrived").alias("late_share_7d"),
        )
    )


def _clip(delay: str) -> Column:
    """Moves minutes beyond the bounds to the nearer one; null stays null."""
    bounded = F.least(F.greatest(F.col(delay), F.lit(LEAST_DELAY)), F.lit(MOST_DELAY))
    # Spark's least and greatest skip nulls.
    return F.when(F.col(delay).isNotNull(), bounded)


def _weighted_ratio(numerator: str, denominator: str) -> Column:
    """Divides the weighted sum of one column by that of another; null where the latter is 0."""
    weight = F.col("window.weight")
    return F.try_divide(F.sum(F.col(numerator) * weight), F.sum(F.col(denominator) * weight))
