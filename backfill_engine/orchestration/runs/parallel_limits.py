"""How many runs of one launch are at work at once, by limits that Dagster keeps.

A limit of Dagster's is about a tag and stands in `dagster.yaml`. So it has one for each number that
can be asked for, and a launch tags its runs with one of these and a value of its own.
"""

from dagster import DagsterInstance

from backfill_engine.errors import SettingsError
from backfill_engine.orchestration.runs.run_tags import AT_MOST_TAG


def build_limit_tag(
    instance: DagsterInstance, max_parallel: int | None, *, value: str
) -> dict[str, str]:
    """Builds the tag that keeps the runs of a launch to so many at once; none where that is so.

    Args:
        instance: whose queue it is.
        max_parallel: how many; None for as many as the instance has places.
        value: that no other launch has.

    Raises:
        SettingsError: if the instance has no such limit.
    """
    config = instance.get_concurrency_config().run_queue_config
    if max_parallel is None or (config and 0 <= config.max_concurrent_runs <= max_parallel):
        return {}
    tag = f"{AT_MOST_TAG}{max_parallel}"
    limits = config.tag_concurrency_limits if config else []
    if not any(limit["key"] == tag and limit["limit"] == max_parallel for limit in limits):
        raise SettingsError(
            f"--max-parallel {max_parallel}: the dagster.yaml of this home has no limit for the "
            f"tag {tag} below concurrency, runs, tag_concurrency_limits: add it there, as the one "
            "for 1 is, or leave the option out"
        )
    return {tag: value}
