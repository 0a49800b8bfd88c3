"""What a backfill would do, before anything runs: partitions, why, runs, commits, bytes, time."""

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from dagster import AssetKey, DagsterInstance

from backfill_assets.catalog import find_table
from backfill_assets.health.estimates import Estimate, estimate_seconds
from backfill_assets.health.outcomes import Outcome, list_outcomes
from backfill_assets.lake.commits import Publish
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
from backfill_assets.orchestration.row_movements import (
    Movements,
    find_movements,
    find_rows_for,
)
from backfill_assets.orchestration.runs_at_work import find_partitions_at_work
from backfill_assets.orchestration.selections import find_keys_in_range
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
    WITHHELD = "withheld"
    """The same: Dagster has one state for both."""
    STALE = "stale"
    """Published, and input or code is another one since."""


@dataclass(frozen=True)
class TablePlan:
    """What would be done to one table.

    Attributes:
        table: `layer/name`.
        states: how many partitions of the range are `materialized`, `missing` and so on; `stale`
            ones, which are among them, are counted where all or the stale ones are asked for.
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
        downstream: by table, ranges of other partitions that were computed from those; which of
            them change is known once these are published, so they are the most there can be.
    """

    tables: Sequence[TablePlan]
    downstream: Mapping[str, Sequence[tuple[str, str]]]


def open_planner(
    instance: DagsterInstance,
    graph: AssetGraph,
    recipes: Mapping[str, Recipe],
    settings: Settings,
    *,
    tables: Sequence[Table],
    now: dt.datetime,
) -> "Planner":
    """Reads the logs of all tables and, of the tables to plan, certificates of the last 90 days.

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
        outcomes=list_outcomes(
            warehouse,
            since=now - dt.timedelta(days=_HISTORY_DAYS),
            tables={table.key for table in tables},
        ),
        landing_root=settings.landing,
        chunk_partitions=settings.chunk_partitions,
        chunk_bytes=settings.chunk_bytes,
        dead=find_dead_runs(instance, now=now, silent_seconds=settings.silent_seconds),
    )


def list_planned_partitions(plan: Plan) -> dict[AssetKey, list[str]]:
    """Lists what a plan would run: partition keys by asset; assets without any are left out."""
    found: dict[AssetKey, list[str]] = {}
    for planned in plan.tables:
        table = find_table(planned.table)
        keys = [
            key
            for first, last in planned.ranges
            for key in find_keys_in_range(find_partitions_def(table), first=first, last=last)
        ]
        if keys:
            found[find_asset_key(table)] = keys
    return found


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
            stale = self._find_stale(table, states) if only in (Only.ALL, Only.STALE) else {}
            keys = _choose(states, stale, only)
            chosen[asset_key] = keys
            plans.append(
                self._plan_table(
                    table, states, stale, keys, chosen, at_work.get(asset_key, frozenset())
                )
            )
        return Plan(plans, self._find_downstream(chosen))

    def _pin(
        self,
        table: Table,
        keys: Sequence[str],
        windows: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    ) -> PinnedInputs:
        """Finds what partitions would be computed from now, by what was read already."""
        recipe = self.recipes[table.key]
        return PinnedInputs(
            target=self.logs[table.key],
            inputs={one.key: self.logs[one.key] for one in recipe.inputs},
            listing=list_landing(recipe, self.landing_root, build_partitions(table, keys)),
            windows=windows or {},
        )

    def _find_stale(self, table: Table, states: Mapping[str, str]) -> dict[str, str]:
        """Finds why published partitions would be computed from something else, by key.

        What a rollback brought back stands, as it does for the sensor.
        """
        log, recipe = self.logs[table.key], self.recipes[table.key]
        publishes = {
            key: publish
            for key, publish in log.publishes.items()
            if key in states and not publish.record.restored.get(key)
        }
        if not publishes:
            return {}
        keys = list(publishes)
        windows = find_readiness(self.instance, self.graph, find_asset_key(table), keys).windows
        now = self._pin(table, keys, windows).describe_consumed(keys)
        by_rows = find_rows_for(self.graph, find_asset_key(table))
        stale: dict[str, list[str]] = {}
        for key, publish in publishes.items():
            # Of inputs whose rows say who reads them, the mapping gives too much and too little.
            upstream = {
                name: read for name, read in now[key].upstream.items() if name not in by_rows
            }
            consumed = replace(now[key], upstream=upstream)
            stale[key] = list_differences(publish, consumed, code_version=recipe.code_version)
        for name, column in by_rows.items():
            for key in self._find_moved(log, name, column, publishes):
                stale[key].insert(0, f"rows for it moved in {name}")
        return {key: "; ".join(reasons) for key, reasons in stale.items() if reasons}

    def _find_moved(
        self, log: TableLog, name: str, column: str, publishes: Mapping[str, Publish]
    ) -> list[str]:
        """Finds those for which rows moved in an input since they were computed."""
        source = self.logs[name]
        versions = [one.record.input_versions.get(name) for one in publishes.values()]
        consumed = [int(version) for version in versions if version is not None]
        since = Movements(min(consumed, default=source.version), {})
        keys = find_partitions_def(log.table).get_partition_keys()
        found = find_movements(log, source, column, keys, since)
        return [key for key in publishes if key in found.outstanding]

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
        sizes = measure_input_bytes(self._pin(table, keys), build_partitions(table, keys))
        ranges = find_ranges(partitions_def, keys)
        runs = [
            build_partitions(table, find_keys_in_range(partitions_def, first=first, last=last))
            for first, last in ranges
        ]
        bounds = {"max_partitions": self.chunk_partitions, "max_bytes": self.chunk_bytes}
        rows, folder_bytes = log.count_rows(), log.sum_folder_bytes()
        mean_rows = _divide(sum(rows.values()), len(rows))
        per_row = _divide(sum(folder_bytes.values()), sum(rows.values()))
        expected = round(sum(rows.get(key, mean_rows) for key in keys))
        busy = find_ranges(partitions_def, set(keys) & set(at_work))
        earlier = [one for one in self.outcomes if one.table == table.key]
        return TablePlan(
            table=table.key,
            states=_count(states, stale),
            stale=describe_ranges(partitions_def, stale),
            ranges=ranges,
            partitions=len(keys),
            commits=sum(len(split_chunks(run, sizes, **bounds)) for run in runs),
            bytes_read=sum(sizes.values()),
            rows=expected,
            bytes_written=round(expected * per_row),
            seconds=estimate_seconds(earlier, [len(run) for run in runs]),
            waits=self._find_waits(table, keys, chosen),
            at_work=[f"{first}...{last}" for first, last in busy],
        )

    def _find_waits(
        self, table: Table, keys: Sequence[str], chosen: Mapping[AssetKey, Sequence[str]]
    ) -> list[str]:
        """Says what keeps partitions from going; not what this plan is to publish before them."""
        readiness = find_readiness(
            self.instance, self.graph, find_asset_key(table), keys, expected=chosen
        )
        return describe_ranges(find_partitions_def(table), readiness.blocked)

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
    failed = {key for key, state in states.items() if state in (FAILED, NOT_DUE)}
    wanted = {
        Only.ALL: set(states),
        Only.MISSING: {key for key, state in states.items() if state == MISSING},
        Only.FAILED: failed,
        Only.WITHHELD: failed,
        Only.STALE: set(stale),
    }[only]
    return [key for key in states if key in wanted]


def _count(states: Mapping[str, str], stale: Collection[str]) -> dict[str, int]:
    order = (MATERIALIZED, MISSING, FAILED, NOT_DUE, IN_PROGRESS)
    counts = {state: sum(one == state for one in states.values()) for state in order}
    counts["stale"] = len(stale)
    return {state: count for state, count in counts.items() if count}


def _divide(total: float, count: int) -> float:
    return total / count if count else 0.0
