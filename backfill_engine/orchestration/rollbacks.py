"""A rollback as a Dagster run: which partitions, what comes back, what is recorded."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from dagster import AssetKey, Config, DagsterInstance, OpExecutionContext
from pydantic import Field

from backfill_engine.catalog import Catalog
from backfill_engine.contents.rows import PartitionIndex
from backfill_engine.errors import RollbackError
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.protections import read_protections
from backfill_engine.lake.served_versions import find_served, find_unread
from backfill_engine.lake.stored_declarations import check_readable
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.due.downstream import find_dependent_partitions, request_backfill
from backfill_engine.orchestration.due.readiness import get_partitions_def
from backfill_engine.orchestration.due.row_movements import find_moved, find_rows_for
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import find_ranges
from backfill_engine.orchestration.records.events import list_publish_checks
from backfill_engine.orchestration.records.recording import leave_certificate, record_results
from backfill_engine.orchestration.recovery.recovery import recover_table
from backfill_engine.orchestration.runs.claims import fail_dead_runs
from backfill_engine.orchestration.runs.protecting import (
    ProtectionHook,
    refuse_protected,
    split_protected,
)
from backfill_engine.orchestration.runs.run_options import read_override_of
from backfill_engine.orchestration.runs.run_tags import OVERRIDE_TAG, read_origin, tag_origin
from backfill_engine.orchestration.selecting.selections import find_keys_in_range
from backfill_engine.proof.certificates import keep_publishes
from backfill_engine.publishing.hooks import PublishHook
from backfill_engine.publishing.publisher import Publisher
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.restoring import (
    RestoringHook,
    RollbackPlan,
    build_rollback_recipe,
    plan_acceptance,
    plan_rollback,
)
from backfill_engine.publishing.results import PartitionResult, Run, describe_failures
from backfill_engine.publishing.serving import ServedHook
from backfill_engine.publishing.write_modes.mode import Accept, Rollback
from backfill_engine.publishing.write_modes.options import WriteOptions
from backfill_engine.resources import LakehouseResource, SparkResource, build_reader
from backfill_engine.rules.verdicts import Acceptance
from backfill_engine.tables.declarations import Table

ROLLS_BACK_TAG = "backfill_assets/after_rollback"
"""Tag of a backfill: the rollback's run that it follows."""


_REBUILD = "to rebuild these: --downstream, or backfill them yourself"


class RollbackConfig(Config):
    """What to take back, and to where."""

    table: str = Field(description="As staging/flights.")
    first: str = Field(description="First partition key.")
    last: str = Field(description="Last partition key, included.")
    to_version: int | None = Field(
        default=None, description="The Delta version whose contents come back."
    )
    before_run: str | None = Field(default=None, description="Or the run to undo.")
    accept: str | None = Field(
        default=None,
        description="Or why what another writer made of the partitions is right: what they hold is "
        "audited and recorded as published, and nothing is taken back.",
    )
    force: bool = Field(
        default=False,
        description="Undo later commits of other runs too, and publish what fails its audit.",
    )
    downstream: bool = Field(
        default=False, description="Request a backfill of what was computed from the partitions."
    )
    override_protection: str | None = Field(
        default=None, description="Why protected partitions are to be taken back all the same."
    )
    reason: str = Field(default="", description="Why; kept in the commit.")
    by: str = Field(default="", description="Who asks for it; kept in the commit.")


def restore_partitions(
    catalog: Catalog,
    context: OpExecutionContext,
    config: RollbackConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Takes partitions of a table back to an earlier version, in one audited commit.

    Records the partitions, and says what depends on them. If it can't be done, nothing is written,
    but for partitions that pass where others fail their audit.
    """
    overrides = refuse_protected(
        lakehouse.warehouse(),
        table := catalog.find_table(config.table),
        find_keys_in_range(find_partitions_def(table), first=config.first, last=config.last),
        override=read_override_of(context.run, config.override_protection),
        how=f"with --override-protection, or by the tag {OVERRIDE_TAG}",
    )
    return _roll_back(catalog, context, config, spark, lakehouse, overrides)


def _roll_back(
    catalog: Catalog,
    context: OpExecutionContext,
    config: RollbackConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
    overrides: Mapping[str, str],
) -> str:
    instance, table, now = context.instance, catalog.find_table(config.table), datetime.now(tz=UTC)
    fail_dead_runs(instance, now=now, silent_seconds=lakehouse.silent_seconds)
    warehouse, reader = lakehouse.warehouse(), build_reader(spark, lakehouse)
    warehouse.check_writable()
    log = read_log(warehouse, table).require()
    check_readable(log)
    recovery = recover_table(catalog, instance, log, now=now, reader=reader)[-1]
    log = recovery.log
    run = Run(
        run_id=context.run.run_id,
        started_at=now,
        config=context.run.run_config,
        options=WriteOptions(write_mode=(Accept if config.accept else Rollback).name),
        acceptances=_accept_all(table, config),
    )
    keys = find_keys_in_range(find_partitions_def(table), first=config.first, last=config.last)
    if config.accept:
        keys = _choose_changed(config, keys, recovery.changed)
        plan = plan_acceptance(log, build_partitions(table, keys))
    else:
        plan = plan_rollback(
            log,
            build_partitions(table, keys),
            to_version=config.to_version,
            before_run=config.before_run,
            force=config.force,
            now=run.started_at,
        )
    if plan.restored_in is not None:
        restored = dict.fromkeys(keys, plan.restored_in)
        return "\n".join(
            [
                _describe_plan(plan),
                *_describe_undone(plan),
                *_go_on_downstream(catalog, context, config, log, restored),
            ]
        )
    recipe = build_rollback_recipe(plan)
    restored = {
        key: f"{recovery.changed[key]}, accepted: {config.accept}"
        if config.accept
        else f"version {plan.to_version}, "
        + (f"published by run {by.run_id}" if by else "when nothing was published")
        + (f": {config.reason}" if config.reason else "")
        for key, by in plan.published_by.items()
    }
    is_new = bool(config.accept) and log.publishes.keys().isdisjoint(keys)
    run = replace(
        run,
        origin=read_origin(
            context.run.tags,
            context.run.run_config,
            operation="adopt" if is_new else run.options.write_mode,
        ),
        hooks=(RestoringHook(restored), ProtectionHook(overrides), *_keep_version(recipe, log)),
    )
    publisher = Publisher(
        spark=spark.spark_session,
        recipe=recipe,
        run=run,
        landing_root=lakehouse.landing_root,
        withheld_days=lakehouse.withheld_days,
        reader=reader,
    )
    results = publisher.publish_as_pinned(plan.partitions, plan.pin())
    leave_certificate(context, log, results, run, code_version=recipe.code_version, reader=reader)
    record_results(context, log, results, run, code_version=recipe.code_version)
    keep_publishes(log.reread())
    restored = {result.key: result.version for result in results if result.version is not None}
    _refuse_withheld(plan, results)
    what = (
        f"are accepted as another writer left them at version {plan.to_version}"
        if config.accept
        else f"hold again what they held at version {plan.to_version}"
    )
    # What an acceptance writes is what was there: the rows moved in the other writer's commit.
    restored |= {
        key: log.foreign_changes[key].version
        for key in restored
        if config.accept and key in log.foreign_changes
    }
    return "\n".join(
        [
            f"{table.key}: {len(restored)} partitions ({keys[0]} … {keys[-1]}) {what}, "
            f"as version {results[0].version}",
            *_describe_undone(plan),
            *_go_on_downstream(catalog, context, config, log.reread(), restored),
        ]
    )


def _keep_version(recipe: Recipe, log: TableLog) -> list[PublishHook]:
    """Keeps a served table whole, if what comes back is of another version than it holds."""
    served = find_served(log)
    if not recipe.serves and not served:
        return []
    return [ServedHook(recipe.serves, is_whole=recipe.serves != served)]


def _choose_changed(
    config: RollbackConfig, keys: Sequence[str], changed: Mapping[str, str]
) -> list[str]:
    """Chooses the partitions that another writer has changed; the others stay as they are."""
    if config.to_version is not None or config.before_run is not None:
        raise RollbackError("either accept what is there, or go back: not both")
    chosen = [key for key in keys if key in changed]
    if not chosen:
        raise RollbackError(
            f"{config.table}: nothing to accept: no other writer has changed "
            f"{config.first}...{config.last} since it was published; nothing was written"
        )
    return chosen


def _accept_all(table: Table, config: RollbackConfig) -> tuple[Acceptance, ...]:
    forced = config.reason or "rolled back with --force"
    reason = config.accept or (forced if config.force else "")
    checks = list_publish_checks(table) if reason else ()
    return tuple(Acceptance(check.value, reason) for check in checks)


def _refuse_withheld(plan: RollbackPlan, results: Sequence[PartitionResult]) -> None:
    withheld = [result for result in results if result.version is None]
    if withheld:
        listed = "".join(
            f"\n  {result.key}: {describe_failures(result.verdict)}" for result in withheld
        )
        raise RollbackError(
            f"{plan.table.key}: {len(withheld)} of {len(results)} partitions of version "
            f"{plan.to_version} fail their audit and are left as they were; --force publishes "
            f"them all the same:{listed}"
        )


def _describe_undone(plan: RollbackPlan) -> list[str]:
    return [
        f"undone: {f'run {run}' if run else 'another program'} "
        f"(version {', '.join(map(str, versions))})"
        for run, versions in plan.undone.items()
    ]


def _find_moved(
    catalog: Catalog,
    graph: AssetGraph,
    asset_key: AssetKey,
    log: TableLog,
    restored: Mapping[str, int],
) -> dict[AssetKey, set[str]]:
    """Finds, of assets that tell by rows what they read, the partitions that lost or gained any.

    Args:
        catalog: of the code location.
        graph: of all assets.
        asset_key: of the table.
        log: of the table.
        restored: by partition key, the version that brought it back.
    """
    moved: dict[AssetKey, set[str]] = {}
    for reader in graph.get(asset_key).child_keys:
        column = find_rows_for(graph, reader).get(log.table.key)
        if column is None:
            continue
        readers, moved[reader] = _index_partitions(catalog, graph, reader), set()
        for version in set(restored.values()):
            keys = [key for key, brought_back in restored.items() if brought_back == version]
            moved[reader] |= find_moved(log, version, keys, column, readers).keys()
    return moved


def _index_partitions(catalog: Catalog, graph: AssetGraph, asset_key: AssetKey) -> PartitionIndex:
    table = catalog.find_table(asset_key.to_user_string())
    keys = get_partitions_def(graph, asset_key).get_partition_keys()
    return PartitionIndex(table, build_partitions(table, keys))


def _go_on_downstream(
    catalog: Catalog,
    context: OpExecutionContext,
    config: RollbackConfig,
    log: TableLog,
    restored: Mapping[str, int],
) -> list[str]:
    repository = context.repository_def
    graph, asset_key = repository.asset_graph, find_asset_key(log.table)
    moved = _find_moved(catalog, graph, asset_key, log, restored)
    dependent = _find_dependent(catalog, context.instance, graph, log, list(restored), moved)
    listed = _describe_dependent(graph, dependent)
    if not dependent:
        return listed
    if config.downstream:
        dependent, left_out = _leave_out_protected(catalog, log.warehouse, dependent)
        listed += left_out
    if config.downstream and dependent:
        title = f"after the rollback of {config.table} {config.first}...{config.last}"
        asked = read_origin(context.run.tags, context.run.run_config)
        origin = replace(asked, operation="replay", reason=title)
        backfill = request_backfill(
            context.instance,
            graph,
            dependent,
            title=title,
            tags={ROLLS_BACK_TAG: context.run.run_id, **tag_origin(origin)},
        )
        return [*listed, f"requested backfill {backfill} of these, for Dagster's daemon"]
    return [*listed, *([] if config.downstream else [_REBUILD])]


def _find_dependent(
    catalog: Catalog,
    instance: DagsterInstance,
    graph: AssetGraph,
    log: TableLog,
    keys: Sequence[str],
    moved: Mapping[AssetKey, Collection[str]],
) -> dict[AssetKey, list[str]]:
    """Finds what was computed from partitions, as `find_dependent_partitions` does."""
    served = (table for table in catalog.tables if table.versions)
    unread = {
        find_asset_key(table): find_unread(read_log(log.warehouse, table)) for table in served
    }
    return find_dependent_partitions(
        instance, graph, find_asset_key(log.table), keys, moved, unread=unread
    )


def _describe_dependent(
    graph: AssetGraph, dependent: Mapping[AssetKey, Sequence[str]], *, at_most: str = ""
) -> list[str]:
    return [
        f"computed from them{at_most}: {key.to_user_string()} {first}...{last}"
        for key, keys in dependent.items()
        for first, last in find_ranges(get_partitions_def(graph, key), keys)
    ] or ["nothing downstream was computed from them"]


def look_ahead(
    catalog: Catalog, instance: DagsterInstance, graph: AssetGraph, plan: RollbackPlan
) -> list[str]:
    """Describes what a rollback would do; reads logs only.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        graph: of all assets.
        plan: of the rollback.
    """
    keys = [partition.key for partition in plan.partitions]
    dependent = _find_dependent(catalog, instance, graph, plan.log, keys, {})
    return [
        _describe_plan(plan),
        *_describe_undone(plan),
        *_describe_dependent(graph, dependent, at_most=", at most"),
    ]


def _describe_plan(plan: RollbackPlan) -> str:
    keys, to_version = [partition.key for partition in plan.partitions], plan.to_version
    what = f"{plan.table.key}: {len(keys)} partitions ({keys[0]} … {keys[-1]})"
    if plan.restored_in is not None:
        return (
            f"{what} hold already what they held at version {to_version}, since version "
            f"{plan.restored_in}"
        )
    emptied = sum(record is None for record in plan.published_by.values())
    rest = f"; {emptied} of them held nothing then" if emptied else ""
    return f"{what} go back from version {plan.log.version} to version {to_version}{rest}"


def _leave_out_protected(
    catalog: Catalog, warehouse: Warehouse, dependent: Mapping[AssetKey, Sequence[str]]
) -> tuple[dict[AssetKey, list[str]], list[str]]:
    """Leaves protected partitions out of what is to be rebuilt, and says so."""
    protections, kept, left_out = read_protections(warehouse), dict[AssetKey, list[str]](), []
    for key, partitions in dependent.items():
        table = catalog.find_table(key.to_user_string())
        free, texts = split_protected(protections, [table], partitions)
        left_out += texts
        if free:
            kept[key] = free
    return kept, left_out
