"""What became of records that landed twice shows in the check and in health, kind by kind."""

import datetime as dt
import json
from pathlib import Path

import pytest
from dagster import AssetKey

from backfill_engine.orchestration.runs.run_tags import INCREMENTAL_TAG
from backfill_engine_tests.pipeline.landing_zone import build_landed
from backfill_engine_tests.pipeline.running import FEATURES, RAW, STAGING, Pipeline, list_days
from backfill_engine_tests.pipeline.watching import watch
from backfill_engine_tests.project import STAGING_FLIGHTS

IDENTICAL, OLDER = 136, 64
"""Of 200 lines that repeat flights of a day, which has 120."""

DAYS = list_days(1, 3)
DAY = DAYS[1]
PER_1000 = {"dropped_as_identical": 425.0, "dropped_as_older": 200.0, "keys_are_unique": 0.0}
"""Of 320 records; of 120 rows."""


def land_duplicates(pipeline: Pipeline) -> None:
    """Lands three days; one has 34 flights five times, and of 64 others an earlier version."""
    pipeline.zone.land(DAYS)
    own = [flight for flight in build_landed(DAY) if flight["day"] == 2]
    again = own[:34] * 4
    # Of one file the greater record counts, and ORD is greater.
    earlier = [{**flight, "dest": "DEN"} for flight in own[34 : 34 + OLDER]]
    assert (len(again), len(earlier)) == (IDENTICAL, OLDER)
    pipeline.zone.add_lines(DAY, *map(json.dumps, (*again, *earlier)))


def test_they_are_counted_apart_in_the_check_and_in_health(
    empty_pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = empty_pipeline
    watch(pipeline, monkeypatch)
    land_duplicates(pipeline)
    first, last, tags = DAYS[0], DAYS[-1], {INCREMENTAL_TAG: "true"}
    _, staged, _ = (
        pipeline.run(key, first=first, last=last, check_events=99, tags=tags).confirm()
        for key in (RAW, STAGING, FEATURES)
    )
    (valid,) = (
        found
        for found in pipeline.read_evaluations(staged)
        if (found.partition, found.check_name) == (DAY, "partition_is_valid")
    )
    assert valid.passed
    assert {name: valid.metadata[name].value for name in PER_1000} == PER_1000
    bound = valid.metadata["dropped_as_older: bound"].value
    assert bound == "none: 64 of 320 records (passed)"
    materialized = pipeline.read_materializations(STAGING, DAY)[0].metadata
    assert {name: materialized[name].value for name in PER_1000} == PER_1000
    assert len(pipeline.read_rows(STAGING_FLIGHTS, DAY)) == 120

    pipeline.zone.land([DAY])  # taken back, so that raw no longer agrees
    where = {"tables": [RAW], "first": DAYS[0], "last": DAY}
    assert not pipeline.run_job("reconcile", "compare_with_source", **where).success
    checks = pipeline.read_evaluations(pipeline.run_watch().confirm())
    event = pipeline.instance.get_latest_materialization_event(AssetKey(["ops", "backfill_health"]))
    assert event is not None
    assert event.asset_materialization is not None
    health = {name: value.value for name, value in event.asset_materialization.metadata.items()}
    assert health["dropped as identical per 1,000 records"] == 425.0
    assert health["dropped as older per 1,000 records"] == 200.0
    assert health["duplicates kept per 1,000 rows"] == 0.0
    assert health["different at the last reconciliation"] == 1
    # The samples end with 2014-01-01.
    assert health[f"{RAW} behind, days"] == (dt.date(2014, 1, 2) - dt.date(2013, 1, 4)).days
    (agrees,) = (found for found in checks if found.check_name == "last_reconciliation_agrees")
    assert not agrees.passed
    assert (agrees.description or "").startswith("1 of 2 partitions differed; run ")
    assert {name: value.value for name, value in agrees.metadata.items()} == {
        "different": 1,
        "partitions": 2,
    }
    page = Path(str(health["page"])).read_text(encoding="utf-8")
    assert f"<td>{STAGING}</td><td>3</td><td>0</td><td>425.00</td><td>200.00</td><td>0.00</td>" in (
        page
    )
    # As of commits from before these were counted: nothing is said of them.
    assert f"<td>{FEATURES}</td><td>3</td><td>0</td><td></td><td></td><td>0.00</td>" in page
