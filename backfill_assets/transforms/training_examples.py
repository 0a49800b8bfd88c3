"""`staging/flights`, `serving/carrier_delays` → `serving/training_examples`."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.flights import LATE_MINUTES
from backfill_assets.tables.serving import FEATURE_NAMES, TRAINING_EXAMPLES


def build_training_examples(flights: DataFrame, features: DataFrame) -> DataFrame:
    """Joins each flight that departed with its carrier's features as of the day before.

    No feature knows anything of the flight's own day, however many days are joined at once.

    Args:
        flights: columns of `STAGING_FLIGHTS`.
        features: columns of `SERVED_CARRIER_DELAYS`, of the day before each day of `flights`;
            further days change nothing.

    Returns:
        The columns of `TRAINING_EXAMPLES`, a row for each flight that wasn't cancelled. Without a
        row of its carrier and origin the features are null, and `features_date` too where the day
        before has no features at all.
    """
    # Each day's features are those of the flights of the next.
    for_day = F.date_add("flight_date", 1)
    known_days = features.select(
        for_day.alias("flight_date"), F.col("flight_date").alias("features_date")
    ).distinct()
    known = features.select(for_day.alias("flight_date"), "carrier", "origin", *FEATURE_NAMES)
    return (
        flights.where(~F.col("cancelled"))
        .withColumn("late", F.col("arr_delay") > LATE_MINUTES)
        .join(F.broadcast(known_days), "flight_date", "left")
        .join(known, ["flight_date", "carrier", "origin"], "left")
        .select(*TRAINING_EXAMPLES.column_names)
    )
