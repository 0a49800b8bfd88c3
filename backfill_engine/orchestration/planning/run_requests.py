"""What the sensor requests next, over all tables: due partitions, in the order of the pipelines.

A table waits for what it reads: partitions that depend on others, which are requested or at work,
are requested after these, so that they run once.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dagster import AssetKey, DagsterInstance

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError
from backfill_engine.grains.grain import is_in_range
from backfill_engine.lake.protections import read_protections
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.watermarks import read_watermarks
from backfill_engine.orchestration.due.due_partitions import (
    DuePartition,
    Look,
    Memory,
    Reason,
    find_due_partitions,
    hash_states,
)
from backfill_engine.orchestration.due.readiness import (
    find_downstream_keys,
    find_upstream_tables,
    get_partitions_def,
)
from backfill_engine.orchestration.due.row_movements import Movements, find_rows_for
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.ranges import build_command, find_ranges
from backfill_engine.orchestration.runs.chains import find_partitions_at_work
from backfill_engine.orchestration.runs.protecting import split_protected
from backfill_engine.publishing.serving import choose_served
from backfill_engine.tables.declarations import Table


@dataclass(frozen=True)
class Work:
    """A run to request: a contiguous range of one table.

    Attributes:
        table: `layer/name`.
        first: first partition key.
        last: last partition key, included.
        states: of each partition, the hash of its input as it is now, and of what is published.
        reason: why, in words.
    """

    table: str
    first: str
    last: str
    states: Mapping[str, str]
    reason: str

    @property
    def run_key(self) -> str:
        """Names the run by what it does, of which input."""
        state = hash_states(f"{key} {state}" for key, state in self.states.items())
        return f"{self.table} {self.first}...{self.last} {state}"

    @property
    def operation(self) -> str:
        """What kind of run it is: the daily one takes what is new."""
        return "daily" if Reason.NEW in self.reason else "late data"


@dataclass(frozen=True)
class FoundWork:
    """What a look at all tables found.

    Attributes:
        requested: the runs to request.
        memory: what to remember, once they are.
        waiting: tables with partitions that wait for others, in words.
        notices: what a person has to decide, each told once.
        errors: tables that can't be looked at, and why.
        protected: what is due and left out, as it is protected, and why, in words.
    """

    requested: tuple[Work, ...]
    memory: Memory
    waiting: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()


def find_run_requests(
    catalog: Catalog,
    instance: DagsterInstance,
    graph: AssetGraph,
    warehouse: Warehouse,
    memory: Memory,
    *,
    landing_root: str,
    late_days: int,
) -> FoundWork:
    """Looks at all tables, those that others read first. Nothing is written, no JVM is started.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        graph: of all assets.
        warehouse: the tables.
        memory: of the look before.
        landing_root: root of the landing zone.
        late_days: days from which on rows are too late to be followed without a person's word.
    """
    logs, errors = _read_logs(warehouse, (*catalog.tables, *catalog.external))
    watermarks, at_work = read_watermarks(warehouse), find_partitions_at_work(instance, graph)
    protections, protected = read_protections(warehouse), list[str]()
    pending: dict[AssetKey, set[str]] = {}
    tried: dict[str, dict[str, str]] = {}
    movements: dict[str, Mapping[str, Movements]] = {}
    requested: list[Work] = []
    waiting: list[str] = []
    notices: list[str] = []
    for asset_key in graph.toposorted_asset_keys:
        name = asset_key.to_user_string()
        recipe = catalog.recipes.get(name)
        if recipe is not None and name in logs:
            recipe = choose_served(recipe, logs[name])
        if recipe is None or not all(table.key in logs for table in (recipe.table, *recipe.inputs)):
            continue
        expected = _find_expected(graph, asset_key, pending)
        busy = at_work.get(asset_key, frozenset())
        pending[asset_key] = {*expected, *busy}
        before = memory.tried.get(name, {})
        tried[name], movements[name] = dict(before), memory.movements.get(name, {})
        if busy and not movements[name] and find_rows_for(graph, asset_key):
            waiting.append(f"{name}: a run is at work")
            continue  # What it reads is known once it has published.
        try:
            look = find_due_partitions(
                instance,
                graph,
                recipe,
                logs,
                watermarks.get(name),
                movements[name],
                landing_root=landing_root,
            )
        except BackfillError as error:
            # Of one table's input; the others go on.
            errors.append(f"{name}: {error}")
            continue
        movements[name], tried[name] = look.movements, _remember(before, look)
        due = {
            key: partition
            for key, partition in look.due.items()
            if tried[name].get(key) != partition.state
        }
        free, left_out = split_protected(protections, [recipe.table], list(due))
        protected += left_out
        # Forgotten, so that they are due again as soon as nothing protects them.
        due = {key: due[key] for key in free}
        late = {key: partition for key, partition in due.items() if partition.days_late > late_days}
        held = due.keys() & pending[asset_key] - late.keys()
        ready = {
            key: partition for key, partition in due.items() if key not in late and key not in held
        }
        if late:
            notices.append(_describe_late(catalog, graph, asset_key, late))
        if held:
            waiting.append(f"{name}: {len(held)} partitions wait for runs at work or before them")
        tried[name] |= {key: partition.state for key, partition in {**late, **ready}.items()}
        pending[asset_key] |= {*ready, *held}
        requested += _divide(graph, asset_key, ready)
    return FoundWork(
        tuple(requested),
        Memory(tried, movements),
        tuple(waiting),
        tuple(notices),
        tuple(errors),
        tuple(protected),
    )


def _read_logs(
    warehouse: Warehouse, tables: Iterable[Table]
) -> tuple[dict[str, TableLog], list[str]]:
    """Reads the logs by table; and says which can't be read, as the other tables go on."""
    logs: dict[str, TableLog] = {}
    errors: list[str] = []
    for table in tables:
        try:
            logs[table.key] = read_log(warehouse, table)
        except BackfillError as error:
            errors.append(f"{table.key}: {error}")
    return logs, errors


def _find_expected(
    graph: AssetGraph, asset_key: AssetKey, pending: Mapping[AssetKey, Collection[str]]
) -> set[str]:
    """Finds the partitions that read any that are still to come."""
    expected: set[str] = set()
    for upstream, mapping in find_upstream_tables(graph, asset_key).items():
        if keys := pending.get(upstream):
            expected |= find_downstream_keys(graph, asset_key, upstream, mapping, keys)
    return expected


def _remember(before: Mapping[str, str], look: Look) -> dict[str, str]:
    """Keeps what was tried and is still due, and what a rollback brought back since."""
    tried = {key: state for key, state in before.items() if key in look.due}
    return {**look.standing, **tried}


def _divide(
    graph: AssetGraph, asset_key: AssetKey, due: Mapping[str, DuePartition]
) -> Sequence[Work]:
    """Divides partitions into contiguous ranges, a run each."""
    found: list[Work] = []
    for first, last in find_ranges(get_partitions_def(graph, asset_key), due):
        inside = {
            key: partition
            for key, partition in sorted(due.items())
            if is_in_range(key, first, last)
        }
        counts: dict[str, int] = {}
        for partition in inside.values():
            counts[partition.reason.value] = counts.get(partition.reason.value, 0) + 1
        found.append(
            Work(
                asset_key.to_user_string(),
                first,
                last,
                {key: partition.state for key, partition in inside.items()},
                ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items())),
            )
        )
    return found


def _describe_late(
    catalog: Catalog, graph: AssetGraph, asset_key: AssetKey, late: Mapping[str, DuePartition]
) -> str:
    """Says what is left to a person, and the commands that do it."""
    name = asset_key.to_user_string()
    days = max(partition.days_late for partition in late.values())
    commands = [
        build_command(catalog, [name], first, last, {})
        for first, last in find_ranges(get_partitions_def(graph, asset_key), late)
    ]
    return (
        f"{name}: rows came up to {days} days late for {len(late)} partitions, beyond "
        f"BACKFILL_LATE_DAYS: they are kept in the layer above; to take them in: "
        + "; ".join(commands)
    )
