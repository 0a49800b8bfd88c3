"""Makes plans: what a backfill would do, by what is stored and known before anything runs."""

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from dagster import AssetKey, DagsterInstance

from backfill_engine.catalog import Catalog
from backfill_engine.grains.chunk_sizes import ChunkSize
from backfill_engine.lake.partitions import Partition, build_partitions
from backfill_engine.lake.protections import Protections, read_protections
from backfill_engine.lake.table_log import read_log
from backfill_engine.orchestration.due.downstream import find_dependent_partitions
from backfill_engine.orchestration.due.readiness import (
    Readiness,
    find_readiness,
    get_partitions_def,
)
from backfill_engine.orchestration.due.stale_partitions import list_standing
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.materializations import ToldStatuses
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import (
    describe_ranges,
    find_ranges,
)
from backfill_engine.orchestration.planning.choosing import Choice, Chooser, count_rows_to_read
from backfill_engine.orchestration.planning.estimates import add_estimates, estimate_seconds
from backfill_engine.orchestration.planning.outcomes import Outcome, list_outcomes
from backfill_engine.orchestration.planning.plans import (
    Only,
    Plan,
    TablePlan,
    count_states,
    find_foretold,
)
from backfill_engine.orchestration.runs.claims import find_dead_runs
from backfill_engine.orchestration.runs.protecting import describe_protected
from backfill_engine.orchestration.runs.runs_at_work import find_partitions_at_work
from backfill_engine.publishing.inputs import (
    split_chunks,
)
from backfill_engine.publishing.pacing import IN_ONE_GO, Pace
from backfill_engine.publishing.serving import choose_served
from backfill_engine.publishing.write_modes.options import OVERWRITE, WriteOptions
from backfill_engine.tables.declarations import Table

_HISTORY_DAYS = 90


def open_planner(
    instance: DagsterInstance,
    graph: AssetGraph,
    catalog: Catalog,
    *,
    tables: Sequence[Table],
    now: dt.datetime,
) -> "Planner":
    """Reads the logs of all tables and, of the tables to plan, certificates of the last 90 days.

    Raises:
        BackfillError: if a log can't be read.
    """
    settings, warehouse = catalog.settings, catalog.warehouse
    warehouse.check_root()
    logs = {table.key: read_log(warehouse, table) for table in (*catalog.tables, *catalog.external)}
    chooser = Chooser(
        catalog=catalog,
        told=ToldStatuses(instance),
        graph=graph,
        recipes={key: choose_served(recipe, logs[key]) for key, recipe in catalog.recipes.items()},
        logs=logs,
        landing_root=settings.landing,
        dead=find_dead_runs(instance, now=now, silent_seconds=settings.silent_seconds),
    )
    outcomes = list_outcomes(
        warehouse,
        since=now - dt.timedelta(days=_HISTORY_DAYS),
        tables={table.key for table in tables},
    )
    return Planner(
        catalog=catalog,
        chooser=chooser,
        outcomes=outcomes,
        foretold=find_foretold(instance, outcomes),
        chunk_partitions=settings.chunk_partitions,
        chunk_bytes=settings.chunk_bytes,
        protections=read_protections(warehouse),
    )


@dataclass(frozen=True)
class Planner:
    """What plans are made from.

    Attributes:
        catalog: of the code location.
        chooser: chooses the partitions; has the logs.
        outcomes: of earlier steps.
        foretold: by table, how many times as long as their plans said earlier backfills took.
        chunk_partitions: most partitions of a commit.
        chunk_bytes: most bytes of input of a commit.
        protections: what was decided of protected partitions.
    """

    catalog: Catalog
    chooser: Chooser
    outcomes: Sequence[Outcome]
    foretold: Mapping[str, Sequence[float]]
    chunk_partitions: int
    chunk_bytes: int
    protections: Protections = field(default_factory=Protections)

    def plan(
        self,
        ranges: Mapping[Table, tuple[str, str]],
        *,
        only: Collection[Only] = (Only.ALL,),
        pace: Pace = IN_ONE_GO,
        options: WriteOptions | None = None,
        downstream: bool = False,
        row_filter: str = "",
        among: Mapping[str, Collection[str]] | None = None,
    ) -> Plan:
        """Plans ranges of some tables; nothing is written, no JVM is started.

        Args:
            ranges: first and last partition key of each table, both included.
            only: which partitions of the ranges.
            pace: how runs are to go through them. Its chunks fit the tables.
            options: how they are told to write; None for as each table has it.
            downstream: also run what was computed from them, as far as it may change.
            row_filter: which of the computed rows are to count; empty for all.
            among: by table key, the partitions of the ranges that are meant, whatever their states;
                None for those that `only` says.

        Raises:
            PartitionRangeError: if a key is unknown or a range is reversed; or if part of the rows
                is asked for of partitions that were never published, or of tables that can't merge.
            BackfillError: if a log or the landing zone can't be read.
        """
        tables = {find_asset_key(table): table for table in ranges}
        choices: dict[AssetKey, Choice] = {}
        for asset_key in self._order(tables):
            first, last = ranges[tables[asset_key]]
            keys = sorted(among[tables[asset_key].key]) if among is not None else None
            choices[asset_key] = self.chooser.choose(
                tables[asset_key], first, last, only, keys=keys
            )
        chosen = {asset_key: choice.keys for asset_key, choice in choices.items()}
        affected = self._find_downstream(chosen)
        if downstream:
            for asset_key, keys in affected.items():
                table = self.catalog.find_table(asset_key.to_user_string())
                every = sorted({*chosen.get(asset_key, ()), *keys})
                choices[asset_key] = self.chooser.choose(table, every[0], every[-1], (), keys=every)
            chosen = {asset_key: choices[asset_key].keys for asset_key in self._order(choices)}
        if row_filter:
            for choice in choices.values():
                self.chooser.check_parts(choice.table, choice.keys)
        at_work = find_partitions_at_work(self.chooser.told.instance, self.chooser.graph)
        computed: dict[str, set[str]] = {}
        plans: list[TablePlan] = []
        for asset_key, keys in chosen.items():
            choice = choices[asset_key]
            readiness = self._find_readiness(choice, chosen)
            told = options or WriteOptions(write_mode=choice.table.write_mode)
            leaves = bool(pace.chunk and not pace.restart and told == OVERWRITE and not row_filter)
            standing = self._find_standing(choice, readiness, computed) if leaves else frozenset()
            computed[asset_key.to_user_string()] = {*keys} - standing
            plans.append(
                self._plan_table(
                    choice, readiness, standing, computed, at_work.get(asset_key, ()), pace.chunk
                )
            )
        ends = {
            key.to_user_string(): find_ranges(get_partitions_def(self.chooser.graph, key), keys)
            for key, keys in affected.items()
        }
        total = add_estimates([one.seconds for one in plans if one.partitions])
        return Plan(plans, ends, row_filter, total)

    def _order(self, keys: Collection[AssetKey]) -> list[AssetKey]:
        return [key for key in self.chooser.graph.toposorted_asset_keys if key in keys]

    def _plan_table(
        self,
        choice: Choice,
        readiness: Readiness,
        standing: Collection[str],
        coming: Mapping[str, Collection[str]],
        at_work: Collection[str],
        chunk: ChunkSize | None,
    ) -> TablePlan:
        table, keys = choice.table, choice.keys
        partitions_def, log = find_partitions_def(table), self.chooser.logs[table.key]
        partitions = build_partitions(table, keys)
        sizes = choice.pinned.measure_bytes(partitions)
        ranges = find_ranges(partitions_def, keys)
        at = {key: number for number, key in enumerate(keys)}
        runs = [partitions[at[first] : at[last] + 1] for first, last in ranges]
        chunks = [part for run in runs for part in choice.pinned.cut(run, chunk)]
        cut = [[one for one in part if one.key not in standing] for part in chunks]
        left = [part for part in cut if part]
        counts = [sum(one.key not in standing for one in run) for run in runs]
        computed = [key for key in keys if key not in standing]
        rows, folder_bytes = log.count_rows(), log.sum_folder_bytes()
        mean_rows = _divide(sum(rows.values()), len(rows))
        per_row = _divide(sum(folder_bytes.values()), sum(rows.values()))
        expected = round(sum(rows.get(key, mean_rows) for key in computed))
        busy = find_ranges(partitions_def, set(keys) & set(at_work))
        earlier = [one for one in self.outcomes if one.table == table.key]
        return TablePlan(
            table=table.key,
            code_version=self.chooser.recipes[table.key].code_version,
            states=count_states(choice.states, choice.stale),
            stale=describe_ranges(partitions_def, choice.stale),
            ranges=ranges,
            partitions=len(keys),
            chunks=len(left),
            commits=sum(len(self._split(part, sizes)) for part in left),
            bytes_read=sum(size for key, size in sizes.items() if key not in standing),
            rows=expected,
            bytes_written=round(expected * per_row),
            seconds=estimate_seconds(
                earlier,
                [count for count in counts if count],
                self.foretold.get(table.key, ()),
                chunks=len(left),
            ),
            waits=describe_ranges(partitions_def, readiness.blocked),
            at_work=[f"{first}...{last}" for first, last in busy],
            protected=describe_protected(table, self.protections.find(table, keys)),
            stands=len(standing),
            rows_read=count_rows_to_read(choice.pinned, computed, coming),
            up_to_date=choice.count_up_to_date(),
        )

    def _split(
        self, chunk: Sequence[Partition], sizes: Mapping[str, int]
    ) -> list[tuple[Partition, ...]]:
        bounds = {"max_partitions": self.chunk_partitions, "max_bytes": self.chunk_bytes}
        return split_chunks(chunk, sizes, **bounds)

    def _find_readiness(
        self, choice: Choice, chosen: Mapping[AssetKey, Sequence[str]]
    ) -> Readiness:
        """Finds what keeps partitions from going; not what this plan is to publish before them.

        What of their input is not final the logs say as its events do.
        """
        unfinished = {
            name: [key for key, one in log.publishes.items() if one.record.provisional.get(key)]
            for name, log in choice.pinned.inputs.items()
        }
        return find_readiness(
            self.chooser.told.instance,
            self.chooser.graph,
            find_asset_key(choice.table),
            choice.keys,
            expected=chosen,
            windows=choice.pinned.windows,
            unfinished=unfinished,
            told=self.chooser.told,
            inputs=choice.pinned.inputs,
        )

    def _find_standing(
        self,
        choice: Choice,
        readiness: Readiness,
        computed: Mapping[str, Collection[str]],
    ) -> frozenset[str]:
        """Finds those that stand; not what reads any that this plan computes before them."""
        pinned, after = choice.pinned, set[str]()
        for name, windows in pinned.windows.items():
            coming = set(computed.get(name, ()))
            after |= {key for key in choice.keys if not coming.isdisjoint(windows[key])}
        unfinished = pinned.listing.unfinished if pinned.listing else {}
        found = list_standing(
            self.chooser.graph,
            self.chooser.recipes[choice.table.key],
            pinned,
            [
                key
                for key in choice.keys
                if key not in after and key not in readiness.blocked and key not in choice.doubtful
            ],
            provisional={**readiness.provisional, **unfinished},
            stale=choice.stale if choice.is_judged else None,
        )
        return frozenset(found)

    def _find_downstream(
        self, chosen: Mapping[AssetKey, Sequence[str]]
    ) -> dict[AssetKey, list[str]]:
        """Finds other partitions that were computed from those, directly or not."""
        found: dict[AssetKey, set[str]] = {}
        told, graph, recipes = self.chooser.told, self.chooser.graph, self.chooser.recipes
        unread = {find_asset_key(one.table): one.unread for one in recipes.values()}
        for asset_key, keys in chosen.items():
            dependent = find_dependent_partitions(
                told.instance, graph, asset_key, keys, {}, unread=unread, known=chosen, told=told
            )
            for key, partitions in dependent.items():
                found.setdefault(key, set()).update(partitions)
        return {key: sorted(partitions) for key, partitions in found.items()}


def _divide(total: float, count: int) -> float:
    return total / count if count else 0.0
