"""A warehouse and a Dagster home that older code made: read, proven, run again, taken back.

`fixtures/README.md` says what is in them. All by the command line, and by delta-rs.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from backfill_engine_tests.commands import Project
from backfill_engine_tests.older_warehouses import (
    Contents,
    Record,
    ask,
    ask_json,
    extract,
    find_last_run,
    land_again,
    read_contents,
    read_rows,
)

RAW, STAGING, FEATURES = "raw/flights", "staging/flights", "features/carrier_delays"
HOURS, ORDERS = "raw/weather", "raw/orders"
FLIGHTS = ("--select", f"{RAW},{STAGING},{FEATURES}", "--from", "2013-01-01", "--to", "2013-01-04")
DAY_1, DAY_2, DAY_3, DAY_4 = (f"2013-01-0{day}" for day in range(1, 5))

FIRST_RUN = "d47c987e-f241-4709-a313-48a4b5b1694e"
FEATURES_RUN = "fe3dbd7f-a5f7-4f32-a2dd-509ad409da4c"
SECOND_RUN = "6387d5cc-dce0-4578-a703-00b92f385160"
MERGE_RUN = "84ebe0e7-877d-4fd8-8c73-9eb7492f3d62"
HOURS_RUN = "7fe49ddb-597a-495f-8375-d1fff7d83df9"
ORDERS_RUN = "896837d8-709c-4a85-807b-5c6c17249644"

PUBLISHED: dict[str, Contents] = {
    RAW: {
        DAY_1: (1, 5, "f660021b9ad46eb5"),
        DAY_2: (1, 6, "56a35bd91f52c60d"),
        DAY_3: (1, 6, "8cc7c082b3feb30b"),
        DAY_4: (2, 7, "b14a84b42e2fd10a"),
    },
    STAGING: {
        DAY_1: (3, 6, "966ee5595ef9c5ca"),
        DAY_2: (1, 6, "b74dae1ec41927d3"),
        DAY_4: (2, 6, "0fbea1cdfe3c68f8"),
    },
    FEATURES: {DAY_1: (1, 4, "3a28301bff2ac3b9"), DAY_2: (1, 4, "befb8b77b23a0d4a")},
    HOURS: {
        "2013-01-01-00:00": (1, 1, "cd89e847892035e3"),
        "2013-01-01-01:00": (1, 1, "1ea36a248d965877"),
        "2013-01-01-02:00": (1, 1, "cff1d63ccd643b40"),
    },
    ORDERS: {"0000000": (1, 5, "f1568c52b5c4b917")},
}
NOT_PUBLISHED = {(STAGING, DAY_3): "failed", (FEATURES, DAY_3): "failed"}
"""Day 3 was withheld for an air time; day 4 of the features was never run."""

RUN_AGAIN: dict[str, Contents] = {
    RAW: {DAY_2: (3, 6, "a1a6be0e564907bd"), DAY_3: (3, 6, "56e7c0e1c0537097")},
    STAGING: {DAY_2: (4, 6, "3df430ad0f36fca4"), DAY_3: (4, 6, "0f5b7f46054ffd0f")},
    FEATURES: {DAY_2: (2, 4, "49e1c1187c0095a1"), DAY_3: (2, 4, "8065e51ddd9b2321")},
}
"""What days 2 and 3 become when their source is mended."""


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """For tests that only look."""
    return extract(tmp_path_factory.mktemp("older"))


@pytest.fixture
def older(tmp_path: Path) -> Project:
    """For the test to go on from."""
    return extract(tmp_path)


def read_states(project: Project, *arguments: str) -> dict[tuple[str, str], tuple[Any, ...]]:
    """By table and partition: status, version and rows."""
    return {
        (found["table"], found["partition"]): (found["status"], found["version"], found["rows"])
        for found in ask_json(project, "status", *arguments)
    }


def expect_states(table: str, partitions: list[str]) -> dict[tuple[str, str], tuple[Any, ...]]:
    states: dict[tuple[str, str], tuple[Any, ...]] = {}
    for key in partitions:
        version, rows, _ = PUBLISHED[table].get(key, (None, None, ""))
        lacking = NOT_PUBLISHED.get((table, key), "missing")
        states[table, key] = ("materialized" if version else lacking, version, rows)
    return states


def count_lines_that_hold(project: Project, run_id: str) -> list[str]:
    """As `3 of 3`, of each certificate of a run; the command fails if a line doesn't hold."""
    verified = ask(project, "certificate", run_id, "--verify")
    return re.findall(r"^(\d+ of \d+) lines hold\.$", verified, re.MULTILINE)


def test_each_partition_has_its_state(reading: Project) -> None:
    days = [DAY_1, DAY_2, DAY_3, DAY_4]
    expected = [expect_states(table, days) for table in (RAW, STAGING, FEATURES)]
    assert read_states(reading, *FLIGHTS) == expected[0] | expected[1] | expected[2]
    hours = [f"2013-01-01-0{hour}:00" for hour in range(4)]
    assert read_states(reading, "--from", hours[0], "--to", hours[3]) == expect_states(HOURS, hours)
    buckets = ["0000000", "0100000"]
    assert read_states(
        reading, "--select", ORDERS, "--from", buckets[0], "--to", buckets[1]
    ) == expect_states(ORDERS, buckets)
    assert {table: read_contents(reading, table) for table in PUBLISHED} == PUBLISHED


def test_what_is_missing_is_listed_as_ranges(reading: Project) -> None:
    assert ask(reading, "missing", *FLIGHTS, code=1).splitlines() == [
        f"{STAGING}\t{DAY_3}...{DAY_3}",
        f"{FEATURES}\t{DAY_3}...{DAY_4}",
    ]


def test_history_has_all_runs(reading: Project) -> None:
    fields = ("version", "write_mode", "run_id", "first", "last", "partitions", "rows")
    changes = ask_json(reading, "history", STAGING)
    assert [tuple(change[name] for name in fields) for change in changes] == [
        (3, "merge", MERGE_RUN, DAY_1, DAY_1, 1, 6),
        (2, "overwrite", SECOND_RUN, DAY_4, DAY_4, 1, 6),
        (1, "overwrite", FIRST_RUN, DAY_1, DAY_4, 3, 17),
        (0, None, None, None, None, 0, 0),
    ]
    assert [change["operation"] for change in changes] == ["WRITE"] * 3 + ["CREATE TABLE"]


def test_certificates_say_what_was_before(reading: Project) -> None:
    page = ask(reading, "certificate", SECOND_RUN)
    assert "| 2013-01-04 | published | 2 | 6 | 7 | `b14a84b42e2fd10a` | passed |" in page
    assert "| 2013-01-04 | published | 2 | 5 | 6 | `0fbea1cdfe3c68f8` | passed |" in page
    page = ask(reading, "certificate", FIRST_RUN[:8])
    assert "| 2013-01-03 | withheld |  |  | 6 | `dc07903ef8464cbf` | partition_is_valid" in page
    assert "merge, of rows with `origin = 'JFK'`" in ask(reading, "certificate", MERGE_RUN)


@pytest.mark.parametrize(
    ("run", "held"),
    [
        (FIRST_RUN, [6, 5]),
        (FEATURES_RUN, [4]),
        (SECOND_RUN, [3, 3]),
        (MERGE_RUN, [3]),
        (HOURS_RUN, [5]),
        (ORDERS_RUN, [3]),
    ],
)
def test_each_line_of_a_certificate_holds(reading: Project, run: str, held: list[int]) -> None:
    assert count_lines_that_hold(reading, run) == [f"{count} of {count}" for count in held]


def test_watermarks_stand_where_they_stood(reading: Project) -> None:
    marks = ask_json(reading, "watermark")
    assert [(mark["table"], mark["next_key"], mark["run_id"]) for mark in marks] == [
        (RAW, "2013-01-05", FIRST_RUN),
        (STAGING, DAY_3, FIRST_RUN),
    ]


def delay_day_2(flight: Record) -> Record:
    """Not the flight of day 1 that landed with them, and not the cancelled one."""
    if flight["day"] != 2 or flight["dep_delay"] is None:
        return flight
    return {**flight, "dep_delay": flight["dep_delay"] + 60}


def mend_air_time(flight: Record) -> Record:
    return {**flight, "air_time": 138} if flight["air_time"] == 5000 else flight


def read_other_days(project: Project, table: str, version: int) -> list[Record]:
    """The rows of the partitions that the new run is not about."""
    column = "landing_date" if table == RAW else "flight_date"
    rows = read_rows(project, table, version=version)
    return [row for row in rows if str(row[column]) in (DAY_1, DAY_4)]


def test_a_new_run_goes_on_from_there_and_is_taken_back(older: Project) -> None:
    landed = older.landing / "flights" / "year=2013" / "month=01"
    land_again(landed / "day=02" / "flights.json.gz", delay_day_2)
    land_again(landed / "day=03" / "flights.json.gz", mend_air_time)
    run = older.materialize(
        *(RAW, STAGING, FEATURES), partitions=f"{DAY_2}...{DAY_3}", config={"save_watermark": True}
    )
    assert run.returncode == 0, run.stdout + run.stderr
    for table, contents in RUN_AGAIN.items():
        assert read_contents(older, table) == {**PUBLISHED[table], **contents}
        version = contents[DAY_2][0]
        assert read_other_days(older, table, version) == read_other_days(older, table, version - 1)
    flights = {(row["flight_date"].day, row["flight"]): row for row in read_rows(older, STAGING)}
    assert [flights[2, number]["dep_delay"] for number in range(100, 106)] == [
        *(None, 50, 60, 70, 80),
        30,  # landed on day 3, and is as it was
    ]
    assert [flights[3, number]["air_time"] for number in (101, 104)] == [138, 138]
    run_id = find_last_run(older, STAGING)
    assert count_lines_that_hold(older, run_id) == ["7 of 7"] * 3
    assert ask(older, "missing", *FLIGHTS, code=1) == f"{FEATURES}\t{DAY_4}...{DAY_4}\n"
    marks = {mark["table"]: mark["next_key"] for mark in ask_json(older, "watermark")}
    assert marks == {RAW: "2013-01-05", STAGING: DAY_4}

    answer = ask(older, "rollback", STAGING, "--from", DAY_2, "--to", DAY_3, "--before", run_id)
    assert "hold again what they held at version 3, as version 5" in answer
    assert f"computed from them: {FEATURES} {DAY_2}...{DAY_3}" in answer
    assert read_rows(older, STAGING) == read_rows(older, STAGING, version=3)
    assert read_contents(older, STAGING) == {
        **PUBLISHED[STAGING],
        DAY_2: (5, *PUBLISHED[STAGING][DAY_2][1:]),
        DAY_3: (5, 0, "0000000000000000"),
    }


@pytest.mark.slow
def test_hours_and_buckets_are_run_again(older: Project) -> None:
    before, hour = read_rows(older, HOURS), "2013-01-01-01:00"
    landed = older.landing / "weather" / "year=2013" / "month=01" / "day=01" / "hour=01"
    land_again(landed / "weather.json.gz", lambda report: {**report, "temp": 40.5})
    for table, key in ((HOURS, hour), (ORDERS, "0000000")):
        run = older.materialize(table, partitions=f"{key}...{key}")
        assert run.returncode == 0, run.stdout + run.stderr
        assert count_lines_that_hold(older, find_last_run(older, table)) == ["6 of 6"]
    assert read_contents(older, HOURS) == {**PUBLISHED[HOURS], hour: (2, 1, "98ec7827a8682af0")}
    assert read_rows(older, HOURS) == [
        {**row, "temp": 40.5} if row["landing_hour"].hour == 1 else row for row in before
    ]
    assert read_contents(older, ORDERS) == {"0000000": (2, *PUBLISHED[ORDERS]["0000000"][1:])}
