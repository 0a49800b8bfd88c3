"""What can't be used, and what the line that says so begins with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

DAYS = ("--from", "2013-01-01", "--to", "2013-01-02")
HISTORY, WATERMARK = ("history", "raw/flights"), ("status", "--watermark")
STATUS, DIFF = ("status", *DAYS), ("proof", "diff", "raw/flights", *DAYS, "--before")
GOLDEN = ("proof", "reconcile", *DAYS, "--select", "raw/flights", "--golden")
LONG = f"/{'x' * 300}"
PROTECT = ("protect", "raw/flights", *DAYS, "--reason", "audited")
RUN = "d47c987e-f241-4709-a313-48a4b5b1694e"


@dataclass(frozen=True)
class Place:
    """Where the command runs: a landing zone, a warehouse, and a Dagster home apart from them."""

    root: Path

    def list_files(self) -> dict[str, bytes]:
        """All that is there, but for Dagster's own."""
        kept = ("warehouse", "landing", "work")
        paths = [path for name in kept for path in sorted((self.root / name).rglob("*"))]
        return {str(path): path.read_bytes() if path.is_file() else b"" for path in paths}


@dataclass(frozen=True)
class Case:
    """What is asked for, with which settings, and what the answer begins with.

    Attributes:
        arguments: of the command.
        line: how the line goes on after `error: `.
        settings: environment variables without `BACKFILL_`.
        spoil: what happens to the files before.
        code: that the command ends with: 2 for what can't be asked or set, 1 for what lies there.
    """

    arguments: tuple[str, ...]
    line: str
    settings: dict[str, str] = field(default_factory=dict)
    spoil: Callable[[Place], object] = lambda place: None
    code: int = 2


def cut_off(path: Path, *, left: int) -> None:
    path.write_bytes(path.read_bytes()[:left])


def cut(left: int) -> Callable[[Path], object]:
    return lambda path: cut_off(path, left=left)


def cut_all(pattern: str, left: int) -> Callable[[Path], object]:
    return lambda path: [cut_off(file, left=left) for file in path.glob(pattern)]


def fill(text: str) -> Callable[[Path], object]:
    """Makes a file of characters that are bytes."""

    def fill_path(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("latin-1"))

    return fill_path


def replace_by_file(path: Path) -> None:
    path.rename(path.with_name("gone"))
    path.write_text("")


def replace_by_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir(parents=True)


def spoil(
    path: str,
    change: Callable[[Path], object],
    line: str,
    arguments: tuple[str, ...] = STATUS,
    code: int = 1,
) -> Case:
    return Case(arguments, line, spoil=lambda place: change(place.root / path), code=code)


def spoil_log(
    name: str, change: Callable[[Path], object], fault: str, arguments: tuple[str, ...] = HISTORY
) -> Case:
    line = f"the log of {{root}}/{RAW} can't be read: {name} {fault}"
    return spoil(f"{RAW}/_delta_log/{name}", change, line, arguments)


RAW, MARKS = "warehouse/raw/flights", "warehouse/watermarks"
FIRST, SECOND = (f"{version:020}.json" for version in (1, 2))
CERTIFICATE, MISSING = ("proof", "certificate"), ("status", "--missing")
NO_ID = "names no run or backfill: give the whole id, or 8 characters or more of its beginning"
EMPTY = "an option is empty: give it a value"
WAREHOUSES = {
    **dict.fromkeys(
        (HISTORY, WATERMARK), ("nosuch://x", "nosuch://x: not all of Spark, Arrow and")
    ),
    (*CERTIFICATE, RUN): ("s3n://x", "s3n://x: not all of Spark, Arrow"),
    STATUS: ("https://x/y", "https://x/y: not all of Spark, Arrow"),
}
"""Where the tables can't be, by the command that says so."""
UNUSABLE = {
    "WAREHOUSE=": "must not be empty",
    "WAREHOUSE=~/lake": "only a shell knows what ~ is",
    "LANDING=file://host/lake": "a path has no host: write file:///",
    "SPARK_CONF={spark.ui": "must be a JSON object of texts, such as",
    "SPARK_CONF=[1]": "Input should be a valid dictionary",
    'SPARK_CONF={"spark.ui.enabled": true}': "spark.ui.enabled: Input should be a valid string",
    "CHUNK_BYTES=1GB": "Input should be a valid integer",
    "CHECK_EVENTS=-1": "Input should be greater than or equal to 0",
    "CHUNK_PARTITIONS=0": "Input should be greater than or",
    "RETENTION_DAYS=999999999999999": "Input should be less than or",
    "WITHHELD_DAYS=99999999999": "Input should be less than or",
    "BEGIN=2013-13-01": "Input should be a valid date",
    "BEGIN=0001-01-01": "Input should be greater than or equal to 1900",
    "END=9999-12-31": "Input should be less than or equal to 2200",
}
"""Settings, and what is said of each."""
CASES = {
    # Where the tables are.
    **{
        f"{' '.join(command[:2])} of {uri}": Case(command, line, {"WAREHOUSE": uri})
        for command, (uri, line) in WAREHOUSES.items()
    },
    **{
        f"{' '.join(command[:2])} below no folder": Case(
            command, "nothing can be below /dev/null/x, as", {"WAREHOUSE": "/dev/null/x"}
        )
        for command in (HISTORY, (*MISSING, *DAYS), WATERMARK, (*CERTIFICATE, RUN))
    },
    **{
        f"{name} in the path": Case(
            command, f"{path}: delta-rs or Spark's SQL reads", {"WAREHOUSE": path}
        )
        for name, command, path in (
            ("an escape", HISTORY, "/tmp/50%25"),
            ("a backtick", WATERMARK, "/tmp/a`b"),
            ("a backslash", STATUS, "/tmp/a\\b"),
        )
    },
    "warehouse with too long a name": Case(
        HISTORY, f"{LONG} is no path (File name too long): set", {"WAREHOUSE": LONG}
    ),
    "landing below no folder": Case(
        ("sample", "weather"), "nothing can be below /dev/null/x, as", {"LANDING": "/dev/null/x"}
    ),
    "landing of an unknown scheme": Case(
        ("sample", "flights"), "nosuch://x: not all of", {"LANDING": "nosuch://x"}
    ),
    # Other settings.
    **{
        setting: Case(HISTORY, f"unusable environment: BACKFILL_{name}: {line}", {name: value})
        for setting, line in UNUSABLE.items()
        for name, _, value in [setting.partition("=")]
    },
    "two at once": Case(
        HISTORY,
        "unusable environment: BACKFILL_BEGIN: Input should be a valid date",
        {"BEGIN": "x", "CHUNK_BYTES": "x"},
    ),
    # Runs.
    **{
        f"{' '.join(command)} {run!r}": Case((*command, run), f"'{run}' {NO_ID}")
        for command, runs in (
            (CERTIFICATE, ("", RUN[:7], "*")),
            ((*CERTIFICATE, "--verify"), ("",)),
            (DIFF, ("", RUN[:4], "²")),
            (("rollback", "raw/flights", *DAYS, "--before"), ("",)),
        )
        for run in runs
    },
    **{
        f"{run} for a run": Case((*CERTIFICATE, run), f"no certificate of {run} below ")
        for run in ("../../../etc", f"{RUN}0")
    },
    "a version that is none yet": Case(
        (*DIFF, "99"), "raw/flights: no versions 99 and 2 to compare: give two of 0 to 2"
    ),
    "a later version below zero": Case(
        (*DIFF, "0", "--after", "-1"), "raw/flights: no versions 0 and -1 to compare"
    ),
    # Partitions and tables.
    "a reversed range": Case(
        ("status", "--from", "2013-01-02", "--to", "2013-01-01", "--select", "raw/flights"),
        "no partitions 2013-01-02...2013-01-01: give two keys of ",
    ),
    "an empty range": Case(
        (*MISSING, "--from", "", "--to", "", "--select", "raw/flights"), "no partitions ...: give"
    ),
    "no table": Case((*STATUS, "--select", "raw/flights,raw/flihts"), "no table raw/flihts: there"),
    "an empty selection": Case((*STATUS, "--select", ","), EMPTY),
    **{
        f"a history from {key}": Case((*HISTORY, "--from", key), f"{key} is no partition of raw/fl")
        for key in ("yesterday", "2013-01-01-00:00")
    },
    "a reversed history": Case(
        (*HISTORY, "--from", "2013-01-02", "--to", "2013-01-01"),
        "2013-01-02...2013-01-01 is reversed: a range is FIRST...LAST",
    ),
    "no golden": Case((*GOLDEN, "/no/such"), "golden /no/such can't be read (there is nothing)"),
    "empty keys": Case((*GOLDEN, "/no/such", "--keys", ""), EMPTY),
    "orders of no scale": Case(("sample", "orders", "--scale", "nan"), "the scale is above 0 and"),
    # What lies there.
    "a commit that is cut off": spoil_log(FIRST, cut(300), "is cut off or overwritten"),
    "an empty commit": spoil_log(SECOND, cut(0), "is empty"),
    "no JSON": spoil_log(SECOND, fill("\xff\xfe\0"), "is cut off or overwritten", (*DIFF, "1")),
    "a commit that is gone": spoil_log(FIRST, Path.unlink, "is gone: restore it from a copy"),
    "a hint at no checkpoint": spoil_log(
        "_last_checkpoint", fill('{"version":1,"size":3}'), "names a checkpoint that is gone: del"
    ),
    "a broken checkpoint": spoil_log(
        f"{1:020}.checkpoint.parquet",
        fill("PAR1"),
        "is cut off or overwritten",
        (*CERTIFICATE, RUN, "--verify"),
    ),
    "a log that is a file": spoil(
        f"{RAW}/_delta_log", replace_by_file, f"the log of {{root}}/{RAW} can't be looked", HISTORY
    ),
    "a table that is a file": spoil(
        RAW, replace_by_file, f"the log of {{root}}/{RAW} can't be looked for"
    ),
    "broken watermarks": spoil(
        MARKS, cut_all("*.parquet", 10), f"the watermarks at {{root}}/{MARKS} can't", WATERMARK
    ),
    "a broken log of watermarks": spoil(
        f"{MARKS}/_delta_log/{0:020}.json",
        cut(99),
        f"the log of {{root}}/{MARKS} can't be read: ",
        WATERMARK,
    ),
    "certificates that are cut off": spoil(
        "warehouse/certificates",
        cut_all("**/*.json", 100),
        "the certificate {root}/warehouse/certificates/",
        (*CERTIFICATE, RUN),
    ),
    # Where Dagster keeps what it knows, and what else is in the warehouse.
    **{
        f"a damaged {name}": spoil(
            f"home/{name}",
            fill("no database" * 999),
            f"{{root}}/home/{name}: file is not a database: it is damaged: restore it from a copy, "
            "or move it away and run `backfill-assets recover`",
        )
        for name in ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")
    },
    "a folder for a database": spoil(
        "home/history/runs.db",
        replace_by_folder,
        "{root}/home/history/runs.db: unable to open database file: this user can't open or make",
    ),
    "a file for a folder of databases": spoil(
        "home/history",
        fill(""),
        "[Errno 17] File exists: '{root}/home/history/': a file is in the place of a folder: move",
    ),
    "a dagster.yaml that is cut off": spoil(
        "home/dagster.yaml",
        fill("storage: ["),
        "{root}/home/dagster.yaml can't be used (while parsing a flow node expected",
        code=2,
    ),
    "a dagster.yaml of other types": spoil(
        "home/dagster.yaml",
        fill("run_queue: 5"),
        "{root}/home/dagster.yaml can't be used (Errors whilst loading dagster instance config at "
        "dagster.yaml. Error 1: Value at path root:run_queue must be dict.",
        code=2,
    ),
    "a folder for a dagster.yaml": spoil(
        "home/dagster.yaml",
        replace_by_folder,
        "[Errno 21] Is a directory: '{root}/home/dagster.yaml': a folder is in the place of a file",
    ),
    "a file for certificates": spoil(
        "warehouse/certificates",
        replace_by_file,
        "[Errno 20] Cannot list directory '{root}/warehouse/certificates'",
        (*CERTIFICATE, RUN),
    ),
    "a file for locks": spoil(
        "warehouse/_locks",
        fill(""),
        "[Errno 17] File exists: '{root}/warehouse/_locks': a file is in the place of a folder",
        PROTECT,
    ),
    "a folder for a lock": spoil(
        "warehouse/_locks/protections.lock",
        replace_by_folder,
        "[Errno 21] Is a directory: '{root}/warehouse/_locks/protections.lock': a folder is in the",
        PROTECT,
    ),
}
