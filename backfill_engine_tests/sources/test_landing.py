"""Listing the landing zone: what counts as data, and what counts as changed."""

import datetime as dt
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from backfill_engine.errors import LandingError, LandingNotFoundError
from backfill_engine.grains.dates import DAYS as DAILY
from backfill_engine.lake.partitions import Partition
from backfill_engine.sources.json_landing import JsonLanding, JsonListing
from backfill_engine.sources.landing_names import BEING_WRITTEN
from backfill_engine_tests.shared_fixtures import build_days
from backfill_engine_tests.sources.landed_tables import build_landed_table

NEW_YEAR = dt.date(2013, 1, 1)
DAYS = [NEW_YEAR + dt.timedelta(days=n) for n in range(3)]


def land(root: Path, day: dt.date, name: str, content: bytes = b'{"id":1}\n') -> Path:
    path = root / "events" / f"year={day:%Y}" / f"month={day:%m}" / f"day={day:%d}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def list_events(root: Path, days: Sequence[dt.date] = DAYS) -> JsonListing:
    return JsonLanding("events").list_files(str(root), build_landed_table(DAILY), build(days))


def build(days: Sequence[dt.date]) -> list[Partition]:
    return [partition for day in days for partition in build_days(day.isoformat())]


def list_names(listing: JsonListing) -> list[tuple[dt.date, str]]:
    return [
        (dt.date.fromisoformat(key), Path(file.uri).name)
        for key, files in listing.list_landed().items()
        for file in files
        if file in listing.files
    ]


def test_listed_uris_sizes_and_times_are_those_of_the_files(tmp_path: Path) -> None:
    path = land(tmp_path, NEW_YEAR, "a.json", b"12345")
    (file,) = list_events(tmp_path).files
    assert (file.uri, file.size) == (str(path), 5)
    assert file.modified_ns == path.stat().st_mtime_ns


BEING_WRITTEN_NAMES = (
    *(".a.json", ".a.json.gz.Ab3dE9", ".in.a.json.gz.", ".#a.json", "a.json.gz.part"),
    *("a.json.crdownload", "a.json.filepart", "A.JSON.TMP", "a.json._COPYING_", "a.tmp"),
    *("a.json.gz.1b2c3d.partial", "a.json_.gstmp", ".part-0-1.inprogress.7f"),
    *("_temporary/0/a.json", ".spark-staging-0a1b/a.json", "__magic_job-1/a.json"),
    *("_tmp/a.json", ".hive-staging_hive_2013/a.json", ".rsync-partial/a.json"),
    *(".~tmp~/a.json", ".azDownload-9-a.json"),
)
DATA_NAMES = {"a.partial.json", "part-00000.json"}
OTHER_NAMES = (
    *("_SUCCESS", "._SUCCESS.crc", ".a.json.crc", "_a.json", "_template.json/b", "_metadata"),
    *(".DS_Store", "_started_7", "a.partial.json", "tmp/a.json", "README", "a.csv", "part"),
    *("part-00000.json", "a.json.sha256", "a.json.bak", "a.gz", "nested/a.json"),
)


@pytest.mark.parametrize("name", [*BEING_WRITTEN_NAMES, *OTHER_NAMES])
def test_what_is_data_and_what_is_being_written_is_told_by_its_name(
    tmp_path: Path, name: str
) -> None:
    other = land(tmp_path, NEW_YEAR, "data.json").parent / name
    other.parent.mkdir(parents=True, exist_ok=True)
    other.write_bytes(b"{}\n")
    listing = list_events(tmp_path)
    names = {found for _, found in list_names(listing)}
    assert names == {"data.json"} | ({name} & DATA_NAMES)
    faults = [fault.fault for fault in listing.faults]
    assert faults == ([BEING_WRITTEN] if name in BEING_WRITTEN_NAMES else [])


def test_names_that_are_not_utf8_are_faults(tmp_path: Path) -> None:
    folder = land(tmp_path, NEW_YEAR, "data.json").parent
    (folder / os.fsdecode(b"a\xff.json")).write_bytes(b"{}\n")
    (fault,) = list_events(tmp_path).faults
    assert fault.name.endswith("a\ufffd.json") and "isn't UTF-8: rename it" in fault.fault


def test_rings_of_links_end(tmp_path: Path) -> None:
    land(tmp_path, NEW_YEAR, "data.json").parent.joinpath("up").symlink_to("..")
    assert list_names(list_events(tmp_path)) == [(NEW_YEAR, "data.json")]


@pytest.mark.parametrize("missing", ["", "events"], ids=["root", "dataset"])
@pytest.mark.parametrize("in_place", [None, b"a file"], ids=["gone", "a file"])
def test_landing_zone_that_is_not_there_is_refused(
    tmp_path: Path, missing: str, in_place: bytes | None
) -> None:
    root = tmp_path / "zone"
    path = root / missing
    path.parent.mkdir(exist_ok=True)
    if in_place:
        path.write_bytes(in_place)
    with pytest.raises(LandingNotFoundError) as caught:
        list_events(root)
    assert str(caught.value) == (
        f"the landing folder {path} isn't there: mount it or set BACKFILL_LANDING; "
        "nothing was written"
    )


def test_what_cannot_be_listed_is_refused(tmp_path: Path) -> None:
    month = tmp_path / "events" / "year=2013" / "month=01"
    month.parent.mkdir(parents=True)
    month.write_bytes(b"a file")
    with pytest.raises(LandingError, match=r"can't list .*month=01: .*; nothing was written"):
        list_events(tmp_path)


def test_unknown_file_system_is_refused() -> None:
    with pytest.raises(LandingError, match="can't open the landing zone ftp://host/x"):
        JsonLanding("events").list_files("ftp://host/x", build_landed_table(DAILY), build(DAYS))


def test_fingerprint_changes_when_a_file_is_rewritten(tmp_path: Path) -> None:
    path = land(tmp_path, NEW_YEAR, "a.json")
    before = list_events(tmp_path).fingerprint()
    assert list_events(tmp_path).fingerprint() == before
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))  # same size, a nanosecond later
    assert list_events(tmp_path).fingerprint() != before


def test_fingerprint_does_not_depend_on_the_root(tmp_path: Path) -> None:
    land(tmp_path / "here", NEW_YEAR, "a.json")
    shutil.copytree(tmp_path / "here", tmp_path / "there" / "too")
    original, copied = list_events(tmp_path / "here"), list_events(tmp_path / "there" / "too")
    assert original.fingerprint() == copied.fingerprint()


def test_part_of_a_listing_knows_only_its_days(tmp_path: Path) -> None:
    for day in DAYS[:2]:
        land(tmp_path, day, "a.json")
    listing = list_events(tmp_path)
    part = listing.restrict(build(DAYS[1:]))
    alone = list_events(tmp_path, DAYS[1:])
    assert (part.partitions, part.files) == (alone.partitions, alone.files)
    assert (part.missing, part.fingerprint()) == (alone.missing, alone.fingerprint())
    assert part.describe_landed() == alone.describe_landed()
    assert part.list_landed() == alone.list_landed()
    assert part.missing == tuple(build(DAYS[2:]))
    land(tmp_path, DAYS[0], "late.json")
    part.check_unchanged()


@pytest.mark.parametrize("change", ["rewritten", "added", "removed"])
def test_changed_files_fail_the_check_with_their_day(tmp_path: Path, change: str) -> None:
    for day in DAYS:
        land(tmp_path, day, "a.json")
    listing = list_events(tmp_path)
    match change:
        case "rewritten":
            land(tmp_path, DAYS[1], "a.json", b'{"id":22}\n')
        case "added":
            land(tmp_path, DAYS[1], "late.json")
        case "removed":
            Path(listing.files[1].uri).unlink()
    with pytest.raises(LandingError, match="rows of 2013-01-02 changed") as caught:
        listing.check_unchanged()
    assert "\n" not in str(caught.value)
