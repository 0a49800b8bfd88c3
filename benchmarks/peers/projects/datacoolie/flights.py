"""The flights pipeline as source functions, which DataCoolie calls for each chunk it replays."""

import datetime as dt
import os
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_FIELDS = {
    **dict.fromkeys(("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay"), "INT"),
    **dict.fromkeys(("arr_time", "sched_arr_time", "arr_delay"), "INT"),
    "carrier": "STRING",
    "flight": "INT",
    **dict.fromkeys(("tailnum", "origin", "dest"), "STRING"),
    **dict.fromkeys(("air_time", "distance", "hour", "minute"), "INT"),
    "time_hour": "TIMESTAMP",
}
_LANDING = Path(os.environ["PEER_LANDING"], "flights")
_WAREHOUSE = os.environ["PEER_WAREHOUSE"]


def read_raw(engine, source, watermark_start, watermark_end, read_range) -> DataFrame | None:
    """One row for each landed line of the chunk's days; None if nothing landed on them."""
    files = _list_landed_files(read_range.start, read_range.end)
    if not files:
        return None
    schema = ", ".join(f"{name} {type_}" for name, type_ in _FIELDS.items())
    lines = engine.spark.read.schema(schema).option("mode", "FAILFAST").json(files)
    below = F.substring_index("_metadata.file_path", "/", -5)
    day = F.regexp_replace(below, "flights/year=(.*)/month=(.*)/day=(.*)/.*", "$1-$2-$3")
    return lines.select(
        day.cast("date").alias("landing_date"),
        F.make_date("year", "month", "day").alias("flight_date"),
        *_FIELDS,
        below.alias("source_file"),
    )


def read_staging(engine, source, watermark_start, watermark_end, read_range) -> DataFrame:
    """The flights of the chunk's days, each as it was reported last."""
    raw = _open(engine, "raw/flights", read_range.start, read_range.end)
    raw.where(F.col("landing_date") >= F.col("flight_date")).createOrReplaceTempView("raw_flights")
    return engine.spark.sql("""
        WITH ranked AS (
          SELECT *, ROW_NUMBER() OVER (
            PARTITION BY flight_date, carrier, flight, origin
            ORDER BY landing_date DESC, source_file DESC
          ) AS place
          FROM raw_flights
        )
        SELECT
          flight_date, carrier, flight, origin, dest, tailnum,
          TO_UTC_TIMESTAMP(MAKE_TIMESTAMP(year, month, day, hour, minute, 0), 'America/New_York')
            AS scheduled_departure,
          dep_time IS NULL AS cancelled,
          dep_time, sched_dep_time, dep_delay, arr_time, sched_arr_time, arr_delay, air_time,
          distance, hour, minute, landing_date, source_file
        FROM ranked
        WHERE place = 1
    """)


def read_features(engine, source, watermark_start, watermark_end, read_range) -> DataFrame:
    """The delays of the windows that end on the chunk's days, and some that DataCoolie cuts off."""
    begin = read_range.start - dt.timedelta(days=6)
    _open(engine, "staging/flights", begin, read_range.end).createOrReplaceTempView("flights")
    return engine.spark.sql("""
        WITH daily AS (
          SELECT
            EXPLODE(SEQUENCE(flight_date, DATE_ADD(flight_date, 6))) AS window_end,
            carrier, origin, cancelled, dep_delay, arr_delay
          FROM flights
        )
        SELECT
          window_end AS flight_date, carrier, origin,
          COUNT(*) AS flights_7d,
          COUNT_IF(cancelled) AS cancelled_7d,
          TRY_DIVIDE(SUM(dep_delay), COUNT(dep_delay)) AS mean_dep_delay_7d,
          TRY_DIVIDE(SUM(arr_delay), COUNT(arr_delay)) AS mean_arr_delay_7d,
          TRY_DIVIDE(COUNT_IF(arr_delay > 15), COUNT(arr_delay)) AS late_share_7d
        FROM daily
        GROUP BY window_end, carrier, origin
    """)


def _open(engine, table: str, first: dt.date, end: dt.date) -> DataFrame:
    rows = engine.spark.read.format("delta").load(f"{_WAREHOUSE}/{table}")
    return rows.where((F.col("flight_date") >= F.lit(first)) & (F.col("flight_date") < F.lit(end)))


def _list_landed_files(first: dt.date, end: dt.date) -> list[str]:
    days = (first + dt.timedelta(days=number) for number in range((end - first).days))
    folders = (_LANDING / f"year={day:%Y}" / f"month={day:%m}" / f"day={day:%d}" for day in days)
    return [str(path) for folder in folders for path in sorted(folder.glob("*.json.gz"))]
