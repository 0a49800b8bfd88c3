"""Features take part in each publish of a code location: what is asked of each when a step begins.

`build_defs` is given the features. The core's own two are here: a served table's held version, and
that a backfill goes by one code and one set of options from its first run to its last. Dagster
doesn't pin them: a run imports what is deployed when it starts, and of a backfill that a deploy
divides, half would be by one code and half by another. So each run records what it goes by, and one
of a backfill, a retry of it, or one that continues another compares that with the one of them that
began first; and with what the backfill was launched by, if it was.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dagster import DagsterInstance, DagsterRun, RunRecord, RunsFilter

from backfill_engine.catalog import Catalog
from backfill_engine.errors import CodeChangedError
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.dagster_internals import (
    BACKFILL_TAG,
    HIDDEN_TAG_PREFIX,
    find_run_assets,
)
from backfill_engine.orchestration.instance.own_runs import TAG_PREFIX
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.orchestration.runs.run_options import read_options, read_reason_tag
from backfill_engine.orchestration.runs.run_tags import (
    ALLOW_NEW_CODE_TAG,
    CHAIN_TAG,
    CONTINUES_TAG,
    LAUNCHED_CODE_TAG,
    read_json_tag,
)
from backfill_engine.publishing.differences import NewCodeHook
from backfill_engine.publishing.hooks import PublishHook
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.serving import ServedHook, find_held_version


@dataclass(frozen=True)
class StepRequest:
    """A step that is about to begin.

    Attributes:
        catalog: of the code location.
        instance: the Dagster instance.
        run: the run.
        recipe: how the step's table is made.
        keys: of the run's partitions, which are the same for all of its assets.
        warehouse: the tables.
    """

    catalog: Catalog
    instance: DagsterInstance
    run: DagsterRun
    recipe: Recipe
    keys: Sequence[str]
    warehouse: Warehouse


class Feature(Protocol):
    """What may take part in a publish."""

    def __call__(self, request: StepRequest, /) -> PublishHook | None:
        """Prepares the feature's hook; returns None where it has nothing to do with the step.

        Raises:
            BackfillError: if the run may not do what it was asked to; nothing is written then.
        """


def prepare_hooks(features: Iterable[Feature], request: StepRequest) -> tuple[PublishHook, ...]:
    """Prepares the hooks of a step, one feature after the other."""
    hooks = (feature(request) for feature in features)
    return tuple(hook for hook in hooks if hook is not None)


def keep_served_version(request: StepRequest) -> ServedHook | None:
    """Lets a run of a served table go by the version that the table holds."""
    if not request.recipe.table.versions:
        return None
    log = read_log(request.warehouse, request.recipe.table)
    return ServedHook(find_held_version(log))


CODE_TAG = f"{TAG_PREFIX}code"
"""Tag of a run: one hash over the code versions of all tables."""

PINNED_TAG = f"{HIDDEN_TAG_PREFIX}{TAG_PREFIX}pinned"
"""Tag of the same: the code version of each table, and how the run's own are written, as
JSON, which the UI hides."""

_LISTED = 7


def pin_code(request: StepRequest) -> NewCodeHook | None:
    """Refuses a run that goes by other code than its backfill; see `check_pinned_code`."""
    recipes = request.catalog.recipes
    code_versions = {key: recipe.code_version for key, recipe in recipes.items()}
    reason = check_pinned_code(request.catalog, request.instance, request.run, code_versions)
    return NewCodeHook(reason) if reason else None


def check_pinned_code(
    catalog: Catalog, instance: DagsterInstance, run: DagsterRun, code_versions: Mapping[str, str]
) -> str:
    """Compares what a run goes by with the run of the same backfill that began first.

    Or of those that it continues. A run that is part of no backfill and continues none may go by
    anything; those that continue it go by that.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        run: the run.
        code_versions: of all tables, by key, as they are now.

    Returns:
        Why the run may go by something else all the same; empty if it goes by the same.

    Raises:
        CodeChangedError: if the code of one of its tables, or an option, is another one, and its
            tags don't allow that; nothing was written.
        SettingsError: if they allow it without a reason, or the launch's tag is unreadable.
    """
    backfill = _find_backfill(run)
    allowed = read_reason_tag(run, ALLOW_NEW_CODE_TAG) if backfill else ""
    keys = sorted(find_run_assets(instance, run))
    options = {key.to_user_string(): read_options(catalog, run, key) for key in keys}
    # Recorded before it is compared: of two runs that begin at once one sees the other.
    # A retry comes with the tags of the run that it repeats.
    code = json.dumps(dict(code_versions), sort_keys=True)
    recorded = {"code": dict(code_versions), "options": options}
    tags = {
        CODE_TAG: hashlib.sha256(code.encode()).hexdigest()[:16],
        PINNED_TAG: json.dumps(recorded, sort_keys=True, separators=(",", ":")),
    }
    instance.add_run_tags(run.run_id, tags)
    if not backfill:
        return ""
    earlier = _list_recorded(instance, run, backfill)
    pinned = [json.loads(record.dagster_run.tags[PINNED_TAG]) for record in earlier]
    code = [read_json_tag(run.tags, LAUNCHED_CODE_TAG), *(recorded["code"] for recorded in pinned)]
    changed = [
        *_find_changed(code, "code", {key: code_versions[key] for key in options}),
        *_find_changed([recorded["options"] for recorded in pinned], "options", options),
    ]
    if changed and not allowed:
        others = [each.dagster_run for each in earlier if each.dagster_run.run_id != run.run_id]
        since = f"run {others[0].run_id}" if others else "the launch"
        raise CodeChangedError(
            f"since {since} of backfill {backfill} another code was deployed, or other options "
            f"were given: {'; '.join(shorten(changed, _LISTED))}: `backfill-assets launch` the "
            f"rest as another backfill, or say why by the tag {ALLOW_NEW_CODE_TAG}; nothing was "
            "written"
        )
    return allowed if changed else ""


def _find_backfill(run: DagsterRun) -> str | None:
    """Finds the backfill, or the first of the runs that it continues; None of one that does not.

    A retry of a run that is part of no backfill continues none: its code may be mended.
    """
    return run.tags.get(BACKFILL_TAG) or run.tags.get(CHAIN_TAG)


def _find_first_run(instance: DagsterInstance, run: DagsterRun, backfill: str) -> str:
    """Finds the run without a predecessor, from which those went on that led to this one.

    It may be a retry of that by which its backfill is named, by mended code.
    """
    found: DagsterRun | None = run
    while found is not None and CONTINUES_TAG in found.tags:
        found = instance.get_run_by_id(found.tags[CONTINUES_TAG])
    return backfill if found is None or _find_backfill(found) else found.run_id


def _list_recorded(instance: DagsterInstance, run: DagsterRun, backfill: str) -> list[RunRecord]:
    """Lists the runs of a backfill that began and recorded what they go by, in that order."""
    members = [
        RunsFilter(run_ids=[_find_first_run(instance, run, backfill)]),
        *(RunsFilter(tags={tag: backfill}) for tag in (BACKFILL_TAG, CHAIN_TAG)),
    ]
    found = {
        record.dagster_run.run_id: record
        for member in members
        for record in instance.get_run_records(member)
        if PINNED_TAG in record.dagster_run.tags and record.start_time is not None
    }
    return sorted(found.values(), key=lambda record: (record.start_time or 0.0, record.storage_id))


def _find_changed(
    earlier: Sequence[Mapping[str, Any]], what: str, now: Mapping[str, Any]
) -> list[str]:
    """Finds what of each table is another than where it was recorded first, in words."""
    pinned: dict[str, Any] = {}
    for recorded in earlier:
        pinned = {**recorded, **pinned}
    return [
        f"{what} of {key}: {_write(value)}, was {_write(pinned[key])}"
        for key, value in now.items()
        if pinned.get(key, value) != value
    ]


def _write(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
