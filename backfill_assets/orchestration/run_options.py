"""What a run may be told: how to write, and which failed checks may be published all the same.

By its configuration, for each asset; or by tags, for all of its assets, as a backfill has no
configuration of its own in every way of starting it. The configuration wins.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from dagster import AssetKey, Config, DagsterInstance, DagsterRun
from pydantic import Field

from backfill_assets.catalog import find_table
from backfill_assets.errors import SettingsError
from backfill_assets.orchestration.dagster_internals import (
    BACKFILL_TAG,
    ROOT_RUN_ID_TAG,
    find_run_assets,
)
from backfill_assets.publishing.runs import Run
from backfill_assets.publishing.write_modes.choosing import choose_options
from backfill_assets.rules.verdicts import Acceptance, Check
from backfill_assets.tables.declarations import Table

TAG_PREFIX = "backfill_assets/"

RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"
_PARTITION_TAG = "dagster/partition"

INCREMENTAL_TAG = "backfill_assets/incremental"
"""Tag of a run that takes a table on from its watermark."""

REASON_TAG = "backfill_assets/reason"
"""Tag of a run that the sensor requested: why, in words."""

CHAIN_TAG = "backfill_assets/backfill"
"""Tag of a run that continues another: the backfill of the first of them, or that run's id.

Dagster's own tag would make it count the run as one of the backfill's.
"""

WITHHELD_TAG = "backfill_assets/withheld"
"""Tag of a run: the asset of which it withheld partitions."""


class AcceptanceConfig(Config):
    """One failed check that may be published all the same."""

    check: str = Field(description="The check, such as partition_is_stable.")
    reason: str = Field(description="Why; it is kept in the commit and in the event.")
    partitions: list[str] = Field(
        default_factory=list, description="The keys it is about; none means all of the run."
    )


class PublishConfig(Config):
    """What a run of an asset may be told; what it isn't is as the table has it."""

    accept: list[AcceptanceConfig] = Field(
        default_factory=list, description="Failed checks that a person accepts."
    )
    write_mode: str | None = Field(
        default=None, description="overwrite, merge or append_once; docs/write-modes.md."
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


def build_run(table: Table, config: PublishConfig, run: DagsterRun, *, now: datetime) -> Run:
    """Builds the one description of a run's work on a table.

    Args:
        table: the table.
        config: the run's, for the table's asset.
        run: the Dagster run; its tags count where the configuration says nothing.
        now: when the step begins, UTC.

    Raises:
        SettingsError: if the table can't honour it.
        FilterError: if the filter is unreadable.
    """
    wishes = _read_wishes(config, run.tags)
    saves_watermark = wishes.pop("save_watermark", INCREMENTAL_TAG in run.tags)
    return Run(
        run_id=run.run_id,
        started_at=now,
        backfill_id=run.tags.get(BACKFILL_TAG) or run.tags.get(CHAIN_TAG),
        config=run.run_config,
        options=choose_options(table, row_filter=wishes.pop("filter", None), **wishes),
        acceptances=config.read_acceptances(),
        saves_watermark=saves_watermark,
    )


def find_run_range(run: DagsterRun) -> tuple[str, str] | None:
    """Finds the first and the last partition key of a run, by its tags; None if they don't say."""
    first = run.tags.get(RANGE_START_TAG) or run.tags.get(_PARTITION_TAG)
    last = run.tags.get(RANGE_END_TAG) or run.tags.get(_PARTITION_TAG)
    return (first, last) if first is not None and last is not None else None


def find_chain(run: DagsterRun) -> str:
    """Finds what a run, its retries and those that continue it have in common.

    It is a backfill, or the first run.
    """
    tags = run.tags
    named = (tags.get(tag) for tag in (BACKFILL_TAG, CHAIN_TAG, ROOT_RUN_ID_TAG))
    return next(filter(None, named), run.run_id)


def check_whole_run(instance: DagsterInstance, run: DagsterRun, *, now: datetime) -> None:
    """Checks the options of all assets of a run, before the first of them does anything.

    Raises:
        BackfillError: as soon as one of the tables can't honour its options.
    """
    for key in sorted(find_run_assets(instance, run)):
        build_run(find_table(key.to_user_string()), _read_asset_config(run, key), run, now=now)


def build_asset_config(run: DagsterRun, keys: Sequence[AssetKey]) -> dict[str, Any]:
    """Builds a configuration for assets of a run that asks of them what the run asked.

    Also what it asked by tags, which a command line can't give. Acceptances stay out: a person gave
    them for what that run found.
    """
    wishes = {key: _read_wishes(_read_asset_config(run, key), run.tags) for key in keys}
    ops = {_name_op(key): {"config": config} for key, config in wishes.items() if config}
    return {"ops": ops} if ops else {}


def _read_asset_config(run: DagsterRun, key: AssetKey) -> PublishConfig:
    run_config: Mapping[str, Any] = run.run_config
    return PublishConfig(**run_config.get("ops", {}).get(_name_op(key), {}).get("config", {}))


def _name_op(key: AssetKey) -> str:
    """Returns what Dagster calls the asset's step."""
    return "__".join(key.path)


def _read_wishes(config: PublishConfig, tags: Mapping[str, str]) -> dict[str, Any]:
    """Reads what a run asks for, by the names of the configuration; nothing else."""
    wishes: dict[str, Any] = {}
    for name, field in PublishConfig.model_fields.items():
        is_flag = field.annotation == bool | None
        tagged = _read_flag(tags, name) if is_flag else tags.get(TAG_PREFIX + name)
        configured = getattr(config, name)
        value = tagged if configured is None else configured
        if value is not None and name != "accept":
            wishes[name] = value
    return wishes


def _read_flag(tags: Mapping[str, str], name: str) -> bool | None:
    text = tags.get(TAG_PREFIX + name)
    if text is not None and text.lower() not in ("true", "false"):
        raise SettingsError(f"tag {TAG_PREFIX}{name}={text}: set it to true or false")
    return None if text is None else text.lower() == "true"
