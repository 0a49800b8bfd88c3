"""The Launchpad takes options, and refuses wrong ones before a run is made."""

from datetime import UTC, datetime
from typing import Any

import pytest
from dagster import AssetKey, DagsterInvalidConfigError, DagsterRun, validate_run_config
from typer.core import TyperGroup, TyperOption
from typer.main import get_command

from backfill_engine.cli import app
from backfill_engine.errors import SettingsError
from backfill_engine.lake.origins import find_user
from backfill_engine.orchestration.instance.own_runs import TAG_PREFIX
from backfill_engine.orchestration.planning.launching import build_launch_tags
from backfill_engine.orchestration.runs.option_declarations import Launch, RunOptions
from backfill_engine.orchestration.runs.run_options import (
    PublishConfig,
    build_asset_config,
    build_options_config,
    build_run,
    read_asset_config,
    read_asset_options,
    read_options,
)
from backfill_engine.publishing.write_modes.choosing import WRITE_MODES, ModeName
from backfill_engine_tests.project import CATALOG, STAGING_FLIGHTS, defs

NOW = datetime(2013, 1, 10, tzinfo=UTC)
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


def build_config(options: dict) -> dict:
    return {"ops": {"staging__flights": {"config": options}}}


def validate(options: dict) -> None:
    validate_run_config(defs.resolve_job_def("flights"), build_config(options))


def test_each_option_is_taken_and_is_told_to_a_run_that_goes_on():
    validate(TOLD)
    run = DagsterRun("flights", run_config=build_config(TOLD))
    assert build_asset_config(run, [STAGING], with_acceptances=True) == build_config(TOLD)
    assert read_options(CATALOG, run, STAGING)["write_mode"] == "merge"
    # A plain text, as tags and certificates have it: Dagster stores no enum that it doesn't know.
    assert type(read_options(CATALOG, run, STAGING)["write_mode"]) is str


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"write_mode": "upsert"}, "write_mode not in enum type"),
        ({"restart": "maybe"}, "config:restart"),
        ({"chunks": "days=2"}, 'unexpected config entry "chunks"'),
        ({"accept": [{"check": "partition_is_stable"}]}, 'Missing required config entry "reason"'),
        ({"window": 3}, "config:window"),
    ],
)
def test_what_is_none_is_refused_before_a_run_is_made(options: dict, message: str):
    with pytest.raises(DagsterInvalidConfigError, match=message):
        validate(options)


def test_each_mode_that_the_ui_offers_is_one():
    assert set(ModeName) <= WRITE_MODES.keys()


def test_a_variable_in_place_of_a_value_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CHUNK", "days=2")
    options = {"chunk": {"env": "CHUNK"}}
    validate(options)
    run = DagsterRun("flights", run_config=build_config(options))
    with pytest.raises(SettingsError, match=r"staging__flights.chunk: .*CHUNK.* write the value"):
        read_asset_config(run, STAGING)


def test_options_that_come_by_tags_are_in_the_run_s_configuration():
    tags = {f"{TAG_PREFIX}chunk": "days=2", f"{TAG_PREFIX}restart": "true"}
    run = DagsterRun("flights", tags=tags)
    built = build_run(STAGING_FLIGHTS, PublishConfig(), run, now=NOW)
    assert built.config == build_config({"chunk": "days=2", "restart": True})


@pytest.mark.parametrize(("tags", "by"), [({}, find_user()), ({"user": "ann"}, "ann")])
def test_a_run_of_a_shell_is_its_users(tags: dict[str, str], by: str):
    run = DagsterRun("flights", tags=tags)
    assert build_run(STAGING_FLIGHTS, PublishConfig(), run, now=NOW).origin.by == by


@pytest.mark.parametrize("reason", [" ", "WHY"])
def test_an_acceptance_says_why(reason: str):
    accept = [{"check": "partition_is_stable", "reason": reason}]
    run = DagsterRun("flights", run_config=build_config({"accept": accept}))
    with pytest.raises(SettingsError, match="needs a reason: say it in place of WHY"):
        read_asset_config(run, STAGING).read_acceptances()


@pytest.mark.parametrize("name", RunOptions.model_fields)
def test_an_option_that_is_declared_is_everywhere(name: str):
    field = RunOptions.model_fields[name]
    value: Any = "merge" if name == "write_mode" else field.annotation == bool | None or "a word"
    options = RunOptions(**{name: value})
    # The Launchpad offers it.
    assert PublishConfig.model_fields[name].description == field.description
    config = build_options_config(["staging/flights"], options)
    assert config == build_config({name: value})
    validate(config["ops"]["staging__flights"]["config"])
    # The tags of a backfill have it, and its runs read it from them.
    tags = build_launch_tags(Launch(**{name: value}))
    assert tags[f"{TAG_PREFIX}{name}"] == str(value).lower()
    assert read_asset_options(DagsterRun("flights", tags=tags), STAGING) == options
    assert read_asset_options(DagsterRun("flights", run_config=config), STAGING) == options
    # The commands have it, and so does the command that `plan` prints.
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    for command in ("plan", "launch", "run"):
        (option,) = (param for param in group.commands[command].params if param.name == name)
        assert isinstance(option, TyperOption)
        assert option.help
        assert str(field.description).startswith(option.help.rstrip(".")), "how it begins"
    given = [f"--{name.replace('_', '-')}", *([value] if isinstance(value, str) else [])]
    with group.commands["plan"].make_context("plan", given) as context:
        assert context.params[name] == value
