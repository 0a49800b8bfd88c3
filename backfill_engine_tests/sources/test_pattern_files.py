"""Files whose paths name days: which days each holds, what is wrong with it, records by day."""

import datetime as dt
import gzip
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from backfill_engine.errors import DeclarationError, LandingError, LandingNotFoundError
from backfill_engine.grains.dates import DAYS
from backfill_engine.sources.historical_loads import HistoricalLoad
from backfill_engine.sources.history import History, JoinedListing
from backfill_engine.sources.json_landing import JsonLanding, JsonListing
from backfill_engine.sources.pattern_files import PatternFiles, PatternListing
from backfill_engine.sources.record_files import CsvFiles
from backfill_engine.sources.source import Listing
from backfill_engine.tables.columns import Column
from backfill_engine_tests.shared_fixtures import build_days
from backfill_engine_tests.sources.landed_tables import build_landed_table

FIELDS = (Column("id", "STRING", "Number."), Column("note", "STRING", "Note."))
FILES = CsvFiles(
    "old/{partition:%Y}/readings_{partition:%Y-%m}*.csv",
    fields=FIELDS,
    where="on",
    origins=(("id", "number"),),
)
TABLE = build_landed_table(DAYS, by="day")
PLAIN = "on,number\n2011-01-31,1\n2011-01-31,2\n2011-01-30,3\n"


def write(root: Path, name: str, content: str | bytes = PLAIN) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def list_days(
    root: Path, first: str, count: int = 1, files: PatternFiles = FILES
) -> PatternListing:
    return files.list_files(str(root), TABLE, build_days(first, count))


def name_files(listing: Listing) -> dict[str, list[str]]:
    return {
        key: [listing.name_file(file) for file in files]
        for key, files in listing.list_landed().items()
    }


def test_a_day_is_in_the_files_whose_names_say_so(tmp_path: Path) -> None:
    for name in (
        "old/2011/readings_2011-01.csv",
        "old/2011/readings_2011-01_more.csv",
        "old/2011/readings_2011-02.csv",
        "old/2011/_readings_2011-01.csv",
        "old/2011/readings_2011-02.csv.part",
        "old/2011/sub/readings_2011-02.csv",
        "old/2012/readings_2011-02.csv",
    ):
        write(tmp_path, name)
    listing = list_days(tmp_path, "2011-01-31", 30)
    january = ["old/2011/readings_2011-01.csv", "old/2011/readings_2011-01_more.csv"]
    named = name_files(listing)
    assert named["2011-01-31"] == january
    assert named["2011-02-01"] == named["2011-02-28"] == ["old/2011/readings_2011-02.csv"]
    assert named["2011-03-01"] == []
    assert [day.key for day in listing.missing] == ["2011-03-01"]
    assert listing.measure_bytes()["2011-02-01"] == len(PLAIN) // 28
    described = listing.describe_files()
    assert described["2011-01-31"].files == 2
    assert described["2011-02-01"] == described["2011-02-28"] != described["2011-01-31"]
    assert listing.describe_landed()["2011-03-01"].lack == (
        "old/2011/readings_2011-03*.csv isn't there"
    )
    again = f"{january[1]} holds the same as {january[0]}"
    assert listing.describe_landed()["2011-01-31"].repeated == (again,)
    assert listing.describe_landed()["2011-02-01"].repeated == ()


def test_restricting_leaves_the_files_of_the_days(tmp_path: Path) -> None:
    write(tmp_path, "old/2011/readings_2011-01.csv")
    write(tmp_path, "old/2011/readings_2011-02.csv")
    listing = list_days(tmp_path, "2011-01-01", 59)
    february = listing.restrict(build_days("2011-02-03", 2))
    assert [day.key for day in february.partitions] == ["2011-02-03", "2011-02-04"]
    assert [listing.name_file(part.file) for part in february.files] == [
        "old/2011/readings_2011-02.csv"
    ]
    assert february.fingerprint() != listing.fingerprint()


def test_older_files_are_left_out_if_it_says_so(tmp_path: Path) -> None:
    old = write(tmp_path, "old/2011/readings_2011-01.csv")
    write(tmp_path, "old/2011/readings_2011-02.csv")
    os.utime(old, (1_000_000_000, 1_000_000_000))
    since = replace(FILES, modified_after=dt.datetime(2001, 9, 9, 1, 46, 40, tzinfo=dt.UTC))
    assert [day.key for day in list_days(tmp_path, "2011-01-31", 2, since).missing] == [
        "2011-01-31"
    ]
    before = replace(FILES, modified_after=dt.datetime(2001, 9, 9, 1, 46, 39, tzinfo=dt.UTC))
    assert not list_days(tmp_path, "2011-01-31", 2, before).missing


@pytest.mark.parametrize(
    ("path", "cure"),
    [
        ("old/readings_{partition:%m}.csv", "is the same for partitions that don't follow one"),
        ("old/all.csv", "is the same for partitions that don't follow one another"),
        ("old/{partition:%Y-%m}.csv", "name the field that tells them apart, as `where`"),
        ("old/{partition:03d}.csv", "can't name a partition by days"),
    ],
)
def test_a_path_that_does_not_tell_partitions_apart_is_refused(path: str, cure: str) -> None:
    with pytest.raises(DeclarationError, match=re.escape(cure)):
        CsvFiles(path, fields=FIELDS).refuse_table(TABLE)


@pytest.mark.parametrize(
    ("path", "cure"),
    [
        ("", "is no path below the landing zone"),
        ("/old/{partition}.csv", "link or copy the files there"),
        ("s3://bucket/old/{partition}.csv", "link or copy the files there"),
        ("old/../../{partition}.csv", "link or copy the files there"),
        ("{partition:%Y}/old.csv", "begins with a pattern: begin with a folder"),
        ("old.csv", "begins with a pattern: begin with a folder"),
        ("old/{partition.csv", "write {partition:%Y-%m}"),
        ("old/{partition}.json", "must end with .csv or"),
    ],
)
def test_what_can_be_no_path_is_refused(path: str, cure: str) -> None:
    with pytest.raises(DeclarationError, match=re.escape(cure)):
        CsvFiles(path)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(LandingNotFoundError, match=re.escape(str(tmp_path / "old"))):
        list_days(tmp_path, "2011-01-01")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (
            "on,amount\n2011-01-01,1\n",
            "lacks the column number: land it again",
        ),
        ("", "lacks the column on"),
        ("on,number,on\n2011-01-01,1,2\n", "has the column on more than once"),
        (b"\xff\xfe\x00\n", "can't be read as csv: land it again"),
    ],
)
def test_files_that_are_not_as_declared_are_faults_of_all_their_days(
    tmp_path: Path, content: str | bytes, fault: str
) -> None:
    write(tmp_path, "old/2011/readings_2011-01.csv", content)
    write(tmp_path, "old/2011/readings_2011-02.csv")
    listing = list_days(tmp_path, "2011-01-30", 4)
    assert [landing_fault.partition.key for landing_fault in listing.faults] == [
        "2011-01-30",
        "2011-01-31",
    ]
    assert {landing_fault.name for landing_fault in listing.faults} == {
        "old/2011/readings_2011-01.csv"
    }
    assert all(landing_fault.fault.startswith(fault) for landing_fault in listing.faults)


def test_what_is_half_written_is_a_fault_of_the_days_that_it_may_hold(tmp_path: Path) -> None:
    for name in (
        "2011-01.csv",
        "2011-02.csv",
        ".2011-02.csv.Ab3dE9",
        "_SUCCESS",
        "2012-07.csv.tmp",
    ):
        write(tmp_path, f"old/{name}")
    (tmp_path / "old/2011-01.csv").unlink()
    (tmp_path / "old/2011-01.csv").symlink_to("nowhere")
    files = replace(FILES, path="old/{partition:%Y-%m}.csv")
    faults = list_days(tmp_path, "2011-01-31", 2, files).faults
    assert [(fault.partition.key, fault.name) for fault in faults] == [
        ("2011-01-31", "old/2011-01.csv"),
        ("2011-02-01", "old/.2011-02.csv.Ab3dE9"),
    ]
    (tmp_path / "old/_temporary").mkdir()
    faults = list_days(tmp_path, "2011-03-31", 2, files).faults
    assert [fault.name for fault in faults] == ["old/_temporary"] * 2


def test_an_upload_that_broke_off_is_a_fault(tmp_path: Path) -> None:
    files = replace(FILES, path="old/{partition:%Y-%m}.csv.gz")
    whole = gzip.compress(b"on,number\n" + b"2011-01-01,7\n" * 5000)
    write(tmp_path, "old/2011-01.csv.gz", whole[:-40])
    write(tmp_path, "old/2011-02.csv.gz", b"")
    listing = list_days(tmp_path, "2011-01-31", 2, files)
    # Its first line can be read, the rest can't.
    assert [landing_fault.partition.key for landing_fault in listing.faults] == ["2011-02-01"]
    assert [
        (broken_file.partition.key, broken_file.name) for broken_file in listing.find_broken("")
    ] == [
        ("2011-01-31", "old/2011-01.csv.gz"),
        ("2011-02-01", "old/2011-02.csv.gz"),
    ]


def test_each_record_is_counted_for_one_day(tmp_path: Path) -> None:
    lines = [
        "on;number",
        "2011-01-02;1",
        '"2011-01-02";"a;b"',
        "2011-02-01;of another file",
        "2011-13-01;no date",
        "2011-1-2;not written so",
        ";none",
        "2011-01-03;too;many",
        "",
        "   ",
        "2011-01-03",
    ]
    files = replace(FILES, delimiter=";")
    write(tmp_path, "old/2011/readings_2011-01.csv", "\ufeff" + "\r\n".join(lines))
    counted = list_days(tmp_path, "2011-01-01", 31, files).count_lines()
    assert counted["2011-01-01"] == 4
    assert counted["2011-01-02"] == counted["2011-01-03"] == 2
    assert sum(counted.values()) == 8


def test_what_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "old/2011/readings_2011-01.csv")
    listing = list_days(tmp_path, "2011-01-31", 2)
    listing.check_unchanged()
    write(tmp_path, "old/2011/readings_2011-02.csv")
    with pytest.raises(LandingError, match="files or rows of 2011-02-01 changed while they were"):
        listing.check_unchanged()


def land_feed(root: Path, days: Iterable[str]) -> None:
    for day in days:
        year, month, of_month = day.split("-")
        write(root, f"readings/year={year}/month={month}/day={of_month}/a.json", '{"id": 1}\n')


def test_history_is_never_read_from_the_feed_nor_the_feed_from_history(tmp_path: Path) -> None:
    for month in ("2011-12", "2011-11"):
        write(tmp_path, f"old/2011/readings_{month}.csv")
    land_feed(tmp_path, ["2011-12-19", "2011-12-20", "2011-12-21"])
    load = HistoricalLoad("year", FILES, dt.date(2011, 1, 1), dt.date(2012, 1, 1))
    source = History(JsonLanding("readings", FIELDS), (load,), dt.date(2011, 12, 20))
    listing = source.list_files(str(tmp_path), TABLE, build_days("2011-12-18", 4))
    assert name_files(listing) == {
        "2011-12-18": ["old/2011/readings_2011-12.csv"],
        "2011-12-19": ["old/2011/readings_2011-12.csv"],
        "2011-12-20": ["readings/year=2011/month=12/day=20/a.json"],
        "2011-12-21": ["readings/year=2011/month=12/day=21/a.json"],
    }
    assert isinstance(listing, JoinedListing)
    assert [type(part) for part in listing.parts] == [PatternListing, JsonListing]
    assert list(listing.describe_files()) == [*listing.describe_landed()]
    assert listing.count_records() == {"2011-12-20": 1, "2011-12-21": 1}
    assert listing.dataset == "old+readings"
    assert not listing.missing
    assert not listing.restrict(build_days("2011-12-20", 1)).list_landed().keys() - {"2011-12-20"}
    listing.check_unchanged()
    only = source.list_files(str(tmp_path), TABLE, build_days("2011-12-20"))
    assert only.dataset == "readings"
    # If no day of the history is asked for, its folder need not exist.
    other = tmp_path / "other"
    land_feed(other, ["2011-12-20"])
    assert source.list_files(str(other), TABLE, build_days("2011-12-20"))
    with pytest.raises(LandingNotFoundError, match="old isn't there"):
        source.list_files(str(other), TABLE, build_days("2011-12-19", 2))
