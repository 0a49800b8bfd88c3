"""Landed lines → `raw/flights`: everything that landed, typed, and nothing else."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.quality.audit_columns import REJECT_REASON, UNKNOWN_FIELDS
from backfill_assets.tables.flights import FLIGHT_FIELDS, RAW_FLIGHTS
from backfill_assets.transforms.json_lines import parse_json_lines


def build_raw_flights(lines: DataFrame) -> DataFrame:
    """One row for each landed line; duplicates stay.

    Args:
        lines: `value` STRING, `landing_date` DATE, `source_file` STRING.

    Returns:
        The columns of `RAW_FLIGHTS`, and the audit columns `_reject_reason` and `_unknown_fields`.
    """
    midnight = F.try_make_timestamp("year", "month", "day", *(F.lit(0) for _ in range(3)))
    flight_date = midnight.cast("date")
    no_such_day = F.when(flight_date.isNull(), "`year`, `month`, `day` are no date")
    return (
        parse_json_lines(lines, FLIGHT_FIELDS)
        .withColumn("flight_date", flight_date)
        .withColumn(REJECT_REASON, F.coalesce(REJECT_REASON, no_such_day))
        .select(*RAW_FLIGHTS.column_names, REJECT_REASON, UNKNOWN_FIELDS)
    )
