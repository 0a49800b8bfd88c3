"""What a backfill would do, before anything runs: partitions, why, runs, commits, bytes, time."""

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from dagster import AssetKey, DagsterInstance

from backfill_assets.health.estimates import Estimate, estimate_seconds
from backfill_assets.health.outcomes import Outcome, list_outcomes
from backfill_assets.lake.partitions import build_partitions
from backfill_assets.lake.table_log import TableLog, read_log
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.orchestration.claims import find_dead_runs
from backfill_assets.orchestration.dagster_internals import AssetGraph
from backfill_assets.orchestration.downstream import find_dependent_partitions
from backfill_assets.orchestration.partition_definitions import find_asset_key, find_partitions_def
from backfill_assets.orchestration.partition_statuses import (
    FAILED,
    IN_PROGRESS,
    MATERIALIZED,
    MISSING,
    NOT_DUE,
    read_statuses,
)
from backfill_assets.orchestration.ranges import describe_ranges, find_ranges
from backfill_assets.orchestration.readiness import find_readiness, get_partitions_def
from backfill_assets.orchestration.row_movements import find_movements, find_rows_for
from backfill_assets.orchestration.runs_at_work import find_partitions_at_work
from backfill_assets.publishing.differences import list_differences
from backfill_assets.publishing.inputs import (
    PinnedInputs,
    list_landing,
    measure_input_bytes,
    split_chunks,
)
from backfill_assets.publishing.recipes import Recipe
from backfill_assets.settings import Settings
from backfill_assets.tables.declarations import Table

_HISTORY_DAYS = 90


class Only(StrEnum):
    """Which partitions of a range are to be run."""

    ALL = "all"
    MISSING = "missing"
    FAILED = "failed"
    """Withheld, or their step ended before it came to them."""
    STALE = "stale"
    """Published, and input or code is another one since."""


@dataclass(frozen=True)
class TablePlan:
    """What would be done to one table.

    Attributes:
        table: `layer/name`.
        states: how many partitions of the range are `materialized`, `missing` and so on; of those
            materialized, `stale` are counted too.
        stale: why, in words, by ranges of partitions.
        ranges: first and last key of each run's partitions.
        partitions: how many these are.
        commits: how many would publish them.
        bytes_read: of their input.
        rows: that are published of them now; what never was counts as the mean of the table.
        bytes_written: likewise.
        seconds: by earlier steps; None if there was none.
        waits: why some can't go before others that are not of this plan.
        at_work: ranges of them that unfinished runs are to materialize.
    """

    table: str
    states: Mapping[str, int]
    stale: Sequence[str]
    ranges: Sequence[tuple[str, str]]
    partitions: int
    commits: int
    bytes_read: int
    rows: int
    bytes_written: int
    seconds: Estimate | None
    waits: Sequence[str] = ()
    at_work: Sequence[str] = ()


@dataclass(frozen=True)
class Plan:
    """What would be done.

    Attributes:
        tables: as selected, upstream ones first.
        downstream: by table not selected, ranges of partitions that were computed from those; which
            of them change is known once these are published, so they are the most there can be.
    """

    tables: Sequence[TablePlan]
    downstream: Mapping[str, Sequence[tuple[str, str]]]


def open_planner(
    instance: DagsterInstance,
    graph: AssetGraph,
    recipes: Mapping[str, Recipe],
    settings: Settings,
    *,
    now: dt.datetime,
) -> "Planner":
    """Reads the logs of all tables and the certificates of the last 90 days.

    Raises:
        BackfillError: if a log can't be read.
    """
    warehouse = Warehouse(settings.warehouse)
    warehouse.check_root()
    return Planner(
        instance=instance,
        graph=graph,
        warehouse=warehouse,
        recipes=recipes,
        logs={key: read_log(warehouse, recipe.table) for key, recipe in recipes.items()},
        outcomes=list_outcomes(warehouse, since=now - dt.timedelta(days=_HISTORY_DAYS)),
        landing_root=settings.landing,
        chunk_partitions=settings.chunk_partitions,
        chunk_bytes=settings.chunk_bytes,
        dead=find_dead_runs(instance, now=now, silent_seconds=settings.silent_seconds),
    )


@dataclass(frozen=True)
class Planner:
    """What plans are made from.

    Attributes:
        instance: the Dagster instance.
        graph: of all assets.
        warehouse: the tables.
        recipes: how each is made, by table key.
        logs: of each table.
        outcomes: of earlier steps.
        landing_root: root of the landing zone.
        chunk_partitions: most partitions of a commit.
        chunk_bytes: most bytes of input of a commit.
        dead: runs that are unfinished and dead.
    """

    instance: DagsterInstance
    graph: AssetGraph
    warehouse: Warehouse
    recipes: Mapping[str, Recipe]
    logs: Mapping[str, TableLog]
    outcomes: Sequence[Outcome]
    landing_root: str
    chunk_partitions: int
    chunk_bytes: int
    dead: Collection[str] = ()

    def plan(self, tables: Sequence[Table], *, first: str, last: str, only: Only) -> Plan:
        """Plans a range of some tables; nothing is written, no JVM is started.

        Args:
            tables: which; they have the partitions.
            first: first partition key.
            last: last partition key, included.
            only: which of the range.

        Raises:
            PartitionRangeError: if a key is unknown or the range is reversed.
            BackfillError: if a log or the landing zone can't be read.
        """
        selected = {find_asset_key(table): table for table in tables}
        ordered = [selected[key] for key in self.graph.toposorted_asset_keys if key in selected]
        chosen: dict[AssetKey, list[str]] = {}
        plans: list[TablePlan] = []
        at_work = find_partitions_at_work(self.instance, self.graph)
        statuses = read_statuses(
            self.instance, self.warehouse, ordered, first=first, last=last, dead=self.dead
        )
        for table, found in zip(ordered, statuses, strict=True):
            states = {one.partition: one.status for one in found.partitions}
            asset_key = find_asset_key(table)
            stale = self._find_stale(table, states)
            keys = _choose(states, stale, only)
            chosen[asset_key] = keys
            plans.append(
                self._plan_table(
                    table, states, stale, keys, chosen, at_work.get(asset_key, frozenset())
                )
            )
        return Plan(plans, self._find_downstream(chosen))

    def _pin(self, table: Table, keys: Sequence[str]) -> PinnedInputs:
        """Finds what partitions would be computed from now, by what was read already."""
        recipe = self.recipes[table.key]
        readiness = find_readiness(self.instance, self.graph, find_asset_key(table), keys)
        return PinnedInputs(
            target=self.logs[table.key],
            inputs={one.key: self.logs[one.key] for one in recipe.inputs},
            listing=list_landing(recipe, self.landing_root, build_partitions(table, keys)),
            windows=readiness.windows,
        )

    def _find_stale(self, table: Table, states: Mapping[str, str]) -> dict[str, str]:
        """Finds why published partitions would be computed from something else, by key."""
        log, recipe = self.logs[table.key], self.recipes[table.key]
        keys = [key for key in states if key in log.publishes]
        if not keys:
            return {}
        now = self._pin(table, keys).describe_consumed(keys)
        stale: dict[str, list[str]] = {}
        moved = find_rows_for(self.graph, find_asset_key(table))
        for key in keys:
            # Of inputs whose rows say who reads them, the mapping gives too much and too little.
            upstream = {name: read for name, read in now[key].upstream.items() if name not in moved}
            consumed = replace(now[key], upstream=upstream)
            stale[key] = list_differences(
                log.publishes[key], consumed, code_version=recipe.code_version
            )
        all_keys = find_partitions_def(table).get_partition_keys()
        for name, column in moved.items():
            found = find_movements(log, self.logs[name], column, all_keys, None)
            for key in found.outstanding:
                if key in stale:
                    stale[key].insert(0, f"rows for it moved in {name}")
        return {key: "; ".join(reasons) for key, reasons in stale.items() if reasons}

    def _plan_table(
        self,
        table: Table,
        states: Mapping[str, str],
        stale: Mapping[str, str],
        keys: Sequence[str],
        chosen: Mapping[AssetKey, Sequence[str]],
        at_work: Collection[str],
    ) -> TablePlan:
        partitions_def, log = find_partitions_def(table), self.logs[table.key]
        partitions = build_partitions(table, keys)
        pinned = self._pin(table, keys)
        sizes = measure_input_bytes(pinned, partitions) if keys else {}
        chunks = split_chunks(
            partitions, sizes, max_partitions=self.chunk_partitions, max_bytes=self.chunk_bytes
        )
        rows, folder_bytes = log.count_rows(), log.sum_folder_bytes()
        mean_rows = _divide(sum(rows.values()), len(rows))
        per_row = _divide(sum(folder_bytes.values()), sum(rows.values()))
        expected = round(sum(rows.get(key, mean_rows) for key in keys))
        return TablePlan(
            table=table.key,
            states=_count(states, stale),
            stale=describe_ranges(partitions_def, stale),
            ranges=find_ranges(partitions_def, keys),
            partitions=len(keys),
            commits=len(chunks),
            bytes_read=sum(sizes.values()),
            rows=expected,
            bytes_written=round(expected * per_row),
            seconds=estimate_seconds(
                [one for one in self.outcomes if one.table == table.key], len(keys)
            ),
            waits=self._find_waits(table, keys, chosen),
            at_work=[
                f"{start}...{end}"
                for start, end in find_ranges(partitions_def, set(keys) & set(at_work))
            ],
        )

    def _find_waits(
        self, table: Table, keys: Sequence[str], chosen: Mapping[AssetKey, Sequence[str]]
    ) -> list[str]:
        """Says what keeps partitions from going; not, where this plan is to publish it before."""
        asset_key = find_asset_key(table)
        blocked = find_readiness(self.instance, self.graph, asset_key, keys).blocked
        if any(chosen.get(one) for one in self.graph.get(asset_key).parent_keys):
            return []
        return describe_ranges(find_partitions_def(table), blocked)

    def _find_downstream(
        self, chosen: Mapping[AssetKey, Sequence[str]]
    ) -> dict[str, Sequence[tuple[str, str]]]:
        found: dict[AssetKey, set[str]] = {}
        for asset_key, keys in chosen.items():
            dependent = find_dependent_partitions(self.instance, self.graph, asset_key, keys, {})
            for key, partitions in dependent.items():
                found.setdefault(key, set()).update(partitions)
        return {
            key.to_user_string(): find_ranges(get_partitions_def(self.graph, key), rest)
            for key, partitions in found.items()
            if (rest := partitions - set(chosen.get(key, ())))
        }


def _choose(states: Mapping[str, str], stale: Mapping[str, str], only: Only) -> list[str]:
    wanted = {
        Only.ALL: set(states),
        Only.MISSING: {key for key, state in states.items() if state == MISSING},
        Only.FAILED: {key for key, state in states.items() if state in (FAILED, NOT_DUE)},
        Only.STALE: set(stale),
    }[only]
    # What runs are at work on is named as such, and left to them unless all is asked for.
    return [
        key
        for key, state in states.items()
        if key in wanted and (only is Only.ALL or state != IN_PROGRESS)
    ]


def _count(states: Mapping[str, str], stale: Collection[str]) -> dict[str, int]:
    order = (MATERIALIZED, MISSING, FAILED, NOT_DUE, IN_PROGRESS)
    counts = {state: sum(one == state for one in states.values()) for state in order}
    counts["stale"] = len(stale)
    return {state: count for state, count in counts.items() if count}


def _divide(total: float, count: int) -> float:
    return total / count if count else 0.0
