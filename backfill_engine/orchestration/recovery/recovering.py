"""Recovers the view that a Dagster home has of one table, or of all: dead runs, and what they did.

Upstream goes first: what a home is told of an upstream partition later is something new to Dagster.
"""

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dagster import AssetExecutionContext, DagsterInstance

from backfill_engine.catalog import Catalog
from backfill_engine.contents.partition_contents import IN_THIS_PROCESS, PartitionReader
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.orchestration.instance.recovered_runs import enter_evaluation
from backfill_engine.orchestration.records.events import build_unasked
from backfill_engine.orchestration.recovery.recovery import (
    Recovery,
    apply_recovery,
    find_recovery,
)
from backfill_engine.orchestration.runs.claims import fail_dead_runs, find_dead_runs
from backfill_engine.orchestration.runs.continuation import Continuation, find_continuation
from backfill_engine.proof.certificates import keep_publishes
from backfill_engine.rules.verdicts import Check


@dataclass(frozen=True)
class RecoveryReport:
    """What was recorded, or is to be.

    Attributes:
        dead_runs: runs whose process is gone.
        published: partitions, as `layer/name key`, that no event told of.
        withheld: likewise those that were withheld.
        to_run_again: likewise those that a dead run published and that can't be relied on.
        changed: likewise those that another writer has changed.
        messages: all of it in words.
    """

    dead_runs: tuple[str, ...]
    published: tuple[str, ...]
    withheld: tuple[str, ...]
    to_run_again: tuple[str, ...]
    changed: tuple[str, ...]
    messages: tuple[str, ...]


def recover_table(
    catalog: Catalog,
    instance: DagsterInstance,
    log: TableLog,
    *,
    now: dt.datetime,
    dead: Collection[str] = (),
    with_certificates: bool = False,
    reader: PartitionReader = IN_THIS_PROCESS,
) -> list[Recovery]:
    """Finds what the instance has yet to be told of a table, and records it.

    What a dead run committed is kept from the log's retention, too. The rest is as in
    `find_recovery`.

    Returns:
        What was found of upstream tables, and of the table.
    """
    recovery = find_recovery(
        instance,
        keep_publishes(log),
        dead=dead,
        with_certificates=with_certificates,
        reader=reader,
    )
    upstream = _recover_upstream(catalog, instance, recovery, reader, now=now)
    apply_recovery(instance, recovery, now=now)
    return [*upstream, recovery]


def recover_tables(
    catalog: Catalog,
    instance: DagsterInstance,
    select: str | None,
    *,
    dry_run: bool,
    reader: PartitionReader = IN_THIS_PROCESS,
) -> RecoveryReport:
    """Marks dead runs failed, and records what tables and certificates know of all partitions.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        select: tables, comma-separated; None for all.
        dry_run: only find it.
        reader: reads what the instance was not told of.

    Raises:
        TableError: if a table doesn't exist.
    """
    now = dt.datetime.now(tz=dt.UTC)
    find = find_dead_runs if dry_run else fail_dead_runs
    dead = find(instance, now=now, silent_seconds=catalog.settings.silent_seconds)
    messages = describe_dead_runs(dead, done=not dry_run)
    warehouse = catalog.warehouse
    tables = (
        [catalog.find_table(key.strip()) for key in select.split(",")] if select else catalog.tables
    )
    published, withheld, doubtful, changed = (list[str]() for _ in range(4))
    for table in tables:
        log = read_log(warehouse, table)
        if dry_run:
            found = [find_recovery(instance, log, dead=dead, with_certificates=True, reader=reader)]
        else:
            found = recover_table(
                catalog, instance, log, now=now, dead=dead, with_certificates=True, reader=reader
            )
        for recovery in found:
            messages += describe_recovery(recovery, done=not dry_run)
        recovery = found[-1]
        published += [f"{table.key} {result.key}" for result in recovery.published]
        withheld += [f"{table.key} {key}" for key in recovery.withheld_keys]
        doubtful += [f"{table.key} {key}" for key in recovery.doubtful]
        changed += [f"{table.key} {key}" for key in recovery.changed]
    return RecoveryReport(
        *map(tuple, (dead, published, withheld, doubtful, changed, messages)),
    )


def _recover_upstream(
    catalog: Catalog,
    instance: DagsterInstance,
    recovery: Recovery,
    reader: PartitionReader,
    *,
    now: dt.datetime,
) -> list[Recovery]:
    """Recovers the upstream of what was found, where the instance lacks something of it."""
    log = recovery.log
    keys = {key for result in recovery.published for key in result.consumed.upstream}
    return [
        found
        for table in catalog.tables
        if table.key in keys
        for found in recover_table(
            catalog, instance, read_log(log.warehouse, table), now=now, reader=reader
        )
    ]


_LISTED = 50


def describe_dead_runs(dead: Mapping[str, str], *, done: bool = True) -> list[str]:
    """Describes dead runs, by id and how that is known; `done`: whether they are marked failed."""
    state = "was dead and is marked failed" if done else "is dead"
    return [f"run {run_id} {state}: {why}" for run_id, why in dead.items()]


def describe_recovery(recovery: Recovery, *, done: bool = True) -> list[str]:
    """Describes what the instance was not told of; nothing if there is nothing of it.

    Args:
        recovery: what was found.
        done: whether it has been recorded.
    """
    key, verb = recovery.log.table.key, "recorded" if done else "to be recorded:"
    messages: list[str] = []
    if recovery.is_new:
        messages.append(
            f"{key}: this Dagster home shows nothing of the table at {recovery.log.uri}, of which "
            f"{len(recovery.log.publishes)} partitions are published"
        )
    if recovery.published:
        found = [result.key for result in recovery.published]
        messages.append(
            f"{key}: {verb} {len(found)} partitions that were published, of which this Dagster "
            f"home has no events ({found[0]} … {found[-1]})"
        )
    if recovery.doubtful:
        listed = shorten([f"{name}: {why}" for name, why in recovery.doubtful.items()], _LISTED)
        messages.append(f"{key}: published, but to be run again: {'; '.join(listed)}")
    if recovery.changed:
        listed = shorten([f"{name} {why}" for name, why in recovery.changed.items()], _LISTED)
        messages.append(
            f"{key}: {'; '.join(listed)}: run these again, or accept them as they are with "
            f"`backfill-assets accept {key} --from … --to … --reason …`"
        )
    if recovery.log.lacks_commits:
        messages.append(
            f"{key}: the log begins with version {recovery.log.begins_with}; what was published "
            "before is to be read from certificates"
        )
    messages += recovery.withheld.unreadable
    for withheld in recovery.withheld.runs:
        messages.append(
            f"{key}: {verb} {', '.join(shorten(withheld.keys, _LISTED))} as withheld by run "
            f"{withheld.certificate.run_id}"
        )
    return messages


def find_what_can_go_on(
    catalog: Catalog, context: AssetExecutionContext, warehouse: Warehouse
) -> Continuation:
    """Finds the run's next assets, and their partitions whose upstream is published."""
    return find_continuation(
        catalog,
        context.instance,
        context.job_def.asset_layer.asset_graph,
        context.asset_key,
        context.run,
        warehouse=warehouse,
        first=context.partition_keys[0],
        last=context.partition_keys[-1],
    )


def hold_up(
    catalog: Catalog, context: AssetExecutionContext, found: Continuation, check_events: int
) -> None:
    """Says of the checks of what can't go on that they were not asked, within a budget of events.

    The others are asked when their partitions go on.
    """
    if len(found.assets) * len(found.blocked) * len(Check) > check_events:
        return
    why = f"held up by what was withheld of {context.asset_key.to_user_string()}"
    with store_together(context.instance):
        for asset_key in found.assets:
            table = catalog.find_table(asset_key.to_user_string())
            for key in found.blocked:
                for evaluation in build_unasked(table, key, why):
                    enter_evaluation(context.instance, context.run.run_id, evaluation)
