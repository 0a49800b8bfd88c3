"""What no plan, launch or run can be made of, and what the line that says so begins with."""

import pytest

RAW, STAGING = ("--select", "raw/flights"), ("--select", "staging/flights")
DAYS = ("--from", "2013-01-01", "--to", "2013-01-02")
BAD_DAYS = ("--from", "2013-01-10", "--to", "2013-01-11")
ORDERS = ("--select", "raw/orders")
BOUNDS = ("--start", "2013-01-02", "--end", "2013-01-04")
BY_LANDING = (*STAGING, *DAYS, "--column", "landing_date")
EMPTY = "an option is empty: give it a value, or leave it out"
KEYS = "give two keys of 2013-01-01..."
NO_TIME = "the partitions of raw/flights are days: give a date or a time"

PLANS: dict[str, tuple[tuple[str, ...], str]] = {
    # Ranges of keys.
    "no range": (RAW, "give --from and --to, or choose with --only what to run"),
    "half a range": ((*RAW, *DAYS[:2]), "--from and --to belong together: give both"),
    "an empty key": ((*RAW, "--from", "", "--to", ""), EMPTY),
    "a reversed range": (
        (*RAW, "--from", "2013-01-02", "--to", "2013-01-01"),
        f"no partitions 2013-01-02...2013-01-01: {KEYS}",
    ),
    "days before all": (
        (*RAW, "--from", "2012-12-31", "--to", "2013-01-01"),
        f"no partitions 2012-12-31...2013-01-01: {KEYS}",
    ),
    "a key that ends its line": (
        (*RAW, "--from", "2013-01-01\n", "--to", "2013-01-02"),
        "no partitions 2013-01-01 ...2013-01-02: give",
    ),
    "digits of another script": (
        (*RAW, "--from", "２０１３-01-01", "--to", "2013-01-02"),
        "no partitions ２０１３-01-01...2013-01-02: give",
    ),
    "an hour of days": (
        (*RAW, "--from", "2013-01-01-05:00", "--to", "2013-01-02"),
        "no partitions 2013-01-01-05:00...2013-01-02: give",
    ),
    # Bounds.
    "two ranges": ((*RAW, *DAYS, *BOUNDS), "give --from and --to, or --start and --end, not both"),
    "half a bound": ((*RAW, *BOUNDS[:2]), "--start and --end belong together: give both"),
    "empty bounds": ((*RAW, "--start", "", "--end", ""), EMPTY),
    "reversed bounds": (
        (*RAW, "--start", "2013-01-03", "--end", "2013-01-01"),
        "--start 2013-01-03 --end 2013-01-01: that is empty; the end is the first value",
    ),
    "a leap day of no leap year": (
        (*RAW, "--start", "2013-02-29", "--end", "2013-03-01"),
        f"2013-02-29: {NO_TIME}",
    ),
    "a week 53 that the year lacks": (
        (*RAW, "--start", "2012-W53-1", "--end", "2013-W02-1"),
        f"2012-W53-1: {NO_TIME}",
    ),
    "a first moment that is before all in UTC": (
        (*RAW, "--start", "0001-01-01T00:00+14:00", "--end", "2013-01-03"),
        f"0001-01-01T00:00+14:00: {NO_TIME}",
    ),
    "a last moment that is after all in UTC": (
        (*RAW, "--start", "2013-01-01", "--end", "9999-12-31T23:59-14:00"),
        f"9999-12-31T23:59-14:00: {NO_TIME}",
    ),
    "numbers that are none": (
        (*ORDERS, "--start", "nan", "--end", "5"),
        "nan: the partitions of raw/orders are buckets of 100000: give an integer",
    ),
    "strict about nothing": (
        (*RAW, *DAYS, "--strict"),
        "--strict is about --start and --end: keys cut no partition",
    ),
    # By another column.
    "a column without bounds": (
        BY_LANDING,
        "--column landing_date: say by --start and --end which of its values are meant",
    ),
    "an empty column": ((*STAGING, *DAYS, *BOUNDS, "--column", " "), EMPTY),
    "a column that is none": (
        (*STAGING, *DAYS, *BOUNDS, "--column", "updated_at"),
        "--column updated_at: staging/flights has none of that name: choose of flight_date",
    ),
    "a column without ranges": (
        (*STAGING, *DAYS, *BOUNDS, "--column", "carrier"),
        "--column carrier: it is STRING in staging/flights, which has no ranges: choose",
    ),
    "times of a column of dates": (
        (*BY_LANDING, "--start", "2013-01-02T10", "--end", "2013-01-04"),
        "2013-01-02T10: the values of landing_date in staging/flights are DATE: give a date",
    ),
    "dates of a column of integers": (
        (*STAGING, *DAYS, *BOUNDS, "--column", "distance"),
        "2013-01-02: the values of distance in staging/flights are INT: give an integer",
    ),
    "reversed values": (
        (*BY_LANDING, "--start", "2013-01-04", "--end", "2013-01-02"),
        "--start 2013-01-04 --end 2013-01-02: that is empty",
    ),
    "strict about rows": (
        (*BY_LANDING, *BOUNDS, "--strict"),
        "--strict is about partitions that --start and --end cut: with --column they",
    ),
    "a column of all partitions": (
        (*STAGING, *BOUNDS, "--column", "landing_date"),
        "give --from and --to, or choose with --only what to run",
    ),
    "a column of a table that can't merge": (
        (*RAW, *DAYS, *BOUNDS, "--column", "flight_date"),
        "raw/flights declares no natural key that would tell which row replaces which",
    ),
    "a column that decides the partition of one of two": (
        ("--select", "raw/flights,staging/flights", *DAYS, *BOUNDS, "--column", "landing_date"),
        "--column landing_date decides the partition of raw/flights, but not of staging/flights",
    ),
    "part of what was never published": (
        (*STAGING, *BAD_DAYS, "--column", "hour", "--start", "5", "--end", "9"),
        "staging/flights 2013-01-11: never published, and part of the rows would stand for all",
    ),
    # What to run of it.
    "nothing of it": ((*RAW, *DAYS, "--only", ""), EMPTY),
    "a state that is none": ((*RAW, *DAYS, "--only", "míssing"), "--only míssing: choose one or"),
    "no template": ((*RAW, *DAYS, "--template", ""), EMPTY),
    "an unknown template": ((*RAW, *DAYS, "--template", "Repair"), "there is no template Repair;"),
    "an empty chunk": ((*RAW, *DAYS, "--chunk", ""), EMPTY),
    "chunks of no file": ((*RAW, *DAYS, "--chunk", "files=0"), "--chunk files=0: give one of"),
    "chunks of no number": ((*RAW, *DAYS, "--chunk", "days=nan"), "--chunk days=nan: give one of"),
    "chunks of ages": ((*RAW, *DAYS, "--chunk", "years=1001"), "--chunk years=1001: give 1000 yea"),
    "parts of a day of days": (
        (*RAW, *DAYS, "--chunk", "hours=6"),
        "raw/flights: hours=6 is smaller than a partition",
    ),
    "no table among them": (("--select", "raw/flights,nope", *DAYS), "no table nope: there are"),
}
"""Arguments of `plan`, `launch` and `run`, and the line that they are answered with."""

LAUNCHES: dict[str, tuple[tuple[str, ...], str]] = {
    "an empty window": ((*RAW, *DAYS, "--window", ""), EMPTY),
    "a window of no length": (
        (*RAW, *DAYS, "--window", "22:00-22:00"),
        "window 22:00-22:00: it is never open; leave it out for always",
    ),
    "an hour that no day has": (
        (*RAW, *DAYS, "--window", "22:00-24:00"),
        "window 22:00-24:00: give two times of a day (UTC), as 22:00-06:00",
    ),
    "an empty write mode": ((*RAW, *DAYS, "--write-mode", ""), EMPTY),
    "an unknown write mode": ((*RAW, *DAYS, "--write-mode", "MERGE"), "no write mode MERGE: there"),
    "a blank filter": ((*STAGING, *DAYS, "--filter", " "), EMPTY),
    "a filter of whole partitions": (
        (*STAGING, *DAYS, "--filter", "origin = 'JFK'"),
        "staging/flights: a run with a filter would overwrite whole partitions",
    ),
    "part of whole partitions": (
        (*BY_LANDING, *BOUNDS),
        "staging/flights: with --column only some rows of a partition are computed",
    ),
    "an unreadable filter beside a column": (
        (*BY_LANDING, *BOUNDS, "--write-mode", "merge", "--filter", "nope = 1) OR (1 = 1"),
        "row filter [nope = 1) OR (1 = 1]: ",
    ),
    "restarting no chunks": ((*RAW, *DAYS, "--restart"), "restart is about chunks: say how"),
    "a blank reason to override": ((*RAW, *DAYS, "--override-protection", " "), EMPTY),
    "a blank reason for new code": ((*RAW, *DAYS, "--allow-new-code", " "), EMPTY),
    "no Spark": ((*RAW, *DAYS, "--spark-remote", ""), EMPTY),
    "a Spark that is no server": (
        (*RAW, *DAYS, "--spark-remote", "local[2]"),
        "--spark-remote=local[2]: name a Spark Connect server, as in sc://host:15002",
    ),
    "a Spark with a secret": (
        (*RAW, *DAYS, "--spark-remote", "sc://a:443/;token=s3cret"),
        "--spark-remote=sc://a:443: whoever sees the run reads its tags",
    ),
}
"""The same of `launch` and `run`, with a plan that there is."""

CASES = [
    pytest.param((command, *arguments, *yes), line, id=f"{command}: {name}")
    for commands, cases in ((("plan", "launch"), PLANS), (("launch", "run"), LAUNCHES))
    for command in commands
    for name, (arguments, line) in cases.items()
    for yes in [() if command == "plan" else ("--yes",)]
]
