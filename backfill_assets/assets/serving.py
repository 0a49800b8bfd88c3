"""Serving: a version of features/carrier_delays → serving/carrier_delays → training examples."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from backfill_assets.tables.flights import STAGING_FLIGHTS
from backfill_assets.tables.serving import SERVED_CARRIER_DELAYS, TRAINING_EXAMPLES
from backfill_assets.transforms.training_examples import build_training_examples
from backfill_engine import InputWindow, Upstream, map_offsets, serve_versions, table_asset

served_carrier_delays = serve_versions(SERVED_CARRIER_DELAYS)


def _count_departed(window: InputWindow) -> Mapping[str, int]:
    flights = window.read(STAGING_FLIGHTS, column="flight_date")
    return window.count_by(flights.where("NOT cancelled"), "flight_date")


@table_asset(
    TRAINING_EXAMPLES,
    inputs=[
        Upstream(STAGING_FLIGHTS),
        # The day before, where there is one: the first day of the data has no features.
        Upstream(SERVED_CARRIER_DELAYS, map_offsets(start=-1, end=-1), guards=True),
    ],
    count_source=_count_departed,
)
def training_examples(window: InputWindow) -> DataFrame:
    """One row per flight that departed, with the served features as of the day before.

    Labels are the arrival delay, and whether that is late. Point-in-time correct: day D knows
    features up to D-1 only, also where many days are computed together.
    """
    flights = window.read(STAGING_FLIGHTS, column="flight_date")
    features = window.read(SERVED_CARRIER_DELAYS, column="flight_date", days_before=1)
    return build_training_examples(flights, features)
