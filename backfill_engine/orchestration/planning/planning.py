"""Makes plans: what a backfill would do, by what is stored and known before anything runs."""

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dagster import AssetKey, DagsterInstance

from backfill_engine.catalog import Catalog
from backfill_engine.grains.chunk_sizes import ChunkSize
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.protections import read_protections
from backfill_engine.lake.table_log import read_log
from backfill_engine.orchestration.due.downstream import find_dependent_partitions
from backfill_engine.orchestration.due.readiness import (
    Readiness,
    find_readiness,
    get_partitions_def,
)
from backfill_engine.orchestration.due.stale_partitions import list_up_to_date
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.materializations import PartitionStatusCache
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import (
    describe_ranges,
    find_ranges,
)
from backfill_engine.orchestration.planning.choosing import Choice, Chooser, count_rows_to_read
from backfill_engine.orchestration.planning.plans import (
    Only,
    Plan,
    TablePlan,
    count_states,
)
from backfill_engine.orchestration.runs.chains import find_partitions_at_work
from backfill_engine.orchestration.runs.claims import find_dead_runs
from backfill_engine.orchestration.runs.option_declarations import RunOptions
from backfill_engine.orchestration.runs.protecting import describe_protected
from backfill_engine.orchestration.runs.run_options import choose_run_options
from backfill_engine.proof.certificates import list_documents, read_readable
from backfill_engine.publishing.inputs import (
    split_chunks,
)
from backfill_engine.publishing.serving import choose_served
from backfill_engine.publishing.write_modes.options import OVERWRITE
from backfill_engine.tables.declarations import Table

_HISTORY_DAYS = 90
_NO_OPTIONS = RunOptions()


def open_planner(
    instance: DagsterInstance, graph: AssetGraph, catalog: Catalog, *, now: dt.datetime
) -> "Planner":
    """Reads the logs of all tables.

    Raises:
        BackfillError: if a log can't be read.
    """
    settings, warehouse = catalog.settings, catalog.warehouse
    warehouse.check_root()
    logs = {table.key: read_log(warehouse, table) for table in (*catalog.tables, *catalog.external)}
    return Planner(
        statuses=PartitionStatusCache(instance),
        graph=graph,
        catalog=catalog,
        recipes={key: choose_served(recipe, logs[key]) for key, recipe in catalog.recipes.items()},
        logs=logs,
        dead=find_dead_runs(instance, now=now, silent_seconds=settings.silent_seconds),
        steps_since=now - dt.timedelta(days=_HISTORY_DAYS),
    )


@dataclass(frozen=True)
class Planner(Chooser):
    """Chooses partitions, and plans their runs.

    Attributes:
        steps_since: steps from then on say how long others will take.
    """

    steps_since: dt.datetime

    def plan(
        self,
        ranges: Mapping[Table, tuple[str, str]],
        *,
        only: Collection[Only] = (Only.ALL,),
        options: RunOptions = _NO_OPTIONS,
        downstream: bool = False,
        row_filter: str = "",
        among: Mapping[str, Collection[str]] | None = None,
    ) -> Plan:
        """Plans ranges of some tables; nothing is written, no JVM is started.

        Args:
            ranges: first and last partition key of each table, both included.
            only: which partitions of the ranges.
            options: what their runs are told.
            downstream: also run what was computed from them, as far as it may change.
            row_filter: which of the computed rows are to count; empty for all.
            among: by table key, the partitions of the ranges that are meant, whatever their states;
                None for those that `only` says.

        Raises:
            PartitionRangeError: if a key is unknown or a range is reversed; or if part of the rows
                is asked for of partitions that were never published, or of tables that can't merge.
            SettingsError: if a table can't honour the options.
            FilterError: if the filter of the options is unreadable.
            BackfillError: if a log or the landing zone can't be read.
        """
        for table in ranges:
            choose_run_options(table, options)
        choices = {
            find_asset_key(table): self.choose(
                table, first, last, only, keys=sorted(among[table.key]) if among else None
            )
            for table, (first, last) in ranges.items()
        }
        affected = self._find_downstream(self._list_chosen(choices))
        if downstream:
            for asset_key, keys in affected.items():
                table = self.catalog.find_table(asset_key.to_user_string())
                chosen = choices[asset_key].keys if asset_key in choices else ()
                every = sorted({*chosen, *keys})
                choices[asset_key] = self.choose(table, every[0], every[-1], (), keys=every)
        if row_filter:
            for choice in choices.values():
                self.check_parts(choice.table, choice.keys)
        at_work = find_partitions_at_work(self.statuses.instance, self.graph)
        protections = read_protections(self.catalog.warehouse)
        steps = self._read_steps({choice.table.key for choice in choices.values()})
        chosen_keys = self._list_chosen(choices)
        computed: dict[str, set[str]] = {}
        plans: list[TablePlan] = []
        for asset_key, keys in chosen_keys.items():
            choice = choices[asset_key]
            table, partitions_def = choice.table, find_partitions_def(choice.table)
            readiness = self._find_readiness(choice, chosen_keys)
            written, pace = choose_run_options(table, options)
            leaves = pace.chunk and not pace.restart and written == OVERWRITE and not row_filter
            standing = self._find_up_to_date(choice, readiness, computed) if leaves else frozenset()
            left = [key for key in keys if key not in standing]
            computed[table.key] = {*left}
            busy = find_ranges(partitions_def, {*keys} & {*at_work.get(asset_key, ())})
            plans.append(
                TablePlan(
                    table=table.key,
                    code_version=self.recipes[table.key].code_version,
                    states=count_states(choice.states, choice.stale),
                    stale=describe_ranges(partitions_def, choice.stale),
                    ranges=find_ranges(partitions_def, keys),
                    partitions=len(keys),
                    waits=describe_ranges(partitions_def, readiness.blocked),
                    at_work=[f"{first}...{last}" for first, last in busy],
                    protected=describe_protected(table, protections.find(table, keys)),
                    stands=len(standing),
                    rows_read=count_rows_to_read(choice.pinned, left, computed),
                    up_to_date=choice.count_up_to_date(),
                    **self._measure(choice, standing, pace.chunk, steps.get(table.key, ())),
                )
            )
        ends = {
            key.to_user_string(): find_ranges(get_partitions_def(self.graph, key), keys)
            for key, keys in affected.items()
        }
        seconds = [table_plan.seconds for table_plan in plans if table_plan.partitions]
        known = [found for found in seconds if found is not None]
        total = sum(known) if known and len(known) == len(seconds) else None
        is_replay = all(
            self.logs[choices[key].table.key].publishes.keys() >= {*keys}
            for key, keys in chosen_keys.items()
        )
        return Plan(plans, ends, row_filter, total, "replay" if is_replay else "backfill")

    def _list_chosen(self, choices: Mapping[AssetKey, Choice]) -> dict[AssetKey, Sequence[str]]:
        """Lists the chosen partitions by asset, upstream ones first."""
        ordered = self.graph.toposorted_asset_keys
        return {key: choices[key].keys for key in ordered if key in choices}

    def _measure(
        self,
        choice: Choice,
        standing: Collection[str],
        chunk: ChunkSize | None,
        steps: Sequence[tuple[float, int]],
    ) -> dict[str, Any]:
        """Measures what runs compute: the fields of `TablePlan` that leave out what stands."""
        table, log, settings = choice.table, self.logs[choice.table.key], self.catalog.settings
        partitions = build_partitions(table, choice.keys)
        sizes = choice.pinned.measure_bytes(partitions)
        at = {partition.key: number for number, partition in enumerate(partitions)}
        runs = [
            partitions[at[first] : at[last] + 1]
            for first, last in find_ranges(find_partitions_def(table), choice.keys)
        ]
        chunks = [
            computed
            for run in runs
            for part in choice.pinned.cut(run, chunk)
            if (computed := [partition for partition in part if partition.key not in standing])
        ]
        commits = [
            split_chunks(
                part,
                sizes,
                max_partitions=settings.chunk_partitions,
                max_bytes=settings.chunk_bytes,
            )
            for part in chunks
        ]
        rows, folder_bytes = log.count_rows(), log.sum_folder_bytes()
        mean_rows = _divide(sum(rows.values()), len(rows))
        computed_keys = [partition.key for part in chunks for partition in part]
        expected = round(sum(rows.get(key, mean_rows) for key in computed_keys))
        working = sum(any(partition.key not in standing for partition in run) for run in runs)
        return {
            "chunks": len(chunks),
            "commits": sum(map(len, commits)),
            "bytes_read": sum(sizes.get(key, 0) for key in computed_keys),
            "rows": expected,
            "bytes_written": round(
                expected * _divide(sum(folder_bytes.values()), sum(rows.values()))
            ),
            "seconds": estimate_seconds(steps, working, len(computed_keys)),
        }

    def _read_steps(self, tables: Collection[str]) -> dict[str, list[tuple[float, int]]]:
        """Reads how many seconds earlier steps took for how many partitions, by table."""
        found: dict[str, list[tuple[float, int]]] = {}
        for certificate in read_readable(
            document
            for document in list_documents(self.catalog.warehouse)
            if document.written_at >= self.steps_since and document.subject[1] in tables
        ):
            audited = [row.status in ("published", "withheld") for row in certificate.partitions]
            if any(audited):
                step = certificate.seconds, sum(audited)
                found.setdefault(certificate.asset_key, []).append(step)
        return found

    def _find_readiness(
        self, choice: Choice, chosen: Mapping[AssetKey, Sequence[str]]
    ) -> Readiness:
        """Finds what keeps partitions from going; not what this plan is to publish before them.

        What of their input is not final the logs say as its events do.
        """
        unfinished = {
            name: [
                key for key, publish in log.publishes.items() if publish.record.provisional.get(key)
            ]
            for name, log in choice.pinned.inputs.items()
        }
        return find_readiness(
            self.statuses.instance,
            self.graph,
            find_asset_key(choice.table),
            choice.keys,
            expected=chosen,
            windows=choice.pinned.windows,
            unfinished=unfinished,
            statuses=self.statuses,
            inputs=choice.pinned.inputs,
        )

    def _find_up_to_date(
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
        found = list_up_to_date(
            self.graph,
            self.recipes[choice.table.key],
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
        statuses, graph, recipes = self.statuses, self.graph, self.recipes
        unread = {find_asset_key(recipe.table): recipe.unread for recipe in recipes.values()}
        for asset_key, keys in chosen.items():
            dependent = find_dependent_partitions(
                statuses.instance,
                graph,
                asset_key,
                keys,
                {},
                unread=unread,
                known=chosen,
                statuses=statuses,
            )
            for key, partitions in dependent.items():
                found.setdefault(key, set()).update(partitions)
        return {key: sorted(partitions) for key, partitions in found.items()}


def _divide(total: float, count: int) -> float:
    return total / count if count else 0.0


def estimate_seconds(
    steps: Sequence[tuple[float, int]], runs: int, partitions: int
) -> float | None:
    """Estimates runs by a line through earlier steps: so much a step, and so much a partition.

    Args:
        steps: seconds and partitions of each earlier step.
        runs: how many are to be made.
        partitions: of all of them.

    Returns:
        None without an earlier step.
    """
    if not steps:
        return None
    seconds, counts = np.array(steps, dtype=float).T
    shapes = np.column_stack([np.ones_like(counts), counts])
    costs = np.linalg.lstsq(shapes, seconds, rcond=None)[0].clip(min=0)
    return float(costs @ (runs, partitions))
