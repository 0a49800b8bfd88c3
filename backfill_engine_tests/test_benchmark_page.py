"""The page of performance says what its writers make of the data beside it."""

import json
from pathlib import Path

import pytest

from benchmarks import growth_report, large_partition, orders_report, report, weather_report
from benchmarks.growth_report import GrowthRun
from benchmarks.report import DEFAULT_FOLDER, describe_briefly, describe_measuring
from benchmarks.sections import PAGE

SECTIONS = {
    "results.json": lambda found: report.build_section(
        found, plot="benchmarks/range_backfills.svg"
    ),
    "orders.json": orders_report.build_section,
    "weather.json": weather_report.build_section,
    "growth.json": lambda found: growth_report.build_section(
        [GrowthRun(**run) for run in found["runs"]], plot="benchmarks/growth.svg"
    ),
    "large_partition.json": large_partition.build_section,
}


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_is_what_its_writer_makes_of_its_data(name: str) -> None:
    file = Path(DEFAULT_FOLDER, name)
    found = json.loads(file.read_text(encoding="utf-8"))
    whole = name == "results.json"
    measured = describe_measuring(found) if whole else describe_briefly(found, file)
    page = file.parent.with_name(PAGE).read_text(encoding="utf-8")
    assert measured in page
    assert SECTIONS[name](found) in page
