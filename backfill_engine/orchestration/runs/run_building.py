"""Builds the one description of a run's work on a table, refusing what it can't honour."""

from collections.abc import Mapping
from datetime import datetime

from dagster import DagsterInstance, DagsterRun

from backfill_engine.catalog import Catalog
from backfill_engine.lake.file_names import check_file_name
from backfill_engine.orchestration.instance.dagster_internals import BACKFILL_TAG, find_run_assets
from backfill_engine.orchestration.runs.run_options import (
    OF_ROWS,
    PACE,
    PublishConfig,
    read_asset_config,
    read_wishes,
)
from backfill_engine.orchestration.runs.run_tags import CHAIN_TAG, INCREMENTAL_TAG, find_chain
from backfill_engine.publishing.pacing import choose_pace
from backfill_engine.publishing.results import Run
from backfill_engine.publishing.write_modes.choosing import choose_options
from backfill_engine.tables.declarations import Table


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
