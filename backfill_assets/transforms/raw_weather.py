"""Landed lines → `raw/weather`: every report that landed, typed, and nothing else."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.tables.weather import RAW_WEATHER, REPORT_FIELDS
from backfill_engine import build_landed_rows


def build_raw_weather(lines: DataFrame, *, extra_fields: Sequence[str] = ()) -> DataFrame:
    """Builds one row for each landed line; duplicates stay.

    Args:
        lines: `value` STRING, `landing_hour` TIMESTAMP, `landing_date` DATE, `source_file` STRING.
        extra_fields: fields to keep, as text, beyond the declared ones.

    Returns:
        The columns of `RAW_WEATHER`, `extra_fields` as STRING, and the audit columns
        `_reject_reason`, `_rejected_line` and `_fields_seen`.
    """
    is_other = F.col("time_hour") != F.col("landing_hour")
    other_hour = F.when(is_other, "the report is of another hour than it landed")
    return build_landed_rows(
        lines, RAW_WEATHER, REPORT_FIELDS, extra_fields=extra_fields, fault=other_hour
    )
