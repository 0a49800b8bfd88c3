"""The flights pipeline as a bare PySpark script, the yardstick for the project's range runs.

The same reads, the project's own transforms and Spark settings, one `replaceWhere` write for each
range and layer. No Dagster, no audit, no persisted frame, no row for each partition, no locks.
"""

import argparse
import datetime as dt
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_assets.spark.session import build_spark_conf
from backfill_assets.tables.declarations import Table, build_ddl
from backfill_assets.tables.flights import (
    CARRIER_DELAYS,
    RAW_FLIGHTS,
    STAGING_FLIGHTS,
    WINDOW_DAYS,
)
from backfill_assets.transforms.carrier_delays import build_carrier_delays
from backfill_assets.transforms.raw_flights import build_raw_flights
from backfill_assets.transforms.staging_flights import build_staging_flights

_DAY = dt.timedelta(days=1)
_BEGIN = dt.date(2013, 1, 1)


class BareScript:
    """One session, one landing zone and one warehouse, both local paths."""

    def __init__(self, spark: SparkSession, landing: Path, warehouse: Path) -> None:
        self._spark = spark
        self._landing = landing
        self._warehouse = warehouse

    def create_table(self, table: Table) -> None:
        """Creates the table, empty, partitioned as the project's."""
        self._spark.sql(
            f"CREATE TABLE delta.`{self._warehouse / table.key}` ({build_ddl(table.columns)}) "
            f"USING DELTA PARTITIONED BY (`{table.partition_by}`)"
        )

    def write_raw(self, first: dt.date, last: dt.date) -> None:
        """Landed lines of the days `first` to `last`, both included."""
        below_dataset = F.substring_index("_metadata.file_path", "/", -4)
        # year=YYYY/month=MM/day=DD/NAME
        year, month, day = (
            F.substring(below_dataset, at, width) for at, width in ((6, 4), (17, 2), (24, 2))
        )
        lines = self._spark.read.text(self._find_landed_files(first, last)).select(
            "value",
            F.to_date(F.concat_ws("-", year, month, day)).alias("landing_date"),
            F.concat(F.lit("flights/"), below_dataset).alias("source_file"),
        )
        self._overwrite(RAW_FLIGHTS, build_raw_flights(lines, begin=_BEGIN), first, last)

    def write_staging(self, first: dt.date, last: dt.date) -> None:
        """The flights of the days, from what landed on the first of them or later."""
        raw = self._read(RAW_FLIGHTS, "flight_date", first, last)
        raw = raw.where(F.col("landing_date") >= F.lit(first))
        self._overwrite(STAGING_FLIGHTS, build_staging_flights(raw), first, last)

    def write_features(self, first: dt.date, last: dt.date) -> None:
        """The delays of the windows that end on the days."""
        begin = first - (WINDOW_DAYS - 1) * _DAY
        flights = self._read(STAGING_FLIGHTS, "flight_date", begin, last)
        delays = build_carrier_delays(flights).where(_between("flight_date", first, last))
        self._overwrite(CARRIER_DELAYS, delays, first, last)

    def _find_landed_files(self, first: dt.date, last: dt.date) -> list[str]:
        begin, end = (f"year={day:%Y}/month={day:%m}/day={day:%d}" for day in (first, last))
        root = self._landing / "flights"
        return [
            str(path)
            for path in sorted(root.glob("year=*/month=*/day=*/*.json.gz"))
            if begin <= path.parent.relative_to(root).as_posix() <= end
        ]

    def _read(self, table: Table, column: str, first: dt.date, last: dt.date) -> DataFrame:
        rows = self._spark.read.format("delta").load(str(self._warehouse / table.key))
        return rows.where(_between(column, first, last))

    def _overwrite(self, table: Table, rows: DataFrame, first: dt.date, last: dt.date) -> None:
        (
            rows.select(*table.column_names)
            # One file a partition, as in the project's tables.
            .repartition(table.partition_by)
            .write.format("delta")
            .mode("overwrite")
            .option("replaceWhere", _between(table.partition_by, first, last))
            .save(str(self._warehouse / table.key))
        )


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

    conf = build_spark_conf(remote=None, jars=None, overrides={})
    spark = SparkSession.builder.config(map={**conf}).getOrCreate()
    script = BareScript(spark, options.landing, options.warehouse)
    for table in (RAW_FLIGHTS, STAGING_FLIGHTS, CARRIER_DELAYS):
        script.create_table(table)
    ranges = list_ranges(options.first, options.last, day_by_day=options.day_by_day)
    # Layer by layer, because the flights of a day land on later days too.
    for write in (script.write_raw, script.write_staging, script.write_features):
        for first, last in ranges:
            write(first, last)
    spark.stop()


if __name__ == "__main__":
    main()
