"""A person lets a failed check pass, in the run's configuration and with a reason."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dagster import AssetCheckSeverity

from backfill_engine.lake.table_log import read_log
from backfill_engine_tests.pipeline.landing_zone import (
    FLIGHTS_A_DAY,
    LANDING_LATER,
    double_distance,
)
from backfill_engine_tests.pipeline.running import (
    RAW,
    STAGING,
    FinishedRun,
    Pipeline,
    copy_pipeline,
)
from backfill_engine_tests.project import STAGING_FLIGHTS

NOT_ACCEPTED, ACCEPTED = "2013-01-11", "2013-01-12"
CHECK, REASON = "partition_is_stable", "the carrier now flies to the coast, says J. Doe"


@dataclass(frozen=True)
class Accepted:
    """Both days drift; one of them was accepted."""

    pipeline: Pipeline
    run: FinishedRun


@pytest.fixture(scope="module")
def accepted(published_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accepted]:
    with copy_pipeline(published_root, tmp_path_factory.mktemp("accepted")) as pipeline:
        for day in (NOT_ACCEPTED, ACCEPTED):
            pipeline.zone.change(day, double_distance)
        pipeline.run(RAW, first=NOT_ACCEPTED, last=ACCEPTED).confirm()
        acceptance = {"check": CHECK, "reason": REASON, "partitions": [ACCEPTED]}
        run = pipeline.run(STAGING, first=NOT_ACCEPTED, last=ACCEPTED, accept=[acceptance])
        yield Accepted(pipeline, run)


def test_only_the_accepted_partition_is_published(accepted: Accepted) -> None:
    pipeline = accepted.pipeline
    assert "withheld 1 of 2 partitions" in accepted.run.message
    assert pipeline.find_days(STAGING, "FAILED") == [NOT_ACCEPTED]
    assert ACCEPTED in pipeline.find_days(STAGING, "MATERIALIZED")
    assert pipeline.read_rows(STAGING_FLIGHTS, NOT_ACCEPTED) == []
    landed = FLIGHTS_A_DAY - LANDING_LATER
    assert len(pipeline.read_rows(STAGING_FLIGHTS, ACCEPTED)) == landed


def test_the_reason_is_in_the_commit(accepted: Accepted) -> None:
    newest, *_ = accepted.pipeline.warehouse.open(STAGING_FLIGHTS).history(1)
    record = json.loads(newest["userMetadata"])
    assert record["run_id"] == accepted.run.id
    acceptance = {"partition": ACCEPTED, "check": CHECK, "reason": REASON}
    assert record["audit"]["accepted"] == [acceptance]


def test_the_reason_is_in_the_events(accepted: Accepted) -> None:
    (event,) = accepted.pipeline.read_materializations(STAGING, ACCEPTED)
    assert event.metadata["accepted"].value == f"{CHECK}: {REASON}"
    evaluations = {
        acceptance.partition: acceptance
        for acceptance in accepted.pipeline.read_evaluations(accepted.run)
        if acceptance.check_name == CHECK and acceptance.partition
    }
    assert not any(evaluation.passed for evaluation in evaluations.values())
    assert evaluations[ACCEPTED].metadata["accepted"].value == REASON
    assert evaluations[ACCEPTED].severity is AssetCheckSeverity.WARN
    assert evaluations[NOT_ACCEPTED].severity is AssetCheckSeverity.ERROR
    assert "accepted" not in evaluations[NOT_ACCEPTED].metadata


@pytest.mark.parametrize(
    ("acceptance", "message"),
    [
        (
            {"check": "partition_is_fine", "reason": REASON},
            "can't accept partition_is_fine: name one of partition_is_complete, "
            "partition_is_valid, partition_is_stable",
        ),
        (
            {"check": CHECK, "reason": "  "},
            "accepting partition_is_stable needs a reason: say it in place of WHY",
        ),
    ],
)
def test_an_unusable_acceptance_fails_the_run_with_nothing_written(
    accepted: Accepted, acceptance: dict[str, str], message: str
) -> None:
    pipeline = accepted.pipeline
    before = read_log(pipeline.warehouse, STAGING_FLIGHTS).version
    run = pipeline.run(STAGING, first="2013-01-01", last="2013-01-02", accept=[acceptance])
    assert (run.success, run.error, run.message) == (False, "Failure", message)
    assert read_log(pipeline.warehouse, STAGING_FLIGHTS).version == before


def test_the_message_has_the_command_that_accepts_the_other_day(accepted: Accepted) -> None:
    title = "Or publish them as they are, with your reason in place of WHY:\n"
    command, *_ = accepted.run.message.partition(title)[2].splitlines()
    *_, ends, _, text = shlex.split(command)
    (op,) = json.loads(text.replace("WHY", REASON))["ops"].values()
    pipeline, (first, last) = accepted.pipeline, ends.split("...")
    pipeline.run(STAGING, first=first, last=last, ops={STAGING: op["config"]}).confirm()
    assert NOT_ACCEPTED in pipeline.find_days(STAGING, "MATERIALIZED")
