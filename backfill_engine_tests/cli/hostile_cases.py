"""What can't be used, and what the line that says so begins with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

DAYS = ("--from", "2013-01-01", "--to", "2013-01-02")
HISTORY, WATERMARK = (
    ("history", "raw/flights"),
    (
        "status",
        "--watermark",
    ),
)
STATUS, DIFF = ("status", *DAYS), ("proof", "diff", "raw/flights", *DAYS, "--before")
GOLDEN = ("proof", "reconcile", *DAYS, "--select", "raw/flights", "--golden")
LONG = f"/{'x' * 300}"
PROTECT = ("protect", "raw/flights", *DAYS, "--reason", "audited")
RUN = "d47c987e-f241-4709-a313-48a4b5b1694e"


@dataclass(frozen=True)
class Place:
    """Where the command runs: a landing zone, a warehouse, and a Dagster home apart from them."""

    root: Path

    @property
    def log(self) -> Path:
        """Of raw/flights."""
        return self.root / "warehouse" / "raw" / "flights" / "_delta_log"

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
    """

    arguments: tuple[str, ...]
    line: str
    settings: dict[str, str] = field(default_factory=dict)
    spoil: Callable[[Place], object] = lambda place: None


def unusable(line: str, **settings: str) -> Case:
    """Of a setting: the commands say so before they do anything."""
    return Case(HISTORY, f"unusable environment: {line}", settings)


def cut_off(path: Path, *, left: int) -> None:
    path.write_bytes(path.read_bytes()[:left])


def point_nowhere(place: Place) -> None:
    (place.log / "_last_checkpoint").write_text('{"version":1,"size":3}')


def break_checkpoint(place: Place) -> None:
    (place.log / f"{1:020}.checkpoint.parquet").write_text("PAR1")


def replace_by_file(path: Path) -> None:
    path.rename(path.with_name("gone"))
    path.write_text("")


def replace_by_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir(parents=True)


def fill(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def break_watermarks(place: Place) -> None:
    for file in (place.root / "warehouse" / "watermarks").glob("*.parquet"):
        cut_off(file, left=10)


def break_certificates(place: Place) -> None:
    for file in (place.root / "warehouse" / "certificates").rglob("*.json"):
        cut_off(file, left=100)


LOG = "the log of {root}/warehouse/raw/flights can't be read: "
NO_ID = "names no run or backfill: give the whole id, or 8 characters or more of its beginning"
CASES = {
    # Where the tables are.
    "warehouse of an unknown scheme": Case(
        HISTORY, "nosuch://x: not all of Spark, Arrow and delta-rs kn", {"WAREHOUSE": "nosuch://x"}
    ),
    "watermarks of an unknown scheme": Case(
        WATERMARK, "nosuch://x: not all of Spark, Arrow", {"WAREHOUSE": "nosuch://x"}
    ),
    "certificates of an unknown scheme": Case(
        ("proof", "certificate", RUN), "s3n://x: not all of Spark, Arrow", {"WAREHOUSE": "s3n://x"}
    ),
    "warehouse of the web": Case(
        STATUS, "https://x/y: not all of Spark, Arrow", {"WAREHOUSE": "https://x/y"}
    ),
    "warehouse below no folder": Case(
        HISTORY,
        "nothing can be below /dev/null/x, as /dev/null is no",
        {"WAREHOUSE": "/dev/null/x"},
    ),
    "missing below no folder": Case(
        ("status", "--missing", *DAYS),
        "nothing can be below /dev/null/x, as",
        {"WAREHOUSE": "/dev/null/x"},
    ),
    "watermarks below no folder": Case(
        WATERMARK, "nothing can be below /dev/null/x, as", {"WAREHOUSE": "/dev/null/x"}
    ),
    "certificates below no folder": Case(
        ("proof", "certificate", RUN),
        "nothing can be below /dev/null/x",
        {"WAREHOUSE": "/dev/null/x"},
    ),
    "warehouse with too long a name": Case(
        HISTORY,
        f"/{'x' * 300} is no path (File name too long): set",
        {"WAREHOUSE": f"/{'x' * 300}"},
    ),
    "an escape in the path": Case(
        HISTORY,
        "/tmp/50%25: delta-rs or Spark's SQL reads '%25' as som",
        {"WAREHOUSE": "/tmp/50%25"},
    ),
    "a backtick in the path": Case(
        WATERMARK, "/tmp/a`b: delta-rs or Spark's SQL reads '`' as some", {"WAREHOUSE": "/tmp/a`b"}
    ),
    "a backslash in the path": Case(
        STATUS, "/tmp/a\\b: delta-rs or Spark's SQL reads", {"WAREHOUSE": "/tmp/a\\b"}
    ),
    "empty warehouse": unusable("BACKFILL_WAREHOUSE: must not be empty", WAREHOUSE=""),
    "empty landing": unusable("BACKFILL_LANDING: must not be empty", LANDING=""),
    "a home that no shell has expanded": unusable(
        "BACKFILL_WAREHOUSE: only a shell knows what ~ is", WAREHOUSE="~/lake"
    ),
    "a file on a host": unusable(
        "BACKFILL_LANDING: a path has no host: write file:///", LANDING="file://host/lake"
    ),
    "landing below no folder": Case(
        ("sample", "weather"), "nothing can be below /dev/null/x, as", {"LANDING": "/dev/null/x"}
    ),
    "landing of an unknown scheme": Case(
        ("sample", "flights"), "nosuch://x: not all of", {"LANDING": "nosuch://x"}
    ),
    # Other settings.
    "Spark settings that are no JSON": unusable(
        "BACKFILL_SPARK_CONF: must be a JSON object of texts, such as", SPARK_CONF="{spark.ui"
    ),
    "Spark settings that are a list": unusable(
        "BACKFILL_SPARK_CONF: Input should be a valid dictionary", SPARK_CONF="[1]"
    ),
    "a Spark setting that is no text": unusable(
        "BACKFILL_SPARK_CONF: spark.ui.enabled: Input should be a valid string",
        SPARK_CONF='{"spark.ui.enabled": true}',
    ),
    "a number in words": unusable(
        "BACKFILL_CHUNK_BYTES: Input should be a valid integer", CHUNK_BYTES="1GB"
    ),
    "a number below zero": unusable(
        "BACKFILL_CHECK_EVENTS: Input should be greater than or equal to 0", CHECK_EVENTS="-1"
    ),
    "chunks of nothing": unusable(
        "BACKFILL_CHUNK_PARTITIONS: Input should be greater than or", CHUNK_PARTITIONS="0"
    ),
    "days beyond any interval": unusable(
        "BACKFILL_RETENTION_DAYS: Input should be less than or", RETENTION_DAYS="9" * 15
    ),
    "withheld for ever": unusable(
        "BACKFILL_WITHHELD_DAYS: Input should be less than or", WITHHELD_DAYS="9" * 11
    ),
    "a begin that is no day": unusable(
        "BACKFILL_BEGIN: Input should be a valid date", BEGIN="2013-13-01"
    ),
    "a begin before all calendars": unusable(
        "BACKFILL_BEGIN: Input should be greater than or equal to 1900", BEGIN="0001-01-01"
    ),
    "an end after all": unusable(
        "BACKFILL_END: Input should be less than or equal to 2200", END="9999-12-31"
    ),
    "reversed bounds": unusable(
        "BACKFILL_BEGIN and BACKFILL_END: begin 2014-01-01 must be before end 2013-01-01",
        BEGIN="2014-01-01",
        END="2013-01-01",
    ),
    "two at once": unusable(
        "BACKFILL_BEGIN: Input should be a valid date", BEGIN="x", CHUNK_BYTES="x"
    ),
    # Runs.
    "a certificate of nothing": Case(("proof", "certificate", ""), f"'' {NO_ID}"),
    "a certificate of every run": Case(("proof", "certificate", "", "--verify"), f"'' {NO_ID}"),
    "too short a run": Case(("proof", "certificate", RUN[:7]), f"'{RUN[:7]}' {NO_ID}"),
    "a pattern": Case(("proof", "certificate", "*"), f"'*' {NO_ID}"),
    "a path": Case(
        ("proof", "certificate", "../../../etc"), "no certificate of ../../../etc below "
    ),
    "another run that begins alike": Case(
        ("proof", "certificate", f"{RUN}0"), f"no certificate of {RUN}0 below "
    ),
    "a difference to nothing": Case((*DIFF, ""), f"'' {NO_ID}"),
    "a difference to too short a run": Case((*DIFF, RUN[:4]), f"'{RUN[:4]}' {NO_ID}"),
    "a version that is none yet": Case(
        (*DIFF, "99"), "raw/flights: no versions 99 and 2 to compare: give two of 0 to 2"
    ),
    "a digit that is no number": Case((*DIFF, "²"), f"'²' {NO_ID}"),
    "a later version below zero": Case(
        (*DIFF, "0", "--after", "-1"), "raw/flights: no versions 0 and -1 to compare"
    ),
    "a rollback of nothing": Case(
        ("rollback", "raw/flights", *DAYS, "--before", ""), f"'' {NO_ID}"
    ),
    # Partitions and tables.
    "a reversed range": Case(
        ("status", "--from", "2013-01-02", "--to", "2013-01-01", "--select", "raw/flights"),
        "no partitions 2013-01-02...2013-01-01: give two keys of ",
    ),
    "an empty range": Case(
        ("status", "--missing", "--from", "", "--to", "", "--select", "raw/flights"),
        "no partitions ...: give",
    ),
    "no table": Case((*STATUS, "--select", "raw/flights,raw/flihts"), "no table raw/flihts: there"),
    "an empty selection": Case((*STATUS, "--select", ","), "an option is empty: give it a value"),
    "a history from nowhere": Case(
        (*HISTORY, "--from", "yesterday"), "yesterday is no partition of raw/flights, by days"
    ),
    "a history of an hour of days": Case(
        (*HISTORY, "--from", "2013-01-01-00:00"), "2013-01-01-00:00 is no partition of raw/flights"
    ),
    "a reversed history": Case(
        (*HISTORY, "--from", "2013-01-02", "--to", "2013-01-01"),
        "2013-01-02...2013-01-01 is reversed: a range is FIRST...LAST",
    ),
    "no golden": Case((*GOLDEN, "/no/such"), "golden /no/such can't be read (there is nothing)"),
    "empty keys": Case((*GOLDEN, "/no/such", "--keys", ""), "an option is empty: give it a value"),
    "orders of no scale": Case(("sample", "orders", "--scale", "nan"), "the scale is above 0 and"),
    # What lies there.
    "a commit that is cut off": Case(
        HISTORY,
        f"{LOG}{1:020}.json is cut off or overwritten",
        spoil=lambda place: cut_off(place.log / f"{1:020}.json", left=300),
    ),
    "an empty commit": Case(
        HISTORY,
        f"{LOG}{2:020}.json is empty",
        spoil=lambda place: cut_off(place.log / f"{2:020}.json", left=0),
    ),
    "a commit that is no JSON": Case(
        (*DIFF, "1"),
        f"{LOG}{2:020}.json is cut off or overwritten",
        spoil=lambda place: (place.log / f"{2:020}.json").write_bytes(b"\xff\xfe\x00"),
    ),
    "a commit that is gone": Case(
        HISTORY,
        f"{LOG}{1:020}.json is gone: restore it from a copy",
        spoil=lambda place: (place.log / f"{1:020}.json").unlink(),
    ),
    "a hint at no checkpoint": Case(
        HISTORY, f"{LOG}_last_checkpoint names a checkpoint that is gone: del", spoil=point_nowhere
    ),
    "a broken checkpoint": Case(
        ("proof", "certificate", RUN, "--verify"),
        f"{LOG}{1:020}.checkpoint.parquet is cut off or overwritten",
        spoil=break_checkpoint,
    ),
    "a log that is a file": Case(
        HISTORY,
        "the log of {root}/warehouse/raw/flights can't be looked for",
        spoil=lambda place: replace_by_file(place.log),
    ),
    "a table that is a file": Case(
        STATUS,
        "the log of {root}/warehouse/raw/flights can't be looked for",
        spoil=lambda place: replace_by_file(place.log.parent),
    ),
    "broken watermarks": Case(
        WATERMARK, "the watermarks at {root}/warehouse/watermarks can't", spoil=break_watermarks
    ),
    "a broken log of watermarks": Case(
        WATERMARK,
        "the log of {root}/warehouse/watermarks can't be read: ",
        spoil=lambda place: cut_off(
            place.root / "warehouse" / "watermarks" / "_delta_log" / f"{0:020}.json", left=99
        ),
    ),
    "certificates that are cut off": Case(
        ("proof", "certificate", RUN),
        "the certificate {root}/warehouse/certificates/",
        spoil=break_certificates,
    ),
    # Where Dagster keeps what it knows, and what else is in the warehouse.
    **{
        f"a damaged {name}": Case(
            STATUS,
            f"{{root}}/home/{name}: file is not a database: it is damaged: restore it from a copy, "
            "or move it away and run `backfill-assets recover`",
            spoil=lambda place, name=name: fill(place.root / "home" / name, "no database" * 999),
        )
        for name in ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")
    },
    "a folder for a database": Case(
        STATUS,
        "{root}/home/history/runs.db: unable to open database file: this user can't open or make",
        spoil=lambda place: replace_by_folder(place.root / "home" / "history" / "runs.db"),
    ),
    "a file for a folder of databases": Case(
        STATUS,
        "[Errno 17] File exists: '{root}/home/history/': a file is in the place of a folder: move",
        spoil=lambda place: fill(place.root / "home" / "history", ""),
    ),
    "a dagster.yaml that is cut off": Case(
        STATUS,
        "{root}/home/dagster.yaml can't be used (while parsing a flow node expected",
        spoil=lambda place: fill(place.root / "home" / "dagster.yaml", "storage: ["),
    ),
    "a dagster.yaml of other types": Case(
        STATUS,
        "{root}/home/dagster.yaml can't be used (Errors whilst loading dagster instance config at "
        "dagster.yaml. Error 1: Value at path root:run_queue must be dict.",
        spoil=lambda place: fill(place.root / "home" / "dagster.yaml", "run_queue: 5"),
    ),
    "a folder for a dagster.yaml": Case(
        STATUS,
        "[Errno 21] Is a directory: '{root}/home/dagster.yaml': a folder is in the place of a file",
        spoil=lambda place: replace_by_folder(place.root / "home" / "dagster.yaml"),
    ),
    "a file for certificates": Case(
        ("proof", "certificate", RUN),
        "[Errno 20] Cannot list directory '{root}/warehouse/certificates'",
        spoil=lambda place: replace_by_file(place.root / "warehouse" / "certificates"),
    ),
    "a file for locks": Case(
        PROTECT,
        "[Errno 17] File exists: '{root}/warehouse/_locks': a file is in the place of a folder",
        spoil=lambda place: fill(place.root / "warehouse" / "_locks", ""),
    ),
    "a folder for a lock": Case(
        PROTECT,
        "[Errno 21] Is a directory: '{root}/warehouse/_locks/protections.lock': a folder is in the",
        spoil=lambda place: replace_by_folder(
            place.root / "warehouse" / "_locks" / "protections.lock"
        ),
    ),
}
