"""The serving pipeline: the features that consumers read, and examples to train models on."""

from dataclasses import replace

from backfill_assets.tables import flights
from backfill_assets.tables.flights import LATE_MINUTES

# As a module: a name of a table here would make it one of this pipeline.
from backfill_assets.tables.owners import OWNERS
from backfill_engine import Column, Table, required
from backfill_engine.rules import (
    Agreement,
    Drift,
    Nulls,
    NullSpike,
    Reconciled,
    RowCount,
    Values,
    Variation,
)

_FEATURES = tuple(
    column
    for column in flights.CARRIER_DELAYS.columns
    if column.name not in flights.CARRIER_DELAYS.natural_key
)

FEATURE_NAMES = tuple(column.name for column in _FEATURES)
"""Columns of `serving/carrier_delays` that an example carries."""

SERVED_CARRIER_DELAYS = replace(
    flights.CARRIER_DELAYS,
    layer="serving",
    begins_with=flights.CARRIER_DELAYS,
    # Whether a version has all flights and looks as before is judged where it is published, and
    # what comes here was.
    rules=(
        RowCount(ratio=(0.85, 1.2)),
        Reconciled(),
        Nulls("late_share_7d", at_most=0.25),
        Nulls("mean_dep_delay_7d", at_most=0.25),
        Nulls("mean_arr_delay_7d", at_most=0.25),
        Values("late_share_7d", 0, 1),
        Agreement("cancelled_7d", "cancelled_7d BETWEEN 0 AND flights_7d"),
        Variation("flights_7d"),
        Variation("mean_dep_delay_7d"),
        # What a promotion compares of the versions. In finer bins than the features' own, to show a
        # change of logic; so they withhold nothing, and hardly warn.
        *(
            Drift(column, edges, warn, only_warns="for promotions to compare", weight="flights_7d")
            for column, edges, warn in (
                ("carrier", flights.CARRIERS, 1.0),
                ("mean_dep_delay_7d", (0, 10, 20, 40), 10),
                ("mean_arr_delay_7d", (-5, 5, 15, 40), 10),
                ("late_share_7d", (0.1, 0.2, 0.3), 10),
            )
        ),
    ),
    versions=(flights.CARRIER_DELAYS, flights.CARRIER_DELAYS_V2),
)

TRAINING_EXAMPLES = Table(
    owners=OWNERS,
    layer="serving",
    name="training_examples",
    partition_by="flight_date",
    begins_with=SERVED_CARRIER_DELAYS,
    columns=(
        required("flight_date", "DATE", "Day of the scheduled local departure"),
        required("carrier", "STRING", "Two-letter carrier code"),
        required("flight", "INT", "Flight number"),
        required("origin", "STRING", "Airport of departure"),
        Column("dest", "STRING", "Airport of arrival"),
        Column("distance", "INT", "Distance between the airports in miles"),
        Column("hour", "INT", "Hour of the scheduled local departure"),
        Column("features_date", "DATE", "Day of the features; null if that has none of any flight"),
        *(replace(column, nullable=True) for column in _FEATURES),
        Column("arr_delay", "INT", "Label: arrival delay in minutes; null if it isn't known"),
        Column("late", "BOOLEAN", f"Label: whether it is over {LATE_MINUTES} minutes"),
    ),
    natural_key=("flight_date", "carrier", "flight", "origin"),
    rules=(
        # No ratio: of a day half cancelled few examples are right, and staging has all its flights.
        RowCount(),
        Reconciled(),
        Nulls("dest", at_most=0.01),
        Nulls("distance", at_most=0.01),
        Nulls("hour", at_most=0.01),
        # Diverted flights: at most 4 % of a day's.
        Nulls("arr_delay", at_most=0.2),
        # The first day of the data has no features.
        NullSpike(columns=("features_date", *FEATURE_NAMES), rise=1),
        Values("late_share_7d", 0, 1),
        # No feature may know the flight's own day.
        Agreement("features_date", "features_date < flight_date", at_most=0.0),
        # A carrier's first flight from an airport has none: at most 0.7 % of a day's.
        Agreement("flights_7d", "features_date IS NULL OR flights_7d IS NOT NULL", 0.05),
        Agreement("late", f"late <=> (arr_delay > {LATE_MINUTES})", at_most=0.0),
        Variation("arr_delay"),
        Variation("mean_dep_delay_7d"),
    ),
)
