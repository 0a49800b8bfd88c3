"""Which runs are of this project: an instance is shared, and other runs are none of its affair.

A run of ours carries a tag of ours. `ClaimingInstance` notes one on a run when the run is created,
whatever requests runs may give them some, and each op claims the run that it begins in.
"""

import json
from collections.abc import Iterable, Mapping

from dagster import AssetKey, DagsterInstance, JobDefinition

from backfill_engine.orchestration.instance.dagster_internals import HIDDEN_TAG_PREFIX, JobSnap

TAG_PREFIX = "backfill_assets/"
"""Beginning of the names of our tags, after Dagster's own prefix if the UI is to hide them."""

OWN_STEP: Mapping[str, str] = {f"{TAG_PREFIX}step": "true"}
"""Tags of each op of this project, by which a run is known to be ours before it begins."""


_OWN_ASSETS = f"{TAG_PREFIX}own_assets"
"""Where the instance keeps the keys of our assets."""


def note_own_assets(instance: DagsterInstance, keys: Iterable[AssetKey]) -> None:
    """Notes assets as ours, for processes that load no definitions, such as the webserver."""
    noted, own = find_own_assets(instance), frozenset(keys)
    if not own <= noted:
        texts = sorted(key.to_user_string() for key in noted | own)
        instance.daemon_cursor_storage.set_cursor_values({_OWN_ASSETS: json.dumps(texts)})


def find_own_assets(instance: DagsterInstance) -> frozenset[AssetKey]:
    """Finds the assets that were noted as ours."""
    values = instance.daemon_cursor_storage.get_cursor_values({_OWN_ASSETS})
    texts = json.loads(values.get(_OWN_ASSETS, "[]"))
    return frozenset(map(AssetKey.from_user_string, texts))


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
