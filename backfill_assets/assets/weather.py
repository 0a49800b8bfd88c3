"""Weather, hourly and daily: raw/weather → staging/weather → features/departure_conditions."""

from pyspark.sql import DataFrame

from backfill_assets.tables.flights import STAGING_FLIGHTS
from backfill_assets.tables.weather import (
    DEPARTURE_CONDITIONS,
    RAW_WEATHER,
    REPORT_FIELDS,
    STAGING_WEATHER,
)
from backfill_assets.transforms.departure_conditions import build_departure_conditions
from backfill_assets.transforms.raw_weather import build_raw_weather
from backfill_assets.transforms.staging_weather import build_staging_weather
from backfill_engine import InputWindow, JsonLanding, Required, Upstream, map_offsets, table_asset


@table_asset(RAW_WEATHER, landing=JsonLanding("weather", REPORT_FIELDS))
def raw_weather(window: InputWindow) -> DataFrame:
    """One row per landed report; a partition is the hour (UTC) in which it landed.

    Hours are the partitions, days the folders: a month of hours is one commit and 31 files.
    """
    return build_raw_weather(window.read_landing(), extra_fields=window.extra_fields)


@table_asset(
    STAGING_WEATHER,
    inputs=[Upstream(RAW_WEATHER, map_offsets(), required=Required.ANY)],
    count_source=lambda window: window.count_by(
        window.read(RAW_WEATHER, column="landing_date"), "landing_date"
    ),
)
def staging_weather(window: InputWindow) -> DataFrame:
    """One row per station and hour, reported or not; a partition is a day (UTC).

    Goes as soon as one of its hours is there. Hours without a report are rows of nulls; over 30 %
    of them are a warning.
    """
    reports = window.read(RAW_WEATHER, column="landing_date")
    return build_staging_weather(reports, window.list_partitions())


@table_asset(
    DEPARTURE_CONDITIONS,
    inputs=[
        Upstream(STAGING_FLIGHTS),
        # A local day of New York ends in the early hours (UTC) of the next.
        Upstream(STAGING_WEATHER, map_offsets(end=1), required=Required.OWN),
    ],
    count_source=lambda window: window.count_input(STAGING_FLIGHTS),
)
def departure_conditions(window: InputWindow) -> DataFrame:
    """One row per flight with the weather as of its scheduled departure; a partition is its day.

    The latest report of the three hours up to the departure's, never a later one.
    """
    flights = window.read(STAGING_FLIGHTS, column="flight_date")
    weather = window.read(STAGING_WEATHER, column="weather_date", days_after=1)
    return build_departure_conditions(flights, weather)
