"""What the tables are to hold: computed from the landed files, in plain Python.

A model of the documented meaning of the three tables; it shares no code with the project.
"""

import datetime as dt
import gzip
import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

RAW, STAGING, FEATURES = "raw/flights", "staging/flights", "features/carrier_delays"
TABLES = (RAW, STAGING, FEATURES)
PARTITION_COLUMNS = {RAW: "landing_date", STAGING: "flight_date", FEATURES: "flight_date"}
EMPTY_MARKER = "_EMPTY"

Row: TypeAlias = Mapping[str, Any]
Contents: TypeAlias = frozenset[tuple[tuple[tuple[str, Any], ...], int]]
"""Rows of a partition, each as its columns' names and values, and how often it is in there."""
Partition: TypeAlias = tuple[str, str]
"""Table, and day (YYYY-MM-DD)."""
Tables: TypeAlias = Mapping[Partition, Contents]
"""The contents of the partitions that have rows."""

NOTHING: Contents = frozenset()

_NEW_YORK = ZoneInfo("America/New_York")
_PAYLOAD = (
    *("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time"),
    *("sched_arr_time", "arr_delay", "tailnum", "dest", "air_time", "distance", "hour", "minute"),
    "time_hour",
)
"""What decides between two records of a flight in one file, in this order; null is the least."""
_KEPT = (
    *("flight_date", "carrier", "flight", "origin", "dest", "tailnum", "dep_time"),
    *("sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay", "air_time"),
    *("distance", "hour", "minute", "landing_date", "source_file"),
)
_WINDOW_DAYS, _LATE_MINUTES = 7, 15


class Fate(StrEnum):
    """What a run is to do with a landing day."""

    PUBLISHED = "published"
    WITHHELD = "withheld"
    EITHER = "either"


@dataclass(frozen=True)
class Landed:
    """A landing day as it is now.

    Attributes:
        fate: what a run is to do with it.
        contents: of its partition, as far as its files can be read; None if nobody can know it.
    """

    fate: Fate
    contents: Contents | None


def read_landing(root: Path, days: Iterable[str]) -> dict[str, Landed]:
    """Reads the landing folders of days, and judges each."""
    return {day: _read_day(root, day) for day in days}


def find_day_folder(root: Path, day: str) -> Path:
    """Finds where a landing day's files are."""
    year, month, of_month = day.split("-")
    return root / "flights" / f"year={year}" / f"month={month}" / f"day={of_month}"


def _read_day(root: Path, day: str) -> Landed:
    folder = find_day_folder(root, day)
    if not folder.is_dir():
        return Landed(Fate.WITHHELD, None)
    names = sorted(path.name for path in folder.iterdir())
    hidden = [name for name in names if name[0] in "._" and name != EMPTY_MARKER]
    visible = [name for name in names if name[0] not in "._"]
    readable = [folder / name for name in visible if (folder / name).is_file()]
    if not visible:
        proven = EMPTY_MARKER in names or not names
        return Landed(Fate.PUBLISHED if proven else Fate.WITHHELD, NOTHING if proven else None)
    try:
        lines = [_read_lines(path) for path in readable]
        rows = [
            _build_raw(json.loads(line), day, path.relative_to(root).as_posix())
            for path, found in zip(readable, lines, strict=True)
            for line in found
        ]
    except (OSError, EOFError, ValueError, zlib.error):
        return Landed(Fate.WITHHELD, None)
    if any(Counter(map(tuple, lines))[tuple(found)] > 1 for found in lines):
        return Landed(Fate.WITHHELD, None)
    if len(readable) < len(visible):
        return Landed(Fate.WITHHELD, freeze(rows) if readable else None)
    is_odd = bool(hidden) or any(set(name) & set(":[") for name in visible)
    return Landed(Fate.EITHER if is_odd else Fate.PUBLISHED, freeze(rows))


def _read_lines(path: Path) -> list[bytes]:
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    return [line for line in text.splitlines() if line.strip()]


def _build_raw(record: Row, day: str, source_file: str) -> dict[str, Any]:
    return {
        **record,
        "time_hour": dt.datetime.fromisoformat(record["time_hour"]),
        "landing_date": dt.date.fromisoformat(day),
        "flight_date": dt.date(record["year"], record["month"], record["day"]),
        "source_file": source_file,
    }


def freeze(rows: Iterable[Row]) -> Contents:
    """Makes rows comparable, whatever their order."""
    return frozenset(Counter(tuple(sorted(row.items())) for row in rows).items())


def thaw(contents: Contents) -> list[dict[str, Any]]:
    """Makes rows of contents again."""
    return [dict(row) for row, times in contents for _ in range(times)]


def compute_tables(landing: Mapping[str, Landed]) -> dict[Partition, Contents]:
    """Computes what all tables are to hold, of a landing zone of which all days are good."""
    tables = {(RAW, day): landed.contents or NOTHING for day, landed in landing.items()}
    for table in (STAGING, FEATURES):
        tables |= compute_from(table, tables, tuple(landing))
    return tables


def compute_from(table: str, tables: Tables, days: Sequence[str]) -> dict[Partition, Contents]:
    """Computes what a table is to hold, of what the table that it reads holds."""
    source, compute = _COMPUTED[table]
    rows = [row for day in days for row in thaw(tables.get((source, day), NOTHING))]
    by_day: dict[str, list[Row]] = defaultdict(list)
    for row in compute(rows):
        by_day[str(row["flight_date"])].append(row)
    return {(table, day): freeze(by_day[day]) for day in days}


def _compute_staging(raw: Sequence[Row]) -> list[Row]:
    latest: dict[tuple[Any, ...], Row] = {}
    for row in sorted(raw, key=_rank):
        if row["landing_date"] >= row["flight_date"]:
            latest[tuple(row[name] for name in ("flight_date", "carrier", "flight", "origin"))] = (
                row
            )
    return [
        {
            **{name: row[name] for name in _KEPT},
            "cancelled": row["dep_time"] is None,
            "scheduled_departure": dt.datetime(
                *(row[part] for part in ("year", "month", "day", "hour", "minute")),
                tzinfo=_NEW_YORK,
            ).astimezone(dt.UTC),
        }
        for row in latest.values()
    ]


def _rank(row: Row) -> tuple[Any, ...]:
    payload = [(row[name] is not None, row[name]) for name in _PAYLOAD]
    return (row["landing_date"], row["source_file"], *payload)


def _compute_features(staging: Sequence[Row]) -> list[Row]:
    windows: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in staging:
        for later in range(_WINDOW_DAYS):
            last = row["flight_date"] + dt.timedelta(days=later)
            windows[last, row["carrier"], row["origin"]].append(row)
    return [
        {
            "flight_date": last,
            "carrier": carrier,
            "origin": origin,
            "flights_7d": len(flights),
            "cancelled_7d": sum(row["cancelled"] for row in flights),
            "mean_dep_delay_7d": _mean(row["dep_delay"] for row in flights),
            "mean_arr_delay_7d": _mean(row["arr_delay"] for row in flights),
            "late_share_7d": _mean(
                None if row["arr_delay"] is None else row["arr_delay"] > _LATE_MINUTES
                for row in flights
            ),
        }
        for (last, carrier, origin), flights in windows.items()
    ]


def _mean(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


_COMPUTED: Mapping[str, tuple[str, Callable[[Sequence[Row]], list[Row]]]] = {
    STAGING: (RAW, _compute_staging),
    FEATURES: (STAGING, _compute_features),
}


def read_tables(warehouse: Path) -> dict[Partition, Contents]:
    """Reads all tables by delta-rs; one that isn't there, or can't be read, has no rows."""
    tables: dict[Partition, Contents] = {}
    for table in TABLES:
        by_day: dict[str, list[Row]] = defaultdict(list)
        try:
            rows = DeltaTable(warehouse / table).to_pyarrow_table().to_pylist()
        except (DeltaError, OSError, pa.ArrowException):
            continue
        for row in rows:
            by_day[str(row[PARTITION_COLUMNS[table]])].append(row)
        tables |= {(table, day): freeze(found) for day, found in by_day.items()}
    return tables
