"""Landing zones for tests: some days of the real sample, and ways to break them."""

import datetime as dt
import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def copy_days(
    sample: Path, target: Path, *, first: str, count: int, dataset: str = "flights"
) -> Path:
    """Copies `count` landing days from `first` on; returns the new landing root."""
    for offset in range(count):
        folder = day_folder(dt.date.fromisoformat(first) + dt.timedelta(days=offset), dataset)
        shutil.copytree(sample / folder, target / folder)
    return target


def day_folder(day: dt.date, dataset: str = "flights") -> str:
    """Where a day's files are, below the landing root."""
    return f"{dataset}/year={day:%Y}/month={day:%m}/day={day:%d}"


def rewrite_records(
    landing: Path, day: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    """Lands a day again with its records changed."""
    path = landing / day_folder(dt.date.fromisoformat(day)) / "flights.json.gz"
    records = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    lines = "".join(json.dumps(record) + "\n" for record in change(records))
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))


def truncate(landing: Path, day: str) -> None:
    """Breaks a day's file off, as of an upload that died."""
    path = landing / day_folder(dt.date.fromisoformat(day)) / "flights.json.gz"
    path.write_bytes(path.read_bytes()[:-200])


def blank_carriers(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One record in twenty lacks a field that it must have."""
    return [
        {**record, "carrier": None} if n % 20 == 0 else record for n, record in enumerate(records)
    ]


def double_distances(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A fault that only the drift of columns shows: planes that fly twice as far, and longer."""
    return [
        {
            **record,
            "distance": record["distance"] * 2,
            # At most what `Values` allows, of which a flight to Honolulu would take more.
            "air_time": record["air_time"]
            and min(record["air_time"] + record["distance"] // 8, 1_200),
        }
        for record in records
    ]
