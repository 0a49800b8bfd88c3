"""The flights pipeline: what lands, the typed rows, and the weekly delay features."""

from backfill_assets.tables.owners import OWNERS
from backfill_engine import Column, Table, required
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

WINDOW_DAYS = 7
"""Days that a row of `features/carrier_delays` looks back over, its own included."""

LANDING_DAYS = 3
"""Days within which a flight's records are due to land, the flight's own included."""

LATE_MINUTES = 15
"""An arrival is late from the minute after."""

LEAST_DELAY, MOST_DELAY = -60, 180
"""Minutes to which `features/carrier_delays_v2` clips a delay: 1.2 % of the year's are longer, up
to 21 hours, and one of those moves a small carrier's mean more than all else of its week."""

DAY_WEIGHTS = (64, 32, 16, 8, 4, 2, 1)
"""What a flight counts there: of the window's last day, of the day before, and so on. Integers, so
that sums don't depend on the order of their terms."""

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

# Rules are calibrated on 2013: none of its days fails or warns, whichever day a backfill begins on.
# Each bound lies above the year's highest figure and below what faults that a person must see make
# of any day; `calibration.md` has the figures.
DISTANCE_EDGES = (250, 500, 750, 1000, 1500, 2000)
"""Miles: between the clusters of New York's destinations."""

AIR_TIME_EDGES = (60, 120, 180, 300)
"""Minutes; 300 parts the flights across the continent from the others."""

HOUR_EDGES = (6, 9, 12, 15, 18, 21)
"""Hours of the day. Hardly a flight is scheduled before 6, so hours in UTC stand out."""

DELAY_EDGES = (-90, -30, 0, 30, 180)
"""Minutes. Delays swing by nature between the outer edges, and hardly pass them; those in another
unit do. What lies between is for `Agreement` to judge."""

DELAY_DRIFT = 3.0
"""PSI of a day's delays: 2.23 in a storm after calm days, 4.1 of one value for all."""

DELAYS_SWING = "delays swing by nature"

AIRPORTS = ("EWR", "JFK", "LGA")
CARRIERS = ("9E", "AA", "B6", "DL", "EV", "FL", "MQ", "UA", "US", "VX", "WN")
"""Those with 1 % of the flights or more; the others are one bin. PSI sees the loss of one with 3 %:
below that days differ as much."""

ROWS_TO_MEDIAN = (0.6, 1.75)
"""Thanksgiving has 0.64 of a Thursday's flights; if it is the only Thursday known, the next has
1.53 of it."""

FEWEST_ROWS_TO_MEDIAN = 0.045
"""The last landing day has only the stragglers of the year: 0.047 of the busiest Wednesday."""


def _agree_in_minutes(way: str, known: str, only_warns: str = "") -> Agreement:
    """Demands that a delay is the minutes between two times HHMM, of whichever day.

    It is null just where `known` is. Each flight has a scheduled time; but the history has none of
    the arrival.
    """
    delay, actual, scheduled = f"{way}_delay", f"{way}_time", f"sched_{way}_time"
    minutes = [f"({time} div 100 * 60 + {time} % 100)" for time in (actual, scheduled)]
    return Agreement(
        delay,
        f"({delay} IS NULL) = ({known} IS NULL)"
        f" AND ({scheduled} IS NOT NULL OR flight_date < DATE '2013-01-01')"
        f" AND coalesce(pmod({minutes[0]} - {minutes[1]} - {delay}, 1440) = 0,"
        f" {delay} IS NULL OR {scheduled} IS NULL)",
        only_warns=only_warns,
        meaning=f"the minutes from {scheduled} to {actual}, null just where {known} is",
    )


def _agree_with_times(only_warns: str = "") -> tuple[Agreement, ...]:
    ways = (("dep", "dep_time"), ("arr", "air_time"))
    return tuple(_agree_in_minutes(way, known, only_warns) for way, known in ways)


CANCELLED_RISE = 0.6
"""Of the nulls in what a cancelled flight lacks: 0.58 above the median in a blizzard."""

STORMS_CANCEL = "a storm may cancel more, and staging withholds nulls that contradict others"

_MAY_BE_NULL = (
    # The history has neither; of other flights `_agree_in_minutes` demands both.
    NullSpike(columns=("arr_time", "sched_arr_time"), rise=1),
    NullSpike(
        columns=("dep_time", "dep_delay", "arr_delay", "air_time"),
        rise=CANCELLED_RISE,
        only_warns=STORMS_CANCEL,
    ),
)

RAW_FLIGHTS = Table(
    owners=OWNERS,
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
        RowCount(
            ratio=ROWS_TO_MEDIAN,
            ratio_only_warns="a day's files may come late or in parts",
            withhold_below=FEWEST_ROWS_TO_MEDIAN,
        ),
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
        *_MAY_BE_NULL,
        *_agree_with_times(only_warns="what landed is kept; staging withholds its flights"),
    ),
)

STAGING_FLIGHTS = Table(
    owners=OWNERS,
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
    begins_with=RAW_FLIGHTS,
    natural_key=("flight_date", "carrier", "flight", "origin"),
    rules=(
        RowCount(ratio=ROWS_TO_MEDIAN),
        Reconciled(),
        Nulls("distance", at_most=0.01),
        Nulls("dest", at_most=0.01),
        Nulls("hour", at_most=0.01),
        Nulls("scheduled_departure", at_most=0.01),
        *_MAY_BE_NULL,
        Nulls("air_time", at_most=0.9),
        Nulls("tailnum", at_most=0.5, spike=0.3),
        Values("distance", 1, 12_500),
        Values("hour", 0, 23),
        Values("minute", 0, 59),
        Values("air_time", 1, 1_200),
        # None of the year's flights contradicts itself in these.
        Agreement("sched_dep_time", "sched_dep_time <=> hour * 100 + minute"),
        *_agree_with_times(),
        Agreement("tailnum", "dep_time IS NULL OR tailnum IS NOT NULL"),
        # Up to 1 % of a day's are slower or faster; of flights by an hour off, at least 35 %.
        Agreement("air_time", "air_time BETWEEN distance / 9.5D AND distance / 6D + 40", 0.05),
        Variation("tailnum"),
        Drift("origin", AIRPORTS),
        Drift("carrier", CARRIERS),
        Drift("distance", DISTANCE_EDGES),
        Drift("air_time", AIR_TIME_EDGES, warn=0.25),
        Drift("hour", HOUR_EDGES, warn=0.25),
        Drift("dep_delay", DELAY_EDGES, warn=DELAY_DRIFT, only_warns=DELAYS_SWING),
        Drift("arr_delay", DELAY_EDGES, warn=DELAY_DRIFT, only_warns=DELAYS_SWING),
    ),
)

_COUNTED = (
    required("flight_date", "DATE", "Last day D of the window D-6 … D"),
    required("carrier", "STRING", "Two-letter carrier code"),
    required("origin", "STRING", "Airport of departure"),
    required("flights_7d", "BIGINT", "Scheduled flights in the window"),
    required("cancelled_7d", "BIGINT", "Flights in the window that never departed"),
)
"""What every version of the delays counts alike."""

_WEIGHED = (
    f"clipped to {LEAST_DELAY} … {MOST_DELAY}; a flight of D counts {DAY_WEIGHTS[0]}, of the days "
    f"before {', '.join(map(str, DAY_WEIGHTS[1:]))}"
)

_MADE_UP = "mean_arr_delay_7d - mean_dep_delay_7d BETWEEN -30 AND 20"

_WEEKLY_RULES = (
    # 29 to 35 rows; without an airport 0.71 of them.
    RowCount(ratio=(0.85, 1.2)),
    Reconciled(total_of="flights_7d"),
    Nulls("late_share_7d", at_most=0.25),
    Nulls("mean_dep_delay_7d", at_most=0.25),
    Nulls("mean_arr_delay_7d", at_most=0.25),
    Values("late_share_7d", 0, 1),
    Agreement("cancelled_7d", "cancelled_7d BETWEEN 0 AND flights_7d"),
    Variation("flights_7d"),
    Variation("late_share_7d"),
    Variation("mean_dep_delay_7d"),
    Variation("mean_arr_delay_7d"),
    # A row is some hundred flights: rows alone are too few for a distribution.
    Drift("origin", AIRPORTS, weight="flights_7d"),
    Drift("carrier", CARRIERS, weight="flights_7d"),
    # Means hardly pass these edges: the year's highest PSI is 0.08, of whichever version and first
    # day; of means in seconds it is 7 and more, of departures with the other sign 2.4.
    Drift("mean_dep_delay_7d", (-10, 90), warn=0.15, fail=1.0, weight="flights_7d"),
    Drift("mean_arr_delay_7d", (-60, 90), warn=0.15, fail=1.0, weight="flights_7d"),
)
"""What every version must meet. Drift withholds here: what is wrong with a version of the features
shows in no check before it."""

CARRIER_DELAYS = Table(
    owners=OWNERS,
    layer="features",
    name="carrier_delays",
    partition_by="flight_date",
    columns=(
        *_COUNTED,
        Column("mean_dep_delay_7d", "DOUBLE", "Mean departure delay in minutes, where known"),
        Column("mean_arr_delay_7d", "DOUBLE", "Mean arrival delay in minutes, where known"),
        Column(
            "late_share_7d",
            "DOUBLE",
            "Share of the flights with a known arrival delay that arrived over 15 minutes late",
        ),
    ),
    begins_with=STAGING_FLIGHTS,
    natural_key=("flight_date", "carrier", "origin"),
    rules=(
        *_WEEKLY_RULES,
        # Planes make up some minutes on the way; up to 12 % of a day's rows are beyond this.
        Agreement("mean_arr_delay_7d", _MADE_UP, 0.2),
        Drift("late_share_7d", (0.7,), warn=0.15, fail=0.5, weight="flights_7d"),
    ),
)

CARRIER_DELAYS_V2 = Table(
    owners=OWNERS,
    layer="features",
    name="carrier_delays_v2",
    partition_by="flight_date",
    columns=(
        *_COUNTED,
        Column(
            "mean_dep_delay_7d",
            "DOUBLE",
            f"Mean departure delay in minutes, where known, {_WEIGHED}",
        ),
        Column(
            "mean_arr_delay_7d",
            "DOUBLE",
            f"Mean arrival delay in minutes, where known, {_WEIGHED}",
        ),
        Column(
            "late_share_7d",
            "DOUBLE",
            "Share of the flights with a known arrival delay that arrived over "
            f"{LATE_MINUTES} minutes late, by the same weights",
        ),
    ),
    begins_with=STAGING_FLIGHTS,
    natural_key=CARRIER_DELAYS.natural_key,
    rules=(
        *_WEEKLY_RULES,
        Values("mean_dep_delay_7d", LEAST_DELAY, MOST_DELAY),
        Values("mean_arr_delay_7d", LEAST_DELAY, MOST_DELAY),
        # Half of the weight is the last day's: up to 24 % of a day's rows are beyond this.
        Agreement("mean_arr_delay_7d", _MADE_UP, 0.35),
        Drift("late_share_7d", (0.8,), warn=0.15, fail=0.5, weight="flights_7d"),
    ),
)
