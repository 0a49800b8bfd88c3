"""Dagster calls a partition unsynced when what it was computed from has changed, and only then."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from dagster import DagsterInstance
from pyspark.sql import SparkSession

from backfill_engine.orchestration.recovery.recovery import recover_tables
from backfill_engine.settings import Settings
from backfill_engine_tests.pipeline.landing_zone import delay
from backfill_engine_tests.pipeline.running import (
    FEATURES,
    RAW,
    STAGING,
    Pipeline,
    copy_pipeline,
    list_days,
    open_pipeline,
)
from backfill_engine_tests.project import CATALOG

DAYS = list_days(1, 9)
CHANGED = "2013-01-05"
OF_CHANGED = list_days(3, 5)
"""A flight's records land on its day or in the two days after."""


@pytest.fixture(scope="module")
def layers_root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine days through all layers, as a clean backfill runs them."""
    root = tmp_path_factory.mktemp("synced")
    with open_pipeline(root) as pipeline:
        pipeline.zone.land(list_days(1, 11))
        assert pipeline.run(RAW, first="2013-01-01", last="2013-01-11").success
        assert pipeline.run(STAGING, FEATURES, first=DAYS[0], last=DAYS[-1]).success
    return root


@pytest.fixture
def layers(layers_root: Path, tmp_path: Path) -> Iterator[Pipeline]:
    with copy_pipeline(layers_root, tmp_path / "layers") as pipeline:
        yield pipeline


def find_unsynced(pipeline: Pipeline) -> dict[str, list[str]]:
    found = {key: pipeline.find_unsynced(key) for key in (RAW, STAGING, FEATURES)}
    return {key: days for key, days in found.items() if days}


def recover_in_new_home(pipeline: Pipeline, home: Path) -> dict[str, list[str]]:
    """What a home that knows nothing calls unsynced after a recovery of features alone."""
    home.mkdir()
    with DagsterInstance.local_temp(
        str(home), overrides={"telemetry": {"enabled": False}}
    ) as instance:
        recovered = Pipeline(pipeline.root, instance)
        catalog = replace(CATALOG, given=Settings(warehouse=pipeline.warehouse.root))
        recover_tables(catalog, instance, FEATURES, dry_run=False)
        for key in (RAW, STAGING, FEATURES):
            found = [recovered.find_days(key, "MATERIALIZED")]
            assert found == [pipeline.find_days(key, "MATERIALIZED")], key
        return find_unsynced(recovered)


def test_a_changed_day_makes_exactly_its_dependents_unsynced_until_it_is_taken_back(
    layers: Pipeline, tmp_path: Path
) -> None:
    assert find_unsynced(layers) == {}
    assert layers.read_inputs(STAGING, CHANGED)[RAW].items() >= {
        *(("first", CHANGED), ("last", "2013-01-07"), ("partitions", 3))
    }
    landed = layers.read_inputs(RAW, CHANGED)["landing"]
    assert (landed["files"], landed["bytes"]) == (1, layers.zone.path(CHANGED).stat().st_size)
    layers.run(RAW, STAGING, first=CHANGED, last=CHANGED).confirm()
    assert find_unsynced(layers) == {}, "the same contents again"

    layers.zone.change(CHANGED, delay)
    change = layers.run(RAW, first=CHANGED, last=CHANGED)
    assert find_unsynced(layers) == {STAGING: OF_CHANGED}
    assert recover_in_new_home(layers, tmp_path / "changed") == {STAGING: OF_CHANGED}

    again = layers.run(STAGING, first=OF_CHANGED[0], last=CHANGED)
    # Of the day before only what landed late is in the file, and of the one before that nothing.
    assert find_unsynced(layers) == {FEATURES: list_days(4, 9)}

    layers.roll_back(STAGING, OF_CHANGED[0], CHANGED, before_run=again.id).confirm()
    assert find_unsynced(layers) == {STAGING: OF_CHANGED}, "it is of the raw day before its change"
    assert recover_in_new_home(layers, tmp_path / "restored") == {STAGING: OF_CHANGED}
    layers.roll_back(RAW, CHANGED, CHANGED, before_run=change.id).confirm()
    assert find_unsynced(layers) == {}
    assert recover_in_new_home(layers, tmp_path / "both") == {}
