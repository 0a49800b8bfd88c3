"""A notice stays short and quick to compose, however much it is about."""

import datetime as dt
import json
import time

from dagster import DagsterRun, DagsterRunStatus, RunRecord

from backfill_engine.extras.alerts.notices import compose_notice
from backfill_engine.orchestration.backfills.outcomes import (
    HELD_UP,
    WITHHELD,
    ChainResult,
    UnpublishedPartitions,
)
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.orchestration.runs.chains import Chain
from backfill_engine_tests.project import CATALOG, RAW_WEATHER

NOW = dt.datetime(2013, 2, 1, tzinfo=dt.UTC)


def test_a_notice_of_a_year_of_bad_hours_is_short_and_quick() -> None:
    hours = find_partitions_def(RAW_WEATHER).get_partition_keys()[:8760]
    different = {hour: f"why {number}" for number, hour in enumerate(hours[::2])}
    alike = dict.fromkeys(hours[1::2], "for one reason")
    result = ChainResult(
        (
            UnpublishedPartitions(RAW_WEATHER, WITHHELD, different),
            UnpublishedPartitions(RAW_WEATHER, HELD_UP, alike),
        )
    )
    run = DagsterRun("__ASSET_JOB", run_id="run", status=DagsterRunStatus.FAILURE)
    chain = Chain("run", "run", (RunRecord(1, run, NOW, NOW),))
    begun = time.process_time()
    notice = compose_notice(CATALOG, chain, result, retries_changed=False)
    assert time.process_time() - begun < 10
    first, second = notice["tables"]
    assert first["partitions"] == second["partitions"] == 4380
    assert first["ranges"][-1] == first["reasons"][-1] == "and 4330 more"
    assert first["reasons"][1] == "2013-01-01-02:00: why 1"
    (reason,) = second["reasons"]
    assert reason.endswith("2013-01-01-13:00, and 4373 more: for one reason")
    assert len(notice["text"]) < 3000
    assert len(json.dumps(notice)) < 50_000
