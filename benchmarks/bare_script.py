"""The flights pipeline as a bare PySpark script, the yardstick for the project's range runs.

The same reads, the project's own transforms and Spark settings, one `replaceWhere` write for each
range and layer. No Dagster, no audit, no persisted frame, no row for each partition, no locks.
"""

import argparse
import datetime as dt
from pathlib import Path

from pyspark.sql import functions as F

from backfill_assets.tables.flights import WINDOW_DAYS
from backfill_assets.transforms.carrier_delays import build_carrier_delays
from backfill_assets.transforms.raw_flights import build_raw_flights
from backfill_assets.transforms.staging_flights import build_staging_flights
from backfill_engine_tests.project import CARRIER_DELAYS, RAW_FLIGHTS, STAGING_FLIGHTS
from benchmarks.bare_tables import BareTables, start_session

_DAY = dt.timedelta(days=1)
_BEGIN = dt.date(2013, 1, 1)


class BareScript:
    """The tables to fill, and a landing zone, a local path."""

    def __init__(self, tables: BareTables, landing: Path) -> None:
        self._tables = tables
        self._landing = landing

    def write_raw(self, first: dt.date, last: dt.date) -> None:
        """Landed lines of the days `first` to `last`, both included."""
        below_dataset = F.substring_index("_metadata.file_path", "/", -4)
        # year=YYYY/month=MM/day=DD/NAME
        year, month, day = (
            F.substring(below_dataset, at, width) for at, width in ((6, 4), (17, 2), (24, 2))
        )
        lines = self._tables.spark.read.text(self._find_landed_files(first, last)).select(
            "value",
            F.to_date(F.concat_ws("-", year, month, day)).alias("landing_date"),
            F.concat(F.lit("flights/"), below_dataset).alias("source_file"),
        )
        rows = build_raw_flights(lines, begin=_BEGIN)
        self._tables.overwrite(RAW_FLIGHTS, rows, _between("landing_date", first, last))

    def write_staging(self, first: dt.date, last: dt.date) -> None:
        """The flights of the days, from what landed on the first of them or later."""
        days = _between("flight_date", first, last)
        raw = self._tables.read(RAW_FLIGHTS, days).where(F.col("landing_date") >= F.lit(first))
        self._tables.overwrite(STAGING_FLIGHTS, build_staging_flights(raw), days)

    def write_features(self, first: dt.date, last: dt.date) -> None:
        """The delays of the windows that end on the days."""
        begin = first - (WINDOW_DAYS - 1) * _DAY
        days = _between("flight_date", first, last)
        flights = self._tables.read(STAGING_FLIGHTS, _between("flight_date", begin, last))
        delays = build_carrier_delays(flights).where(days)
        self._tables.overwrite(CARRIER_DELAYS, delays, days)

    def _find_landed_files(self, first: dt.date, last: dt.date) -> list[str]:
        begin, end = (f"year={day:%Y}/month={day:%m}/day={day:%d}" for day in (first, last))
        root = self._landing / "flights"
        return [
            str(path)
            for path in sorted(root.glob("year=*/month=*/day=*/*.json.gz"))
            if begin <= path.parent.relative_to(root).as_posix() <= end
        ]


def _between(column: str, first: dt.date, last: dt.date) -> str:
    return f"`{column}` >= DATE'{first}' AND `{column}` < DATE'{last + _DAY}'"


def list_ranges(
    first: dt.date, last: dt.date, *, day_by_day: bool
) -> list[tuple[dt.date, dt.date]]:
    """The whole range, or each of its days as a range."""
    if not day_by_day:
        return [(first, last)]
    days = (first + number * _DAY for number in range((last - first).days + 1))
    return [(day, day) for day in days]


def main() -> None:
    """Creates the three tables in an absent warehouse and fills the days."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=dt.date.fromisoformat)
    parser.add_argument("last", type=dt.date.fromisoformat)
    parser.add_argument("--landing", type=Path, required=True)
    parser.add_argument("--warehouse", type=Path, required=True)
    parser.add_argument("--day-by-day", action="store_true", help="a write for each day and layer")
    options = parser.parse_args()

    tables = BareTables(start_session(), options.warehouse)
    script = BareScript(tables, options.landing)
    for table in (RAW_FLIGHTS, STAGING_FLIGHTS, CARRIER_DELAYS):
        tables.create(table)
    ranges = list_ranges(options.first, options.last, day_by_day=options.day_by_day)
    # Layer by layer, because the flights of a day land on later days too.
    for write in (script.write_raw, script.write_staging, script.write_features):
        for first, last in ranges:
            write(first, last)
    tables.spark.stop()


if __name__ == "__main__":
    main()
