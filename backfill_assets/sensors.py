"""What goes on by itself where the daemon runs."""

from collections.abc import Iterator
from datetime import UTC, datetime

from dagster import (
    AssetKey,
    DefaultSensorStatus,
    RunFailureSensorContext,
    RunRequest,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    run_failure_sensor,
    sensor,
)

from backfill_assets.catalog import list_tables
from backfill_assets.lake.table_log import read_log
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.orchestration.backfills.cancelling import is_cancelled
from backfill_assets.orchestration.due.due_partitions import Memory
from backfill_assets.orchestration.planning.work import Work, look_for_work
from backfill_assets.orchestration.recovery.recovering import recover_table
from backfill_assets.orchestration.recovery.recovery_messages import (
    describe_dead_runs,
    describe_recovery,
)
from backfill_assets.orchestration.runs.claims import fail_dead_runs
from backfill_assets.orchestration.runs.continuation import build_continuing_tags, find_continuation
from backfill_assets.orchestration.runs.run_options import build_asset_config
from backfill_assets.orchestration.runs.run_tags import (
    FOREGROUND_TAG,
    INCREMENTAL_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    REASON_TAG,
    WITHHELD_TAG,
    find_chain,
    find_run_range,
)
from backfill_assets.pipelines import list_recipes
from backfill_assets.range_jobs import find_grain_job, grain_jobs
from backfill_assets.settings import read_settings


@run_failure_sensor(
    description=(
        "After a run that withheld partitions: requests runs of the same range, of the assets "
        "that did not get their turn, for the partitions whose upstream is published."
    ),
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
    ends = find_run_range(run)
    if withheld is None or ends is None:
        yield SkipReason(f"run {run.run_id} withheld no partitions")
        return
    if FOREGROUND_TAG in run.tags:
        yield SkipReason(f"run {run.run_id}: `backfill-assets run` goes on by itself")
        return
    if is_cancelled(context.instance, find_chain(run)):
        yield SkipReason(f"backfill {find_chain(run)}, which the run is of, was cancelled")
        return
    repository = context.repository_def
    assert repository is not None
    found = find_continuation(
        context.instance,
        repository.asset_graph,
        AssetKey.from_user_string(withheld),
        run,
        warehouse=Warehouse(read_settings().warehouse),
        first=ends[0],
        last=ends[1],
    )
    if not found.ranges:
        why = found.describe_nothing()
        yield SkipReason(f"run {run.run_id} withheld partitions of {withheld}: {why}")
        return
    for left_out in found.protected:
        context.log.info(left_out)
    for start, end in found.ranges:
        tags = build_continuing_tags(run, start, end)
        tags.pop(INCREMENTAL_TAG, None)
        yield RunRequest(
            run_key=f"{run.run_id} {start}",
            job_name=find_grain_job(found.assets[0]),
            asset_selection=found.assets,
            run_config=build_asset_config(run, found.assets),
            tags=tags,
        )


@sensor(
    name="recover_dead_runs",
    description=(
        "Marks runs failed that were killed, and records what the tables know and this Dagster "
        "home does not: partitions that were published before their events were stored."
    ),
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
    for log in (read_log(warehouse, table) for table in list_tables()):
        for recovery in recover_table(instance, log, now=now):
            messages += describe_recovery(recovery)
    for message in messages:
        context.log.warning(message)
    return SkipReason("; ".join(messages) or "no run is dead, and no table is unknown here")


@sensor(
    name="process_due_partitions",
    description=(
        "Requests runs of the partitions that are new (they have input and were never published), "
        "changed (their input is not what they were computed from: files that came late, were "
        "rewritten or taken back, rows that landed after the fact) or due (computed before all of "
        "their input had come, and now it has). Told from what each commit says that it consumed, "
        "however late: docs/late-data.md. Its runs move the watermark."
    ),
    minimum_interval_seconds=60,
    default_status=DefaultSensorStatus.STOPPED,
    jobs=grain_jobs,
)
def process_due_partitions(context: SensorEvaluationContext) -> SensorResult:
    """Requests what is to be processed, each table once what it reads has been.

    A partition that is withheld is tried again once its input has changed, not before; and so is
    one that a rollback brought back.
    """
    assert context.repository_def is not None
    settings = read_settings()
    found = look_for_work(
        context.instance,
        context.repository_def.asset_graph,
        Warehouse(settings.warehouse, retention_days=settings.retention_days),
        list_recipes(),
        Memory.from_json(context.cursor),
        landing_root=settings.landing,
        late_days=settings.late_days,
    )
    for error in found.errors:
        context.log.error(error)
    for notice in found.notices:
        context.log.warning(notice)
    for left_out in found.protected:
        context.log.info(left_out)
    requests = [_request_work(work) for work in found.requested]
    why = "; ".join((*found.errors, *found.waiting, *found.notices, *found.protected))
    return SensorResult(
        run_requests=requests,
        skip_reason=None if requests else SkipReason(why or "all is as its input is"),
        cursor=found.memory.to_json(),
    )


def _request_work(work: Work) -> RunRequest:
    return RunRequest(
        run_key=f"{work.table} {work.first}...{work.last} {work.state}",
        job_name=find_grain_job(AssetKey.from_user_string(work.table)),
        asset_selection=[AssetKey.from_user_string(work.table)],
        tags={
            RANGE_START_TAG: work.first,
            RANGE_END_TAG: work.last,
            INCREMENTAL_TAG: "true",
            REASON_TAG: work.reason,
        },
    )
