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
from backfill_engine_tests.publishing.hostile_cases import WITHHELD, Case, leave, unreadable

ROWS = FLIGHTS_A_DAY
FILE = "flights.json.gz"
EMPTIED = 0


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


def _replace(name: str, content: bytes) -> Callable[[Day], Any]:
    return lambda day: [day.file.unlink(), day.put(name, content)]


def _link(target: str) -> Callable[[Day], Any]:
    return lambda day: [day.file.unlink(), day.file.symlink_to(target)]


def _change_lines(change: Callable[[list[str]], Sequence[str]]) -> Callable[[Day], None]:
    return lambda day: day.write(change(day.lines))


def _change_first(**changes: Any) -> Callable[[Day], None]:
    return lambda day: day.write([json.dumps({**day.records[0], **changes}), *day.lines[1:]])


def _change_all(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Day], None]:
    return lambda day: day.write([json.dumps(change(record)) for record in day.records])


def _append(more: bytes) -> Callable[[Day], None]:
    return lambda day: day.put_raw(FILE, day.file.read_bytes() + more)


def _remove(day: Day) -> None:
    shutil.rmtree(day.folder)


def _put_file_in_place(day: Day) -> None:
    _remove(day)
    day.folder.write_bytes(b"")


def _shorten(day: Day) -> None:
    day.put_raw(FILE, day.file.read_bytes()[:-200])


def _flip(day: Day) -> None:
    content = day.file.read_bytes()
    day.put_raw(FILE, content[:400] + b"\xff\xff\xff\xff" + content[404:])


def _write_wide(day: Day) -> None:
    wide = [{**day.records[n], **{f"wide_{n}_{k}": 1 for k in range(30)}} for n in range(2)]
    day.write([*map(json.dumps, wide), *day.lines[2:]])


def _write_twice_as_bytes(day: Day) -> None:
    content = json.dumps(day.records[0]).encode().replace(b'"ORD"', b'"\xff\xfe"')
    day.put(FILE, b"\n".join([content, *(line.encode() for line in day.lines)]) + b"\n")


def _write_alike(day: Day) -> None:
    for name in ("a.json", "b.json"):
        day.put(name, json.dumps({**day.records[0], "tailnum": name}).encode())


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


def _rename(name: str, becomes: str) -> Case:
    return Case(name, lambda day: day.rename(becomes), ROWS)


def _missing(name: str, spoil: Callable[[Day], Any], says: str) -> Case:
    return Case(name, spoil, WITHHELD, "row_count", says)


def _beside(name: str, file: str, says: str) -> Case:
    spoil = lambda day: day.write(day.lines, file)  # noqa: E731
    return Case(f"beside {name}", spoil, ROWS, "files_are_known", says)


def _twice(name: str, spoil: Callable[[Day], Any], second: str = FILE) -> Case:
    says = f"day=__/{second} holds the same as flights/"
    return Case(f"twice {name}", spoil, WITHHELD, "files_differ", says)


def _being_written(name: str, path: str, shown: str = "") -> Case:
    fault = "is being written: run again when it is finished, or remove it"
    return unreadable(name, lambda day: day.rename(path), fault, f"day=__/{shown or path}")


def _beside_being_written(name: str, path: str, shown: str = "") -> Case:
    case = _being_written(f"beside {name}", path, shown)
    return replace(case, spoil=lambda day: day.write(day.lines[:5], path))


def _rejected(name: str, spoil: Callable[[Day], Any], *reasons: str, rows: int = ROWS - 1) -> Case:
    return Case(name, spoil, rows, quarantined=reasons)


def _unparsable(name: str, content: Callable[[Day], bytes], *reasons: str) -> Case:
    spoil = lambda day: day.put(FILE, content(day))  # noqa: E731
    return Case(name, spoil, WITHHELD, "rejects", quarantined=reasons)


def _add_line(name: str, line: str, reason: str) -> Case:
    """Of a line that alone is rejected; a comma first makes it more of a record's fields."""

    def spoil(day: Day) -> None:
        more = f"{day.lines[0][:-1]}{line}}}" if line.startswith(",") else line
        day.write([*day.lines, more])

    return _rejected(name, spoil, reason, rows=ROWS)


NO_BYTES = "has 0 bytes, which is no gzip"
GONE, EMPTY = "its folder isn't there: land it again, or put", "there and empty"
NO_OBJECT = "not one JSON object"
NOWHERE = "is a link that leads nowhere"
NO_GZIP = "can't be read: bytes that are no gzip follow its end"
UNKNOWN_NAMES = "jsonl JSON.GZ json.GZ Json ndjson json.zst json.bz2 gz csv"
NEW_FIELDS = ", ".join(f'"new_{n}": {n}' for n in range(1200))
EMPTYING = [
    _missing("folder gone", _remove, GONE),
    _missing("a file in its place", _put_file_in_place, "a file is in its"),
    Case("file gone", lambda day: day.file.unlink(), EMPTIED, "row_count", EMPTY),
    Case("marker", _replace("_EMPTY", b""), EMPTIED, "row_count", "its folder holds _EMPTY"),
    Case("hidden files", _replace("_SUCCESS", b""), EMPTIED, "row_count", EMPTY),
    _being_written("hidden data", ".flights.json"),
    _being_written("hidden by rsync", ".flights.json.gz.Ab3dE9"),
    _being_written("named .part", "flights.json.gz.part"),
    _being_written("in _temporary", f"_temporary/0/{FILE}", "_temporary"),
    _missing("marker in small letters", _replace("_empty", b""), "(_empty (hid"),
    _missing("a sum alone", _replace(f".{FILE}.crc", b"crc"), "gz.crc (hidden"),
    unreadable("a link for the file", _link("nowhere"), f"{NOWHERE}: mend it", FILE),
    unreadable("a ring of links", _link(FILE), NOWHERE, FILE),
    unreadable(
        "a link for the folder",
        lambda day: [_remove(day), day.folder.symlink_to("nowhere")],
        NOWHERE,
        "day=__",
    ),
    unreadable(
        "a pipe for the file",
        lambda day: [day.file.unlink(), os.mkfifo(day.file)],
        "is neither a file nor a folder",
        FILE,
    ),
    _missing("marker without its mark", _replace("EMPTY", b""), "EMPTY (not"),
    unreadable("gzip of 0 bytes", lambda day: day.put_raw(FILE, b""), NO_BYTES, FILE),
    _missing("gzip of nothing", _replace(FILE, b""), "hold no record (flights/"),
    _missing("gzip of blanks", _replace(FILE, b"\n \n\t\n"), "hold no record"),
    _missing("blank lines", _replace("a.json", b"\n\n"), "hold no record"),
    _missing("0 bytes", _replace("a.json", b""), "(a.json (0 bytes))"),
    _missing("subfolder", lambda day: day.rename(f"part/{FILE}"), "part (a folder)"),
    *(
        _missing(
            f"named {name}",
            lambda day, name=name: day.rename(name),
            f"nothing in its folder is read ({name} (not .json or .json.gz))",
        )
        for name in ("flights", *(f"flights.{ending}" for ending in UNKNOWN_NAMES.split()))
    ),
]

BESIDE = [
    Case("beside 0 bytes", lambda day: day.put("b.json", b""), ROWS, "files_are_known", "b.json"),
    unreadable(
        "beside a gzip of 0 bytes", lambda day: day.put_raw("b.json.gz", b""), NO_BYTES, "b.json.gz"
    ),
    Case("beside a gzip of nothing", lambda day: day.put("b.json.gz", b""), ROWS),
    _beside("an unknown name", "more.jsonl", "not read: more.jsonl (not .json or .json.gz)"),
    _beside("a subfolder", f"more/{FILE}", "not read: more (a folder)"),
    _beside("hidden files", "_more.json", "_more.json (hidden)"),
    Case("beside what Hadoop leaves", _leave_as_hadoop, ROWS),
    _beside_being_written("a part-file", "more.json.gz.filepart"),
    _beside_being_written("one of rsync's", ".more.json.gz.x7Kq2A"),
    _beside_being_written("_temporary", "_temporary/0/more.json", "_temporary"),
    unreadable(
        "beside a link",
        lambda day: (day.folder / "more.json").symlink_to("nowhere"),
        NOWHERE,
        "more.json",
    ),
    unreadable(
        "beside a folder named as a file",
        lambda day: day.write(day.lines, "more.json/part-0.json"),
        "is a folder, and named as a file",
        "more.json",
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
    Case("alike but for a letter", _write_alike, ROWS + 2),
]

SHRINKING = [
    Case("40 rows", _change_lines(lambda lines: lines[:40]), WITHHELD, "shrink", "40 are left"),
    Case("1 row", _change_lines(lambda lines: lines[:1]), WITHHELD, "row_count_ratio", "0.6 to"),
    Case("59 rows", _change_lines(lambda lines: lines[:59]), WITHHELD, "shrink", "at most 0.5 of"),
    Case("60 rows", _change_lines(lambda lines: lines[:60]), 60, "row_count_ratio", "0.6 to 1.75"),
    Case("100 rows", _change_lines(lambda lines: lines[:100]), 100),
    Case("fewer bytes", _change_lines(list), WITHHELD, "shrink_bytes", "bytes of files may vanish"),
    Case("unpacked", lambda day: [day.file.unlink(), day.write(day.lines, "a.json")], ROWS),
    Case("rows doubled", _change_lines(lambda lines: 2 * lines), 2 * ROWS, "row_count_ratio"),
]

UNREADABLE = [
    unreadable("broken off", _shorten, "can't be read"),
    unreadable("garbage behind", _append(b"garbage"), NO_GZIP, FILE),
    *(unreadable(f"{size} zeros behind", _append(bytes(size)), NO_GZIP, FILE) for size in (8, 512)),
    unreadable("bits flipped", _flip, "can't be read"),
    unreadable(
        "text named as gzip", lambda day: day.put_raw(FILE, b"{}\n" * 100), "can't be read", FILE
    ),
    Case("gzip named as text", lambda day: day.rename("flights.json"), WITHHELD, "rejects"),
    _unparsable("UTF-16", lambda day: "\n".join(day.lines).encode("utf-16")),
    _unparsable("one array", lambda day: json.dumps(list(day.records)).encode(), NO_OBJECT),
    _unparsable("pretty-printed", lambda day: json.dumps(day.records[0], indent=1).encode()),
]

LINES = [
    _rejected("not UTF-8", _write_twice_as_bytes, "not UTF-8", rows=ROWS),
    _add_line("a key twice", ', "dest": "LAX"', "a field is there twice"),
    _add_line(
        "1,200 new fields", f", {NEW_FIELDS}", "more than 50 fields that no schema declares: 1200"
    ),
    Case(
        "60 new fields in two lines",
        _write_wide,
        WITHHELD,
        "new_fields_are_few",
        "at most 50 columns beyond the declaration",
    ),
    Case("a new field", _change_first(gate="B12"), ROWS, "fields_are_declared", "declared: gate"),
    _add_line("broken off in a line", '{"year": 20', "not one JSON"),
    _add_line("a list", "[1, 2]", NO_OBJECT),
    _add_line("a NUL", "\0", NO_OBJECT),
    _add_line("two objects", "{} {}", NO_OBJECT),
    _rejected("no carrier", _change_first(carrier=None), "`carrier` is miss"),
    _rejected("a wrong type", _change_first(hour="six"), "`hour` is not INT"),
    _rejected("no date", _change_first(day=32), "are no date"),
    _rejected("of the future", _change_first(year=2014), "after the landing"),
    Case(
        "5 bad lines",
        _change_lines(lambda lines: [*lines, *5 * ["{"]]),
        WITHHELD,
        "rejects",
        "at most 0.01",
        5 * (NO_OBJECT,),
    ),
    Case(
        "a field gone",
        _change_all(lambda record: {name: record[name] for name in record if name != "air_time"}),
        WITHHELD,
        "fields_are_declared",
        "disappeared: air_time",
    ),
    Case(
        "hours to 24", _change_all(lambda record: {**record, "hour": 24}), WITHHELD, "values(hour)"
    ),
]

HARMLESS = [
    Case("as it was", leave, ROWS),
    Case("CRLF", lambda day: day.put(FILE, "\r\n".join(day.lines).encode()), ROWS),
    Case("members of gzip", _split_members, ROWS),
    *(
        _rename(f"named {name!r}", name)
        for name in ("10:00 [1.json.gz", "{a*?\\b.json.gz", "\u00fc\n'%41#+&.json.gz")
    ),
    _rename("odd names", "a [1] {b,c} + d%20.json.gz"),
    Case(
        "cut in two",
        lambda day: [day.write(day.lines[:50]), day.write(day.lines[50:], "b.json.gz")],
        ROWS,
    ),
]


def _never_landed(name: str, spoil: Callable[[Day], Any], says: str) -> Case:
    return Case(name, spoil, WITHHELD, "landing_files_exist", says)


NEW = [
    _never_landed("folder gone", _remove, GONE),
    _never_landed("folder made ahead", lambda day: day.file.unlink(), "put a file _E"),
    Case("marker", _replace("_EMPTY", b""), EMPTIED),
    _never_landed("unknown name", lambda day: day.rename("a.jsonl"), "(a.jsonl (not"),
    _never_landed("0 bytes", _replace("a.json", b""), "a.json (0 bytes)"),
    _never_landed("subfolder", lambda day: day.rename(f"a/{FILE}"), "a (a folder)"),
    _never_landed("a file in its place", _put_file_in_place, "a file is in its fol"),
    unreadable("gzip of 0 bytes", lambda day: day.put_raw(FILE, b""), NO_BYTES),
    _missing("gzip of nothing", _replace(FILE, b""), "hold no record"),
    Case("5 rows", _change_lines(lambda lines: lines[:5]), WITHHELD, "row_count_ratio"),
    Case("40 rows", _change_lines(lambda lines: lines[:40]), 40, "row_count_ratio"),
]

CASES = [
    *EMPTYING,
    *BESIDE,
    *SHRINKING,
    *UNREADABLE,
    *LINES,
    *HARMLESS,
    *(replace(case, name=f"new: {case.name}", new=True) for case in NEW),
]
