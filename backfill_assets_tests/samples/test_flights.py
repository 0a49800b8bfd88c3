"""The sample as files on disk; counted without this project's code."""

import datetime as dt
import gzip
import json
from collections import Counter

import pytest

from backfill_assets.samples.flights import SampleReport, compute_landing_day, land_flights
from backfill_assets_tests.samples.landed_files import TwoLandings, land_twice
from backfill_engine.errors import BackfillError

SPOILED = "year=2013/month=07/day=01/flights.json.gz"


@pytest.fixture(scope="session")
def landings(tmp_path_factory: pytest.TempPathFactory) -> TwoLandings:
    """Lands the sample, spoils files, lands it again."""
    return land_twice(tmp_path_factory.mktemp("landing"), "flights", land_flights, [SPOILED])


def build_record(**changes: int | str | None) -> dict[str, int | str | None]:
    scheduled = {"year": 2013, "month": 12, "day": 31, "hour": 23, "minute": 59}
    return {**scheduled, "dep_delay": None, "air_time": None, **changes}


@pytest.mark.parametrize(
    ("changes", "landed"),
    [
        ({}, dt.date(2013, 12, 31)),
        ({"air_time": 1}, dt.date(2014, 1, 1)),
        ({"dep_delay": 1}, dt.date(2014, 1, 1)),
        ({"dep_delay": -1, "air_time": 1}, dt.date(2013, 12, 31)),
        ({"dep_delay": 0, "air_time": 0}, dt.date(2013, 12, 31)),
        ({"dep_delay": 1301, "air_time": 140}, dt.date(2014, 1, 2)),
        ({"hour": 0, "minute": 5, "dep_delay": -6}, dt.date(2013, 12, 30)),
        ({"month": 2, "day": 28, "air_time": 1}, dt.date(2013, 3, 1)),
    ],
)
def test_record_lands_on_the_day_the_plane_does(
    changes: dict[str, int | str | None], landed: dt.date
) -> None:
    assert compute_landing_day(build_record(**changes)) == landed


def test_all_records_land_on_their_day_or_the_next(landings: TwoLandings) -> None:
    days_late: Counter[int] = Counter()
    for name, (content, _) in landings.files_of_first.items():
        year, month, day, _ = name.split("/")
        landed = dt.date(*(int(part.split("=")[1]) for part in (year, month, day)))
        for line in gzip.decompress(content).splitlines():
            record = json.loads(line)
            flown = dt.date(record["year"], record["month"], record["day"])
            days_late[(landed - flown).days] += 1
    assert days_late == {0: 317_465, 1: 19_311}
    assert days_late.total() == 336_776


def test_every_day_has_one_file_and_nothing_else_lies_about(landings: TwoLandings) -> None:
    days = [dt.date(2013, 1, 1) + dt.timedelta(days=n) for n in range(366)]
    names = [f"year={day:%Y}/month={day:%m}/day={day:%d}/flights.json.gz" for day in days]
    assert sorted(landings.files_of_first) == names
    assert landings.first == SampleReport(records=336_776, days=366, files_written=366)


def test_second_landing_writes_only_what_differs(landings: TwoLandings) -> None:
    assert landings.second == SampleReport(records=336_776, days=366, files_written=1)
    assert landings.rewritten == {SPOILED}


def test_missing_values_are_nulls_and_numbers_are_numbers(landings: TwoLandings) -> None:
    content, _ = landings.files_of_first["year=2013/month=01/day=01/flights.json.gz"]
    records = [json.loads(line) for line in gzip.decompress(content).splitlines()]
    assert all("NA" not in record.values() and "" not in record.values() for record in records)
    united = next(
        record for record in records if (record["carrier"], record["flight"]) == ("UA", 1545)
    )
    assert (united["dep_time"], united["dep_delay"], united["tailnum"]) == (517, 2, "N14228")


def test_object_stores_are_refused() -> None:
    with pytest.raises(BackfillError, match="local paths only, not s3a://bucket/landing"):
        land_flights("s3a://bucket/landing")
