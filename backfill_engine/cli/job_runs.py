"""Runs a job of the project, or assets, in this process, as a Dagster run like any other."""

from collections.abc import Mapping
from typing import Any

from dagster import AssetKey, DagsterEventType, DagsterInstance, execute_job

from backfill_engine.cli.location import load_location, open_instance
from backfill_engine.cli.options import build_origin
from backfill_engine.cli.terminal import keep_terminal
from backfill_engine.errors import BackfillError
from backfill_engine.orchestration.backfills.foreground import RangeRun
from backfill_engine.orchestration.runs.run_tags import tag_origin

# What the job has to say is its output; Dagster's own log is in the UI.
_QUIET = {"console": {"config": {"log_level": "CRITICAL"}}}
_ASSET_JOB = "__ASSET_JOB"  # as `dagster asset materialize` does it
_LINE_LENGTH = 300


def materialize(instance: DagsterInstance, request: RangeRun) -> None:
    """Makes a run of assets, and executes it; the instance says what became of it."""
    with execute_job(
        load_location().locate().get_reconstructable_job(_ASSET_JOB),
        instance,
        run_config=dict(request.config),
        tags=request.all_tags,
        asset_selection=[AssetKey.from_user_string(key) for key in request.assets],
        raise_on_error=False,
    ):
        pass


def run_job(job: str, op: str, config: Mapping[str, object]) -> Any:
    """Runs a job of one op, in the instance of DAGSTER_HOME.

    Returns:
        What the op returned.

    Raises:
        BackfillError: with the op's own message, if it failed.
    """
    location = load_location()
    job, op = location.catalog.prefix(job), location.catalog.prefix(op)
    with (
        keep_terminal(),
        open_instance() as instance,
        execute_job(
            location.locate().get_reconstructable_job(job),
            instance,
            run_config={"ops": {op: {"config": dict(config)}}, "loggers": _QUIET},
            tags=tag_origin(build_origin()),
            raise_on_error=False,
        ) as result,
    ):
        if result.success:
            return result.output_for_node(op)
        raise BackfillError(_find_message(instance, result.run_id))


def _find_message(instance: DagsterInstance, run_id: str) -> str:
    for entry in instance.all_logs(run_id, of_type=DagsterEventType.STEP_FAILURE):
        failure = entry.get_dagster_event().step_failure_data
        if failure.user_failure_data and failure.user_failure_data.description:
            return failure.user_failure_data.description
        if failure.error:
            cause = failure.error.cause or failure.error
            line = " ".join(cause.message.split())[:_LINE_LENGTH]
            return f"{line} (run {run_id} in the UI has the stack trace)"
    return f"run {run_id} failed before its step: the UI has its log"
