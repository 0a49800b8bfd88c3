"""Landed lines → `raw/flights`: everything that landed, typed, and nothing else."""

import datetime as dt
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.flights import FLIGHT_FIELDS, LANDING_DAYS, RAW_FLIGHTS
from backfill_engine import build_landed_rows
from backfill_engine.audit_columns import BEFORE_FIRST_PARTITION


def build_raw_flights(
    lines: DataFrame, *, begin: dt.date, extra_fields: Sequence[str] = ()
) -> DataFrame:
    """Builds one row for each landed line; duplicates stay.

    Args:
        lines: `value` STRING, `landing_date` DATE, `source_file` STRING.
        begin: first day of the data; an earlier flight is rejected, as nothing would ever read it.
        extra_fields: fields to keep, as text, beyond the declared ones.

    Returns:
        The columns of `RAW_FLIGHTS`, `extra_fields` as STRING, and the audit columns
        `_reject_reason`, `_rejected_line` and `_fields_seen`.
    """
    midnight = F.try_make_timestamp("year", "month", "day", *(F.lit(0) for _ in range(3)))
    flight_date = F.col("flight_date")
    # Flights of the days before the first land in its first days: that is no fault.
    is_due = F.col("landing_date") < F.date_add(flight_date, LANDING_DAYS)
    wrong_date = (
        F.when(flight_date.isNull(), "`year`, `month`, `day` are no date")
        .when(
            (flight_date < F.lit(begin)) & is_due,
            f"{BEFORE_FIRST_PARTITION}the flight date is before {begin}",
        )
        .when(flight_date < F.lit(begin), f"the flight date is before {begin}")
        .when(flight_date > F.col("landing_date"), "the flight date is after the landing day")
    )
    return build_landed_rows(
        lines,
        RAW_FLIGHTS,
        FLIGHT_FIELDS,
        extra_fields=extra_fields,
        derived={"flight_date": midnight.cast("date")},
        fault=wrong_date,
    )
