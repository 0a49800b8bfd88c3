"""Chooses partitions of tables by what they hold, and finds what they would be computed from."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from backfill_engine.catalog import Catalog
from backfill_engine.errors import PartitionRangeError
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.due.readiness import find_windows
from backfill_engine.orchestration.due.stale_partitions import find_stale
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.materializations import PartitionStatusCache
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import format_ranges, shorten
from backfill_engine.orchestration.planning.plans import Only, choose_partitions
from backfill_engine.orchestration.status.partition_statuses import (
    MATERIALIZED,
    WITHHELD,
    read_table_statuses,
)
from backfill_engine.publishing.inputs import PinnedInputs, list_landing
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.tables.declarations import Table

_LISTED = 7


@dataclass(frozen=True)
class Choice:
    """Partitions of a table that were chosen, and what was read to choose them.

    Attributes:
        table: the table.
        states: of the partitions of the range, by key.
        stale: why published ones would be computed from something else now, by key.
        keys: of those that were chosen.
        pinned: what these would be computed from.
        doubtful: those of which nobody knows whether a run that died has published them well, or
            that another writer has changed.
        is_judged: whether `stale` is known; else it is empty.
    """

    table: Table
    states: Mapping[str, str]
    stale: Mapping[str, str]
    keys: Sequence[str]
    pinned: PinnedInputs
    doubtful: Collection[str] = ()
    is_judged: bool = True

    def count_up_to_date(self) -> int:
        """Counts what is published and neither stale nor chosen; 0 where `stale` isn't known."""
        if not self.is_judged:
            return 0
        left = self.states.keys() - self.stale.keys() - {*self.keys}
        return sum(self.states[key] == MATERIALIZED for key in left)


@dataclass(frozen=True)
class Chooser:
    """Chooses partitions; each log was read once.

    Attributes:
        statuses: of partitions, as Dagster has them.
        graph: of all assets.
        catalog: of the code location.
        recipes: how each table is made, by key.
        logs: of each table.
        dead: runs that are unfinished and dead.
    """

    statuses: PartitionStatusCache
    graph: AssetGraph
    catalog: Catalog
    recipes: Mapping[str, Recipe]
    logs: Mapping[str, TableLog]
    dead: Collection[str]

    def choose(
        self,
        table: Table,
        first: str,
        last: str,
        only: Collection[Only],
        *,
        keys: Sequence[str] | None = None,
    ) -> Choice:
        """Chooses partitions of a range by their states; or takes those that are given.

        Args:
            table: the table.
            first: first partition key of the range.
            last: last one, included.
            only: which of them.
            keys: those that are given, in the range; None to choose.

        Raises:
            PartitionRangeError: if a key is unknown or the range is reversed.
            BackfillError: if the landing zone can't be read.
        """
        log = self.logs[table.key]
        found = read_table_statuses(
            self.catalog,
            self.statuses.instance,
            log,
            first=first,
            last=last,
            dead=self.dead,
            cache=self.statuses,
        )
        states = {
            row.partition: WITHHELD if row.partition in found.withheld else row.status
            for row in found.partitions
            if keys is None or row.partition in keys
        }
        judges = keys is not None or bool({Only.ALL, Only.STALE} & {*only})
        pinned = self._pin(table, list(states)) if judges else None
        recipe = self.recipes[table.key]
        stale = find_stale(self.graph, recipe, pinned, states.keys()) if pinned else {}
        if judges:
            changed = found.recovery.changed
            stale |= {key: changed[key] for key in states if key in changed}
        taken = choose_partitions(states, stale, only) if keys is None else keys
        if pinned is None:
            pinned = self._pin(table, taken)
        elif len(taken) < len(states):
            pinned = pinned.restrict(build_partitions(table, taken))
        doubtful = frozenset({*found.recovery.doubtful, *found.recovery.changed})
        return Choice(table, states, stale, taken, pinned, doubtful, is_judged=judges)

    def check_parts(self, table: Table, keys: Sequence[str]) -> None:
        """Refuses to publish part of what a partition is to hold, as if that were all of it.

        Raises:
            PartitionRangeError: if the table can't merge, or a partition was never published.
        """
        if not table.natural_key:
            raise PartitionRangeError(
                f"{table.key} declares no natural key that would tell which row replaces which, so "
                "that no part of its rows can be computed anew: leave it out, or --column"
            )
        if never := [key for key in keys if key not in self.logs[table.key].publishes]:
            listed = ", ".join(shorten(format_ranges(find_partitions_def(table), never), _LISTED))
            raise PartitionRangeError(
                f"{table.key} {listed}: never published, and part of the rows would stand for all: "
                "publish these whole first, without --column, or leave them out"
            )

    def _pin(self, table: Table, keys: Sequence[str]) -> PinnedInputs:
        """Finds what partitions would be computed from now, by what was read already."""
        recipe = self.recipes[table.key]
        return PinnedInputs(
            target=self.logs[table.key],
            inputs={table.key: self.logs[table.key] for table in recipe.inputs},
            listing=list_landing(
                recipe, self.catalog.settings.landing, build_partitions(table, keys)
            ),
            windows=find_windows(self.graph, find_asset_key(table), keys, recipe.unread),
        )


def count_rows_to_read(
    pinned: PinnedInputs, keys: Collection[str], coming: Mapping[str, Collection[str]]
) -> int | None:
    """Counts the rows of input of partitions; no file is opened.

    Of tables it is the rows of all partitions that the mapping gives, each counted once: more than
    are read where rows of it are for others. Of Parquet that landed the footers were read to list
    it.

    Args:
        pinned: what they would be computed from, with their windows.
        keys: of the partitions.
        coming: by input table, the partitions that are published before; one that never was counts
            as the mean of its table.

    Returns:
        None if nobody knows: of JSON that landed, of a file of several partitions of which only
        some are to be computed, and of tables that are yet to get their first rows.
    """
    if not keys:
        return 0
    counts = [
        _count_rows_of(
            pinned.inputs[name],
            set[str]().union(*(windows[key] for key in keys)),
            coming.get(name, ()),
        )
        for name, windows in pinned.windows.items()
    ]
    if pinned.listing is not None:
        counts.append(_count_landed(pinned, keys))
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _count_landed(pinned: PinnedInputs, keys: Collection[str]) -> int | None:
    listing = pinned.restrict(build_partitions(pinned.target.table, keys)).listing
    return listing.count_known() if listing is not None else None


def _count_rows_of(log: TableLog, read: Collection[str], coming: Collection[str]) -> int | None:
    rows = log.count_rows()
    new = set(read).intersection(coming).difference(rows)
    if new and not rows:
        return None
    counted = sum(rows.get(key, 0) for key in read)
    return counted + round(len(new) * sum(rows.values()) / len(rows)) if new else counted
