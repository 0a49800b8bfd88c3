"""What goes on by itself where the daemon runs."""

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from dagster import (
    AssetKey,
    DagsterInstance,
    DagsterRun,
    DefaultSensorStatus,
    RunFailureSensorContext,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    run_failure_sensor,
)

from backfill_engine.catalog import Catalog
from backfill_engine.jobs import RangeJobs
from backfill_engine.lake.table_log import read_log
from backfill_engine.orchestration.backfills.cancelling import is_cancelled
from backfill_engine.orchestration.due.due_partitions import Memory
from backfill_engine.orchestration.instance.own_runs import note_own_assets
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.orchestration.planning.work import Work, look_for_work
from backfill_engine.orchestration.recovery.recovering import (
    describe_dead_runs,
    describe_recovery,
    recover_table,
)
from backfill_engine.orchestration.runs.claims import fail_dead_runs
from backfill_engine.orchestration.runs.continuation import build_continuing_tags, find_continuation
from backfill_engine.orchestration.runs.run_options import build_asset_config
from backfill_engine.orchestration.runs.run_tags import (
    FOREGROUND_TAG,
    INCREMENTAL_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    REASON_TAG,
    WITHHELD_TAG,
    find_chain,
    find_run_range,
)

DUE_PARTITIONS = "process_due_partitions"
"""Name of the sensor, without its prefix."""


def build_sensor(
    catalog: Catalog,
    evaluate: Callable[[SensorEvaluationContext], SensorResult | SkipReason],
    jobs: RangeJobs | None = None,
    *,
    on: bool,
    seconds: int = 60,
) -> SensorDefinition:
    """Builds a sensor of a function, which gives it its name and its description.

    Args:
        catalog: of the code location.
        evaluate: what a tick does.
        jobs: whose runs it requests; None if it requests none.
        on: whether it is on without being turned on.
        seconds: between two ticks, at least.
    """
    return SensorDefinition(
        name=catalog.prefix(evaluate.__name__),
        evaluation_fn=evaluate,
        description=inspect.getdoc(evaluate),
        minimum_interval_seconds=seconds,
        default_status=_choose_status(on=on),
        jobs=jobs.grain_definitions if jobs else None,
    )


def _choose_status(*, on: bool) -> DefaultSensorStatus:
    return DefaultSensorStatus.RUNNING if on else DefaultSensorStatus.STOPPED


def build_continue_after_withheld(
    catalog: Catalog, jobs: RangeJobs, *, on: bool
) -> SensorDefinition:
    """Builds the sensor `continue_after_withheld`, which is on by default or off."""

    def continue_after_withheld(
        context: RunFailureSensorContext,
    ) -> Iterator[RunRequest | SkipReason]:
        """After a run that withheld partitions: goes on with what does not depend on these.

        Dagster stops the downstream steps of a run in which a step withheld something. This
        requests runs of the same range for the assets that did not get their turn, for the
        partitions whose upstream is published; once for each failed run, however that was started.
        """
        run, withheld = context.dagster_run, context.dagster_run.tags.get(WITHHELD_TAG)
        if why := _find_why_not_gone_on_with(catalog, context.instance, run):
            yield SkipReason(why)
            return
        ends, repository = find_run_range(run), context.repository_def
        assert withheld is not None and ends is not None and repository is not None
        found = find_continuation(
            catalog,
            context.instance,
            repository.asset_graph,
            AssetKey.from_user_string(withheld),
            run,
            warehouse=catalog.warehouse,
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
                job_name=jobs.find_grain_job(found.assets[0]),
                asset_selection=found.assets,
                run_config=build_asset_config(run, found.assets),
                tags=tags,
            )

    return run_failure_sensor(
        name=catalog.prefix(continue_after_withheld.__name__),
        description=inspect.getdoc(continue_after_withheld),
        default_status=_choose_status(on=on),
        request_jobs=jobs.grain_definitions,
        minimum_interval_seconds=10,
        # A run that a shell started belongs to no code location; the tag tells ours.
        monitor_all_code_locations=True,
    )(continue_after_withheld)


def _find_why_not_gone_on_with(
    catalog: Catalog, instance: DagsterInstance, run: DagsterRun
) -> str | None:
    """Finds why nothing is to go on after a run that failed; None if something is."""
    withheld = run.tags.get(WITHHELD_TAG)
    if withheld is None or find_run_range(run) is None:
        return f"run {run.run_id} withheld no partitions"
    if withheld not in catalog.recipes:
        return f"run {run.run_id} is of another code location"
    if FOREGROUND_TAG in run.tags:
        return f"run {run.run_id}: `backfill-assets run` goes on by itself"
    if is_cancelled(instance, find_chain(run)):
        return f"backfill {find_chain(run)}, which the run is of, was cancelled"
    return None


def build_recover_dead_runs(catalog: Catalog, jobs: RangeJobs, *, on: bool) -> SensorDefinition:
    """Builds the sensor `recover_dead_runs`, which is on by default or off."""

    def recover_dead_runs(context: SensorEvaluationContext) -> SkipReason:
        """Marks dead runs failed, and records what the tables know and this Dagster home does not.

        A run killed with -9 stays "started" for ever and holds its slot; partitions that it
        published before its events were stored look as if they were missing, and so do all in a new
        home.
        """
        now, instance = datetime.now(tz=UTC), context.instance
        silent_seconds = catalog.settings.silent_seconds
        messages = describe_dead_runs(
            fail_dead_runs(instance, now=now, silent_seconds=silent_seconds)
        )
        note_own_assets(instance, map(find_asset_key, catalog.tables))
        for table in catalog.tables:
            for recovery in recover_table(
                catalog, instance, read_log(catalog.warehouse, table), now=now
            ):
                messages += describe_recovery(recovery)
        for message in messages:
            context.log.warning(message)
        return SkipReason("; ".join(messages) or "no run is dead, and no table is unknown here")

    return build_sensor(catalog, recover_dead_runs, jobs, on=on)


def build_process_due_partitions(catalog: Catalog, jobs: RangeJobs) -> SensorDefinition:
    """Builds the sensor `process_due_partitions`, which is off by default."""

    def process_due_partitions(context: SensorEvaluationContext) -> SensorResult:
        """Requests runs of the partitions that are new, changed or due.

        New: they have input and were never published. Changed: their input is not what they were
        computed from: files that came late, were rewritten or taken back, rows that landed after
        the fact. Due: computed before all of their input had come, and now it has. Told from what
        each commit says that it consumed, however late: docs/late-data.md. Its runs move the
        watermark.

        Each table is requested once what it reads has been. A partition that is withheld is tried
        again once its input has changed, not before; and so is one that a rollback brought back.
        """
        assert context.repository_def is not None
        settings = catalog.settings
        found = look_for_work(
            catalog,
            context.instance,
            context.repository_def.asset_graph,
            catalog.warehouse,
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
        requests = [_request_work(jobs, work) for work in found.requested]
        why = "; ".join((*found.errors, *found.waiting, *found.notices, *found.protected))
        return SensorResult(
            run_requests=requests,
            skip_reason=None if requests else SkipReason(why or "all is as its input is"),
            cursor=found.memory.to_json(),
        )

    return build_sensor(catalog, process_due_partitions, jobs, on=False)


def _request_work(jobs: RangeJobs, work: Work) -> RunRequest:
    return RunRequest(
        run_key=f"{work.table} {work.first}...{work.last} {work.state}",
        job_name=jobs.find_grain_job(AssetKey.from_user_string(work.table)),
        asset_selection=[AssetKey.from_user_string(work.table)],
        tags={
            RANGE_START_TAG: work.first,
            RANGE_END_TAG: work.last,
            INCREMENTAL_TAG: "true",
            REASON_TAG: work.reason,
        },
    )
