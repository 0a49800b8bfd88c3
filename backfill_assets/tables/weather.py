"""The weather pipeline: hourly reports, whole days of them, and what a flight departed into."""

from backfill_assets.tables.flights import (
    AIRPORTS,
    CANCELLED_RISE,
    CARRIERS,
    DELAY_DRIFT,
    DELAY_EDGES,
    DELAYS_SWING,
    ROWS_TO_MEDIAN,
    STORMS_CANCEL,
)
from backfill_assets.tables.owners import OWNERS
from backfill_engine import Column, Table, required
from backfill_engine.grains import HOURS
from backfill_engine.rules import (
    Agreement,
    Drift,
    Nulls,
    NullSpike,
    Reconciled,
    Rejects,
    RowCount,
    Values,
    Variation,
)

STATIONS = AIRPORTS
"""Airports of which a report is due each hour."""

AS_OF_HOURS = 3
"""A flight's weather is the latest report of the hours before, its own included: so many."""

FASTEST_WIND = 200.0
"""Miles per hour; more is a fault of the instrument."""

MEASURED = (
    Column("temp", "DOUBLE", "Temperature in °F"),
    Column("dewp", "DOUBLE", "Dew point in °F"),
    Column("humid", "DOUBLE", "Relative humidity in percent"),
    Column("wind_dir", "DOUBLE", "Direction of the wind in degrees"),
    Column("wind_speed", "DOUBLE", "Speed of the wind in miles per hour"),
    Column("wind_gust", "DOUBLE", "Speed of gusts in miles per hour; null if there were none"),
    Column("precip", "DOUBLE", "Precipitation of the hour in inches"),
    Column("pressure", "DOUBLE", "Pressure at sea level in millibars"),
    Column("visib", "DOUBLE", "Visibility in miles"),
)

REPORT_FIELDS = (
    required("origin", "STRING", "Airport"),
    required("time_hour", "TIMESTAMP", "Hour of the report, an instant"),
    Column("year", "INT", "Year, local"),
    Column("month", "INT", "Month, local"),
    Column("day", "INT", "Day, local"),
    Column("hour", "INT", "Hour of the day, local"),
    *MEASURED,
)

_VAPOUR = "17.625 * ({0} - 32) / ({0} - 32 + 437.472)"
"""Exponent of the vapour pressure at a temperature in °F (Magnus; O. Alduchov, 1996)."""

# The weather of one day is no sample of the year's: its PSI is 5 to 11 on clean days, and that of
# another unit no more. So values are held against physics and each other, not against other days.
MEASURED_RULES = (
    Agreement(
        "humid",
        f"abs(100 * exp({_VAPOUR.format('dewp')} - {_VAPOUR.format('temp')}) - humid) <= 10",
        at_most=0.1,
    ),
    Agreement("wind_gust", "wind_gust >= wind_speed"),
    Values("pressure", 870, 1_085, only_warns="no feature reads it"),
    # On some days there are no gusts, or a station tells no pressure.
    NullSpike(columns=("wind_gust", "pressure"), rise=1),
    *(
        Variation(column)
        for column in ("temp", "dewp", "humid", "wind_dir", "wind_speed", "pressure")
    ),
)
"""What staging and features demand alike."""

RAW_WEATHER = Table(
    owners=OWNERS,
    layer="raw",
    name="weather",
    partition_by="landing_hour",
    grain=HOURS,
    folder_by="landing_date",
    columns=(
        required("landing_hour", "TIMESTAMP", "Hour in which the report landed, UTC"),
        required("landing_date", "DATE", "Its day, UTC"),
        *REPORT_FIELDS,
        required("source_file", "STRING", "Landing file, below the landing root"),
    ),
    rules=(
        RowCount(at_most=len(STATIONS)),
        Reconciled(),
        Rejects(at_most=0.01),
        Values("temp", -60, 140),
        Values("humid", 0, 100),
        Values("wind_dir", 0, 360),
        Values("wind_speed", 0, FASTEST_WIND, only_warns="staging nulls what can't be"),
        Values("visib", 0, 100),
    ),
)

STAGING_WEATHER = Table(
    owners=OWNERS,
    layer="staging",
    name="weather",
    partition_by="weather_date",
    columns=(
        required("weather_date", "DATE", "Day of the hour, UTC"),
        required("origin", "STRING", "Airport"),
        required("hour", "TIMESTAMP", "The hour, an instant"),
        Column("observed_at", "TIMESTAMP", "As `hour`; null if no report of it landed"),
        required("reports", "BIGINT", "Landed reports that this row is of, 0 for a missing hour"),
        *MEASURED,
    ),
    natural_key=("origin", "hour"),
    rules=(
        RowCount(at_least=24 * len(STATIONS), at_most=24 * len(STATIONS)),
        Reconciled(total_of="reports"),
        # Up to 28 % of a day's hours are missing; a day with half of them is of no use.
        Nulls(
            "observed_at", at_most=0.3, only_warns="a station that is silent for a day is a third"
        ),
        Nulls("temp", at_most=0.5),
        # Missing hours, too, and a silent station.
        NullSpike(rise=0.35),
        *MEASURED_RULES,
    ),
)

DEPARTURE_CONDITIONS = Table(
    owners=OWNERS,
    layer="features",
    name="departure_conditions",
    partition_by="flight_date",
    columns=(
        required("flight_date", "DATE", "Day of the scheduled local departure"),
        required("carrier", "STRING", "Two-letter carrier code"),
        required("flight", "INT", "Flight number"),
        required("origin", "STRING", "Airport of departure"),
        Column("scheduled_departure", "TIMESTAMP", "Scheduled departure, an instant"),
        Column("dep_delay", "INT", "Departure delay in minutes; null if cancelled"),
        required("cancelled", "BOOLEAN", "True if the flight never departed"),
        Column("observed_at", "TIMESTAMP", "Hour of the report; null if there is none to use"),
        *MEASURED,
    ),
    natural_key=("flight_date", "carrier", "flight", "origin"),
    rules=(
        RowCount(ratio=ROWS_TO_MEDIAN),
        Reconciled(),
        Nulls("observed_at", at_most=0.5),
        # At most 5 % of a day's flights, 15 % for the direction of light winds.
        *(
            Nulls(column, at_most=0.25, only_warns="stations fail, and the rest is of use")
            for column in ("temp", "dewp", "humid", "wind_dir", "wind_speed", "precip", "visib")
        ),
        Agreement(
            "observed_at",
            "observed_at <= scheduled_departure"
            f" AND scheduled_departure < observed_at + INTERVAL {AS_OF_HOURS} HOURS",
        ),
        *MEASURED_RULES,
        NullSpike(columns=("dep_delay",), rise=CANCELLED_RISE, only_warns=STORMS_CANCEL),
        Drift("origin", AIRPORTS),
        Drift("carrier", CARRIERS),
        Drift("dep_delay", DELAY_EDGES, warn=DELAY_DRIFT, only_warns=DELAYS_SWING),
    ),
)
