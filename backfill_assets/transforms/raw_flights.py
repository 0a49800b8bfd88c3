"""Landed lines → `raw/flights`: everything that landed, typed, and nothing else."""

import datetime as dt
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.quality.audit_columns import (
    FIELDS_SEEN,
    NOT_OURS,
    REJECT_REASON,
    REJECTED_LINE,
)
from backfill_assets.tables.declarations import Column
from backfill_assets.tables.flights import FLIGHT_FIELDS, LANDING_DAYS, RAW_FLIGHTS
from backfill_assets.transforms.json_lines import keep_rejected_lines, parse_json_lines


def build_raw_flights(
    lines: DataFrame, *, begin: dt.date, extra_fields: Sequence[str] = ()
) -> DataFrame:
    """One row for each landed line; duplicates stay.

    Args:
        lines: `value` STRING, `landing_date` DATE, `source_file` STRING.
        begin: first day of the data; an earlier flight is rejected, as nothing would ever read it.
        extra_fields: fields to keep, as text, beyond the declared ones.

    Returns:
        The columns of `RAW_FLIGHTS`, `extra_fields` as STRING, and the audit columns
        `_reject_reason`, `_rejected_line` and `_fields_seen`.
    """
    extra = [Column(name, "STRING", "A field that no schema declares") for name in extra_fields]
    midnight = F.try_make_timestamp("year", "month", "day", *(F.lit(0) for _ in range(3)))
    flight_date = F.col("flight_date")
    # Flights of the days before the first land in its first days: that is no fault.
    is_due = F.col("landing_date") < F.date_add(flight_date, LANDING_DAYS)
    wrong_date = (
        F.when(flight_date.isNull(), "`year`, `month`, `day` are no date")
        .when((flight_date < F.lit(begin)) & is_due, f"{NOT_OURS}the flight date is before {begin}")
        .when(flight_date < F.lit(begin), f"the flight date is before {begin}")
        .when(flight_date > F.col("landing_date"), "the flight date is after the landing day")
    )
    rows = (
        parse_json_lines(lines, (*FLIGHT_FIELDS, *extra))
        .withColumn("flight_date", midnight.cast("date"))
        .withColumn(REJECT_REASON, F.coalesce(REJECT_REASON, wrong_date))
    )
    audit_columns = (REJECT_REASON, REJECTED_LINE, FIELDS_SEEN)
    return keep_rejected_lines(rows).select(
        *RAW_FLIGHTS.column_names, *extra_fields, *audit_columns
    )
