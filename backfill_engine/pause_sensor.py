"""What goes on by itself once a pause is over, or a window opens."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from dagster import (
    AssetKey,
    DagsterRun,
    DefaultSensorStatus,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from backfill_engine.catalog import Catalog
from backfill_engine.jobs import RangeJobs
from backfill_engine.orchestration.backfills.cancelling import is_cancelled
from backfill_engine.orchestration.backfills.remainders import look_for_remainders
from backfill_engine.orchestration.backfills.resuming import Resumer
from backfill_engine.orchestration.runs.continuation import (
    Continuation,
    build_continuing_tags,
    find_continuation,
)
from backfill_engine.orchestration.runs.pausing import (
    drop_paused,
    find_why_none_may_go,
    list_paused_at,
    list_paused_runs,
)
from backfill_engine.orchestration.runs.run_options import build_asset_config
from backfill_engine.orchestration.runs.run_tags import (
    CONTINUES_TAG,
    GOES_ON_WITH_TAG,
    find_chain,
    find_run_range,
)


def build_go_on_after_pause(catalog: Catalog, jobs: RangeJobs, *, on: bool) -> SensorDefinition:
    """Builds the sensor `go_on_after_pause`, which is on by default or off."""

    @sensor(
        name=catalog.prefix("go_on_after_pause"),
        description=(
            "Requests what is left of runs that ended between two chunks, once nobody has them "
            "paused any more and the window of one of their tables is open: the same range and "
            "options, of the tables that were not done and what comes after these. Chunks that "
            "are published already stay as they are. Once these have ended, also what Dagster "
            "requested no run for, as it takes a paused run for a failed one: the rest of the "
            "backfill."
        ),
        minimum_interval_seconds=30,
        default_status=DefaultSensorStatus.RUNNING if on else DefaultSensorStatus.STOPPED,
        jobs=jobs.grain_definitions,
    )
    def go_on_after_pause(context: SensorEvaluationContext) -> SensorResult:
        """Goes on with paused runs that may; each is gone on with once."""
        assert context.repository_def is not None
        instance, graph = context.instance, context.repository_def.asset_graph
        warehouse, now = catalog.warehouse, datetime.now(tz=UTC)
        requests: list[RunRequest] = []
        waiting: list[str] = []
        for run in list_paused_runs(instance):
            # Cancelled elsewhere than here, as in the UI, it is still marked as one that goes on.
            if is_cancelled(instance, find_chain(run)):
                drop_paused(instance, [run])
                waiting.append(
                    f"backfill {find_chain(run)}, which run {run.run_id} is of, is cancelled"
                )
                continue
            if why := find_why_none_may_go(instance, run, list_paused_at(run), now=now):
                waiting.append(f"run {run.run_id[:8]} is paused: {why}")
                continue
            first, last = find_run_range(run) or ("", "")
            rest = find_continuation(
                catalog, instance, graph, None, run, warehouse=warehouse, first=first, last=last
            )
            for left_out in rest.protected:
                context.log.info(f"run {run.run_id}: {left_out}")
            if not rest.ranges:
                waiting.append(f"run {run.run_id[:8]} can't go on: {_describe_nothing(run, rest)}")
            tags = {GOES_ON_WITH_TAG: run.run_id}
            requests += [
                _request(jobs, f"{run.run_id} goes on", run, rest.assets, ends, tags)
                for ends in rest.ranges
            ]
        resumer = Resumer(instance, graph, warehouse, catalog, catalog.settings.landing)
        found = look_for_remainders(resumer, now=now)
        for left_alone in found.left_alone:
            context.log.info(f"left alone: {left_alone}")
        for left in found.requested:
            tables = ", ".join(key.to_user_string() for key in left.assets)
            key, tags = f"{left.told.run_id} lacks {tables}", {CONTINUES_TAG: left.continues}
            requests.append(_request(jobs, key, left.told, left.assets, left.ends, tags))
        waiting += found.waiting
        return SensorResult(
            run_requests=requests,
            skip_reason=None if requests else SkipReason("; ".join(waiting) or "no run is paused"),
        )

    return go_on_after_pause


def _describe_nothing(run: DagsterRun, rest: Continuation) -> str:
    if rest.assets:
        return rest.describe_nothing()
    tables = ", ".join(key.to_user_string() for key in list_paused_at(run))
    command = f"backfill-assets backfill cancel {run.run_id}"
    return f"there is no table {tables} any more; `{command}` ends that"


def _request(
    jobs: RangeJobs,
    key: str,
    told: DagsterRun,
    assets: Sequence[AssetKey],
    ends: tuple[str, str],
    tags: Mapping[str, str],
) -> RunRequest:
    """Requests a run of a range that is told what another run was told, and has some other tags."""
    first, last = ends
    return RunRequest(
        run_key=f"{key} {first}...{last}",
        job_name=jobs.find_grain_job(assets[0]),
        asset_selection=assets,
        run_config=build_asset_config(told, assets, with_acceptances=True),
        tags={**build_continuing_tags(told, first, last), **tags},
    )
