"""Flights, daily: raw/flights → staging/flights → features/carrier_delays, in two versions."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.flights import (
    CARRIER_DELAYS,
    CARRIER_DELAYS_V2,
    FLIGHT_FIELDS,
    LANDING_DAYS,
    RAW_FLIGHTS,
    STAGING_FLIGHTS,
    WINDOW_DAYS,
)
from backfill_assets.tables.flights_history import FLIGHTS_HISTORY
from backfill_assets.transforms.carrier_delays import build_carrier_delays
from backfill_assets.transforms.carrier_delays_v2 import build_carrier_delays_v2
from backfill_assets.transforms.raw_flights import build_raw_flights
from backfill_assets.transforms.staging_flights import build_staging_flights
from backfill_engine import InputWindow, JsonLanding, Required, Upstream, map_offsets, table_asset


@table_asset(RAW_FLIGHTS, landing=JsonLanding("flights", FLIGHT_FIELDS), history=FLIGHTS_HISTORY)
def raw_flights(window: InputWindow) -> DataFrame:
    """One row per landed record; a partition is the day on which its records landed.

    Everything that landed, typed by a declared schema, with the flight's date, the landing day and
    the source file. Nothing is dropped and nothing is deduplicated.
    """
    return build_raw_flights(
        window.read_landing(),
        begin=window.find_begin(),
        extra_fields=window.extra_fields,
    )


def _read_reported(window: InputWindow) -> DataFrame:
    """What raw holds of the flights of the window's days, landed on their day or later."""
    raw = window.read(RAW_FLIGHTS, column="flight_date")
    first_day = window.slices[0].start
    # The first condition is implied by the second, but only it lets Delta skip older files.
    return raw.where(F.col("landing_date") >= F.lit(first_day)).where(
        F.col("landing_date") >= F.col("flight_date")
    )


@table_asset(
    STAGING_FLIGHTS,
    # A flight's records land on its day or in the two days after; some land later still.
    inputs=[
        Upstream(
            RAW_FLIGHTS,
            map_offsets(end=LANDING_DAYS - 1),
            required=Required.OWN,
            rows_for="flight_date",
        )
    ],
    count_source=lambda window: window.count_by(_read_reported(window), "flight_date"),
)
def staging_flights(window: InputWindow) -> DataFrame:
    """One row per flight; a partition is the day of the scheduled local departure.

    Of the records that raw holds for a flight, landed on its day or later, the latest landed wins.
    They are due within two days, but later ones count too, in the next run of the partition.
    """
    return build_staging_flights(_read_reported(window))


# Day D needs D-6 … D, as far as the data reaches back.
_WEEK_OF_FLIGHTS = Upstream(STAGING_FLIGHTS, map_offsets(start=1 - WINDOW_DAYS))


def _read_week(window: InputWindow) -> DataFrame:
    return window.read(STAGING_FLIGHTS, column="flight_date", days_before=WINDOW_DAYS - 1)


def _count_week(window: InputWindow) -> Mapping[str, int]:
    return window.count_input(STAGING_FLIGHTS, before=WINDOW_DAYS - 1)


@table_asset(CARRIER_DELAYS, inputs=[_WEEK_OF_FLIGHTS], count_source=_count_week)
def carrier_delays(window: InputWindow) -> DataFrame:
    """One row per carrier and origin that had a flight in the week ending with the partition's day.

    Flight counts, cancellations, mean delays and the share of late arrivals over those days; the
    window is cut where the data begins.
    """
    return window.keep_partitions(build_carrier_delays(_read_week(window)))


@table_asset(CARRIER_DELAYS_V2, inputs=[_WEEK_OF_FLIGHTS], count_source=_count_week)
def carrier_delays_v2(window: InputWindow) -> DataFrame:
    """One row per carrier and origin that had a flight in the week ending with the partition's day.

    The columns and keys of version 1, with another logic: delays are clipped, and the last days
    weigh most in the means and the share of late arrivals.
    """
    return window.keep_partitions(build_carrier_delays_v2(_read_week(window)))
