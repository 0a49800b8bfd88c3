"""Takes partitions back to what an earlier version of their table held, from time travel."""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from backfill_assets.errors import RollbackError
from backfill_assets.lake.commits import CommitRecord
from backfill_assets.lake.reader import read_table_as_it_was
from backfill_assets.lake.slices import Partition
from backfill_assets.lake.table_log import (
    Commit,
    count_rows,
    find_latest_publishes,
    find_missing_files,
    find_version_before,
    read_commits,
    read_version,
)
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.lake.window import Window
from backfill_assets.publishing.evolution import extend_table
from backfill_assets.publishing.inputs import PinnedInputs
from backfill_assets.publishing.recipes import Recipe
from backfill_assets.tables.declarations import Table

_RETENTION = re.compile(r"(?:interval\s+)?(\d+)\s+(day|hour|week)s?", re.IGNORECASE)
_HOURS = {"hour": 1, "day": 24, "week": 168}
_DELTA_DEFAULT_RETENTION = dt.timedelta(days=7)


@dataclass(frozen=True)
class RollbackPlan:
    """Which partitions go back to which version, and what that undoes.

    Attributes:
        table: the table.
        partitions: ascending.
        to_version: the Delta version whose contents come back.
        from_version: the newest version when the plan was made; what is undone came after
            `to_version` and not after this.
        published_by: by partition key, the record of the commit that had published what comes back;
            None where nothing was published then, so that the partition becomes empty.
        undone: by run ("" for commits of other programs), the versions that are undone, ascending.
    """

    table: Table
    partitions: tuple[Partition, ...]
    to_version: int
    from_version: int
    published_by: Mapping[str, CommitRecord | None]
    undone: Mapping[str, tuple[int, ...]]

    def pin(self) -> PinnedInputs:
        """The version that comes back as the pinned input of the table itself."""
        return PinnedInputs(self.from_version, {self.table.key: self.to_version})


def plan_rollback(
    warehouse: Warehouse,
    table: Table,
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
        warehouse: where the table is.
        table: the table.
        partitions: which to take back, ascending.
        to_version: the version to go back to; or else
        before_run: the run to undo, by its id or the beginning of it.
        force: undo later commits of other runs too.
        now: UTC.

    Raises:
        RollbackError: if neither or both of version and run are given, the version is out of
            reach, nothing would change, or commits of other runs would be lost without `force`.
        HistoryError: if the run published none of the partitions.
        TableError: if the table doesn't exist.
    """
    if (to_version is None) == (before_run is None):
        raise RollbackError("say where to go back to: either a version or a run, not both")
    newest = read_version(warehouse, table)
    commits = read_commits(warehouse, table)
    keys = {one.key for one in partitions}
    meant = None
    if to_version is None:
        assert before_run is not None
        meant, to_version = find_version_before(table, commits, keys, before_run)
    later = [one for one in commits if one.version > to_version and one.may_change(keys)]
    if not 0 <= to_version < newest or not later:
        raise RollbackError(
            f"{table.key}: nothing to undo: no commit after version {to_version} changed these "
            f"partitions (the newest version is {newest})"
        )
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
    _refuse_out_of_reach(warehouse, table, commits, partitions, to_version, now)
    then = find_latest_publishes(one for one in commits if one.version <= to_version)
    return RollbackPlan(
        table=table,
        partitions=tuple(partitions),
        to_version=to_version,
        from_version=newest,
        published_by={key: then[key].record if key in then else None for key in sorted(keys)},
        undone=undone,
    )


def build_rollback_recipe(warehouse: Warehouse, plan: RollbackPlan) -> Recipe:
    """Computes the partitions as they were; what they were computed by stays their code version."""
    counts = count_rows(warehouse, plan.table, version=plan.to_version)
    code_versions = sorted({one.code_version for one in plan.published_by.values() if one})
    return Recipe(
        table=plan.table,
        compute=_read_as_it_was,
        inputs=(plan.table,),
        # A partition that held nothing is an emptied one, exempt from the rules about rows.
        count_source=lambda window: {
            one.key: 0 for one in window.partitions if not counts.get(one.key)
        },
        code_version=",".join(code_versions),
    )


def _read_as_it_was(window: Window) -> DataFrame:
    table = extend_table(window.table, window.extra_fields)
    version = window.versions[table.key]
    rows = read_table_as_it_was(window.spark, window.warehouse, table, version=version)
    return window.keep_partitions(rows)


def _name_run(commit: Commit) -> str:
    return commit.record.run_id if commit.record else ""


def _refuse_out_of_reach(
    warehouse: Warehouse,
    table: Table,
    commits: Sequence[Commit],
    partitions: Sequence[Partition],
    version: int,
    now: dt.datetime,
) -> None:
    committed_at = {one.version: one.committed_at for one in commits}
    if version not in committed_at:
        oldest = min(committed_at)
        raise RollbackError(
            f"{table.key}: version {version} is no longer in the log, which begins with {oldest}: "
            "land the source again and backfill instead"
        )
    retention = _read_retention(warehouse, table)
    if committed_at[version] < now - retention:
        # Delta itself refuses such reads since 4.1, whether the files are there or not.
        raise RollbackError(
            f"{table.key}: version {version} is of {committed_at[version]:%Y-%m-%d %H:%M} UTC, "
            f"older than the {retention.days} days that the table keeps for undo "
            "(delta.deletedFileRetentionDuration): backfill from the source instead"
        )
    missing = find_missing_files(warehouse, table, partitions, version=version)
    if missing:
        raise RollbackError(
            f"{table.key}: version {version} can't be read any more: {len(missing)} of its files "
            f"are gone, {missing[0]} for one (VACUUM removes what is older than it is told): "
            "backfill from the source instead"
        )


def _read_retention(warehouse: Warehouse, table: Table) -> dt.timedelta:
    properties = warehouse.open(table).metadata().configuration
    match = _RETENTION.fullmatch(properties.get("delta.deletedFileRetentionDuration", "").strip())
    if match is None:
        return _DELTA_DEFAULT_RETENTION
    return dt.timedelta(hours=int(match[1]) * _HOURS[match[2].lower()])
