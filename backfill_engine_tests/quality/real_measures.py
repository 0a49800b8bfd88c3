"""What the rules ask for, measured with pandas instead of Spark."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from backfill_engine.rules.column_rules import Agreement, Nulls, NullSpike, Values, Variation
from backfill_engine.rules.count_rules import Reconciled
from backfill_engine.rules.drift import Drift
from backfill_engine.rules.measured import (
    BINS,
    NOT_MEASURED,
    NULLS,
    NULLS_OF_MANY,
    Figure,
    PartitionMeasures,
)
from backfill_engine.tables.declarations import Table


def measure_days(frame: pd.DataFrame, table: Table) -> dict[str, PartitionMeasures]:
    """By day, ascending."""
    return {str(key): measure(day, table) for key, day in frame.groupby(table.partition_by)}


def measure(day: pd.DataFrame, table: Table) -> PartitionMeasures:
    """What `measure_partitions` would find of one day, in what the rules look at."""
    figures: dict[Figure, Any] = {}
    for rule in table.all_rules:
        match rule:
            case Nulls(column):
                figures[NULLS, column] = int(day[column].isna().sum())
            case NullSpike(columns=columns, rise=rise) if rise < 1:
                few = len(day) < rule.at_least
                for column in columns:
                    nulls = NOT_MEASURED if few else int(day[column].isna().sum())
                    figures[NULLS_OF_MANY, column] = nulls
            case Values(column, low, high):
                figures[rule.figure] = int(((day[column] < low) | (day[column] > high)).sum())
            case Reconciled(total_of=str(column)):
                figures[rule.figure] = int(day[column].sum())
            case Agreement(column):
                figures[rule.figure] = int(_CONTRADICTIONS[column](day).sum())
            case Variation(column):
                figures[rule.figure] = int(day[column].nunique() != 1)
            case Drift() as drift:
                figures[BINS, drift.histogram] = count_bins(day, drift)
    return PartitionMeasures(
        rows=len(day),
        key_duplicates=(
            int(day.duplicated(list(table.natural_key)).sum()) if table.natural_key else 0
        ),
        figures=figures,
    )


def count_bins(day: pd.DataFrame, drift: Drift) -> tuple[int, ...]:
    """Values by bin, nulls last."""
    values: Any = day[drift.column]
    edges: list[Any] = list(drift.edges)
    if isinstance(edges[0], str):
        bins = pd.Index(edges).get_indexer(pd.Index(values))
        bins = np.where(bins < 0, len(edges), bins)
    else:
        bins = np.searchsorted(np.array(edges, dtype=float), values, "right")
    bins = np.where(values.isna(), len(edges) + 1, bins)
    weights = None if drift.weight is None else day[drift.weight]
    counts = np.bincount(bins, weights, minlength=drift.bins)
    return tuple(counts.astype(int).tolist())


def _misses_minutes(day: pd.DataFrame, way: str, known: str) -> pd.Series:
    actual, scheduled = day[f"{way}_time"], day[f"sched_{way}_time"]
    minutes = actual // 100 * 60 + actual % 100 - scheduled // 100 * 60 - scheduled % 100
    delay = day[f"{way}_delay"]
    differs = ((minutes - delay) % 1440 > 0) | (delay.notna() & actual.isna() & scheduled.notna())
    return (delay.isna() != day[known].isna()) | scheduled.isna() | differs


def _misses_humidity(day: pd.DataFrame) -> pd.Series:
    dew_point, temperature = ((day[name] - 32) / 1.8 for name in ("dewp", "temp"))
    exponent = 17.625 * (dew_point / (dew_point + 243.04) - temperature / (temperature + 243.04))
    return (100 * np.exp(exponent) - day["humid"]).abs() > 10


def _misses_departure(day: pd.DataFrame) -> pd.Series:
    age = day["scheduled_departure"] - day["observed_at"]
    return age.notna() & ~age.between(pd.Timedelta(0), pd.Timedelta(hours=3), inclusive="left")


def _is_outside(values: Any, low: Any, high: Any) -> pd.Series:
    return values.notna() & ~values.between(low, high)


_CONTRADICTIONS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "sched_dep_time": lambda day: day["sched_dep_time"] != day["hour"] * 100 + day["minute"],
    "dep_delay": lambda day: _misses_minutes(day, "dep", "dep_time"),
    "arr_delay": lambda day: _misses_minutes(day, "arr", "air_time"),
    "tailnum": lambda day: day["tailnum"].isna() & day["dep_time"].notna(),
    "air_time": lambda day: _is_outside(
        day["air_time"], day["distance"] / 9.5, day["distance"] / 6 + 40
    ),
    "cancelled_7d": lambda day: _is_outside(day["cancelled_7d"], 0, day["flights_7d"]),
    "mean_arr_delay_7d": lambda day: _is_outside(
        day["mean_arr_delay_7d"] - day["mean_dep_delay_7d"], -30, 20
    ),
    "features_date": lambda day: day["features_date"] >= day["flight_date"],
    "flights_7d": lambda day: day["features_date"].notna() & day["flights_7d"].isna(),
    "late": lambda day: day["late"].notna() & (day["late"] != (day["arr_delay"] > 15)),
    "humid": _misses_humidity,
    "wind_gust": lambda day: day["wind_gust"] < day["wind_speed"],
    "observed_at": _misses_departure,
    "lines": lambda day: _is_outside(day["lines"], day["orders"], 7 * day["orders"]),
    "net_cents": lambda day: _is_outside(
        day["net_cents"], 80_000 * day["lines"], 10_500_000 * day["lines"]
    ),
    "last_order_date": lambda day: day["last_order_date"] < day["first_order_date"],
}
"""By column of an `Agreement`, the rows that it counts."""
