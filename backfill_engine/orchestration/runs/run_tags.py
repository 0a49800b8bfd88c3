"""What a run says of itself by its tags; without Spark, as whatever reads of runs goes by them."""

import json
from collections.abc import Mapping
from typing import Any

from dagster import DagsterRun, DagsterRunStatus

from backfill_engine.errors import SettingsError
from backfill_engine.lake.origins import Origin
from backfill_engine.orchestration.instance.dagster_internals import (
    BACKFILL_TAG,
    HIDDEN_TAG_PREFIX,
    ROOT_RUN_ID_TAG,
)

PRIORITY_TAG = "dagster/priority"

BEHIND_THE_DAILY_RUN = -1
"""The priority of a backfill's runs that are told none; other runs that name none have 0."""

BACKGROUND_TAG = "backfill_assets/background"
"""Tag of a run of a backfill or a rolling schedule, or one that goes on after it: `dagster.yaml`
bounds how many of all these are at work at once, so that others always find a place."""

IN_BACKGROUND: Mapping[str, str] = {
    PRIORITY_TAG: str(BEHIND_THE_DAILY_RUN),
    BACKGROUND_TAG: "true",
}
"""Tags of such a run that is told no priority."""

RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"
_PARTITION_TAG = "dagster/partition"
_SENSOR_TAG = "dagster/sensor_name"
_SCHEDULE_TAG = "dagster/schedule_name"

ABOUT_TAG = "about"
"""Tag of a run or a backfill: what it is about, in words, for people; the first that the UI lists,
as that goes by the alphabet."""

INCREMENTAL_TAG = "backfill_assets/incremental"
"""Tag of a run that takes a table on from its watermark."""

REASON_TAG = "backfill_assets/reason"
"""Tag of a backfill and its runs, or of a run that the sensor requested: why, in words."""

LAUNCHED_BY_TAG = "backfill_assets/launched_by"
"""Tag of a backfill and its runs: the user of the machine who launched it."""

COMMAND_TAG = "backfill_assets/command"
"""Tag of the same: the command that asked for it."""

OPERATION_TAG = "backfill_assets/operation"
"""Tag of a backfill, or of a run: what kind of run it is, in a word, as `replay`."""

LAUNCHED_CODE_TAG = f"{HIDDEN_TAG_PREFIX}backfill_assets/launched_code"
"""Tag of a backfill and its runs: the code version of each table when it was asked for, as JSON;
the UI hides it."""

CHAIN_TAG = "backfill_assets/backfill"
"""Tag of a run that continues another: the backfill of the first of them, or that run's id.

Dagster's own tag would make it count the run as one of the backfill's.
"""

AT_MOST_TAG = "backfill_assets/at_most_"
"""Beginning of the tag of runs of which only so many may be at work: the number is its end."""

CONTINUES_TAG = "backfill_assets/continues"
"""Tag of a run: the one that it goes on with."""

GOES_ON_WITH_TAG = "backfill_assets/goes_on_with"
"""Tag of a run: the one that ended paused, whose rest it does."""

FOREGROUND_TAG = "backfill_assets/foreground"
"""Tag of a run that a shell waits for, and goes on after; no daemon is to."""

FOREGROUND_ENDED_TAG = "backfill_assets/foreground_ended"
"""Tag of the last of these: the shell makes no more."""

FOREGROUND_CANCELLED_TAG = "backfill_assets/foreground_cancelled"
"""Tag of the first of these, once somebody cancelled them elsewhere: the shell is to end."""

OVERRIDE_TAG = "backfill_assets/override_protection"
"""Tag of a run: why it is to publish protected partitions of all its assets."""

ALLOW_NEW_CODE_TAG = "backfill_assets/allow_new_code"
"""Tag of a run: why it may go by other code than the runs of its backfill before it."""

REHEARSAL_TAG = "backfill_assets/rehearsal"
"""Tag of a run: the rehearsal of which it is to publish just what was shown."""

WITHHELD_TAG = "backfill_assets/withheld"
"""Tag of a run: the asset of which it withheld partitions."""

REFUSED_TAG = "backfill_assets/refused"
"""Tag of a run that published nothing more, as partitions of it are protected."""

PAUSED_TAG = "backfill_assets/paused"
"""Tag of a run that ended between two chunks: `PAUSED`, or what has become of it since."""

PAUSED, WENT_ON, DROPPED, SETTLED = "true", "went on", "cancelled", "settled"
"""Of one that went on, its backfill is settled once what no run was requested for was looked at."""

PAUSED_AT_TAG = "backfill_assets/paused_at"
"""Tag of such a run: the tables that it had not done with, comma-separated."""


def read_json_tag(tags: Mapping[str, str], name: str) -> dict[str, Any]:
    """Reads a tag that holds JSON by table; empty if there is none.

    Raises:
        SettingsError: if somebody else wrote it.
    """
    try:
        found = json.loads(tags.get(name, "{}"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SettingsError(
            f"the tag {name} isn't as `backfill-assets launch` writes it: leave it out; nothing "
            "was written"
        )
    return found


def read_origin(
    tags: Mapping[str, str], config: Mapping[str, Any] | None = None, *, operation: str = ""
) -> Origin:
    """Reads who asked for a run or a backfill, and why: by its tags, else its configuration.

    What Dagster started without a word of ours has what Dagster says.

    Args:
        tags: of the run or the backfill.
        config: of the run, whose job may be told by whom and why.
        operation: what kind of run it is, where its tags don't say so.
    """
    texts = _read_texts(config or {})
    ticks = {"sensor": tags.get(_SENSOR_TAG), "schedule": tags.get(_SCHEDULE_TAG)}
    tick = next((f"{kind} {name}" for kind, name in ticks.items() if name), "")
    kinds = {BACKFILL_TAG: "backfill", _SENSOR_TAG: "automation", _SCHEDULE_TAG: "scheduled"}
    kind = next((kind for tag, kind in kinds.items() if tag in tags), "materialize")
    return Origin(
        operation=tags.get(OPERATION_TAG) or operation or kind,
        by=tags.get(LAUNCHED_BY_TAG) or tags.get("user") or texts.get("by") or tick,
        reason=tags.get(REASON_TAG) or texts.get("reason") or texts.get("accept", ""),
        command=tags.get(COMMAND_TAG, ""),
    )


def _read_texts(config: Mapping[str, Any]) -> dict[str, str]:
    """Reads the texts in the configuration of a run's ops, by name."""
    steps = (step.get("config") for step in config.get("ops", {}).values() if step)
    configured = (step for step in steps if isinstance(step, Mapping))
    return {
        name: text
        for step in configured
        for name, text in step.items()
        if text and isinstance(text, str)
    }


def tag_origin(origin: Origin) -> dict[str, str]:
    """Builds the tags by which `read_origin` finds what is known of an origin."""
    tags = {
        "operation": OPERATION_TAG,
        "by": LAUNCHED_BY_TAG,
        "reason": REASON_TAG,
        "command": COMMAND_TAG,
    }
    return {tags[name]: text for name, text in origin.known.items()}


def find_run_range(run: DagsterRun) -> tuple[str, str] | None:
    """Finds the first and the last partition key of a run, by its tags; None if they don't say."""
    return find_tagged_range(run.tags)


def find_tagged_range(tags: Mapping[str, str]) -> tuple[str, str] | None:
    """Finds the first and the last partition key that a run's tags name; None if they don't."""
    first = tags.get(RANGE_START_TAG) or tags.get(_PARTITION_TAG)
    last = tags.get(RANGE_END_TAG) or tags.get(_PARTITION_TAG)
    return (first, last) if first is not None and last is not None else None


def find_chain(run: DagsterRun) -> str:
    """Finds what a run, its retries and those that continue it have in common.

    It is a backfill, or the first run.
    """
    tags = run.tags
    named = (tags.get(tag) for tag in (BACKFILL_TAG, CHAIN_TAG, ROOT_RUN_ID_TAG))
    return next(filter(None, named), run.run_id)


def is_paused(run: DagsterRun) -> bool:
    """Tells whether a run ended between two chunks, and is to go on."""
    return run.status is DagsterRunStatus.FAILURE and run.tags.get(PAUSED_TAG) == PAUSED


def was_dropped(run: DagsterRun) -> bool:
    """Tells whether a run was cancelled while it was paused; Dagster calls it failed."""
    return run.tags.get(PAUSED_TAG) == DROPPED
