"""JSON lines in folders of an hour; `test_landing.py` has what days and hours share."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import pytest

from backfill_engine.grains.dates import DAYS
from backfill_engine.grains.grain import Grain
from backfill_engine.grains.timestamps import HOURS
from backfill_engine.lake.partitions import Partition, build_partition
from backfill_engine.sources.json_landing import JsonLanding, JsonListing
from backfill_engine_tests.sources.landed_tables import build_landed_table

MIDNIGHT = dt.datetime(2013, 2, 1, tzinfo=dt.UTC)
STARTS = [MIDNIGHT + dt.timedelta(hours=n) for n in (-1, 0, 1)]
EVE, FIRST, SECOND = PARTITIONS = [build_partition(HOURS, start) for start in STARTS]


def land(root: Path, start: dt.datetime, name: str) -> Path:
    return land_in(root, f"year={start:%Y}/month={start:%m}/day={start:%d}/hour={start:%H}", name)


def land_in(root: Path, folder: str, name: str) -> Path:
    path = root / "events" / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b'{"id":1}\n')
    return path


def list_events(
    root: Path, partitions: Sequence[Partition] = PARTITIONS, grain: Grain = HOURS
) -> JsonListing:
    return JsonLanding("events").list_files(str(root), build_landed_table(grain), partitions)


def list_names(listing: JsonListing) -> list[tuple[str, str]]:
    return [
        (key, Path(file.uri).name)
        for key, files in listing.list_landed().items()
        for file in files
        if file in listing.files
    ]


def test_files_are_listed_by_the_hour_of_their_folder_over_the_end_of_a_month(
    tmp_path: Path,
) -> None:
    for start, name in zip(STARTS, ("c.json", "b.json.gz", "a.json"), strict=True):
        land(tmp_path, start, name)
    listing = list_events(tmp_path, PARTITIONS[::-1])
    assert listing.partitions == tuple(PARTITIONS)
    assert list_names(listing) == [
        ("2013-01-31-23:00", "c.json"),
        ("2013-02-01-00:00", "b.json.gz"),
        ("2013-02-01-01:00", "a.json"),
    ]


def test_only_the_hours_asked_for_are_listed(tmp_path: Path) -> None:
    for start in (*STARTS, MIDNIGHT + dt.timedelta(days=1), MIDNIGHT - dt.timedelta(days=1)):
        land(tmp_path, start, "a.json")
    assert list_names(list_events(tmp_path, [FIRST])) == [(FIRST.key, "a.json")]


@pytest.mark.parametrize(
    "folder",
    ["", "/hour=0", "/hour=00/part=1", "/hour=24", "/hour=00:00", "/00"],
    ids=["a day's", "one digit", "nested", "no hour", "a key", "no name"],
)
def test_other_folders_of_the_day_are_of_no_hour(tmp_path: Path, folder: str) -> None:
    land_in(tmp_path, f"year=2013/month=02/day=01{folder}", "a.json")
    assert list_events(tmp_path).files == []


def test_day_does_not_hold_the_files_of_its_hours(tmp_path: Path) -> None:
    land(tmp_path, MIDNIGHT, "a.json")
    land_in(tmp_path, "year=2013/month=02/day=01", "b.json")
    day = build_partition(DAYS, MIDNIGHT.date())
    assert list_names(list_events(tmp_path, [day], DAYS)) == [("2013-02-01", "b.json")]


def test_hours_without_files_are_missing_and_none_is_unfinished(tmp_path: Path) -> None:
    land(tmp_path, STARTS[1], "a.json")
    land(tmp_path, STARTS[2], "_SUCCESS")
    listing = list_events(tmp_path)
    assert listing.missing == (EVE, SECOND)
    assert listing.unfinished == {}


def test_bytes_are_summed_by_hour(tmp_path: Path) -> None:
    sizes = {name: land(tmp_path, MIDNIGHT, name).stat().st_size for name in ("a.json", "b.json")}
    land(tmp_path, STARTS[2], "c.json")
    assert list_events(tmp_path, [FIRST]).measure_bytes() == {FIRST.key: sum(sizes.values())}


def test_files_are_described_by_hour_as_if_it_was_listed_alone(tmp_path: Path) -> None:
    land(tmp_path, STARTS[0], "a.json")
    land(tmp_path, STARTS[2], "c.json")
    land(tmp_path, STARTS[2], "_EMPTY")
    described = list_events(tmp_path).describe_files()
    assert [(found.files, found.bytes) for found in described.values()] == [(1, 9), (0, 0), (2, 18)]
    for partition in PARTITIONS:
        found = described[partition.key]
        alone = list_events(tmp_path, [partition]).fingerprint()
        assert f"{found.files} files {found.fingerprint}" == alone


def test_what_is_wrong_with_a_folder_is_wrong_with_each_of_its_hours(tmp_path: Path) -> None:
    land(tmp_path, STARTS[0], "a.json")
    (tmp_path / "events" / "year=2013" / "month=02").mkdir()
    (tmp_path / "events" / "year=2013" / "month=02" / "day=01").symlink_to("nowhere")
    faults = list_events(tmp_path).faults
    assert [fault.partition for fault in faults] == [FIRST, SECOND]
    assert {fault.name for fault in faults} == {"events/year=2013/month=02/day=01"}


def test_what_landed_from_a_day_on_is_listed(tmp_path: Path) -> None:
    for start in (MIDNIGHT, *(MIDNIGHT + dt.timedelta(days=days) for days in (1, 40, 400))):
        land(tmp_path, start, "a.json")
    land(tmp_path, MIDNIGHT + dt.timedelta(days=2), "_EMPTY")
    land(tmp_path, MIDNIGHT + dt.timedelta(days=3), "a.csv")
    for folder in ("year=2013/month=03/day=1/hour=00", "year=2013/month=99/day=01/hour=00", "x"):
        land_in(tmp_path, folder, "a.json")
    table, begin = build_landed_table(HOURS), dt.date(2013, 2, 2)
    assert JsonLanding("events").list_landed_from(str(tmp_path), table, begin) == [
        "2013-02-02-00:00",
        "2013-02-03-00:00",
        "2013-03-13-00:00",
        "2014-03-08-00:00",
    ]
    assert (
        JsonLanding("none").list_landed_from(
            str(tmp_path), build_landed_table(HOURS), dt.date(2013, 2, 2)
        )
        == []
    )
