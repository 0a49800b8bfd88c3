"""What a run may be told: how to write, and which failed checks may be published all the same.

By its configuration, for each asset; or by tags, for all of its assets, as a backfill has no
configuration of its own in every way of starting it. The configuration wins.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from dagster import AssetKey, Config, DagsterInstance, DagsterRun
from pydantic import Field, ValidationError

from backfill_engine.catalog import Catalog
from backfill_engine.errors import SettingsError
from backfill_engine.lake.file_names import check_file_name
from backfill_engine.orchestration.instance.dagster_internals import BACKFILL_TAG, find_run_assets
from backfill_engine.orchestration.instance.own_runs import TAG_PREFIX
from backfill_engine.orchestration.runs.run_tags import (
    CHAIN_TAG,
    INCREMENTAL_TAG,
    OVERRIDE_TAG,
    find_chain,
)
from backfill_engine.publishing.pacing import choose_pace
from backfill_engine.publishing.results import Run
from backfill_engine.publishing.write_modes.choosing import ModeName, choose_options
from backfill_engine.rules.verdicts import Acceptance, Check
from backfill_engine.tables.declarations import Table

OF_ROWS = ("write_mode", "delete_missing", "filter", "batch")
"""Options that decide which rows an asset holds afterwards."""

PACE = ("chunk", "restart", "keep_going", "window")
"""Options that decide how a run goes through its range."""


class AcceptanceConfig(Config):
    """One failed check that may be published all the same."""

    check: str = Field(
        description="The check: partition_is_complete, partition_is_valid or partition_is_stable."
    )
    reason: str = Field(description="Why; it is kept in the commit and in the event.")
    partitions: list[str] = Field(
        default_factory=list, description="The keys it is about; none means all of the run."
    )


class PublishConfig(Config):
    """What a run of an asset may be told; what it isn't is as the table has it."""

    accept: list[AcceptanceConfig] = Field(
        default_factory=list, description="Failed checks that a person accepts."
    )
    write_mode: ModeName | None = Field(
        default=None,
        description="overwrite, merge or append_once; else as the table has it: "
        "docs/write-modes.md.",
    )
    delete_missing: bool | None = Field(
        default=None, description="Of a merge: rows that the source no longer has go."
    )
    filter: str | None = Field(
        default=None, description="Of a merge: only computed rows for which this SQL is true count."
    )
    batch: str | None = Field(
        default=None, description="Of an append: the batch's name; else the inputs are the batch."
    )
    save_watermark: bool | None = Field(
        default=None, description="Move the production watermark, as incremental runs do."
    )
    chunk: str | None = Field(
        default=None,
        description="Commit and record chunk after chunk: years, months, weeks, days, hours or "
        "minutes with a number, as months=1; step=100000 of integers; files=100 that landed.",
    )
    restart: bool | None = Field(
        default=None,
        description="Compute chunks again though they are published from the same inputs and code.",
    )
    keep_going: bool | None = Field(
        default=None, description="Go on with the next chunk after one that ended with an error."
    )
    window: str | None = Field(
        default=None, description="Begin chunks between these times only (UTC), as 22:00-06:00."
    )
    override_protection: str | None = Field(
        default=None,
        description="Why protected partitions are to be published all the same; it is kept in the "
        "commit and in the event; docs/protection.md.",
    )

    def read_acceptances(self) -> tuple[Acceptance, ...]:
        """Checks the acceptances and freezes them.

        Raises:
            SettingsError: for a check that doesn't exist or an empty reason.
        """
        acceptable = [check.value for check in (Check.COMPLETE, Check.VALID, Check.STABLE)]
        for accepted in self.accept:
            if accepted.check not in acceptable:
                raise SettingsError(
                    f"can't accept {accepted.check}: name one of {', '.join(acceptable)}"
                )
            if not accepted.reason.strip():
                raise SettingsError(f"accepting {accepted.check} needs a reason")
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
    if configured is not None:
        return _check_reason("override_protection", configured)
    return read_reason_tag(run, OVERRIDE_TAG)


def read_options(catalog: Catalog, run: DagsterRun, key: AssetKey) -> dict[str, Any]:
    """Reads what a run was told that decides which rows an asset holds afterwards, by name."""
    wishes = read_wishes(read_asset_config(run, key), run.tags)
    wishes.setdefault("write_mode", catalog.find_table(key.to_user_string()).write_mode)
    return {name: wishes[name] for name in OF_ROWS if name in wishes}


def read_reason_tag(run: DagsterRun, tag: str) -> str:
    """Reads a tag whose value is a reason; empty if the run hasn't got it.

    Raises:
        SettingsError: if the reason is blank.
    """
    reason = run.tags.get(tag)
    return "" if reason is None else _check_reason(tag, reason)


def _check_reason(name: str, reason: str) -> str:
    if not reason.strip():
        raise SettingsError(f"{name} needs a reason: say why, or leave it out")
    return reason


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
    configs = {key: read_asset_config(run, key) for key in keys}
    wishes = {key: read_wishes(config, run.tags) for key, config in configs.items()}
    for key, config in configs.items():
        if with_acceptances and config.accept:
            wishes[key]["accept"] = [accepted.model_dump() for accepted in config.accept]
    ops = {_name_op(key): {"config": config} for key, config in wishes.items() if config}
    return {"ops": ops} if ops else {}


def build_options_config(tables: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Builds the configuration that tells tables' assets options; None counts as not asked for."""
    told = {name: value for name, value in options.items() if value is not None}
    keys = map(AssetKey.from_user_string, tables)
    return {"ops": {_name_op(key): {"config": told} for key in keys}} if told else {}


def find_told_window(run: DagsterRun, key: AssetKey) -> str | None:
    """Finds the window in which a run may begin chunks of an asset; None for always."""
    return read_wishes(read_asset_config(run, key), run.tags).get("window")


def read_asset_config(run: DagsterRun, key: AssetKey) -> PublishConfig:
    """Reads what a run was configured to do with an asset.

    Raises:
        SettingsError: if it names a variable in place of a value, which Dagster lets pass.
    """
    run_config: Mapping[str, Any] = run.run_config
    told = run_config.get("ops", {}).get(_name_op(key), {}).get("config", {})
    try:
        return PublishConfig(**told)
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


def read_wishes(config: PublishConfig, tags: Mapping[str, str]) -> dict[str, Any]:
    """Reads what a run asks for, by the names of the configuration; nothing else."""
    wishes: dict[str, Any] = {}
    for name, field in PublishConfig.model_fields.items():
        is_flag = field.annotation == bool | None
        tagged = _read_flag(tags, name) if is_flag else tags.get(TAG_PREFIX + name)
        configured = getattr(config, name)
        value = tagged if configured is None else configured
        if value is not None and name != "accept":
            # A plain text of what is chosen by name, as wishes become configurations and tags.
            wishes[name] = str(value) if isinstance(value, ModeName) else value
    return wishes


def _read_flag(tags: Mapping[str, str], name: str) -> bool | None:
    text = tags.get(TAG_PREFIX + name)
    if text is not None and text.lower() not in ("true", "false"):
        raise SettingsError(f"tag {TAG_PREFIX}{name}={text}: set it to true or false")
    return None if text is None else text.lower() == "true"


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
    wishes = read_wishes(config, run.tags)
    saves_watermark = wishes.pop("save_watermark", INCREMENTAL_TAG in run.tags)
    backfill_id = run.tags.get(BACKFILL_TAG) or run.tags.get(CHAIN_TAG)
    if backfill_id:
        check_file_name(backfill_id, f"the tag {BACKFILL_TAG} or {CHAIN_TAG} of the run")
    pace = {name: wishes.pop(name) for name in PACE if name in wishes}
    wishes.pop("override_protection", None)
    return Run(
        run_id=run.run_id,
        started_at=now,
        backfill_id=backfill_id,
        chain_id=find_chain(run),
        config=run.run_config,
        options=choose_options(table, row_filter=wishes.pop("filter", None), **wishes),
        acceptances=config.read_acceptances(),
        saves_watermark=saves_watermark,
        pace=choose_pace(table, **pace),
    )


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


def check_tags(table: Table, tags: Mapping[str, str]) -> None:
    """Checks that a table can honour what runs are told by tags, before any run is made.

    Raises:
        SettingsError: if it can't.
        FilterError: if the filter is unreadable.
    """
    wishes = read_wishes(PublishConfig(), tags)
    choose_pace(table, **{name: wishes.pop(name) for name in PACE if name in wishes})
    choose_options(
        table,
        row_filter=wishes.get("filter"),
        **{name: wishes[name] for name in OF_ROWS if name in wishes and name != "filter"},
    )
