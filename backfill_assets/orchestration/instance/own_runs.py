"""Which runs are of this project: an instance is shared, and other runs are none of its affair.

A run of ours carries a tag of ours. `ClaimingInstance` notes one on a run when the run is created,
whatever requests runs may give them some, and each op claims the run that it begins in.
"""

from collections.abc import Mapping

from dagster import JobDefinition

from backfill_assets.orchestration.instance.dagster_internals import HIDDEN_TAG_PREFIX, JobSnap

TAG_PREFIX = "backfill_assets/"
"""Beginning of the names of our tags, after Dagster's own prefix if the UI is to hide them."""

OWN_STEP: Mapping[str, str] = {f"{TAG_PREFIX}step": "true"}
"""Tags of each op of this project, by which a run is known to be ours before it begins."""


def is_ours(tags: Mapping[str, str]) -> bool:
    """Tells by the tags of a run, or of an op, whether it is of this project."""
    return any(name.removeprefix(HIDDEN_TAG_PREFIX).startswith(TAG_PREFIX) for name in tags)


def has_own_step(job: JobDefinition | JobSnap | None) -> bool:
    """Tells whether any op of a job is of this project."""
    if job is None:
        return False
    if isinstance(job, JobDefinition):
        return any(is_ours(node.tags) for node in job.all_node_defs)
    return any(is_ours(op.tags) for op in job.node_defs_snapshot.op_def_snaps)
