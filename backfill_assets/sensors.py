"""What goes on by itself where the daemon runs."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from dagster import (
    AssetKey,
    DefaultSensorStatus,
    RunFailureSensorContext,
    RunRequest,
    SensorEvaluationContext,
    SkipReason,
    run_failure_sensor,
    sensor,
)

from backfill_assets.catalog import list_tables
from backfill_assets.errors import BackfillError
from backfill_assets.lake.table_log import read_log
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.lake.watermarks import read_watermarks
from backfill_assets.orchestration.claims import fail_dead_runs
from backfill_assets.orchestration.continuation import find_continuation
from backfill_assets.orchestration.dagster_internals import find_run_assets
from backfill_assets.orchestration.increments import Increment, find_increments, has_unfinished_run
from backfill_assets.orchestration.recovering import recover_table
from backfill_assets.orchestration.recovery import is_unseen
from backfill_assets.orchestration.recovery_messages import describe_dead_runs, describe_recovery
from backfill_assets.orchestration.run_options import (
    CHAIN_TAG,
    INCREMENTAL_TAG,
    WITHHELD_TAG,
    build_asset_config,
    find_chain,
)
from backfill_assets.pipelines import list_recipes
from backfill_assets.range_jobs import find_grain_job, grain_jobs
from backfill_assets.resources import SPARK_REMOTE_TAG
from backfill_assets.settings import read_settings

RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"
PARTITION_TAG = "dagster/partition"
CONTINUES_TAG = "backfill_assets/continues"


@run_failure_sensor(
    default_status=DefaultSensorStatus.RUNNING,
    request_jobs=grain_jobs,
    minimum_interval_seconds=10,
    # A run that a shell started belongs to no code location; the tag tells ours.
    monitor_all_code_locations=True,
)
def continue_after_withheld(context: RunFailureSensorContext) -> Iterator[RunRequest | SkipReason]:
    """Goes on with what does not depend on withheld partitions.

    Dagster stops the downstream steps of a run in which a step withheld something. This requests
    runs of the same range for the assets that did not get their turn, for the partitions whose
    upstream is published; once for each failed run, however that was started.
    """
    run = context.dagster_run
    withheld = run.tags.get(WITHHELD_TAG)
    first = run.tags.get(RANGE_START_TAG) or run.tags.get(PARTITION_TAG)
    last = run.tags.get(RANGE_END_TAG) or run.tags.get(PARTITION_TAG)
    if withheld is None or first is None or last is None:
        yield SkipReason(f"run {run.run_id} withheld no partitions")
        return
    repository = context.repository_def
    assert repository is not None
    found = find_continuation(
        context.instance,
        repository.asset_graph,
        AssetKey.from_user_string(withheld),
        find_run_assets(context.instance, run),
        first=first,
        last=last,
    )
    if not found.ranges:
        why = found.describe_nothing()
        yield SkipReason(f"run {run.run_id} withheld partitions of {withheld}: {why}")
        return
    for start, end in found.ranges:
        yield RunRequest(
            run_key=f"{run.run_id} {start}",
            job_name=find_grain_job(found.assets[0]),
            asset_selection=found.assets,
            run_config=build_asset_config(run, found.assets),
            tags={
                RANGE_START_TAG: start,
                RANGE_END_TAG: end,
                CONTINUES_TAG: run.run_id,
                CHAIN_TAG: find_chain(run),
                **{tag: run.tags[tag] for tag in (SPARK_REMOTE_TAG,) if tag in run.tags},
            },
        )


@sensor(
    name="recover_dead_runs",
    minimum_interval_seconds=60,
    default_status=DefaultSensorStatus.RUNNING,
    jobs=grain_jobs,
)
def recover_dead_runs(context: SensorEvaluationContext) -> SkipReason:
    """Marks dead runs failed, and records what the tables know and this Dagster home does not.

    A run killed with -9 stays "started" for ever and holds its slot; partitions that it published
    before its events were stored look as if they were missing, and so do all in a new home.
    """
    settings, now = read_settings(), datetime.now(tz=UTC)
    instance = context.instance
    dead = fail_dead_runs(instance, now=now, silent_seconds=settings.silent_seconds)
    messages = describe_dead_runs(dead)
    warehouse = Warehouse(settings.warehouse, retention_days=settings.retention_days)
    seen: dict[str, int] = json.loads(context.cursor or "{}")
    for log in (read_log(warehouse, table) for table in list_tables()):
        key = log.table.key
        if dead or (seen.get(key) != log.version and is_unseen(instance, log)):
            for recovery in recover_table(instance, log, now=now):
                messages += describe_recovery(recovery)
        seen[key] = log.version
    context.update_cursor(json.dumps(seen))
    for message in messages:
        context.log.warning(message)
    return SkipReason("; ".join(messages) or "no run is dead, and no table is unknown here")


@sensor(
    name="process_new_partitions",
    minimum_interval_seconds=60,
    default_status=DefaultSensorStatus.STOPPED,
    jobs=grain_jobs,
)
def process_new_partitions(context: SensorEvaluationContext) -> list[RunRequest] | SkipReason:
    """The incremental job: takes each table on from its watermark, as far as its input has come.

    Turn it on in the UI. Its runs move the watermark; backfills leave it alone, unless told. A
    partition that is withheld holds the watermark before it, and is tried again with the next new
    one.
    """
    assert context.repository_def is not None
    graph = context.repository_def.asset_graph
    settings = read_settings()
    warehouse = Warehouse(settings.warehouse, retention_days=settings.retention_days)
    watermarks = read_watermarks(warehouse)
    requests: list[RunRequest] = []
    waiting: list[str] = []
    for key, recipe in list_recipes().items():
        if has_unfinished_run(context.instance, recipe):
            waiting.append(f"a run of {key} is at work")
            continue
        try:
            increments = find_increments(
                context.instance,
                graph,
                warehouse,
                recipe,
                watermarks.get(key),
                landing_root=settings.landing,
            )
        except BackfillError as error:
            # Of one table's input; the others go on.
            context.log.error(f"{key}: {error}")
            waiting.append(f"{key}: {error}")
            continue
        requests += [_request_increment(key, increment) for increment in increments]
    return requests or SkipReason("; ".join(waiting) or "no input has come since the watermarks")


def _request_increment(key: str, increment: Increment) -> RunRequest:
    asset_key = AssetKey.from_user_string(key)
    return RunRequest(
        run_key=f"{key} {increment.first}...{increment.last} {increment.input_state}",
        job_name=find_grain_job(asset_key),
        asset_selection=[asset_key],
        tags={
            RANGE_START_TAG: increment.first,
            RANGE_END_TAG: increment.last,
            INCREMENTAL_TAG: "true",
        },
    )
