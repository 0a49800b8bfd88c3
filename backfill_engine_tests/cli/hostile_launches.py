"""What no plan, launch or run can be made of, and what the line that says so begins with."""

import shlex

import pytest

RAW, STAGING = ("--select", "raw/flights"), ("--select", "staging/flights")
DAYS = ("--from", "2013-01-01", "--to", "2013-01-02")
BOUNDS = ("--start", "2013-01-02", "--end", "2013-01-04")
BY_LANDING = (*STAGING, *DAYS, "--column", "landing_date")
WORDS = {
    **{"RAW": RAW, "STAGING": STAGING, "DAYS": DAYS, "BOUNDS": BOUNDS, "BY_LANDING": BY_LANDING},
    "BOTH": ("--select", "raw/flights,staging/flights"),
    "ORDERS": ("--select", "raw/orders"),
}
"""What stands for several arguments below."""

EMPTY = "an option is empty: give it a value, or leave it out"
KEYS = "give two keys of 2013-01-01..."
NO_TIME = "the partitions of raw/flights are days: give a date or a time"
NO_RANGE = "give --from and --to, or choose with --only what to run"

PLANS = {
    # Ranges of keys.
    "RAW": NO_RANGE,
    "RAW --from 2013-01-01": "--from and --to belong together: give both",
    "RAW --from '' --to ''": EMPTY,
    "RAW --from 2013-01-02 --to 2013-01-01": f"no partitions 2013-01-02...2013-01-01: {KEYS}",
    "RAW --from 2012-12-31 --to 2013-01-01": f"no partitions 2012-12-31...2013-01-01: {KEYS}",
    "RAW --from '2013-01-01\n' --to 2013-01-02": "no partitions 2013-01-01 ...2013-01-02: give",
    "RAW --from ２０１３-01-01 --to 2013-01-02": "no partitions ２０１３-01-01...2013-01-02: give",
    "RAW --from 2013-01-01-05:00 --to 2013-01-02": "no partitions 2013-01-01-05:00...2013-01-02: ",
    # Bounds.
    "RAW DAYS BOUNDS": "give --from and --to, or --start and --end, not both",
    "RAW --start 2013-01-02": "--start and --end belong together: give both",
    "RAW --start '' --end ''": EMPTY,
    "RAW --start 2013-01-03 --end 2013-01-01": "--start 2013-01-03 --end 2013-01-01: that is empty",
    "RAW --start 2013-02-29 --end 2013-03-01": f"2013-02-29: {NO_TIME}",
    # That year has no week 53.
    "RAW --start 2012-W53-1 --end 2013-W02-1": f"2012-W53-1: {NO_TIME}",
    # In UTC these are before and after all that there is.
    "RAW --start 0001-01-01T00:00+14:00 --end 2013-01-03": f"0001-01-01T00:00+14:00: {NO_TIME}",
    "RAW --start 2013-01-01 --end 9999-12-31T23:59-14:00": f"9999-12-31T23:59-14:00: {NO_TIME}",
    "ORDERS --start nan --end 5": "nan: the partitions of raw/orders are buckets of 100000: give",
    "RAW DAYS --strict": "--strict is about --start and --end: keys cut no partition",
    # By another column.
    "BY_LANDING": "--column landing_date: say by --start and --end which of its values are meant",
    "STAGING DAYS BOUNDS --column ' '": EMPTY,
    "STAGING DAYS BOUNDS --column updated_at": "--column updated_at: staging/flights has none of ",
    "STAGING DAYS BOUNDS --column carrier": "--column carrier: it is STRING in staging/flights, wh",
    "BY_LANDING --start 2013-01-02T10 --end 2013-01-04": "2013-01-02T10: the values of landing_da",
    "STAGING DAYS BOUNDS --column distance": "2013-01-02: the values of distance in staging/fligh",
    "BY_LANDING --start 2013-01-04 --end 2013-01-02": "--start 2013-01-04 --end 2013-01-02: that ",
    "BY_LANDING BOUNDS --strict": "--strict is about partitions that --start and --end cut: with -",
    "STAGING BOUNDS --column landing_date": NO_RANGE,
    "RAW DAYS BOUNDS --column flight_date": "raw/flights declares no natural key that would tell ",
    "BOTH DAYS BOUNDS --column landing_date": "--column landing_date decides the partition of raw/",
    # It was never published.
    "STAGING --from 2013-01-10 --to 2013-01-11 --column hour --start 5 --end 9": (
        "staging/flights 2013-01-11: never published, and part of the rows would stand for all"
    ),
    # What to run of it.
    **{f"RAW DAYS --{option} ''": EMPTY for option in ("only", "template", "chunk")},
    "RAW DAYS --only míssing": "--only míssing: choose one or",
    "RAW DAYS --template Repair": "there is no template Repair;",
    "RAW DAYS --chunk files=0": "--chunk files=0: give one of",
    "RAW DAYS --chunk days=nan": "--chunk days=nan: give one of",
    "RAW DAYS --chunk years=1001": "--chunk years=1001: give 1000 yea",
    "RAW DAYS --chunk hours=6": "raw/flights: hours=6 is smaller than a partition",
    "--select raw/flights,nope DAYS": "no table nope: there are",
}
"""Arguments of `plan`, `launch` and `run`, and the line that they are answered with."""

BLANKS = ("window ''", "write-mode ''", "override-protection ' '", "allow-new-code ' '")
LAUNCHES = {
    **{f"RAW DAYS --{option}": EMPTY for option in (*BLANKS, "spark-remote ''")},
    "STAGING DAYS --filter ' '": EMPTY,
    "RAW DAYS --window 22:00-22:00": "window 22:00-22:00: it is never open; leave it out",
    "RAW DAYS --window 22:00-24:00": "window 22:00-24:00: give two times of a day (UTC), as 22:00",
    "RAW DAYS --write-mode MERGE": "no write mode MERGE: there",
    """STAGING DAYS --filter "origin = 'JFK'" """: "staging/flights: a run with a filter would",
    "BY_LANDING BOUNDS": "staging/flights: with --column only some rows of a partition are",
    # It would reach beyond the column's.
    "BY_LANDING BOUNDS --write-mode merge --filter 'nope = 1) OR (1 = 1'": (
        "row filter [nope = 1) OR (1 = 1]: "
    ),
    "RAW DAYS --restart": "restart is about chunks: say how",
    "RAW DAYS --spark-remote local[2]": "--spark-remote=local[2]: name a Spark Connect server, as",
    "RAW DAYS --spark-remote 'sc://a:443/;token=s3cret'": (
        "--spark-remote=sc://a:443: whoever sees the run reads its tags"
    ),
}
"""The same, of values that only runs go by; `plan` needs no merge for part of the rows."""


def split(text: str) -> list[str]:
    return [argument for word in shlex.split(text) for argument in WORDS.get(word, (word,))]


CASES = [
    pytest.param((command, *split(text), *yes), line, id=f"{command}: {text}")
    for commands, cases in (
        (("plan", "launch"), PLANS),
        (("plan", "launch", "run"), LAUNCHES),
    )
    for command in commands
    for text, line in cases.items()
    if (command, text) != ("plan", "BY_LANDING BOUNDS")
    for yes in [() if command == "plan" else ("--yes",)]
]
