"""What a person lets a run do all the same is told by commit, event and certificate."""

import datetime as dt
import json
from pathlib import Path

import pytest

from backfill_engine.lake.protections import Protection, add_protection
from backfill_engine.lake.table_log import read_log
from backfill_engine.orchestration.runs.features import PINNED_TAG, StepRequest
from backfill_engine.orchestration.runs.protecting import protect_partitions
from backfill_engine.orchestration.runs.run_tags import ALLOW_NEW_CODE_TAG, OVERRIDE_TAG
from backfill_engine.proof.certificates import find_certificates, locate_certificate
from backfill_engine.proof.pages import VerifiedLine
from backfill_engine.proof.verification import verify_run
from backfill_engine_tests.pipeline.landing_zone import delay
from backfill_engine_tests.pipeline.requesting import get_run
from backfill_engine_tests.pipeline.running import RAW, STAGING, FinishedRun, Pipeline, list_days
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS

FIRST, CLOSED, LAST = list_days(4, 6)
BACKFILL = "abcdefgh"
NOW = dt.datetime.now(tz=dt.UTC)


@pytest.fixture
def why(pipeline: Pipeline) -> str:
    """A day is protected; what a commit over it, with the reason `restated`, says of that."""
    decision = Protection(table=RAW, first=CLOSED, last=CLOSED, reason="books closed", by="anna")
    stored = add_protection(pipeline.warehouse, decision, now=NOW)
    return f"restated; protected: {stored.describe()}"


def find_broken(pipeline: Pipeline, run: FinishedRun) -> list[VerifiedLine]:
    logs = [read_log(pipeline.warehouse, table) for table in CATALOG.tables]
    lines = [line for found in verify_run(logs, run.id).values() for line in found]
    assert lines
    return [line for line in lines if line.holds is False]


def edit(pipeline: Pipeline, run: FinishedRun, old: str, new: str, backfill: str = "") -> None:
    log = read_log(pipeline.warehouse, RAW_FLIGHTS)
    document = Path(locate_certificate(log, run.id, backfill or None) + ".json")
    text = document.read_text(encoding="utf-8")
    assert json.dumps(old) in text
    document.write_text(text.replace(json.dumps(old), json.dumps(new)), encoding="utf-8")


def test_an_override_is_told_of_the_protected_partitions_alone(
    pipeline: Pipeline, why: str
) -> None:
    run = pipeline.run(RAW, first=FIRST, last=LAST, tags={OVERRIDE_TAG: "restated"}).confirm()
    record = read_log(pipeline.warehouse, RAW_FLIGHTS).commits[0].record
    assert record is not None
    assert record.notes == {CLOSED: {"override_protection": why}}
    remark = pipeline.read_materializations(RAW, CLOSED)[0].metadata["override_protection"]
    assert remark.value == why
    assert "override_protection" not in pipeline.read_materializations(RAW, LAST)[0].metadata
    (certificate,) = find_certificates(pipeline.warehouse, run.id)
    assert [row.notes for row in certificate.partitions] == [
        {},
        {"override_protection": why},
        {},
    ]
    log = read_log(pipeline.warehouse, RAW_FLIGHTS)
    page = Path(locate_certificate(log, run.id, None) + ".md").read_text(encoding="utf-8")
    assert f"override protection: {why}" in page
    assert find_broken(pipeline, run) == []
    edit(pipeline, run, why, "a better reason")
    seal, broken = sorted(find_broken(pipeline, run), key=lambda line: "commit" in line.found)
    assert "the commit's hash is of something else" in broken.found
    assert "seal" in seal.statement


def test_a_rollback_that_overrides_protection_says_so(pipeline: Pipeline, why: str) -> None:
    pipeline.zone.change(CLOSED, delay)
    by_config = {RAW: {"override_protection": "restated"}}
    change = pipeline.run(RAW, first=CLOSED, last=CLOSED, ops=by_config).confirm()
    refused = pipeline.roll_back(RAW, CLOSED, CLOSED, before_run=change.id)
    assert f"protected: {RAW} {CLOSED}: books closed" in refused.message
    back = pipeline.roll_back(
        RAW, CLOSED, CLOSED, before_run=change.id, override_protection="restated"
    ).confirm()
    record = read_log(pipeline.warehouse, RAW_FLIGHTS).commits[0].record
    assert record is not None
    assert (record.run_id, record.notes[CLOSED]["override_protection"]) == (back.id, why)


def test_what_reads_a_protected_day_goes_on_after_a_refusal(pipeline: Pipeline, why: str) -> None:
    refused = pipeline.run(RAW, STAGING, first=FIRST, last=LAST)
    assert f"protected: {RAW} {CLOSED}: books closed" in refused.message
    assert pipeline.find_unsynced(STAGING) == []
    pipeline.run(STAGING, first=CLOSED, last=CLOSED).confirm()


def test_protection_that_comes_in_mid_run_leaves_what_is_done(pipeline: Pipeline) -> None:
    done = pipeline.run(RAW, STAGING, first=FIRST, last=LAST).confirm()
    # As seen from the second of its steps, before that had begun.
    decision = Protection(table=RAW, reason="books closed", by="anna")
    add_protection(pipeline.warehouse, decision, now=NOW)
    request = StepRequest(
        CATALOG,
        pipeline.instance,
        get_run(pipeline.instance, done.id),
        CATALOG.recipes[STAGING],
        list_days(4, 6),
        pipeline.warehouse,
    )
    assert protect_partitions(request).overrides == {}


def test_new_code_that_is_allowed_in_mid_backfill_is_told(pipeline: Pipeline) -> None:
    tags = {"dagster/backfill": BACKFILL}
    first = pipeline.run(RAW, first=FIRST, last=FIRST, tags=tags).confirm()
    # As if that run had been before a deploy.
    by_other = {PINNED_TAG: json.dumps({"code": {RAW: "other"}, "options": {}})}
    pipeline.instance.add_run_tags(first.id, by_other)
    refused = pipeline.run(RAW, first=CLOSED, last=CLOSED, tags=tags)
    assert "another code was deployed" in refused.message
    tags |= {ALLOW_NEW_CODE_TAG: "it is the same"}
    run = pipeline.run(RAW, first=CLOSED, last=CLOSED, tags=tags).confirm()
    newest, before = read_log(pipeline.warehouse, RAW_FLIGHTS).commits[:2]
    assert newest.record is not None
    assert before.record is not None
    assert newest.record.features["new_code"] == "it is the same"
    assert "new_code" not in before.record.features
    (certificate,) = find_certificates(pipeline.warehouse, run.id)
    assert certificate.features == newest.record.features
    assert find_broken(pipeline, run) == []
    edit(pipeline, run, "it is the same", "it is better", BACKFILL)
    seal, broken = sorted(find_broken(pipeline, run), key=lambda line: "commit" in line.found)
    assert "the commit's hash is of something else" in broken.found
    assert "seal" in seal.statement
