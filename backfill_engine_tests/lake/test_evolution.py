"""Landing files whose fields are not as declared."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from backfill_engine.lake.table_log import read_log
from backfill_engine_tests.pipeline.running import RAW, FinishedRun, Pipeline, copy_pipeline
from backfill_engine_tests.project import RAW_FLIGHTS

EXTRA = "2013-01-10"


@dataclass(frozen=True)
class Evolved:
    """A run over a day whose file has fields that nothing declares."""

    pipeline: Pipeline
    run: FinishedRun


@pytest.fixture(scope="module")
def evolved(published_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evolved]:
    with copy_pipeline(published_root, tmp_path_factory.mktemp("evolved")) as pipeline:
        zone = pipeline.zone
        zone.change(EXTRA, lambda flight: {**flight, "gate": f"A{flight['hour']}", "seats": 150})
        yield Evolved(pipeline, pipeline.run(RAW, first=EXTRA, last=EXTRA))


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
