"""What goes on by itself where the daemon runs."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from dagster import (
    AssetKey,
    DagsterRun,
    DefaultSensorStatus,
    RunFailureSensorContext,
    RunRequest,
    ScheduleEvaluationContext,
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
from backfill_engine.orchestration.backfills.resuming import (
    Resumer,
    look_for_unrequested,
)
from backfill_engine.orchestration.due.due_partitions import Memory
from backfill_engine.orchestration.instance.own_runs import note_own_assets
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.orchestration.planning.run_requests import (
    FoundWork,
    Work,
    find_run_requests,
)
from backfill_engine.orchestration.recovery.recovery import (
    describe_dead_runs,
    describe_recovery,
    recover_table,
)
from backfill_engine.orchestration.runs.claims import fail_dead_runs
from backfill_engine.orchestration.runs.pausing import (
    build_continuing_tags,
    drop_paused,
    find_continuation,
    find_why_none_may_go,
    list_paused_at,
    list_paused_runs,
)
from backfill_engine.orchestration.runs.run_options import build_asset_config
from backfill_engine.orchestration.runs.run_tags import (
    CONTINUES_TAG,
    FOREGROUND_TAG,
    GOES_ON_WITH_TAG,
    INCREMENTAL_TAG,
    OPERATION_TAG,
    PAUSED_AT_TAG,
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
        run, withheld = context.dagster_run, context.dagster_run.tags.get(WITHHELD_TAG, "")
        chain, repository = find_chain(run), context.repository_def
        why = ""
        if not withheld or find_run_range(run) is None:
            why = f"run {run.run_id} withheld no partitions"
        elif withheld not in catalog.recipes:
            why = f"run {run.run_id} is of another code location"
        elif FOREGROUND_TAG in run.tags:
            why = f"run {run.run_id}: `backfill-assets run` goes on by itself"
        elif is_cancelled(context.instance, chain):
            why = f"backfill {chain}, which the run is of, was cancelled"
        if why:
            yield SkipReason(why)
            return
        assert repository is not None
        rest = find_continuation(
            catalog,
            context.instance,
            repository.asset_graph,
            AssetKey.from_user_string(withheld),
            run,
            warehouse=catalog.warehouse,
        )
        for line in rest.protected:
            context.log.info(line)
        if not rest.ranges:
            why = rest.describe_nothing()
            yield SkipReason(f"run {run.run_id} withheld partitions of {withheld}: {why}")
        for ends in rest.ranges:
            yield _request_rest(jobs, run.run_id, run, rest.assets, ends)

    return run_failure_sensor(
        name=catalog.prefix(continue_after_withheld.__name__),
        description=inspect.getdoc(continue_after_withheld),
        default_status=_choose_status(on=on),
        request_jobs=jobs.grain_definitions,
        minimum_interval_seconds=10,
        # A run that a shell started belongs to no code location; the tag tells ours.
        monitor_all_code_locations=True,
    )(continue_after_withheld)


def build_go_on_after_pause(catalog: Catalog, jobs: RangeJobs, *, on: bool) -> SensorDefinition:
    """Builds the sensor `go_on_after_pause`, which is on by default or off."""

    def go_on_after_pause(context: SensorEvaluationContext) -> SensorResult:
        """Requests what is left of runs that ended between two chunks, each once.

        Once nobody has them paused any more and the window of one of their tables is open: the same
        range and options, of the tables that were not done and what comes after these. Chunks that
        are published already stay as they are. Once these have ended, also what Dagster requested
        no run for, as it takes a paused run for a failed one: the rest of the backfill.
        """
        assert context.repository_def is not None
        instance, graph = context.instance, context.repository_def.asset_graph
        warehouse, now = catalog.warehouse, datetime.now(tz=UTC)
        requests: list[RunRequest] = []
        waiting: list[str] = []
        for run in list_paused_runs(instance):
            # A run that was cancelled elsewhere, as in the UI, is still marked as one that goes on.
            if is_cancelled(instance, find_chain(run)):
                drop_paused(instance, [run])
                waiting.append(
                    f"backfill {find_chain(run)}, which run {run.run_id} is of, is cancelled"
                )
                continue
            if why := find_why_none_may_go(instance, run, list_paused_at(run), now=now):
                waiting.append(f"run {run.run_id[:8]} is paused: {why}")
                continue
            rest = find_continuation(catalog, instance, graph, None, run, warehouse=warehouse)
            for line in rest.protected:
                context.log.info(f"run {run.run_id}: {line}")
            if not rest.ranges:
                tables = run.tags[PAUSED_AT_TAG].replace(",", ", ")
                gone = (
                    f"there is no table {tables} any more; "
                    f"`backfill-assets backfill cancel {run.run_id}` ends that"
                )
                why = rest.describe_nothing() if rest.assets else gone
                waiting.append(f"run {run.run_id[:8]} can't go on: {why}")
            tags = {GOES_ON_WITH_TAG: run.run_id}
            requests += [
                _request_rest(jobs, f"{run.run_id} goes on", run, rest.assets, ends, tags)
                for ends in rest.ranges
            ]
        resumer = Resumer(instance, graph, warehouse, catalog, catalog.settings.landing)
        found = look_for_unrequested(resumer, now=now)
        for line in found.left_alone:
            context.log.info(f"left alone: {line}")
        for rest in found.requested:
            tables = ", ".join(key.to_user_string() for key in rest.assets)
            key, tags = f"{rest.model.run_id} lacks {tables}", {CONTINUES_TAG: rest.continues}
            requests.append(_request_rest(jobs, key, rest.model, rest.assets, rest.ends, tags))
        waiting += found.waiting
        return SensorResult(
            run_requests=requests,
            skip_reason=None if requests else SkipReason("; ".join(waiting) or "no run is paused"),
        )

    return build_sensor(catalog, go_on_after_pause, jobs, on=on, seconds=30)


def _request_rest(
    jobs: RangeJobs,
    key: str,
    model: DagsterRun,
    assets: Sequence[AssetKey],
    ends: tuple[str, str],
    tags: Mapping[str, str] | None = None,
) -> RunRequest:
    """Requests a run of a range with another run's options and tags, and some tags of its own.

    Without tags of its own the run goes on after what the other one withheld: acceptances were
    given for what that one found, and its watermark is not to move past a gap.
    """
    first, last = ends
    carried = build_continuing_tags(model, first, last)
    if tags is None:
        carried.pop(INCREMENTAL_TAG, None)
    return RunRequest(
        run_key=f"{key} {first}...{last}",
        job_name=jobs.find_grain_job(assets[0]),
        asset_selection=assets,
        run_config=build_asset_config(model, assets, with_acceptances=tags is not None),
        tags={**carried, **(tags or {})},
    )


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
        """Requests runs of the partitions that are new, changed or due, all day long.

        Turn it on where days are to be published as soon as their input has come; the schedules
        `process_due_nightly_…` do the same by night.

        New: they have input and were never published. Changed: their input is not what they were
        computed from: files that came late, were rewritten or taken back, rows that landed after
        the fact. Due: computed before all of their input had come, and now it has. Told from what
        each commit says that it consumed, however late: docs/late-data.md. Its runs move the
        watermark.

        Each table is requested once what it reads has been. A partition that is withheld is tried
        again once its input has changed, not before; and so is one that a rollback brought back.
        """
        found = find_work(catalog, context, Memory.from_json(context.cursor))
        for error in found.errors:
            context.log.error(error)
        for notice in found.notices:
            context.log.warning(notice)
        for left_out in found.protected:
            context.log.info(left_out)
        requests = [
            build_work_request(work, jobs.find_grain_job(AssetKey.from_user_string(work.table)))
            for work in found.requested
        ]
        why = "; ".join((*found.errors, *found.waiting, *found.notices, *found.protected))
        return SensorResult(
            run_requests=requests,
            skip_reason=None if requests else SkipReason(why or "all is as its input is"),
            cursor=found.memory.to_json(),
        )

    return build_sensor(catalog, process_due_partitions, jobs, on=False)


def find_work(
    catalog: Catalog,
    context: SensorEvaluationContext | ScheduleEvaluationContext,
    memory: Memory,
) -> FoundWork:
    """Finds what is due of a code location's tables, by its settings."""
    assert context.repository_def is not None
    return find_run_requests(
        catalog,
        context.instance,
        context.repository_def.asset_graph,
        catalog.warehouse,
        memory,
        landing_root=catalog.settings.landing,
        late_days=catalog.settings.late_days,
    )


def build_work_request(work: Work, job_name: str | None = None) -> RunRequest:
    """Builds the request of a run that does what is due."""
    return RunRequest(
        run_key=work.run_key,
        job_name=job_name,
        asset_selection=[AssetKey.from_user_string(work.table)],
        tags={
            RANGE_START_TAG: work.first,
            RANGE_END_TAG: work.last,
            INCREMENTAL_TAG: "true",
            REASON_TAG: work.reason,
            OPERATION_TAG: work.operation,
        },
    )
