"""Ways in which a landing day goes bad, and what is to become of it: data of test_hostile_landing.

Each case has a day of its own. It landed well and was published, with `FLIGHTS_A_DAY` rows, unless
it is `new`; then its files are spoiled, and the range is run once more.
"""

import gzip
import json
import os
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backfill_engine_tests.pipeline.landing_zone import FLIGHTS_A_DAY

ROWS = FLIGHTS_A_DAY
FILE = "flights.json.gz"
EMPTIED, WITHHELD = "published empty", "withheld"


@dataclass(frozen=True)
class Day:
    """A landing day: its folder, and the records that landed on it."""

    folder: Path
    records: Sequence[dict[str, Any]]

    @property
    def file(self) -> Path:
        """The file that landed."""
        return self.folder / FILE

    @property
    def lines(self) -> list[str]:
        """What it holds."""
        return [json.dumps(record) for record in self.records]

    def write(self, lines: Sequence[str], name: str = FILE) -> None:
        """Writes a file of lines."""
        self.put(name, "".join(f"{line}\n" for line in lines).encode())

    def put(self, name: str, content: bytes) -> None:
        """Writes a file, compressed if its name says so."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)

    def put_raw(self, name: str, content: bytes) -> None:
        """Writes a file of just these bytes."""
        (self.folder / name).write_bytes(content)

    def rename(self, name: str) -> None:
        """Gives the file that landed another name."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        self.file.rename(self.folder / name)


@dataclass(frozen=True)
class Case:
    """What is done to a day, and what the second run makes of it.

    Attributes:
        name: of the case.
        spoil: what is done.
        becomes: rows published by the second run, `EMPTIED` or `WITHHELD`.
        rule: the rule that withholds; of a published day, the one that warns; empty for none.
        says: part of what it finds.
        quarantined: part of the reason of each record in the quarantine; none for none.
        new: whether the day was never published before.
    """

    name: str
    spoil: Callable[[Day], Any]
    becomes: int | str
    rule: str = ""
    says: str = ""
    quarantined: tuple[str, ...] = ()
    new: bool = False


def _replace(name: str, content: bytes) -> Callable[[Day], None]:
    def spoil(day: Day) -> None:
        day.file.unlink()
        day.put(name, content)

    return spoil


def _replace_raw(name: str, content: bytes) -> Callable[[Day], None]:
    def spoil(day: Day) -> None:
        day.file.unlink()
        day.put_raw(name, content)

    return spoil


def _change_lines(change: Callable[[list[str]], Sequence[str]]) -> Callable[[Day], None]:
    return lambda day: day.write(change(day.lines))


def _add_line(line: str | Callable[[Day], str]) -> Callable[[Day], None]:
    return lambda day: day.write([*day.lines, line if isinstance(line, str) else line(day)])


def _change_first(**changes: Any) -> Callable[[Day], None]:
    return lambda day: day.write([json.dumps({**day.records[0], **changes}), *day.lines[1:]])


def _change_all(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Day], None]:
    return lambda day: day.write([json.dumps(change(record)) for record in day.records])


def _put_file_in_place(day: Day) -> None:
    shutil.rmtree(day.folder)
    day.folder.write_bytes(b"")


def _shorten(day: Day) -> None:
    content = day.file.read_bytes()
    day.put_raw(FILE, content[:-200])


def _flip(day: Day) -> None:
    content = day.file.read_bytes()
    day.put_raw(FILE, content[:400] + b"\xff\xff\xff\xff" + content[404:])


def _write_wide(day: Day) -> None:
    wide = [{**day.records[n], **{f"wide_{n}_{k}": 1 for k in range(30)}} for n in range(2)]
    day.write([*map(json.dumps, wide), *day.lines[2:]])


def _write_twice_as_bytes(day: Day) -> None:
    content = json.dumps(day.records[0]).encode().replace(b'"ORD"', b'"\xff\xfe"')
    day.put(FILE, b"\n".join([content, *(line.encode() for line in day.lines)]) + b"\n")


def _split_members(day: Day, name: str = FILE) -> None:
    parts = ("".join(f"{line}\n" for line in lines) for lines in (day.lines[:9], day.lines[9:]))
    day.put_raw(name, b"".join(gzip.compress(part.encode()) for part in parts))


def _pack_otherwise(day: Day) -> None:
    content = gzip.decompress(day.file.read_bytes())
    day.put_raw("copy.json.gz", gzip.compress(content, compresslevel=1))


def _leave_as_hadoop(day: Day) -> None:
    """Leaves the marker of a finished job, and checksums of a file that landed anew."""
    for name in ("_SUCCESS", "._SUCCESS.crc", f".{FILE}.crc"):
        day.put_raw(name, b"crc\0\0\0\2\0stale" if name.endswith(".crc") else b"")


def add_noise(day: Day) -> None:
    """Adds blanks that no compression makes short: the file has more bytes, but no more records."""
    blanks = random.Random(7).choices(" \t", k=400_000)
    day.write([*day.lines, "".join(blanks)])


def _line_with(extra: str) -> Callable[[Day], str]:
    return lambda day: day.lines[0][:-1] + ", " + extra + "}"


def _twice(name: str, spoil: Callable[[Day], Any], second: str = FILE) -> Case:
    says = f"day=__/{second} holds the same as flights/"
    return Case(f"twice {name}", spoil, WITHHELD, "files_differ", says)


def _being_written(name: str, path: str, shown: str = "") -> Case:
    says = f"day=__/{shown or path} is being written: run again when it is finished, or remove it"
    rename, file = lambda day: day.rename(path), ("the file is being written",)
    return Case(name, rename, WITHHELD, "files_are_readable", says, file)


def _beside_being_written(name: str, path: str, shown: str = "") -> Case:
    case = _being_written(f"beside {name}", path, shown)
    return replace(case, spoil=lambda day: day.write(day.lines[:5], path))


NO_RECORD, GONE = "its source has no records: ", "its folder isn't there: land it again, or put"
UNKNOWN_NAMES = (
    "flights.jsonl",
    "flights.JSON.GZ",
    "flights.json.GZ",
    "flights.Json",
    "flights.ndjson",
    "flights.json.zst",
    "flights.json.bz2",
    "flights.gz",
    "flights.csv",
    "flights",
)

EMPTYING = [
    Case("folder gone", lambda day: shutil.rmtree(day.folder), WITHHELD, "row_count", GONE),
    Case("a file in its place", _put_file_in_place, WITHHELD, "row_count", "a file is in its"),
    Case("file gone", lambda day: day.file.unlink(), EMPTIED, "row_count", "there and empty"),
    Case("marker", _replace("_EMPTY", b""), EMPTIED, "row_count", "its folder holds _EMPTY"),
    Case("hidden files", _replace("_SUCCESS", b""), EMPTIED, "row_count", "there and empty"),
    _being_written("hidden data", ".flights.json"),
    _being_written("hidden by rsync", ".flights.json.gz.Ab3dE9"),
    _being_written("named .part", "flights.json.gz.part"),
    _being_written("in _temporary", f"_temporary/0/{FILE}", "_temporary"),
    Case("marker in small letters", _replace("_empty", b""), WITHHELD, "row_count", "(_empty (hid"),
    Case("a sum alone", _replace(f".{FILE}.crc", b"crc"), WITHHELD, "row_count", "gz.crc (hidden"),
    Case(
        "a link for the file",
        lambda day: [day.file.unlink(), day.file.symlink_to("nowhere")],
        WITHHELD,
        "files_are_readable",
        f"{FILE} is a link that leads nowhere: mend it",
        ("the file is a link",),
    ),
    Case(
        "a ring of links",
        lambda day: [day.file.unlink(), day.file.symlink_to(FILE)],
        WITHHELD,
        "files_are_readable",
        f"{FILE} is a link that leads nowhere",
        ("the file is a link",),
    ),
    Case(
        "a link for the folder",
        lambda day: [shutil.rmtree(day.folder), day.folder.symlink_to("nowhere")],
        WITHHELD,
        "files_are_readable",
        "day=__ is a link that leads nowhere",
        ("the file is a link",),
    ),
    Case(
        "a pipe for the file",
        lambda day: [day.file.unlink(), os.mkfifo(day.file)],
        WITHHELD,
        "files_are_readable",
        f"{FILE} is neither a file nor a folder",
        ("the file is neither",),
    ),
    Case("marker without its mark", _replace("EMPTY", b""), WITHHELD, "row_count", "EMPTY (not"),
    Case(
        "gzip of 0 bytes",
        _replace_raw(FILE, b""),
        WITHHELD,
        "files_are_readable",
        "flights.json.gz has 0 bytes, which is no gzip",
        ("the file has 0 bytes",),
    ),
    Case("gzip of nothing", _replace(FILE, b""), WITHHELD, "row_count", "hold no record (flights/"),
    Case("gzip of blanks", _replace(FILE, b"\n \n\t\n"), WITHHELD, "row_count", "hold no record"),
    Case("blank lines", _replace("a.json", b"\n\n"), WITHHELD, "row_count", "hold no record"),
    Case("0 bytes", _replace("a.json", b""), WITHHELD, "row_count", "a.json (0 bytes)"),
    Case("0 bytes twice", _replace("b.json", b""), WITHHELD, "row_count", "(b.json (0 bytes))"),
    Case(
        "subfolder",
        lambda day: day.rename(f"part/{FILE}"),
        WITHHELD,
        "row_count",
        "part (a folder)",
    ),
    *(
        Case(
            f"named {name}",
            lambda day, name=name: day.rename(name),
            WITHHELD,
            "row_count",
            f"nothing in its folder is read ({name} (not .json or .json.gz))",
        )
        for name in UNKNOWN_NAMES
    ),
]

BESIDE = [
    Case("beside 0 bytes", lambda day: day.put("b.json", b""), ROWS, "files_are_known", "b.json"),
    Case(
        "beside a gzip of 0 bytes",
        lambda day: day.put_raw("b.json.gz", b""),
        WITHHELD,
        "files_are_readable",
        "b.json.gz has 0 bytes",
        ("the file has 0 bytes",),
    ),
    Case("beside a gzip of nothing", lambda day: day.put("b.json.gz", b""), ROWS),
    Case(
        "beside an unknown name",
        lambda day: day.write(day.lines, "more.jsonl"),
        ROWS,
        "files_are_known",
        "not read: more.jsonl (not .json or .json.gz)",
    ),
    Case(
        "beside a subfolder",
        lambda day: day.write(day.lines, f"more/{FILE}"),
        ROWS,
        "files_are_known",
        "not read: more (a folder)",
    ),
    Case(
        "beside hidden files",
        lambda day: day.write(day.lines, "_more.json"),
        ROWS,
        "files_are_known",
        "_more.json (hidden)",
    ),
    Case("beside what Hadoop leaves", _leave_as_hadoop, ROWS),
    _beside_being_written("a part-file", "more.json.gz.filepart"),
    _beside_being_written("one of rsync's", ".more.json.gz.x7Kq2A"),
    _beside_being_written("_temporary", "_temporary/0/more.json", "_temporary"),
    Case(
        "beside a link",
        lambda day: (day.folder / "more.json").symlink_to("nowhere"),
        WITHHELD,
        "files_are_readable",
        "more.json is a link that leads nowhere",
        ("the file is a link",),
    ),
    Case(
        "beside a folder named as a file",
        lambda day: day.write(day.lines, "more.json/part-0.json"),
        WITHHELD,
        "files_are_readable",
        "more.json is a folder, and named as a file",
        ("the file is a folder",),
    ),
    Case("beside a marker", lambda day: day.put("_EMPTY", b""), ROWS, "files_are_known", "_EMPTY"),
    _twice("as gzip", lambda day: day.write(day.lines, "copy.json.gz")),
    _twice("unpacked", lambda day: day.write(day.lines, "copy.json")),
    _twice("in members", lambda day: _split_members(day, "copy.json.gz")),
    _twice("packed otherwise", _pack_otherwise),
    _twice(
        "as text",
        lambda day: [day.file.unlink(), *(day.write(day.lines, f"{n}.json") for n in "ab")],
        "b.json",
    ),
    Case(
        "alike but for a letter",
        lambda day: [
            day.put(name, json.dumps({**day.records[0], "tailnum": name}).encode())
            for name in ("a.json", "b.json")
        ],
        ROWS + 2,
    ),
]

SHRINKING = [
    Case("40 rows", _change_lines(lambda lines: lines[:40]), WITHHELD, "shrink", "40 are left"),
    Case("1 row", _change_lines(lambda lines: lines[:1]), WITHHELD, "row_count_ratio", "0.6 to"),
    Case("59 rows", _change_lines(lambda lines: lines[:59]), WITHHELD, "shrink", "at most 0.5 of"),
    Case("60 rows", _change_lines(lambda lines: lines[:60]), 60, "row_count_ratio", "0.6 to 1.75"),
    Case("100 rows", _change_lines(lambda lines: lines[:100]), 100),
    Case(
        "fewer bytes",
        _change_lines(lambda lines: lines),
        WITHHELD,
        "shrink_bytes",
        "bytes of files may vanish",
    ),
    Case("unpacked", lambda day: [day.file.unlink(), day.write(day.lines, "a.json")], ROWS),
    Case("rows doubled", _change_lines(lambda lines: 2 * lines), 2 * ROWS, "row_count_ratio"),
]

UNREADABLE = [
    Case("broken off", _shorten, WITHHELD, "files_are_readable", "", ("can't be read",)),
    Case(
        "garbage behind",
        lambda day: day.put_raw(FILE, day.file.read_bytes() + b"garbage"),
        WITHHELD,
        "files_are_readable",
        f"{FILE} can't be read: bytes that are no gzip follow its end",
        ("can't be read",),
    ),
    *(
        Case(
            f"{size} zeros behind",
            lambda day, size=size: day.put_raw(FILE, day.file.read_bytes() + bytes(size)),
            WITHHELD,
            "files_are_readable",
            f"{FILE} can't be read: bytes that are no gzip follow its end",
            ("can't be read",),
        )
        for size in (8, 512)
    ),
    Case("bits flipped", _flip, WITHHELD, "files_are_readable", "", ("can't be read",)),
    Case(
        "text named as gzip",
        lambda day: day.put_raw(FILE, b"{}\n" * 100),
        WITHHELD,
        "files_are_readable",
        "flights.json.gz can't be read",
        ("the file can't be read",),
    ),
    Case(
        "gzip named as text",
        lambda day: day.rename("flights.json"),
        WITHHELD,
        "rejects",
    ),
    Case(
        "UTF-16",
        lambda day: day.put(FILE, "\n".join(day.lines).encode("utf-16")),
        WITHHELD,
        "rejects",
    ),
    Case(
        "one array",
        lambda day: day.put(FILE, json.dumps(list(day.records)).encode()),
        WITHHELD,
        "rejects",
        "",
        ("not one JSON object",),
    ),
    Case(
        "pretty-printed",
        lambda day: day.put(FILE, json.dumps(day.records[0], indent=1).encode()),
        WITHHELD,
        "rejects",
    ),
]

LINES = [
    Case("not UTF-8", _write_twice_as_bytes, ROWS, quarantined=("not UTF-8",)),
    Case(
        "a key twice",
        _add_line(_line_with('"dest": "LAX"')),
        ROWS,
        quarantined=("a field is there twice",),
    ),
    Case(
        "1,200 new fields",
        _add_line(_line_with(", ".join(f'"new_{n}": {n}' for n in range(1200)))),
        ROWS,
        quarantined=("more than 50 fields that no schema declares: 1200",),
    ),
    Case(
        "60 new fields in two lines",
        _write_wide,
        WITHHELD,
        "new_fields_are_few",
        "at most 50 columns beyond the declaration",
    ),
    Case(
        "a new field",
        _change_first(gate="B12"),
        ROWS,
        "fields_are_declared",
        "not declared: gate",
    ),
    Case("broken off in a line", _add_line('{"year": 20'), ROWS, quarantined=("not one JSON",)),
    Case("a list", _add_line("[1, 2]"), ROWS, quarantined=("not one JSON object",)),
    Case("a NUL", _add_line("\0"), ROWS, quarantined=("not one JSON object",)),
    Case("two objects", _add_line("{} {}"), ROWS, quarantined=("not one JSON object",)),
    Case("no carrier", _change_first(carrier=None), ROWS - 1, quarantined=("`carrier` is miss",)),
    Case("a wrong type", _change_first(hour="six"), ROWS - 1, quarantined=("`hour` is not INT",)),
    Case("no date", _change_first(day=32), ROWS - 1, quarantined=("are no date",)),
    Case("of the future", _change_first(year=2014), ROWS - 1, quarantined=("after the landing",)),
    Case(
        "5 bad lines",
        _change_lines(lambda lines: [*lines, *5 * ["{"]]),
        WITHHELD,
        "rejects",
        "at most 0.01",
        5 * ("not one JSON object",),
    ),
    Case(
        "a field gone",
        _change_all(lambda record: {name: record[name] for name in record if name != "air_time"}),
        WITHHELD,
        "fields_are_declared",
        "disappeared: air_time",
    ),
    Case(
        "hours to 24",
        _change_all(lambda record: {**record, "hour": 24}),
        WITHHELD,
        "values(hour)",
    ),
]

HARMLESS = [
    Case("as it was", lambda day: None, ROWS),
    Case("CRLF", lambda day: day.put(FILE, "\r\n".join(day.lines).encode()), ROWS),
    Case("members of gzip", _split_members, ROWS),
    *(
        Case(f"named {name!r}", lambda day, name=name: day.rename(name), ROWS)
        for name in ("10:00 [1.json.gz", "{a*?\\b.json.gz", "\u00fc\n'%41#+&.json.gz")
    ),
    Case("odd names", lambda day: day.rename("a [1] {b,c} + d%20.json.gz"), ROWS),
    Case(
        "cut in two",
        lambda day: [day.write(day.lines[:50]), day.write(day.lines[50:], "b.json.gz")],
        ROWS,
    ),
]

FILES_EXIST = "landing_files_exist"
NEW = [
    Case("folder gone", lambda day: shutil.rmtree(day.folder), WITHHELD, FILES_EXIST, GONE),
    Case(
        "folder made ahead", lambda day: day.file.unlink(), WITHHELD, FILES_EXIST, "put a file _E"
    ),
    Case("marker", _replace("_EMPTY", b""), EMPTIED),
    Case("unknown name", lambda day: day.rename("a.jsonl"), WITHHELD, FILES_EXIST, "(a.jsonl (not"),
    Case("0 bytes", _replace("a.json", b""), WITHHELD, FILES_EXIST, "a.json (0 bytes)"),
    Case("subfolder", lambda day: day.rename(f"a/{FILE}"), WITHHELD, FILES_EXIST, "a (a folder)"),
    Case("a file in its place", _put_file_in_place, WITHHELD, FILES_EXIST, "a file is in its fol"),
    Case(
        "gzip of 0 bytes",
        _replace_raw(FILE, b""),
        WITHHELD,
        "files_are_readable",
        "has 0 bytes",
        ("the file has 0 bytes",),
    ),
    Case("gzip of nothing", _replace(FILE, b""), WITHHELD, "row_count", "hold no record"),
    Case("5 rows", _change_lines(lambda lines: lines[:5]), WITHHELD, "row_count_ratio"),
    Case("40 rows", _change_lines(lambda lines: lines[:40]), 40, "row_count_ratio"),
]

CASES = [
    *(
        case
        for group in (EMPTYING, BESIDE, SHRINKING, UNREADABLE, LINES, HARMLESS)
        for case in group
    ),
    *(Case(**{**vars(case), "name": f"new: {case.name}", "new": True}) for case in NEW),
]
