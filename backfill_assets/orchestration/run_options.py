"""What a run may be told: how to write, and which failed checks may be published all the same.

By its configuration, for each asset; or by tags, for all of its assets, as a backfill has no
configuration of its own in every way of starting it. The configuration wins.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dagster import AssetKey, Config, DagsterRun
from pydantic import Field

from backfill_assets.catalog import find_table
from backfill_assets.errors import SettingsError
from backfill_assets.publishing.write_options import WriteOptions, choose_options
from backfill_assets.quality.judging import Acceptance, Check
from backfill_assets.tables.declarations import Table

TAG_PREFIX = "backfill_assets/"

INCREMENTAL_TAG = "backfill_assets/incremental"
"""Tag of a run that takes a table on from its watermark."""


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
        """Checked and frozen.

        Raises:
            SettingsError: for a check that doesn't exist or an empty reason.
        """
        acceptable = [check.value for check in (Check.COMPLETE, Check.VALID, Check.STABLE)]
        for one in self.accept:
            if one.check not in acceptable:
                raise SettingsError(
                    f"can't accept {one.check}: name one of {', '.join(acceptable)}"
                )
            if not one.reason.strip():
                raise SettingsError(f"accepting {one.check} needs a reason")
        return tuple(
            Acceptance(one.check, one.reason, tuple(one.partitions) or None) for one in self.accept
        )


def read_write_options(
    table: Table, config: PublishConfig, tags: Mapping[str, str]
) -> WriteOptions:
    """How a run writes a table.

    Raises:
        SettingsError: if the table can't honour it.
        FilterError: if the filter is unreadable.
    """
    told = _read_told(config, tags)
    return choose_options(
        table,
        write_mode=told.get("write_mode"),
        delete_missing=told.get("delete_missing", False),
        row_filter=told.get("filter", ""),
        batch=told.get("batch", ""),
    )


def saves_watermark(config: PublishConfig, tags: Mapping[str, str]) -> bool:
    """Whether the run moves the production watermark: an incremental one, or one that is told."""
    return _read_told(config, tags).get("save_watermark", INCREMENTAL_TAG in tags)


def check_whole_run(run: DagsterRun) -> None:
    """Checks the options of all assets of a run, before the first of them does anything.

    Raises:
        BackfillError: as soon as one of the tables can't honour its options.
    """
    for key in sorted(run.asset_selection or ()):
        config = PublishConfig(**read_asset_config(run, key))
        read_write_options(find_table(key.to_user_string()), config, run.tags)
        saves_watermark(config, run.tags)
        config.read_acceptances()


def read_asset_config(run: DagsterRun, key: AssetKey) -> dict[str, Any]:
    """The part of a run's configuration that is for one asset."""
    run_config: Mapping[str, Any] = run.run_config
    return dict(run_config.get("ops", {}).get(name_op(key), {}).get("config", {}))


def build_asset_config(run: DagsterRun, keys: Sequence[AssetKey]) -> dict[str, Any]:
    """A configuration for some assets of a run that tells them what it told them.

    Also by tags, which a command line can't give. Acceptances stay out: a person gave them for
    what that run found.
    """
    told = {key: _read_told(PublishConfig(**read_asset_config(run, key)), run.tags) for key in keys}
    ops = {name_op(key): {"config": config} for key, config in told.items() if config}
    return {"ops": ops} if ops else {}


def name_op(key: AssetKey) -> str:
    """What Dagster calls the asset's step."""
    return "__".join(key.path)


def _read_told(config: PublishConfig, tags: Mapping[str, str]) -> dict[str, Any]:
    """What a run was told of how to write, by the names of the configuration; nothing else."""
    texts = {name: tags.get(TAG_PREFIX + name) for name in ("write_mode", "filter", "batch")}
    flags = {name: _read_flag(tags, name) for name in ("delete_missing", "save_watermark")}
    names = (*texts, *flags)
    configured = {name: getattr(config, name) for name in names}
    by_tags = {**texts, **flags}
    chosen = {
        name: by_tags[name] if configured[name] is None else configured[name] for name in names
    }
    return {name: value for name, value in chosen.items() if value is not None}


def _read_flag(tags: Mapping[str, str], name: str) -> bool | None:
    text = tags.get(TAG_PREFIX + name)
    if text is not None and text.lower() not in ("true", "false"):
        raise SettingsError(f"tag {TAG_PREFIX}{name}={text}: set it to true or false")
    return None if text is None else text.lower() == "true"
