"""The flights pipeline: what lands, the typed rows, and the weekly delay features."""

from backfill_assets.tables.declarations import Column, Table, required

WINDOW_DAYS = 7
"""Days that a row of `features/carrier_delays` looks back over, its own included."""

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
)
