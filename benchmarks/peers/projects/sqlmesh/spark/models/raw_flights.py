"""Landed lines → raw.flights, as a Python model: SQL of Spark names no list of files."""

import datetime as dt
import os
import typing as t

from macros.landing import list_landed_files
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlglot import exp
from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName

_FIELDS = {
    **dict.fromkeys(("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay"), "INT"),
    **dict.fromkeys(("arr_time", "sched_arr_time", "arr_delay"), "INT"),
    "carrier": "STRING",
    "flight": "INT",
    **dict.fromkeys(("tailnum", "origin", "dest"), "STRING"),
    **dict.fromkeys(("air_time", "distance", "hour", "minute"), "INT"),
    "time_hour": "TIMESTAMP",
}
_DAY = "landing_date"
_REQUIRED = ("flight_date", "year", "month", "day", "carrier", "flight", "origin")
_NULLS = {"distance": 0.01, "dest": 0.01, "time_hour": 0.01, "tailnum": 0.5}
_RANGES = {
    "month": (1, 12),
    "day": (1, 31),
    "hour": (0, 23),
    "minute": (0, 59),
    "distance": (1, 12_500),
}

_AUDITS = [
    ("not_null", {"columns": [exp.column(name) for name in _REQUIRED]}),
    ("enough_rows", {"by": exp.column(_DAY), "least": exp.Literal.number(0.045)}),
    *(
        (
            "null_share",
            {
                "by": exp.column(_DAY),
                "of": exp.column(name),
                "at_most": exp.Literal.number(at_most),
            },
        )
        for name, at_most in _NULLS.items()
    ),
    *(
        (
            "accepted_range",
            {
                "column": exp.column(name),
                "min_v": exp.Literal.number(least),
                "max_v": exp.Literal.number(most),
            },
        )
        for name, (least, most) in _RANGES.items()
    ),
    (
        "forall",
        {"criteria": [exp.LTE(this=exp.column("flight_date"), expression=exp.column(_DAY))]},
    ),
]


@model(
    "raw.flights",
    kind={"name": ModelKindName.INCREMENTAL_BY_TIME_RANGE, "time_column": _DAY},
    start="2013-01-01",
    cron="@daily",
    columns={_DAY: "DATE", "flight_date": "DATE", **_FIELDS, "source_file": "STRING"},
    audits=_AUDITS if os.environ["PEER_AUDITS"] == "yes" else [],
)
def execute(
    context: ExecutionContext, start: dt.datetime, end: dt.datetime, **_: t.Any
) -> DataFrame:
    """One row for each landed line of the days."""
    files = list_landed_files(start.date(), end.date())
    schema = ", ".join(f"{name} {type_}" for name, type_ in _FIELDS.items())
    lines = context.spark.read.schema(schema).option("mode", "FAILFAST").json(files)
    below = F.substring_index(F.input_file_name(), "/", -5)
    day = F.regexp_replace(
        below, "flights/year=([0-9]+)/month=([0-9]+)/day=([0-9]+)/.*", "$1-$2-$3"
    )
    return lines.select(
        day.cast("date").alias(_DAY),
        F.make_date("year", "month", "day").alias("flight_date"),
        *_FIELDS,
        below.alias("source_file"),
    ).where(F.col(_DAY).between(F.lit(start.date()), F.lit(end.date())))
