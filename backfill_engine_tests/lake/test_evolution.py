"""Landing files whose fields, or whose flight dates, are not as declared."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from backfill_engine.lake.side_tables import build_quarantine_table
from backfill_engine.lake.table_log import read_log
from backfill_engine_tests.pipeline.landing_zone import build_flights
from backfill_engine_tests.pipeline.running import RAW, FinishedRun, Pipeline, copy_pipeline
from backfill_engine_tests.project import RAW_FLIGHTS

EXTRA, FUTURE, ANCIENT = "2013-01-10", "2013-01-11", "2013-01-12"


@dataclass(frozen=True)
class Evolved:
    """A run over three days, each with files of another kind."""

    pipeline: Pipeline
    run: FinishedRun


@pytest.fixture(scope="module")
def evolved(published_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evolved]:
    with copy_pipeline(published_root, tmp_path_factory.mktemp("evolved")) as pipeline:
        zone = pipeline.zone
        zone.change(EXTRA, lambda flight: {**flight, "gate": f"A{flight['hour']}", "seats": 150})
        zone.add_lines(FUTURE, json.dumps(build_flights("2013-01-12")[7]))
        zone.add_lines(ANCIENT, json.dumps(build_flights("2012-12-31")[7]))
        yield Evolved(pipeline, pipeline.run(RAW, first=EXTRA, last=ANCIENT))


def test_extra_fields_become_nullable_text_columns_in_a_commit_of_their_own(
    evolved: Evolved,
) -> None:
    fields = evolved.pipeline.warehouse.open(RAW_FLIGHTS).schema().fields
    added = fields[len(RAW_FLIGHTS.columns) :]
    assert [(field.name, str(field.type.type), field.nullable) for field in added] == [
        ("gate", "string", True),
        ("seats", "string", True),
    ]
    publish, evolution, *_ = read_log(evolved.pipeline.warehouse, RAW_FLIGHTS).commits
    assert evolution.operation == "ADD COLUMNS"
    assert publish.record is not None
    assert publish.record.run_id == evolved.run.id


def test_extra_values_are_kept_and_older_days_read_null(evolved: Evolved) -> None:
    rows = evolved.pipeline.read_rows(RAW_FLIGHTS, EXTRA)
    assert {(row["gate"], row["seats"]) for row in rows} == {
        (f"A{hour}", "150") for hour in range(6, 22)
    }
    older = evolved.pipeline.read_rows(RAW_FLIGHTS, "2013-01-09")
    assert {(row["gate"], row["seats"]) for row in older} == {(None, None)}


def test_flights_after_their_landing_day_or_before_the_begin_are_rejected(
    evolved: Evolved,
) -> None:
    rejected = evolved.pipeline.read_rows(build_quarantine_table(RAW_FLIGHTS))
    assert {(str(row["landing_date"]), row["reason"]) for row in rejected} == {
        (FUTURE, "the flight date is after the landing day"),
        (ANCIENT, "the flight date is before 2013-01-01"),
    }
    for day in (FUTURE, ANCIENT):
        assert day in evolved.pipeline.find_days(RAW, "MATERIALIZED")
        rows = evolved.pipeline.read_rows(RAW_FLIGHTS, day)
        assert {row["flight_date"].isoformat() <= day for row in rows} == {True}
