"""What the Launchpad takes for an option, and what it refuses before a run is made."""

import pytest
from dagster import AssetKey, DagsterInvalidConfigError, DagsterRun, validate_run_config

from backfill_engine.errors import SettingsError
from backfill_engine.orchestration.runs.run_options import (
    build_asset_config,
    read_asset_config,
    read_options,
)
from backfill_engine.publishing.write_modes.choosing import WRITE_MODES, ModeName
from backfill_engine_tests.project import CATALOG, defs

STAGING = AssetKey(["staging", "flights"])
TOLD = {
    "accept": [{"check": "partition_is_stable", "reason": "a strike", "partitions": []}],
    "write_mode": "merge",
    "delete_missing": True,
    "filter": "carrier = 'AA'",
    "chunk": "days=2",
    "restart": True,
    "keep_going": False,
    "window": "22:00-06:00",
    "override_protection": "INC-7",
}


def build_config(told: dict) -> dict:
    return {"ops": {"staging__flights": {"config": told}}}


def validate(told: dict) -> None:
    validate_run_config(defs.resolve_job_def("flights"), build_config(told))


def test_each_option_is_taken_and_is_told_to_a_run_that_goes_on():
    validate(TOLD)
    run = DagsterRun("flights", run_config=build_config(TOLD))
    assert build_asset_config(run, [STAGING], with_acceptances=True) == build_config(TOLD)
    assert read_options(CATALOG, run, STAGING)["write_mode"] == "merge"
    # A plain text, as tags and certificates have it: Dagster stores no enum that it doesn't know.
    assert type(read_options(CATALOG, run, STAGING)["write_mode"]) is str


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"write_mode": "upsert"}, "write_mode not in enum type"),
        ({"restart": "maybe"}, "config:restart"),
        ({"chunks": "days=2"}, 'unexpected config entry "chunks"'),
        ({"accept": [{"check": "partition_is_stable"}]}, 'Missing required config entry "reason"'),
        ({"window": 3}, "config:window"),
    ],
)
def test_what_is_none_is_refused_before_a_run_is_made(told: dict, message: str):
    with pytest.raises(DagsterInvalidConfigError, match=message):
        validate(told)


def test_each_mode_that_the_ui_offers_is_one():
    assert set(ModeName) <= WRITE_MODES.keys()


def test_a_variable_in_place_of_a_value_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CHUNK", "days=2")
    told = {"chunk": {"env": "CHUNK"}}
    validate(told)
    run = DagsterRun("flights", run_config=build_config(told))
    with pytest.raises(SettingsError, match=r"staging__flights.chunk: .*CHUNK.* write the value"):
        read_asset_config(run, STAGING)
