"""What landed when: an observation of each partition of the landing zone that changed.

The landing zone is no table: nobody materializes it, so Dagster knows of it what is observed. What
was observed last stands in the observation itself, in the Dagster instance; the cursor only saves
reading it again. If that is lost, nothing is observed twice.

Observations carry no data version. Dagster would call a raw partition unsynced if the version at
its event pointer weren't the latest one, also where that was only observed after a run had read it:
after every first look, and wherever a run is faster than the sensor. Told exactly, raw would have
to leave an observation of each partition that it reads. The sensor `process_due_partitions`
compares files instead, and is exact. The external assets that tables depend on are the core's:
`asset_definitions`.
"""

import datetime as dt
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from dagster import (
    AssetKey,
    AssetObservation,
    DagsterEvent,
    DagsterEventType,
    DagsterInstance,
    JsonMetadataValue,
    MetadataValue,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)
from pydantic import TypeAdapter, ValidationError

from backfill_engine.catalog import Catalog
from backfill_engine.errors import LandingError, LandingNotFoundError
from backfill_engine.lake.landing import NOTHING_LANDED, LandedFiles, LandingFile
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.dagster_internals import (
    RUNLESS_JOB_NAME,
    RUNLESS_RUN_ID,
    AssetObservationData,
)
from backfill_engine.orchestration.instance.materializations import find_latest_observations
from backfill_engine.orchestration.instance.partition_definitions import (
    find_feed_begin,
    find_landing_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import describe_ranges, shorten
from backfill_engine.publishing.inputs import list_landing
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.sensors import build_sensor

FINGERPRINT = "fingerprint"
"""Metadata of an observation: the hash that commits have of the files that they read."""

LISTED_FILES = "listed_files"
"""Metadata of an observation: by name below the root, size and time of each file."""

_BLOCK = 200
_LISTED = 7
_NAMED_FILES = 1000

Seen = Mapping[str, str]
"""By the first key of each block of partitions, a hash of what had landed, and was observed."""

_CURSOR = TypeAdapter(dict[str, dict[str, str]])


@dataclass(frozen=True)
class Budget:
    """Bounds of one look, as Dagster gives a sensor a minute.

    Attributes:
        partitions: most that are observed; the rest is for the next look.
        bytes: most that are read to count records; likewise.
        largest: bytes of a partition up to which its records are counted; not above `bytes`.
    """

    partitions: int = 2500
    bytes: int = 256 << 20
    largest: int = 256 << 20


@dataclass(frozen=True)
class LandingLook:
    """What a look at one table's landing zone has done.

    Attributes:
        seen: what was observed by now, for the next look.
        observed: keys of the partitions that were observed.
        left: how many more have changed, and are for the next look.
        budget: what is left of it.
    """

    seen: Seen
    observed: tuple[str, ...]
    left: int
    budget: Budget


def read_cursor(text: str | None) -> dict[str, dict[str, str]]:
    """Reads what was seen, by asset; of no cursor, or of another release's, nothing."""
    try:
        return _CURSOR.validate_json(text or "{}")
    except ValidationError:
        return {}


def write_cursor(seen: Mapping[str, Seen]) -> str:
    """Writes it as one line of JSON."""
    return _CURSOR.dump_json({name: dict(blocks) for name, blocks in seen.items()}).decode()


def observe_landing_zone(
    instance: DagsterInstance,
    recipe: Recipe,
    keys: Sequence[str],
    seen: Seen,
    budget: Budget,
    *,
    landing_root: str,
    now: dt.datetime,
) -> LandingLook:
    """Stores an observation of each partition whose files aren't those observed last. No JVM.

    Args:
        instance: knows what was observed.
        recipe: of a table that reads the landing zone.
        keys: of all its partitions, ascending.
        seen: what the look before left.
        budget: of this look.
        landing_root: root of the landing zone.
        now: UTC.

    Raises:
        LandingNotFoundError: if the landing zone isn't there: that is no change of its partitions.
        LandingError: if it can't be listed.
    """
    listing = list_landing(recipe, landing_root, build_partitions(recipe.table, keys))
    assert listing is not None, f"{recipe.table.key} reads no landing zone"
    landed, asset_key = listing.describe_files(), find_landing_key(recipe.table)
    blocks = [keys[first : first + _BLOCK] for first in range(0, len(keys), _BLOCK)]
    hashes = {block[0]: _hash_block(block, landed) for block in blocks}
    unknown = [block for block in blocks if seen.get(block[0]) != hashes[block[0]]]
    suspects = [key for block in unknown for key in block]
    latest = _find_latest_observations(instance, asset_key, suspects)
    changed = [key for key in suspects if _has_changed(landed[key], latest.get(key))]
    reads = listing.is_counted_by_reading
    to_read = {key: landed[key].bytes if reads else 0 for key in changed}
    chosen, remaining = _choose(to_read, budget)
    counted = [key for key in chosen if to_read[key] <= budget.largest]
    records = listing.restrict(build_partitions(recipe.table, counted)).count_records()
    found = listing.restrict(build_partitions(recipe.table, chosen))
    files, evidence = found.list_landed(), found.list_evidence()
    observations = [
        AssetObservation(
            asset_key,
            partition=key,
            metadata=_describe(
                landed[key],
                {listing.name_file(file): file for file in files.get(key, ())},
                {listing.dataset: evidence[key]} if key in evidence else {},
                records.get(key),
                latest.get(key),
            ),
        )
        for key in chosen
    ]
    _store(instance, observations, now=now)
    waiting = set(changed[len(chosen) :])
    done = {block[0]: hashes[block[0]] for block in blocks if waiting.isdisjoint(block)}
    return LandingLook(done, tuple(chosen), len(waiting), remaining)


def _hash_block(keys: Sequence[str], landed: Mapping[str, LandedFiles]) -> str:
    states = (f"{key} {landed[key].fingerprint}" for key in keys)
    return hashlib.sha256("\n".join(states).encode()).hexdigest()[:16]


def _has_changed(landed: LandedFiles, last: AssetObservation | None) -> bool:
    """Tells whether files came, went or were rewritten; that there never were any is no change."""
    if last is None:
        return landed != NOTHING_LANDED
    return last.metadata[FINGERPRINT].value != landed.fingerprint


def _choose(to_read: Mapping[str, int], budget: Budget) -> tuple[list[str], Budget]:
    """Chooses the first partitions that are within the budget, and says what is left of it."""
    chosen: list[str] = []
    left = budget.bytes
    for key, size in islice(to_read.items(), budget.partitions):
        counted = size if size <= budget.largest else 0
        if counted > left:
            break
        left -= counted
        chosen.append(key)
    return chosen, replace(budget, partitions=budget.partitions - len(chosen), bytes=left)


def _store(
    instance: DagsterInstance, observations: Sequence[AssetObservation], *, now: dt.datetime
) -> None:
    with store_together(instance):
        for left, observation in zip(reversed(range(len(observations))), observations, strict=True):
            event = DagsterEvent(
                event_type_value=DagsterEventType.ASSET_OBSERVATION.value,
                event_specific_data=AssetObservationData(observation),
                job_name=RUNLESS_JOB_NAME,
            )
            # Of events of the same millisecond the UI lists one.
            time = now.timestamp() - left / 1000
            instance.report_dagster_event(event, RUNLESS_RUN_ID, timestamp=time)


def _describe(
    landed: LandedFiles,
    files: Mapping[str, LandingFile],
    evidence: Mapping[str, str],
    records: int | None,
    last: AssetObservation | None,
) -> dict[str, Any]:
    """Describes what is there, and what changed since the last observation."""
    states = {**{name: _describe_state(file) for name, file in files.items()}, **evidence}
    metadata: dict[str, Any] = {
        "files": landed.files,
        "bytes": landed.bytes,
        FINGERPRINT: landed.fingerprint,
        "change": _describe_change(states, last),
    }
    if records is not None:
        metadata["records"] = records
    if files:
        newest = max(file.modified_ns for file in files.values())
        metadata["landed_at"] = MetadataValue.timestamp(newest / 1e9)
    if len(states) <= _NAMED_FILES:
        metadata[LISTED_FILES] = MetadataValue.json(states)
    return metadata


def _describe_state(file: LandingFile) -> str:
    seconds, nanoseconds = divmod(file.modified_ns, 10**9)
    time = dt.datetime.fromtimestamp(seconds, tz=dt.UTC).replace(tzinfo=None)
    return f"{file.size} bytes, {time.isoformat()}.{nanoseconds:09}Z"


def _describe_change(states: Mapping[str, str], last: AssetObservation | None) -> str:
    """Says in words what became of the files since the last observation."""
    if last is None:
        return "seen for the first time"
    before = last.metadata.get(LISTED_FILES)
    if not isinstance(before, JsonMetadataValue) or not isinstance(before.data, Mapping):
        return f"{len(states)} files; there were {last.metadata['files'].value}"
    known: Mapping[str, Any] = before.data
    kinds = {
        "added": [name for name in states if name not in known],
        "rewritten": [name for name in states if known.get(name, states[name]) != states[name]],
        "gone": [name for name in known if name not in states],
    }
    return "; ".join(
        f"{len(names)} {kind} ({', '.join(shorten(names, _LISTED))})"
        for kind, names in kinds.items()
        if names
    )


def _find_latest_observations(
    instance: DagsterInstance, asset_key: AssetKey, partitions: Collection[str]
) -> dict[str, AssetObservation]:
    """Finds those of files, by partition key; a partition that was never observed is absent."""
    latest = find_latest_observations(instance, asset_key, partitions)
    return {
        key: observation
        for key, record in latest.items()
        # Someone else may observe it too, through Dagster's API: that says nothing of files.
        if (observation := record.event_log_entry.asset_observation) is not None
        and FINGERPRINT in observation.metadata
    }


def build_observe_landing(catalog: Catalog, *, on: bool) -> SensorDefinition:
    """Builds the sensor `observe_landing`, which is on by default or off."""

    def observe_landing(context: SensorEvaluationContext) -> SensorResult:
        """Observes each partition of the landing zone whose files came, went or were rewritten.

        How many files, bytes and records are there now, and what changed. It requests nothing:
        docs/late-data.md. What is too much for one tick is left for the next. A data set that
        isn't there is said, and so is one that can't be listed; the others go on.
        """
        root, budget = catalog.settings.landing, Budget()
        seen, messages = read_cursor(context.cursor), []
        for recipe in catalog.recipes.values():
            if recipe.landing is None:
                continue
            name = find_landing_key(recipe.table).to_user_string()
            partitions_def = find_partitions_def(recipe.table)
            begin = find_feed_begin(recipe.table)  # History is no news.
            try:
                look = observe_landing_zone(
                    context.instance,
                    recipe,
                    [key for key in partitions_def.get_partition_keys() if key >= begin],
                    seen.get(name, {}),
                    budget,
                    landing_root=root,
                    now=dt.datetime.now(tz=dt.UTC),
                )
            except LandingError as error:
                messages.append(f"{name}: {error}")
                # A pipeline that nobody feeds here is no error.
                if not isinstance(error, LandingNotFoundError):
                    context.log.error(messages[-1])
                continue
            seen[name], budget = dict(look.seen), look.budget
            if look.observed:
                texts = dict.fromkeys(look.observed, "observed")
                messages += [f"{name} {text}" for text in describe_ranges(partitions_def, texts)]
            if look.left:
                messages.append(f"{name}: {look.left} more partitions are for the next tick")
        reason = SkipReason("; ".join(messages) or "nothing came, went or was rewritten")
        return SensorResult(skip_reason=reason, cursor=write_cursor(seen))

    return build_sensor(catalog, observe_landing, on=on)
