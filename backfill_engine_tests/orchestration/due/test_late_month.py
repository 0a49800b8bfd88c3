"""Six weeks of real flights, delivered day by day to the sensor, with all that comes late or wrong.

Whatever came when, the tables are in the end what one backfill of all that landed makes of it.
"""

import datetime as dt
import gzip
import itertools
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_engine.lake.commits import group_publishes
from backfill_engine.lake.table_log import read_log
from backfill_engine_tests.landing_zones import copy_days, day_folder, rewrite_records
from backfill_engine_tests.pipeline.running import FEATURES, RAW, STAGING, Pipeline, open_pipeline
from backfill_engine_tests.pipeline.watching import Sensor, describe, watch
from backfill_engine_tests.project import CATALOG

pytestmark = [pytest.mark.slow, pytest.mark.by_hand, pytest.mark.timeout(3600)]

FIRST, DAYS = dt.date(2013, 1, 1), 44
LATE = {10: (9,), 17: (1, 5, 16), 25: (24,), 41: (3, 2), 43: (30, 12)}
"""On which day of the stream (1 is the first) flights of which days land that nobody had told."""
BROKEN, MENDED = 12, 15
TWICE, TAKEN_BACK = 20, 22
REWRITTEN = 28
VANISHES, GONE = 31, 34
WHILE_AT_WORK = 37
RUNS_A_DAY = 4


@pytest.fixture
def stream(
    sample_landing: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator["Stream"]:
    with open_pipeline(tmp_path / "streamed") as pipeline:
        yield Stream(sample_landing, watch(pipeline, monkeypatch))


class Stream:
    """What happens on each day, by its number."""

    def __init__(self, sample: Path, sensor: Sensor) -> None:
        self.sample, self.sensor = sample, sensor
        self.landing = sensor.pipeline.zone.root
        self.runs: Counter[str] = Counter()

    def deliver(self, number: int) -> None:
        """Lands what the day brings."""
        day = to_day(number)
        copy_days(self.sample, self.landing, first=day, count=1)
        folder = self.folder(number)
        if number in LATE:
            write(
                folder / "late.json.gz",
                [build_untold(self.sample, late_day) for late_day in LATE[number]],
            )
        if number == BROKEN:
            write(folder / "broken.json", ["{"] * 50)
        if number == MENDED:
            (self.folder(BROKEN) / "broken.json").unlink()
        if number == TWICE:
            shutil.copy(folder / "flights.json.gz", folder / "again.json.gz")
        if number == TAKEN_BACK:
            (self.folder(TWICE) / "again.json.gz").unlink()
        if number == REWRITTEN:
            rewrite_records(self.landing, to_day(REWRITTEN - 3), lambda records: records[:-1])
            os.utime(self.folder(REWRITTEN - 4) / "flights.json.gz")
        if number == VANISHES:
            write(folder / "mistaken.json.gz", [build_untold(self.sample, 8)])
        if number == GONE:
            (self.folder(VANISHES) / "mistaken.json.gz").unlink()

    def process(self, number: int) -> None:
        """Ticks until nothing is requested; a file may land after a tick and before its run."""
        requested = self.sensor.look()
        if number == WHILE_AT_WORK:
            write(self.folder(number) / "late.json.gz", [build_untold(self.sample, 33)])
        while requested:
            for request in requested:
                table, first, last, _reason = describe(request)
                tags = {"backfill_assets/incremental": "true"}
                self.sensor.pipeline.run(table, first=first, last=last, tags=tags)
                self.runs[table] += 1
            requested = self.sensor.look()

    def folder(self, number: int) -> Path:
        """Returns the folder in which a day lands."""
        return self.landing / day_folder(dt.date.fromisoformat(to_day(number)))


def to_day(number: int) -> str:
    return (FIRST + dt.timedelta(days=number - 1)).isoformat()


def write(path: Path, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def build_untold(sample: Path, number: int) -> str:
    """Copies a flight of a day under a number that no other flight has."""
    path = sample / day_folder(dt.date.fromisoformat(to_day(number))) / "flights.json.gz"
    record = json.loads(gzip.decompress(path.read_bytes()).splitlines()[-1])
    return json.dumps({**record, "flight": 9000 + number})


def test_a_stream_with_all_its_faults_ends_as_one_backfill(
    stream: Stream, tmp_path: Path, spark: SparkSession
) -> None:
    for number in range(1, DAYS + 1):
        stream.deliver(number)
        stream.process(number)
    assert stream.sensor.look() == []
    streamed = stream.sensor.pipeline
    assert sum(stream.runs.values()) <= RUNS_A_DAY * DAYS

    last = to_day(DAYS)
    with open_pipeline(tmp_path / "clean") as clean:
        shutil.copytree(stream.landing, clean.zone.root)
        for key in (RAW, STAGING, FEATURES):
            clean.run(key, first=to_day(1), last=last).confirm()
        for key in (RAW, STAGING, FEATURES):
            assert find_checksums(streamed, key) == find_checksums(clean, key), key
    assert find_needless(streamed, FEATURES) == set()
    # Of staging, what was computed once more because its window was complete, or because of
    # records that a later version of the same flight hides.


def find_checksums(pipeline: Pipeline, key: str) -> dict[str, str]:
    publishes = read_log(pipeline.warehouse, CATALOG.find_table(key)).publishes
    return {day: publish.checksum for day, publish in publishes.items()}


def find_needless(pipeline: Pipeline, key: str) -> set[tuple[str, int]]:
    """Finds final partitions that a run published with the contents that they had already."""
    commits = read_log(pipeline.warehouse, CATALOG.find_table(key)).commits
    return {
        (day, after.version)
        for day, publishes in group_publishes(commits).items()
        for after, before in itertools.pairwise(publishes)
        if after.checksum == before.checksum and day not in before.record.provisional
    }
