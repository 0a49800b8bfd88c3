"""A withheld day of real flights, and what goes on beside it, are one notice."""

import datetime as dt

from backfill_engine.orchestration.runs.run_tags import CHAIN_TAG
from backfill_engine_tests.pipeline.alerting import Home
from backfill_engine_tests.pipeline.running import FEATURES, RAW, STAGING, Pipeline
from backfill_engine_tests.receivers import run_receiver

FIRST, BAD, LAST = "2013-01-04", "2013-01-05", "2013-01-06"


def test_a_withheld_day_is_told_with_its_reason_and_what_went_on(pipeline: Pipeline) -> None:
    pipeline.zone.add_lines(BAD, *["{"] * 5)
    began = dt.datetime.now(tz=dt.UTC)
    run = pipeline.run(RAW, STAGING, FEATURES, first=FIRST, last=LAST)
    assert not run.success
    for day in (FIRST, LAST):
        pipeline.run(STAGING, first=day, last=day, tags={CHAIN_TAG: run.id}).confirm()
    with run_receiver() as receiver:
        home = Home(pipeline.instance, pipeline.warehouse, receiver)
        home.memory = home.memory.from_json(None, now=began)
        assert home.post_notices().problems == []
        home.post_notices()
        (notice,) = receiver.accepted
    found = {(table["table"], table["status"]): table for table in notice["tables"]}
    assert found[RAW, "withheld"]["ranges"] == [BAD]
    (reason,) = found[RAW, "withheld"]["reasons"]
    assert reason.startswith(f"{BAD}: partition_is_valid: ")
    assert found[STAGING, "held up"]["ranges"] == [BAD]
    assert found[FEATURES, "held up"]["ranges"] == [f"{FIRST}...{LAST}"]
    assert notice["goes_on"] == [f"published 2 of {STAGING} in runs that continued it"]
    assert notice["id"] == f"{run.id} {run.id}"
