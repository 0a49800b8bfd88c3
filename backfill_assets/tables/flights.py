"""The flights pipeline: what lands, the typed rows, and the weekly delay features."""

from backfill_assets.rules.drift import Drift
from backfill_assets.rules.nulls import Nulls
from backfill_assets.rules.reconciled import Reconciled
from backfill_assets.rules.rejects import Rejects
from backfill_assets.rules.row_count import RowCount
from backfill_assets.rules.values import Values
from backfill_assets.tables.declarations import Column, Table, required

WINDOW_DAYS = 7
"""Days that a row of `features/carrier_delays` looks back over, its own included."""

LANDING_DAYS = 3
"""Days within which a flight's records are due to land, the flight's own included."""

LATE_MINUTES = 15
"""An arrival is late from the minute after."""

FLIGHT_FIELDS = (
    required("year", "INT", "Year of the scheduled local departure"),
    required("month", "INT", "Month of the scheduled local departure"),
    required("day", "INT", "Day of the scheduled local departure"),
    Column("dep_time", "INT", "Actual local departure, HHMM; null if cancelled"),
    Column("sched_dep_time", "INT", "Scheduled local departure, HHMM"),
    Column("dep_delay", "INT", "Departure delay in minutes; negative is early"),
    Column("arr_time", "INT", "Actual local arrival, HHMM"),
    Column("sched_arr_time", "INT", "Scheduled local arrival, HHMM"),
    Column("arr_delay", "INT", "Arrival delay in minutes; negative is early"),
    required("carrier", "STRING", "Two-letter carrier code"),
    required("flight", "INT", "Flight number"),
    Column("tailnum", "STRING", "Tail number of the plane"),
    required("origin", "STRING", "Airport of departure"),
    Column("dest", "STRING", "Airport of arrival"),
    Column("air_time", "INT", "Time in the air in minutes"),
    Column("distance", "INT", "Distance between the airports in miles"),
    Column("hour", "INT", "Hour of the scheduled local departure"),
    Column("minute", "INT", "Minute of the scheduled local departure"),
    Column("time_hour", "TIMESTAMP", "Scheduled departure, cut to the hour"),
)
"""The fields of a landed record; any other is reported, and none is ever inferred."""

# Rules are calibrated on 2013: each of its days passes, whichever day a backfill begins on.
# Largest PSI there: distance 0.06, air_time 0.20, hour 0.21 (Thanksgiving); of a unit or time zone
# mixed up, at least 0.6.
DISTANCE_EDGES = (250, 500, 750, 1000, 1500, 2000)
"""Miles: between the clusters of New York's destinations."""

AIR_TIME_EDGES = (60, 120, 180, 300)
"""Minutes; 300 parts the flights across the continent from the others."""

HOUR_EDGES = (6, 9, 12, 15, 18, 21)
"""Hours of the day. Hardly a flight is scheduled before 6, so hours in UTC stand out."""

DELAY_EDGES = (-5, 0, 15, 60)
"""Minutes. Delays swing by nature, so their drift only warns, from the usual failure on."""

ROWS_TO_MEDIAN = (0.6, 1.75)
"""Thanksgiving has 0.64 of a Thursday's flights; if it is the only Thursday known, the next has
1.53 of it."""

FEWEST_ROWS_TO_MEDIAN = 0.045
"""The last landing day has only the stragglers of the year: 0.047 of the busiest Wednesday."""

RAW_FLIGHTS = Table(
    layer="raw",
    name="flights",
    partition_by="landing_date",
    columns=(
        required("landing_date", "DATE", "Day on which the record landed"),
        required("flight_date", "DATE", "Day of the scheduled local departure"),
        *FLIGHT_FIELDS,
        required("source_file", "STRING", "Landing file, below the landing root"),
    ),
    rules=(
        # A day's files may come late or in parts.
        RowCount(ratio=ROWS_TO_MEDIAN, ratio_blocks=False, withhold_below=FEWEST_ROWS_TO_MEDIAN),
        Reconciled(),
        Rejects(at_most=0.01),
        Nulls("distance", at_most=0.01),
        Nulls("dest", at_most=0.01),
        Nulls("time_hour", at_most=0.01),
        Nulls("tailnum", at_most=0.5, spike=0.3),
        Values("month", 1, 12),
        Values("day", 1, 31),
        Values("hour", 0, 23),
        Values("minute", 0, 59),
        Values("distance", 1, 12_500),
    ),
)

STAGING_FLIGHTS = Table(
    layer="staging",
    name="flights",
    partition_by="flight_date",
    columns=(
        required("flight_date", "DATE", "Day of the scheduled local departure"),
        required("carrier", "STRING", "Two-letter carrier code"),
        required("flight", "INT", "Flight number"),
        required("origin", "STRING", "Airport of departure"),
        Column("dest", "STRING", "Airport of arrival"),
        Column("tailnum", "STRING", "Tail number of the plane"),
        Column("scheduled_departure", "TIMESTAMP", "Scheduled departure, an instant"),
        required("cancelled", "BOOLEAN", "True if the flight never departed"),
        Column("dep_time", "INT", "Actual local departure, HHMM; null if cancelled"),
        Column("sched_dep_time", "INT", "Scheduled local departure, HHMM"),
        Column("dep_delay", "INT", "Departure delay in minutes; negative is early"),
        Column("arr_time", "INT", "Actual local arrival, HHMM"),
        Column("sched_arr_time", "INT", "Scheduled local arrival, HHMM"),
        Column("arr_delay", "INT", "Arrival delay in minutes; negative is early"),
        Column("air_time", "INT", "Time in the air in minutes"),
        Column("distance", "INT", "Distance between the airports in miles"),
        Column("hour", "INT", "Hour of the scheduled local departure"),
        Column("minute", "INT", "Minute of the scheduled local departure"),
        required("landing_date", "DATE", "Day on which this version of the record landed"),
        required("source_file", "STRING", "Landing file of this version of the record"),
    ),
    natural_key=("flight_date", "carrier", "flight", "origin"),
    rules=(
        RowCount(ratio=ROWS_TO_MEDIAN),
        Reconciled(),
        Nulls("distance", at_most=0.01),
        Nulls("dest", at_most=0.01),
        Nulls("hour", at_most=0.01),
        Nulls("scheduled_departure", at_most=0.01),
        # Cancelled flights have none of these; 57 % of a day's in the blizzard of 2013-02-09.
        Nulls("air_time", at_most=0.9),
        Nulls("tailnum", at_most=0.5, spike=0.3),
        Nulls("dep_time", spike=0.2, blocking=False),
        Values("distance", 1, 12_500),
        Values("hour", 0, 23),
        Values("minute", 0, 59),
        Values("air_time", 1, 1_200),
        Drift("distance", DISTANCE_EDGES),
        Drift("air_time", AIR_TIME_EDGES),
        Drift("hour", HOUR_EDGES),
        Drift("dep_delay", DELAY_EDGES, warn=0.25, blocking=False),
        Drift("arr_delay", DELAY_EDGES, warn=0.25, blocking=False),
    ),
)

CARRIER_DELAYS = Table(
    layer="features",
    name="carrier_delays",
    partition_by="flight_date",
    columns=(
        required("flight_date", "DATE", "Last day D of the window D-6 … D"),
        required("carrier", "STRING", "Two-letter carrier code"),
        required("origin", "STRING", "Airport of departure"),
        required("flights_7d", "BIGINT", "Scheduled flights in the window"),
        required("cancelled_7d", "BIGINT", "Flights in the window that never departed"),
        Column("mean_dep_delay_7d", "DOUBLE", "Mean departure delay in minutes, where known"),
        Column("mean_arr_delay_7d", "DOUBLE", "Mean arrival delay in minutes, where known"),
        Column(
            "late_share_7d",
            "DOUBLE",
            "Share of the flights with a known arrival delay that arrived over 15 minutes late",
        ),
    ),
    natural_key=("flight_date", "carrier", "origin"),
    rules=(
        RowCount(ratio=(0.75, 1.5)),
        Reconciled(total_of="flights_7d"),
        Nulls("late_share_7d", at_most=0.25),
        Nulls("mean_dep_delay_7d", at_most=0.25),
        Values("late_share_7d", 0, 1),
    ),
)
