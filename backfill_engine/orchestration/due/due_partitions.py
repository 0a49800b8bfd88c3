"""Which partitions of a table are to be processed next, and why: told from evidence, not from time.

What is there now, in the landing zone and in the tables that it reads, is compared with what each
partition's last publish was computed from, as its commit says. So it doesn't matter how late
something came, who published what, or whether anyone looked in between.
"""

import datetime as dt
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dagster import AssetPartitionStatus, DagsterInstance
from pydantic import TypeAdapter, ValidationError

from backfill_engine.errors import LandingError, LandingNotFoundError
from backfill_engine.lake.commits import Publish
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import TableLog
from backfill_engine.lake.watermarks import Watermark
from backfill_engine.orchestration.due.readiness import (
    Readiness,
    find_downstream_keys,
    find_readiness,
    find_upstream_tables,
    get_partitions_def,
)
from backfill_engine.orchestration.due.row_movements import (
    Movement,
    Movements,
    find_movements,
    find_rows_for,
)
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_feed_begin,
)
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.publishing.inputs import list_landing
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.sources.landing_names import BEING_WRITTEN


class Reason(StrEnum):
    """Why a partition is to be processed."""

    NEW = "new"
    """It has input and was never published."""
    CHANGED = "changed"
    """Its input is not what it was computed from."""
    DUE = "due"
    """It was computed before all of its input had come, and now all of it has; or a later run of it
    failed, of input that is no longer there, and Dagster shows it failed since."""


@dataclass(frozen=True)
class DuePartition:
    """Why a partition is to be processed.

    Attributes:
        reason: why.
        state: hash of its input as it is now, and of which publish it would replace.
        days_late: of rows that moved in an input, by how many days the least late of them are late;
            0 where none did.
    """

    reason: Reason
    state: str
    days_late: int = 0


@dataclass(frozen=True)
class Memory:
    """What a look at the tables leaves for the next, so that nothing is tried or read twice.

    All of it can be found again: if it is lost, what is withheld is tried once more.

    Attributes:
        tried: by table and partition key, the state of the input with which it was requested, or
            left alone, and which is to change before it is looked at again.
        movements: by table, and input, of inputs whose rows say who reads them.
    """

    tried: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    movements: Mapping[str, Mapping[str, Movements]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Writes it as one line of JSON."""
        return _MEMORIES.dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str | None) -> "Memory":
        """Reads it; of none, or of another release, it is empty."""
        try:
            return _MEMORIES.validate_json(text or "{}")
        except ValidationError:
            return cls()


_MEMORIES = TypeAdapter(Memory)


@dataclass(frozen=True)
class Look:
    """What a look at one table found.

    Attributes:
        due: by partition key, ascending.
        standing: partitions that a rollback brought back: they stand until their input changes,
            though it isn't what they were computed from; with its state.
        movements: by input.
    """

    due: Mapping[str, DuePartition] = field(default_factory=dict)
    standing: Mapping[str, str] = field(default_factory=dict)
    movements: Mapping[str, Movements] = field(default_factory=dict)


def find_due_partitions(
    instance: DagsterInstance,
    graph: AssetGraph,
    recipe: Recipe,
    logs: Mapping[str, TableLog],
    watermark: Watermark | None,
    known: Mapping[str, Movements],
    *,
    landing_root: str,
) -> Look:
    """Compares what a table's partitions were computed from with what is there now. No JVM.

    New ones are those from the watermark on, and of what is computed from a history all of it; the
    history itself is read once, by its own job, and never here. A partition that another program
    changed is left to people: what it did may be meant. What landed is taken up to the
    newest, gaps included: a day that never came is for a person to look at, and its run says so. Of
    tables, what is required has to be published.

    Args:
        instance: knows what is published, and what is withheld.
        graph: of all assets.
        recipe: of the table.
        logs: of the table and of its inputs, by table key.
        watermark: of the table; None if nothing has been processed.
        known: what was found of its inputs before.
        landing_root: root of the landing zone.

    Raises:
        LandingNotFoundError: if the landing zone isn't there, and the table is.
        LandingError: if nothing landed but a file that can't be read.
        TableError: if rows of an input can't be read.
    """
    log, asset_key = logs[recipe.table.key], find_asset_key(recipe.table)
    keys = get_partitions_def(graph, asset_key).get_partition_keys()
    if recipe.history is not None:
        begin = find_feed_begin(recipe.table)
        keys = [key for key in keys if key >= begin]
    landed: dict[str, DuePartition] = {}
    if recipe.landing is not None:
        try:
            landed = _compare_landing(recipe, log, keys, watermark, landing_root)
        except LandingNotFoundError:
            # A pipeline that nobody feeds here; one with a table has lost its source.
            if log.exists:
                raise
            return Look()
    failed = _find_failed(instance, graph, log, keys)
    if not recipe.inputs:
        again = {
            key: DuePartition(Reason.DUE, hash_states((str(log.publishes[key].version), "again")))
            for key in failed - landed.keys()
        }
        return _build_look(log, {**landed, **again}, {})
    if not all(logs[table.key].exists for table in recipe.inputs):
        return Look()
    movements = {
        name: find_movements(log, logs[name], column, keys, known.get(name))
        for name, column in find_rows_for(graph, asset_key).items()
    }
    reasons = {
        key: reason
        for key, publish in log.publishes.items()
        if (reason := _compare_inputs(publish, recipe, logs, movements))
    }
    reasons |= {key: due.reason for key, due in landed.items()}
    reasons |= {key: Reason.DUE for key in failed - reasons.keys()}
    if recipe.landing is None:
        unpublished = _find_reachable(graph, recipe, logs) - set(log.publishes)
        begin = find_feed_begin(recipe.table)
        new = [key for key in unpublished if key < begin or _is_ahead(key, watermark)]
        reasons |= dict.fromkeys(new, Reason.NEW)
    readiness = find_readiness(
        instance,
        graph,
        asset_key,
        sorted(reasons),
        unread=recipe.unread,
        inputs={table.key: logs[table.key] for table in recipe.inputs},
    )
    due: dict[str, DuePartition] = {}
    for key, reason in sorted(reasons.items()):
        not_final = reason is Reason.DUE and key in readiness.provisional and key not in failed
        if key in readiness.blocked or not_final:
            continue
        moved = {
            name: movement.outstanding[key]
            for name, movement in movements.items()
            if key in movement.outstanding
        }
        state = hash_states(
            (
                # What is published, too: the same input is another change after another one.
                str(log.publishes[key].version if key in log.publishes else ""),
                *([landed[key].state] if key in landed else []),
                *(f"{name} {movement.version}" for name, movement in moved.items()),
                *_list_window(readiness, logs, key),
            )
        )
        due[key] = DuePartition(reason, state, _measure_lateness(key, log, moved, logs))
    return _build_look(log, due, movements)


def _find_failed(
    instance: DagsterInstance, graph: AssetGraph, log: TableLog, keys: Sequence[str]
) -> set[str]:
    """Finds those of `keys` that are published, and that a later run withheld or failed at."""
    asset_key, publishes = find_asset_key(log.table), log.publishes
    partitions_def = get_partitions_def(graph, asset_key)
    published = [key for key in keys if key in publishes]
    statuses = instance.get_status_by_partition(asset_key, published, partitions_def) or {}
    return {key for key, status in statuses.items() if status is AssetPartitionStatus.FAILED}


def hash_states(states: Iterable[str]) -> str:
    """Hashes states of inputs: 16 hexadecimal digits."""
    return hashlib.sha256("\n".join(states).encode()).hexdigest()[:16]


def _list_window(readiness: Readiness, logs: Mapping[str, TableLog], key: str) -> Iterator[str]:
    for name, windows in readiness.windows.items():
        for upstream, checksum in _find_checksums(logs[name], windows[key]).items():
            yield f"{name} {upstream} {checksum}"


def _is_ahead(key: str, watermark: Watermark | None) -> bool:
    return watermark is None or key >= watermark.next_key


def _compare_landing(
    recipe: Recipe,
    log: TableLog,
    keys: Sequence[str],
    watermark: Watermark | None,
    landing_root: str,
) -> dict[str, DuePartition]:
    listing = list_landing(recipe, landing_root, build_partitions(recipe.table, keys))
    assert listing is not None
    files, unfinished, publishes = listing.describe_files(), listing.unfinished, log.publishes
    missing = {partition.key for partition in listing.missing}
    newest = max((key for key in keys if key not in missing), default="")
    if not newest and not publishes:
        for fault in listing.faults:
            raise LandingError(f"{fault.name} {fault.fault}")
    due: dict[str, DuePartition] = {}
    # What is being written is waited for: what becomes of it is another change.
    writing = {fault.partition.key for fault in listing.faults if fault.fault == BEING_WRITTEN}
    for key in (key for key in keys if key not in writing):
        publish, fingerprint = publishes.get(key), files[key].fingerprint if key in files else ""
        if publish is None:
            if key <= newest and _is_ahead(key, watermark):
                due[key] = DuePartition(Reason.NEW, fingerprint)
            continue
        state = hash_states((str(publish.version), fingerprint))
        consumed = publish.record.consumed.landed.get(key)
        if consumed is None or consumed.fingerprint != fingerprint:
            due[key] = DuePartition(Reason.CHANGED, state)
        elif key in publish.record.provisional and key not in unfinished:
            due[key] = DuePartition(Reason.DUE, state)
    return due


def _compare_inputs(
    publish: Publish,
    recipe: Recipe,
    logs: Mapping[str, TableLog],
    movements: Mapping[str, Movements],
) -> Reason | None:
    consumed = publish.record.consumed.find(publish.key)
    for name, read in consumed.upstream.items():
        if name in movements:
            if publish.key in movements[name].outstanding:
                return Reason.CHANGED
        elif name in logs and _find_checksums(logs[name], read) != read:
            return Reason.CHANGED
    return Reason.DUE if publish.key in publish.record.provisional else None


def _find_checksums(log: TableLog, keys: Iterable[str]) -> dict[str, str]:
    return {key: log.checksums.get(key, "") for key in keys}


def _find_reachable(graph: AssetGraph, recipe: Recipe, logs: Mapping[str, TableLog]) -> set[str]:
    """Finds the partitions that have any published partition of each input in their window."""
    asset_key = find_asset_key(recipe.table)
    reachable: list[set[str]] = []
    for upstream, mapping in find_upstream_tables(graph, asset_key).items():
        if upstream.to_user_string() in recipe.unread:
            continue
        upstream_def = get_partitions_def(graph, upstream)
        published = [
            key
            for key in logs[upstream.to_user_string()].checksums
            if upstream_def.has_partition_key(key)
        ]
        reachable.append(find_downstream_keys(graph, asset_key, upstream, mapping, published))
    return set.intersection(*reachable)


def _build_look(
    log: TableLog, due: Mapping[str, DuePartition], movements: Mapping[str, Movements]
) -> Look:
    publishes = log.publishes
    due = {key: partition for key, partition in due.items() if key not in log.foreign_changes}
    restored = {key for key in due if key in publishes and publishes[key].restored}
    return Look(due, {key: due[key].state for key in restored}, movements)


def _measure_lateness(
    key: str, log: TableLog, moved: Mapping[str, Movement], logs: Mapping[str, TableLog]
) -> int:
    """Measures by how many days the least late of moved rows are; 0 of keys that aren't of time."""
    start = _find_day(log, key)
    days = [_find_day(logs[name], movement.earliest) for name, movement in moved.items()]
    found = [(day - start).days for day in days if day is not None and start is not None]
    return min(found, default=0)


def _find_day(log: TableLog, key: str) -> dt.date | None:
    start = log.table.grain.find_start(key)
    if isinstance(start, dt.datetime):
        return start.date()
    return start if isinstance(start, dt.date) else None


_LISTED = 7


def describe_landed_beyond(recipes: Mapping[str, Recipe], landing_root: str) -> list[str]:
    """Describes what landed and no run will ever read, a line a table.

    Args:
        recipes: of the tables, by key.
        landing_root: root of the landing zone.
    """
    lines: list[str] = []
    for key, recipe in recipes.items():
        end = recipe.table.calendar.end if recipe.table.calendar else None
        if end is None or recipe.landing is None:
            continue
        try:
            beyond = recipe.landing.list_landed_from(landing_root, recipe.table, end)
        except LandingError as error:
            lines.append(f"{key}: {error}")
            continue
        if beyond:
            lines.append(
                f"{key}: landed, but beyond BACKFILL_END {end}: "
                f"{', '.join(shorten(beyond, _LISTED))}: set BACKFILL_END to a later day to take "
                "this in"
            )
    return lines
