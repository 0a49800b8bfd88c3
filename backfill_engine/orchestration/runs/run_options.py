"""What a run may be told: how to write, and which failed checks may be published all the same.

By its configuration, for each asset; or by tags, for all of its assets, as a backfill has no
configuration of its own in every way of starting it. The configuration wins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from dagster import AssetKey, Config, DagsterInstance, DagsterRun
from pydantic import Field, ValidationError

from backfill_engine.catalog import Catalog
from backfill_engine.errors import SettingsError
from backfill_engine.lake.origins import TO_FILL_IN, Origin, find_user
from backfill_engine.lake.whole_files import check_file_name
from backfill_engine.orchestration.instance.dagster_internals import BACKFILL_TAG, find_run_assets
from backfill_engine.orchestration.instance.own_runs import TAG_PREFIX
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.orchestration.runs.option_declarations import (
    PaceOptions,
    RowOptions,
    RunOptions,
)
from backfill_engine.orchestration.runs.run_tags import (
    CHAIN_TAG,
    INCREMENTAL_TAG,
    OVERRIDE_TAG,
    find_chain,
    read_origin,
)
from backfill_engine.publishing.pacing import Pace, choose_pace
from backfill_engine.publishing.results import Run
from backfill_engine.publishing.write_modes.choosing import ModeName, choose_options
from backfill_engine.publishing.write_modes.options import WriteOptions
from backfill_engine.rules.verdicts import Acceptance, Check
from backfill_engine.tables.declarations import Table


class AcceptanceConfig(Config):
    """One failed check that may be published all the same."""

    check: str = Field(
        description="The check: partition_is_complete, partition_is_valid or partition_is_stable."
    )
    reason: str = Field(description="Why; it is kept in the commit and in the event.")
    partitions: list[str] = Field(
        default_factory=list, description="The keys it is about; none means all of the run."
    )


class PublishConfig(Config, RunOptions):
    """What a run of an asset may be told; what it isn't is as the table has it."""

    # By its names, so that Dagster refuses another before a run is made.
    write_mode: ModeName | None = Field(  # type: ignore[assignment]
        default=None, description=RunOptions.model_fields["write_mode"].description
    )
    accept: list[AcceptanceConfig] = Field(
        default_factory=list, description="Failed checks that a person accepts."
    )

    def read_acceptances(self) -> tuple[Acceptance, ...]:
        """Checks the acceptances and freezes them.

        Raises:
            SettingsError: for a check that doesn't exist, or a reason that nobody filled in.
        """
        acceptable = [check.value for check in (Check.COMPLETE, Check.VALID, Check.STABLE)]
        for accepted in self.accept:
            if accepted.check not in acceptable:
                raise SettingsError(
                    f"can't accept {accepted.check}: name one of {', '.join(acceptable)}"
                )
            if accepted.reason.strip() in ("", TO_FILL_IN):
                raise SettingsError(
                    f"accepting {accepted.check} needs a reason: say it in place of {TO_FILL_IN}"
                )
        return tuple(
            Acceptance(accepted.check, accepted.reason, tuple(accepted.partitions) or None)
            for accepted in self.accept
        )


def read_override(run: DagsterRun, key: AssetKey) -> str:
    """Reads why a run is to publish protected partitions of an asset; empty if nobody said.

    Raises:
        SettingsError: if the reason is blank.
    """
    return read_override_of(run, read_asset_config(run, key).override_protection)


def read_override_of(run: DagsterRun, configured: str | None) -> str:
    """Reads why a run is to write protected partitions: as configured, else by its tag.

    Raises:
        SettingsError: if the reason is blank.
    """
    return read_reason_tag(run, OVERRIDE_TAG, configured)


def read_options(catalog: Catalog, run: DagsterRun, key: AssetKey) -> dict[str, Any]:
    """Reads what a run was told that decides which rows an asset holds afterwards, by name."""
    options = read_asset_options(run, key).model_dump(
        exclude_none=True, include={*RowOptions.model_fields}
    )
    options.setdefault("write_mode", catalog.find_table(key.to_user_string()).write_mode)
    return options


def read_reason_tag(run: DagsterRun, tag: str, configured: str | None = None) -> str:
    """Reads a reason, as configured or by a tag; empty if the run hasn't got it.

    Raises:
        SettingsError: if the reason is blank.
    """
    reason = run.tags.get(tag) if configured is None else configured
    if reason is not None and not reason.strip():
        raise SettingsError(f"{tag} needs a reason: say why, or leave it out")
    return reason or ""


def build_asset_config(
    run: DagsterRun, keys: Sequence[AssetKey], *, with_acceptances: bool = False
) -> dict[str, Any]:
    """Builds a configuration for assets of a run that asks of them what the run asked.

    Also what it asked by tags, which a command line can't give.

    Args:
        run: the run.
        keys: the assets.
        with_acceptances: whether what a person accepted is accepted again, as where the run itself
            goes on; otherwise it stays out, as it was given for what that run found.
    """
    configs: dict[AssetKey, dict[str, Any]] = {}
    for key in keys:
        accept = read_asset_config(run, key).accept if with_acceptances else []
        accepted = {"accept": [acceptance.model_dump() for acceptance in accept]} if accept else {}
        configs[key] = {**read_asset_options(run, key).model_dump(exclude_none=True), **accepted}
    return _build_config(configs)


def build_acceptance_config(
    run: DagsterRun, key: AssetKey, checks: Sequence[Check]
) -> dict[str, Any]:
    """Builds a configuration that asks of an asset what a run asked, and accepts failed checks.

    Args:
        run: the run.
        key: the asset.
        checks: what is accepted. Why is for a person to fill in.
    """
    accept = [{"check": check.value, "reason": TO_FILL_IN} for check in checks]
    options = read_asset_options(run, key).model_dump(exclude_none=True)
    return _build_config({key: {**options, "accept": accept}})


def build_options_config(tables: Sequence[str], options: RunOptions) -> dict[str, Any]:
    """Builds the configuration that tells tables' assets the options of a run."""
    options_given = options.model_dump(exclude_none=True, include={*RunOptions.model_fields})
    return _build_config({AssetKey.from_user_string(table): options_given for table in tables})


def _build_config(configs: Mapping[AssetKey, Mapping[str, Any]]) -> dict[str, Any]:
    ops = {_name_op(key): {"config": config} for key, config in configs.items() if config}
    return {"ops": ops} if ops else {}


def read_asset_options(run: DagsterRun, key: AssetKey) -> RunOptions:
    """Reads what a run was told of an asset, by its configuration or by its tags."""
    return _read_options(read_asset_config(run, key), run.tags)


def read_asset_config(run: DagsterRun, key: AssetKey) -> PublishConfig:
    """Reads what a run was configured to do with an asset.

    Raises:
        SettingsError: if it names a variable in place of a value, which Dagster lets pass.
    """
    run_config: Mapping[str, Any] = run.run_config
    config = run_config.get("ops", {}).get(_name_op(key), {}).get("config", {})
    try:
        return PublishConfig(**config)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (_name_op(key), *first["loc"])))
        raise SettingsError(
            f"{where}: {first['input']} is no value: write the value itself, as certificates and "
            "runs that go on tell what was asked"
        ) from None


def _name_op(key: AssetKey) -> str:
    """Returns what Dagster calls the asset's step."""
    return "__".join(key.path)


def _read_options(config: PublishConfig, tags: Mapping[str, str]) -> RunOptions:
    names = {*RunOptions.model_fields}
    tagged = {name: tags[TAG_PREFIX + name] for name in names if TAG_PREFIX + name in tags}
    # A plain text of what is chosen by name, as options become configurations and tags.
    configured = config.model_dump(mode="json", exclude_none=True, include=names)
    try:
        return RunOptions(**{**tagged, **configured})
    except ValidationError as error:
        name = error.errors()[0]["loc"][0]
        raise SettingsError(
            f"tag {TAG_PREFIX}{name}={tagged[str(name)]}: set it to true or false"
        ) from None


def choose_run_options(table: Table, options: RunOptions) -> tuple[WriteOptions, Pace]:
    """Chooses how runs write a table and go through it.

    Raises:
        SettingsError: if the table can't honour the options.
        FilterError: if the filter is unreadable.
    """
    rows, pace = (
        {name: getattr(options, name) for name in kind.model_fields}
        for kind in (RowOptions, PaceOptions)
    )
    pace_of_run = choose_pace(table, **pace)
    return choose_options(table, row_filter=rows.pop("filter"), **rows), pace_of_run


def build_run(table: Table, config: PublishConfig, run: DagsterRun, *, now: datetime) -> Run:
    """Builds the one description of a run's work on a table.

    Args:
        table: the table.
        config: the run's, for the table's asset.
        run: the Dagster run; its tags count where the configuration says nothing.
        now: when the step begins, UTC.

    Raises:
        SettingsError: if the table can't honour it, or its backfill can't name a file.
        FilterError: if the filter is unreadable.
    """
    options = _read_options(config, run.tags)
    write_options, pace = choose_run_options(table, options)
    saves_watermark = options.save_watermark
    backfill_id = run.tags.get(BACKFILL_TAG) or run.tags.get(CHAIN_TAG)
    if backfill_id:
        check_file_name(backfill_id, f"the tag {BACKFILL_TAG} or {CHAIN_TAG} of the run")
    given = build_asset_config(run, [find_asset_key(table)], with_acceptances=True)
    return Run(
        run_id=run.run_id,
        started_at=now,
        backfill_id=backfill_id,
        chain_id=find_chain(run),
        config={**run.run_config, **given},
        options=write_options,
        acceptances=config.read_acceptances(),
        saves_watermark=INCREMENTAL_TAG in run.tags if saves_watermark is None else saves_watermark,
        pace=pace,
        origin=_find_origin(run),
    )


def _find_origin(run: DagsterRun) -> Origin:
    """Finds who asked for a run; of one that a person makes in a shell, the user of the machine."""
    origin = read_origin(run.tags, run.run_config)
    if origin.by or run.remote_job_origin is not None:
        return origin
    return replace(origin, by=find_user())


def check_whole_run(
    catalog: Catalog, instance: DagsterInstance, run: DagsterRun, *, now: datetime
) -> None:
    """Checks the options of all assets of a run, before the first of them does anything.

    Raises:
        BackfillError: as soon as one of the tables can't honour its options.
    """
    for key in sorted(find_run_assets(instance, run)):
        build_run(
            catalog.find_table(key.to_user_string()), read_asset_config(run, key), run, now=now
        )
