"""Rows with their TIMESTAMPs as what they are: instants, whatever zone the machine is in."""

import datetime as dt
from typing import Any

from pyspark.sql import DataFrame


def collect_in_utc(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows by column name; TIMESTAMPs are aware, where PySpark's are naive and local."""
    instants = {name for name, type_ in frame.dtypes if type_ == "timestamp"}
    rows = frame.select(
        *(frame[name].cast("string" if name in instants else type_) for name, type_ in frame.dtypes)
    ).collect()
    return [
        {
            name: _read_instant(value) if name in instants else value
            for name, value in row.asDict().items()
        }
        for row in rows
    ]


def _read_instant(text: str | None) -> dt.datetime | None:
    return None if text is None else dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
