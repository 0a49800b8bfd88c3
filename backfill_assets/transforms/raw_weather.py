"""Landed lines → `raw/weather`: every report that landed, typed, and nothing else."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backfill_assets.quality.audit_columns import FIELDS_SEEN, REJECT_REASON, REJECTED_LINE
from backfill_assets.tables.declarations import Column
from backfill_assets.tables.weather import RAW_WEATHER, REPORT_FIELDS
from backfill_assets.transforms.json_lines import keep_rejected_lines, parse_json_lines


def build_raw_weather(lines: DataFrame, *, extra_fields: Sequence[str] = ()) -> DataFrame:
    """One row for each landed line; duplicates stay.

    Args:
        lines: `value` STRING, `landing_hour` TIMESTAMP, `landing_date` DATE, `source_file` STRING.
        extra_fields: fields to keep, as text, beyond the declared ones.

    Returns:
        The columns of `RAW_WEATHER`, `extra_fields` as STRING, and the audit columns
        `_reject_reason`, `_rejected_line` and `_fields_seen`.
    """
    extra = [Column(name, "STRING", "A field that no schema declares") for name in extra_fields]
    other_hour = F.when(
        F.col("time_hour") != F.col("landing_hour"), "the report is of another hour than it landed"
    )
    rows = parse_json_lines(lines, (*REPORT_FIELDS, *extra)).withColumn(
        REJECT_REASON, F.coalesce(REJECT_REASON, other_hour)
    )
    return keep_rejected_lines(rows).select(
        *RAW_WEATHER.column_names, *extra_fields, REJECT_REASON, REJECTED_LINE, FIELDS_SEEN
    )
