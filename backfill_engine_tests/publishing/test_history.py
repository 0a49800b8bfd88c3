"""History is published like what lands daily: audited, by partition, with the same rows and types.

The feed of some days is landed as such, and again as files of a historical load; what is published
of both has to be the same.
"""

import csv
import datetime as dt
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from backfill_assets.tables.flights import FLIGHT_FIELDS
from backfill_assets.transforms.raw_flights import build_raw_flights
from backfill_engine.contents.partition_contents import read_back
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.side_tables import build_quarantine_table
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.sources.historical_loads import HistoricalLoad
from backfill_engine.sources.history import History
from backfill_engine.sources.json_landing import JsonLanding
from backfill_engine.sources.record_files import CsvFiles, DatePart, Origin
from backfill_engine_tests.pipeline.landing_zone import Flight, LandingZone, build_flights
from backfill_engine_tests.pipeline.publishing import RAW_RECIPE, Lake
from backfill_engine_tests.project import RAW_FLIGHTS
from backfill_engine_tests.shared_fixtures import build_days

_BEGIN, _FEED = dt.date(2013, 1, 1), dt.date(2013, 2, 1)
_SAME = [name for name in build_flights("2013-01-01")[0] if name not in ("year", "month", "day")]
_DATES: list[tuple[str, Origin]] = [
    ("year", DatePart("flown", "year")),
    ("month", DatePart("flown", "month")),
    ("day", DatePart("flown", "day")),
]
LOAD = HistoricalLoad(
    "january",
    CsvFiles(
        "old/{partition:%Y-%m}.csv",
        where="flown",
        origins=(*_DATES, *((name, f"{name} then") for name in _SAME)),
        delimiter="|",
    ),
    _BEGIN,
    _FEED,
)
RECIPE = replace(
    RAW_RECIPE,
    compute=lambda window: build_raw_flights(
        window.read_landing(), begin=_BEGIN, extra_fields=window.extra_fields
    ),
    history=History(
        JsonLanding("flights", FLIGHT_FIELDS),
        (LOAD.fit_feed(RAW_FLIGHTS, FLIGHT_FIELDS),),
        _FEED,
    ),
)


def write_history(root: Path, flights: Iterable[Flight], *more: str) -> None:
    """Writes flights, and other lines, as the file of January."""
    path = root / "old" / "2013-01.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="|", lineterminator="\n")
        writer.writerow(["flown", *(f"{name} then" for name in _SAME)])
        for flight in flights:
            day = dt.date(flight["year"], flight["month"], flight["day"])
            writer.writerow([day, *(flight[name] for name in _SAME)])
        file.writelines(f"{line}\n" for line in more)


def build_month(*, without: Iterable[str] = ()) -> list[Flight]:
    """The flights of January."""
    days = {partition.key for partition in build_days("2013-01-01", 31)} - {*without}
    return [flight for day in sorted(days) for flight in build_flights(day)]


@dataclass(frozen=True)
class Zone:
    """A lake of its own."""

    lake: Lake

    @property
    def root(self) -> Path:
        """Where files land."""
        return Path(self.lake.landing_root)

    def publish(self, days: Sequence[Partition], run_id: str = "run") -> dict[str, str]:
        """Publishes days; returns why each was withheld, which is empty if it wasn't."""
        results = self.lake.publish(RECIPE, days, run_id=run_id)
        return {
            result.key: "" if result.version is not None else str(result.verdict.findings)
            for result in results
        }

    def read(self) -> list[dict[str, Any]]:
        """All published rows but for the name of their file, sorted."""
        rows = self.lake.warehouse.open(RAW_FLIGHTS).to_pyarrow_table()
        return sorted(rows.drop_columns(["source_file"]).to_pylist(), key=str)


def open_zone(spark: SparkSession, root: Path) -> Zone:
    (root / "landing" / "flights").mkdir(parents=True)
    return Zone(Lake(spark, Warehouse(str(root / "warehouse")), str(root / "landing")))


@pytest.fixture
def zone(spark: SparkSession, tmp_path: Path) -> Zone:
    return open_zone(spark, tmp_path)


def land_daily(zone: Zone, days: Iterable[str]) -> None:
    """Lands each day's own flights on their day."""
    for day in days:
        LandingZone(zone.root).write(day, map(json.dumps, build_flights(day)))


def test_history_has_the_rows_and_the_schema_of_the_feed(zone: Zone, tmp_path: Path) -> None:
    old, daily = zone, open_zone(zone.lake.spark, tmp_path / "daily")
    write_history(old.root, build_month())
    land_daily(daily, [day.key for day in build_days("2013-01-05", 4)])
    days = build_days("2013-01-05", 4)
    assert set(old.publish(days).values()) == {""}
    assert {result.version for result in daily.lake.publish(RAW_RECIPE, days)} == {1}
    assert old.read() == daily.read()
    assert len(old.read()) == 4 * 120
    schemas = [zone.lake.warehouse.open(RAW_FLIGHTS).schema() for zone in (old, daily)]
    assert schemas[0] == schemas[1]
    log = read_log(old.lake.warehouse, RAW_FLIGHTS)
    found = read_back(log, days)
    assert {key: contents.checksum for key, contents in found.items()} == {
        key: publish.checksum for key, publish in log.publishes.items()
    }
    consumed = log.publishes["2013-01-05"].consumed.landed
    assert consumed is not None
    assert (consumed.files, consumed.bytes) == (1, (old.root / "old/2013-01.csv").stat().st_size)


def test_a_range_over_the_beginning_of_the_feed_reads_each_day_where_it_is(zone: Zone) -> None:
    # The feed's files from before it begins aren't read, nor the history's from after that.
    write_history(zone.root, build_month(), "2013-02-01|" + "|" * (len(_SAME) - 1))
    land_daily(zone, ["2013-01-30", "2013-02-01", "2013-02-02"])
    assert set(zone.publish(build_days("2013-01-30", 4)).values()) == {""}
    files = {
        (str(row["landing_date"]), row["source_file"])
        for row in zone.lake.warehouse.open(RAW_FLIGHTS).to_pyarrow_table().to_pylist()
    }
    assert files == {
        ("2013-01-30", "old/2013-01.csv"),
        ("2013-01-31", "old/2013-01.csv"),
        ("2013-02-01", "flights/year=2013/month=02/day=01/flights.json.gz"),
        ("2013-02-02", "flights/year=2013/month=02/day=02/flights.json.gz"),
    }


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_bad_day_of_history_holds_back_itself_alone_and_is_mended_alone(zone: Zone) -> None:
    flights = build_month(without=["2013-01-09"])
    for flight in flights:
        if flight["day"] == 7:
            flight["carrier"] = None
    write_history(zone.root, flights, "2013-01-10|too few")
    days = build_days("2013-01-06", 5)
    reasons = zone.publish(days)
    assert {key for key, reason in reasons.items() if not reason} == {
        "2013-01-06", "2013-01-08", "2013-01-10"
    }  # fmt: skip
    assert "rejects" in reasons["2013-01-07"]
    assert "hold no record of it (old/2013-01.csv)" in reasons["2013-01-09"]
    published = read_log(zone.lake.warehouse, RAW_FLIGHTS).publishes
    assert sum(publish.rows for publish in published.values()) == 3 * 120
    aside = zone.lake.warehouse.open(build_quarantine_table(RAW_FLIGHTS)).to_pyarrow_table()
    assert "2013-01-10|too few" in aside.column("line").to_pylist()
    before = published["2013-01-08"]
    write_history(zone.root, build_month())
    again = [day for day in days if day.key in ("2013-01-07", "2013-01-09")]
    assert set(zone.publish(again, run_id="again").values()) == {""}
    after = read_log(zone.lake.warehouse, RAW_FLIGHTS).publishes
    assert after["2013-01-08"].version == before.version
    assert after["2013-01-07"].version > before.version
    assert sum(publish.rows for publish in after.values()) == 5 * 120


def test_no_record_is_lost_whatever_it_says(zone: Zone) -> None:
    write_history(zone.root, build_month(), "no day|" + "|" * (len(_SAME) - 1), "2013-02-01|x")
    (result,) = zone.lake.publish(RECIPE, build_days("2013-01-01"))
    # One broken line in sixty is too many; these lines are kept aside as they came.
    assert (result.measures.rows, result.measures.rejects) == (120, 2)
    assert result.version is None
    aside = zone.lake.warehouse.open(build_quarantine_table(RAW_FLIGHTS)).to_pyarrow_table()
    assert sorted(row["reason"] for row in aside.to_pylist()) == [
        "`year` is missing",
        "the line is not one JSON object",
    ]
    assert {str(row["landing_date"]) for row in aside.to_pylist()} == {"2013-01-01"}
    assert "2013-02-01|x" in {row["line"] for row in aside.to_pylist()}


def test_days_without_a_file_have_never_landed(zone: Zone) -> None:
    (zone.root / "old").mkdir()
    days = build_days("2013-01-03", 2)
    assert zone.lake.pin(RECIPE, days).find_never_landed() == {"2013-01-03", "2013-01-04"}
