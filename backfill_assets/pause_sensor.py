"""What goes on by itself once a pause is over, or a window opens."""

from collections.abc import Sequence
from datetime import UTC, datetime

from dagster import (
    AssetKey,
    AssetSelection,
    DagsterRun,
    DefaultSensorStatus,
    RunRequest,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from backfill_assets.orchestration.claims import CREATOR_TAG, PROCESS_TAG
from backfill_assets.orchestration.dagster_internals import AssetGraph, find_run_assets
from backfill_assets.orchestration.pausing import find_why_paused, list_paused_runs
from backfill_assets.orchestration.run_options import (
    CHAIN_TAG,
    CONTINUES_TAG,
    FOREGROUND_TAG,
    PAUSED_AT_TAG,
    PAUSED_TAG,
    PRIORITY_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    TAG_PREFIX,
    WITHHELD_TAG,
    build_asset_config,
    find_chain,
    find_run_range,
    find_told_window,
)
from backfill_assets.publishing.pacing import parse_window
from backfill_assets.range_jobs import find_grain_job, grain_jobs

_OF_ONE_RUN = {
    CREATOR_TAG,
    PROCESS_TAG,
    PAUSED_TAG,
    PAUSED_AT_TAG,
    WITHHELD_TAG,
    CONTINUES_TAG,
    FOREGROUND_TAG,
}


@sensor(
    name="go_on_after_pause",
    description=(
        "Requests what is left of runs that ended between two chunks, once nobody has them paused "
        "any more and their window is open: the same range and options, of the tables that were "
        "not done and what comes after these. Chunks that are published already stay as they are."
    ),
    minimum_interval_seconds=30,
    default_status=DefaultSensorStatus.RUNNING,
    jobs=grain_jobs,
)
def go_on_after_pause(context: SensorEvaluationContext) -> SensorResult:
    """Goes on with paused runs that may; each is gone on with once."""
    assert context.repository_def is not None
    graph, now = context.repository_def.asset_graph, datetime.now(tz=UTC)
    requests: list[RunRequest] = []
    waiting: list[str] = []
    for run in list_paused_runs(context.instance):
        assets = _find_assets(graph, run, find_run_assets(context.instance, run))
        window = find_told_window(run, assets[0]) if assets else None
        why = find_why_paused(
            context.instance, find_chain(run), parse_window(window) if window else None, now=now
        )
        if why:
            waiting.append(f"run {run.run_id[:8]} is paused: {why}")
        elif assets:
            requests.append(_request_rest(run, assets))
    return SensorResult(
        run_requests=requests,
        skip_reason=None if requests else SkipReason("; ".join(waiting) or "no run is paused"),
    )


def _find_assets(
    graph: AssetGraph, run: DagsterRun, selected: frozenset[AssetKey]
) -> Sequence[AssetKey]:
    """Finds what a run was not done with, and what comes after that, upstream ones first."""
    paused = [AssetKey.from_user_string(key) for key in run.tags[PAUSED_AT_TAG].split(",")]
    left = AssetSelection.assets(*paused).downstream().resolve(graph) & selected
    return [key for key in graph.toposorted_asset_keys if key in left]


def _request_rest(run: DagsterRun, assets: Sequence[AssetKey]) -> RunRequest:
    ends = find_run_range(run)
    assert ends is not None, "only a run of partitions is paused"
    kept = {
        name: value
        for name, value in run.tags.items()
        if (name.startswith(TAG_PREFIX) and name not in _OF_ONE_RUN) or name == PRIORITY_TAG
    }
    return RunRequest(
        run_key=f"{run.run_id} goes on",
        job_name=find_grain_job(assets[0]),
        asset_selection=assets,
        run_config=build_asset_config(run, assets, with_acceptances=True),
        tags={
            **kept,
            RANGE_START_TAG: ends[0],
            RANGE_END_TAG: ends[1],
            CONTINUES_TAG: run.run_id,
            CHAIN_TAG: find_chain(run),
        },
    )
