"""Takes partitions back to what an earlier version of their table held, from time travel."""

import datetime as dt
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame

from backfill_engine.errors import RollbackError, SettingsError
from backfill_engine.lake.commits import RESTORED, Commit, CommitRecord, Consumed
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.reader import read_table
from backfill_engine.lake.served_versions import find_served
from backfill_engine.lake.table_log import TableLog
from backfill_engine.publishing.hooks import PublishHook
from backfill_engine.publishing.inputs import PinnedInputs
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.write_modes.mode import Rollback
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.tables.declarations import Table

_RETENTION = re.compile(r"(?:interval\s+)?(\d+)\s+(day|hour|week)s?", re.IGNORECASE)
_HOURS = {"hour": 1, "day": 24, "week": 168}
_DELTA_DEFAULT_RETENTION = dt.timedelta(days=7)


@dataclass(frozen=True)
class RollbackPlan:
    """Which partitions go back to which version, and what that undoes.

    Attributes:
        log: of the table, when the plan was made; what is undone came after `to_version` and not
            after this.
        partitions: ascending.
        to_version: the Delta version whose contents come back.
        published_by: by partition key, the record of the commit that had published what comes back;
            None where nothing was published then, so that the partition becomes empty.
        undone: by run ("" for commits of other programs), the versions that are undone, ascending.
        restored_in: the version that has brought it all back already, as of a rollback that was
            killed when it had committed; None if there is still something to do.
    """

    log: TableLog
    partitions: tuple[Partition, ...]
    to_version: int
    published_by: Mapping[str, CommitRecord | None]
    undone: Mapping[str, tuple[int, ...]]
    restored_in: int | None = None

    def pin(self) -> PinnedInputs:
        """Pins the version that comes back, as the input of the table itself."""
        return PinnedInputs(
            self.log,
            {self.table.key: self.log.as_of(self.to_version)},
            restored={
                key: record.consumed.find(key) if record else Consumed()
                for key, record in self.published_by.items()
            },
        )

    @property
    def table(self) -> Table:
        """The table."""
        return self.log.table


def plan_rollback(
    log: TableLog,
    partitions: Sequence[Partition],
    *,
    to_version: int | None = None,
    before_run: str | None = None,
    force: bool = False,
    now: dt.datetime,
) -> RollbackPlan:
    """Looks at the log, and refuses early what can't be done.

    One run is undone without asking: `before_run`, else the last that changed the partitions.

    Args:
        log: of the table, which must exist.
        partitions: which to take back, ascending.
        to_version: the version to go back to; or else
        before_run: the run to undo, by its id or the beginning of it.
        force: undo later commits of other runs too.
        now: UTC.

    Raises:
        SettingsError: if neither or both of version and run are given, or there is no such version.
        RollbackError: if the version is out of reach, nothing would change, or commits of other
            runs would be lost without `force`.
        HistoryError: if the run published none of the partitions.
    """
    if (to_version is None) == (before_run is None):
        given = "neither is given" if to_version is None else "both are given"
        raise SettingsError(
            f"say where to go back to, by the version or by the run to undo: {given}"
        )
    table = log.table
    keys = {partition.key for partition in partitions}
    meant = None
    if to_version is None:
        assert before_run is not None
        meant, to_version = log.find_version_before(keys, before_run)
    elif not 0 <= to_version <= log.version:
        raise SettingsError(
            f"{table.key} has no version {to_version}: the newest is {log.version}; "
            f"`backfill-assets history {table.key}` lists them"
        )
    later = [commit for commit in log.list_commits_after(to_version) if commit.find_changed(keys)]
    if to_version < 0 or not later:
        raise RollbackError(
            f"{table.key}: nothing to undo: no commit after version {to_version} changed these "
            f"partitions (the newest version is {log.version})"
        )
    restored_in = _find_restoration(log, later[0], keys, to_version)
    if restored_in is not None:
        later, force = later[1:], True  # It was allowed to.
    meant = meant or _name_run(later[0])
    undone: dict[str, tuple[int, ...]] = {}
    for commit in reversed(later):
        undone[_name_run(commit)] = (*undone.get(_name_run(commit), ()), commit.version)
    others = {run: versions for run, versions in undone.items() if run != meant}
    if others and not force:
        listed = "; ".join(
            f"{run or 'another program'} (version {', '.join(map(str, versions))})"
            for run, versions in others.items()
        )
        raise RollbackError(
            f"{table.key}: going back to version {to_version} would also undo {listed}: "
            "repeat it with --force if that is meant"
        )
    _refuse_out_of_reach(log, partitions, to_version, now)
    then = log.as_of(to_version)
    if lost := log.find_partitions_with_lost_history(keys, then):
        raise RollbackError(
            f"{table.key}: the log begins with version {log.begins_with}, and what published "
            f"{lost[0]} as it was at version {to_version} is no longer known: backfill from the "
            "source instead"
        )
    _refuse_mixture(log, then, keys)
    _refuse_lost_columns(log, then)
    return RollbackPlan(
        log=log,
        partitions=tuple(partitions),
        to_version=to_version,
        published_by={
            key: then.publishes[key].record if key in then.publishes else None
            for key in sorted(keys)
        },
        undone=undone,
        restored_in=restored_in,
    )


def plan_acceptance(log: TableLog, partitions: Sequence[Partition]) -> RollbackPlan:
    """Plans to publish partitions as another writer left them: what comes back is what is there.

    Args:
        log: of the table, which must exist.
        partitions: which, ascending; at least one.
    """
    publishes = log.publishes
    keys = [partition.key for partition in partitions]
    return RollbackPlan(
        log=log,
        partitions=tuple(partitions),
        to_version=log.version,
        published_by={key: publishes[key].record if key in publishes else None for key in keys},
        undone={},
    )


@dataclass(frozen=True)
class RestoringHook(PublishHook):
    """Keeps from where each partition of a rollback came back.

    Attributes:
        restored: that, by partition key, in words.
    """

    name: ClassVar[str] = RESTORED
    restored: Mapping[str, str]

    def describe_partition(self, key: str) -> str:
        """Describes from where the partition came back."""
        return self.restored[key]


def build_rollback_recipe(plan: RollbackPlan) -> Recipe:
    """Computes the partitions as they were; what they were computed by stays their code version."""
    counts = plan.log.as_of(plan.to_version).count_rows()
    code_versions = sorted({record.code_version for record in plan.published_by.values() if record})
    return Recipe(
        table=plan.table,
        compute=_read_as_it_was,
        inputs=(plan.table,),
        # A partition that held nothing is an emptied one, exempt from the rules about rows.
        count_source=lambda window: {
            partition.key: 0 for partition in window.partitions if not counts.get(partition.key)
        },
        code_version=",".join(code_versions),
        serves=find_served(plan.log.as_of(plan.to_version)),
    )


def _read_as_it_was(window: InputWindow) -> DataFrame:
    log = window.inputs[window.table.key]
    rows = read_table(window.spark, log, window.stored_table)
    return window.keep_partitions(rows)


def _find_restoration(
    log: TableLog, newest: Commit, keys: Collection[str], to_version: int
) -> int | None:
    """Finds the version in which just this rollback was done before, with nothing since."""
    record = newest.record
    if record is None or record.write_mode != Rollback.name:
        return None
    publishes = log.publishes
    done = all(key in publishes and publishes[key].version == newest.version for key in keys)
    came_back = record.input_versions == {log.table.key: to_version}
    return newest.version if done and came_back else None


def _refuse_mixture(log: TableLog, then: TableLog, keys: Collection[str]) -> None:
    """Refuses to bring back part of another version of a served table than the others hold."""
    served, served_then = find_served(log), find_served(then)
    if served == served_then:
        return
    if others := sorted(set(log.publishes).difference(keys)):
        raise RollbackError(
            f"{log.table.key} serves {served}, and served {served_then or 'nothing'} at version "
            f"{then.version}: {others[0]} and {len(others) - 1} more would stay of the one beside "
            f"the other; take back all of it, {min(log.publishes)} to {max(log.publishes)}, or "
            f"`backfill-assets rollback {log.table.key}`, which goes back to the version before"
        )


def _refuse_lost_columns(log: TableLog, then: TableLog) -> None:
    """Refuses a version with a column that the table no longer has: its values would be lost."""
    former = (name for column in log.table.columns for name in column.formerly)
    if lost := sorted({*then.extra_fields}.difference(log.extra_fields, former)):
        raise RollbackError(
            f"{log.table.key} has no column `{lost[0]}` any more, which version {then.version} "
            f'has: if it was renamed, declare the column with formerly=("{lost[0]}",), so that '
            "its values come back under the new name; nothing was written"
        )


def _name_run(commit: Commit) -> str:
    return commit.record.run_id if commit.record else ""


def _refuse_out_of_reach(
    log: TableLog, partitions: Sequence[Partition], version: int, now: dt.datetime
) -> None:
    table = log.table
    if version < log.begins_with:
        raise RollbackError(
            f"{table.key}: version {version} is no longer in the log, which begins with "
            f"{log.begins_with}: land the source again and backfill instead"
        )
    committed_at = log.list_commits_after(version - 1)[-1].committed_at
    retention = _read_retention(log)
    if committed_at < now - retention:
        # Delta itself refuses such reads since 4.1, whether the files are there or not.
        raise RollbackError(
            f"{table.key}: version {version} is of {committed_at:%Y-%m-%d %H:%M} UTC, "
            f"older than the {retention.days} days that the table keeps for undo "
            "(delta.deletedFileRetentionDuration): backfill from the source instead"
        )
    missing = log.as_of(version).find_missing_files(partitions)
    if missing:
        raise RollbackError(
            f"{table.key}: version {version} can't be read any more: {len(missing)} of its files "
            f"are gone, {missing[0]} for one (VACUUM removes what is older than it is told): "
            "backfill from the source instead"
        )


def _read_retention(log: TableLog) -> dt.timedelta:
    properties = log.properties
    match = _RETENTION.fullmatch(properties.get("delta.deletedFileRetentionDuration", "").strip())
    if match is None:
        return _DELTA_DEFAULT_RETENTION
    return dt.timedelta(hours=int(match[1]) * _HOURS[match[2].lower()])
