"""The benchmark of hours: the days that it makes of them, what it measures, and its section."""

import gzip
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterInstance, asset, materialize

from backfill_engine_tests.benchmark_results import MACHINE
from benchmarks.daily_weather import defs
from benchmarks.run_metadata import Metadata, measure_metadata
from benchmarks.sections import PAGE
from benchmarks.variants import Command
from benchmarks.watching import watch_command
from benchmarks.weather_days import land_days
from benchmarks.weather_report import (
    PartSample,
    PipelineSample,
    write_weather_report,
)

_RAW = PartSample(
    partitions=1000,
    commits={"raw/weather": 2},
    rows={"raw/weather": 2500},
    python_bytes=300 * 2**20,
    jvm_bytes=900 * 2**20,
    seconds=30.0,
    metadata=Metadata(50 * 2**20, 3000, 10_000_000, 2**20),
)
_REST = replace(_RAW, partitions=80, seconds=10.0, jvm_bytes=950 * 2**20)


def test_days_hold_the_lines_of_their_hours_and_nothing_else(tmp_path: Path):
    hours, days = tmp_path / "hours", tmp_path / "days"
    first, second = "weather/year=2013/month=12/day=30", "weather/year=2013/month=12/day=31"
    for folder, lines in ((f"{first}/hour=09", '{"a":1}\n{"a":2}\n'), (f"{first}/hour=10", "{}\n")):
        (hours / folder).mkdir(parents=True)
        (hours / folder / "weather.json.gz").write_bytes(gzip.compress(lines.encode()))
    for folder in (f"{first}/hour=11", f"{second}/hour=00"):
        (hours / folder).mkdir(parents=True)
        (hours / folder / "_EMPTY").touch()
    assert land_days(hours, days) == 2
    (file,) = (days / first).iterdir()
    assert gzip.decompress(file.read_bytes()) == b'{"a":1}\n{"a":2}\n{}\n'
    (marker,) = (days / second).iterdir()
    assert marker.name == "_EMPTY"


def test_events_and_files_of_a_home_are_counted(tmp_path: Path):
    @asset
    def thing() -> None:
        """Materializes."""

    home = tmp_path / "home"
    home.mkdir()
    with DagsterInstance.local_temp(str(home)) as instance:
        before = measure_metadata(home, tmp_path, [])
        run = materialize([thing], instance=instance)
        stored = instance.all_logs(run.run_id)
    added = measure_metadata(home, tmp_path, []).subtract(before)
    assert added.events == len(stored) > 5
    assert 300 * added.events < added.event_bytes < added.sqlite_bytes


def test_memory_of_a_process_and_of_what_it_starts_is_seen(tmp_path: Path):
    hold = "import time; held = bytearray({}); time.sleep(1.5)"
    child = [sys.executable, "-c", hold.format(150 * 2**20)]
    program = f"import subprocess; held = bytearray({80 * 2**20}); subprocess.run({child!r})"
    watched = watch_command(
        Command([sys.executable, "-c", program], {}), scratch=tmp_path, name="both"
    )
    assert 80 < watched.own / 2**20 < 140
    assert 150 < watched.workers / 2**20 < 210
    assert watched.jvm == 0


def test_a_process_that_fails_ends_the_benchmark(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    failing = Command([sys.executable, "-c", "raise SystemExit('no room')"], {})
    with pytest.raises(SystemExit, match="hours ended with exit code 1"):
        watch_command(failing, scratch=tmp_path, name="hours")
    assert "no room" in capfd.readouterr().err


def test_a_page_without_the_section_gets_it_at_its_end(tmp_path: Path):
    page = tmp_path / PAGE
    page.write_text("# Benchmarks\n\nOf others.\n", encoding="utf-8")
    samples = [asdict(PipelineSample(grain, _RAW, _REST)) for grain in ("hours", "days")]
    results = {"date": "2013-01-01", "machine": MACHINE, "samples": samples}
    for _ in range(2):
        write_weather_report(results, tmp_path / "benchmarks")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Benchmarks\n\nOf others.\n")
    assert text.count("| whole pipeline |") == 1


def test_the_pipeline_by_days_has_days_throughout():
    assets = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    raw = assets[AssetKey(["raw", "weather"])]
    staging = assets[AssetKey(["staging", "weather"])]
    assert raw.partitions_def == staging.partitions_def
    (read,) = staging.deps
    assert read.asset_key == raw.key
