"""What became of a plan that was carried out, by table: published, or not and why, as ranges."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dagster import DagsterInstance, DagsterRun

from backfill_engine.catalog import Catalog
from backfill_engine.grains.grain import Grain
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.alerts.held_back import FAILED, PAUSED, read_certificates
from backfill_engine.orchestration.backfills.backfill_outcomes import BackfillOutcome, find_outcome
from backfill_engine.orchestration.backfills.foreground import Foreground
from backfill_engine.orchestration.backfills.progress import State
from backfill_engine.orchestration.backfills.progress_reader import ProgressReader
from backfill_engine.orchestration.instance.dagster_internals import find_run_assets
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.orchestration.instance.ranges import format_ranges
from backfill_engine.orchestration.planning.plans import Plan
from backfill_engine.orchestration.runs.chains import Chain
from backfill_engine.orchestration.runs.pausing import find_pause
from backfill_engine.orchestration.runs.run_tags import find_run_range


@dataclass(frozen=True)
class TableVerdict:
    """What became of the partitions of one table.

    Attributes:
        table: `layer/name`.
        partitions: how many were to be published, or were up to date.
        published: how many were published.
        published_ranges: which.
        held_back: those that weren't, by status: how many, their ranges, and the reasons.
        up_to_date: how many were left as they are, as they had been published from the same inputs
            by the same code, or had the same batch appended.
    """

    table: str
    partitions: int
    published: int
    published_ranges: Sequence[str]
    held_back: Sequence[Mapping[str, Any]]
    up_to_date: int = 0


@dataclass(frozen=True)
class Verdicts:
    """What became of a plan.

    Attributes:
        run_id: the first run, by which all of them are found; empty if none was made.
        state: `published`, `held back`, `failed`, `cancelled` or `paused`.
        only_waits: whether all that isn't published waits for what never came.
        tables: in the order of the pipelines.
        runs: what was executed, in order: id, tables, ends of the range, status.
        errors: what runs failed with where no partition says so.
        commands: what to do next; nothing for what only waits until its window opens.
        up_to_date: how many partitions were left as they are, of all tables.
    """

    run_id: str
    state: str
    only_waits: bool
    tables: Sequence[TableVerdict] = ()
    runs: Sequence[Mapping[str, Any]] = ()
    errors: Sequence[str] = ()
    commands: Sequence[str] = ()
    up_to_date: int = 0


def build_idle_verdicts(plan: Plan) -> Verdicts:
    """Builds the verdicts of a plan by which nothing is to be run."""
    left = ((table.table, table.up_to_date) for table in plan.tables)
    tables = [TableVerdict(key, count, 0, [], [], count) for key, count in left if count]
    count = sum(table.up_to_date for table in tables)
    return Verdicts("", "published", only_waits=False, tables=tables, up_to_date=count)


def find_verdicts(
    catalog: Catalog,
    instance: DagsterInstance,
    warehouse: Warehouse,
    foreground: Foreground,
    plan: Plan,
    *,
    is_cancelled: bool,
    error: str = "",
) -> Verdicts:
    """Finds what became of runs that have ended, by the instance and their certificates.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        warehouse: has the certificates.
        foreground: the runs.
        plan: what they carried out.
        is_cancelled: whether somebody cancelled them at the shell.
        error: why no more runs were made; empty if nothing went wrong.
    """
    if not foreground.runs:
        return Verdicts(run_id="", state="cancelled", only_waits=False)
    backfill = foreground.read()
    progress = ProgressReader(catalog, instance).measure(backfill, now=datetime.now(tz=UTC))
    # Where a daemon is, too, others' runs are waited for; these go on by nobody.
    unmade = None
    if error:
        unmade = (FAILED, f"no run of it was made: {error}")
    elif progress.why_paused and not is_cancelled:
        unmade = (PAUSED, "paused before a run of it was made")
    found = replace(progress, at_work="")
    outcome = find_outcome(catalog, instance, warehouse, found, unmade=unmade)
    left = _find_left(warehouse, backfill.chain)
    idle = {table.table: table for table in build_idle_verdicts(plan).tables}
    tables = [
        _judge_table(catalog, key, states, left.get(key, frozenset()), outcome, idle.pop(key, None))
        for key, states in progress.states.items()
    ]
    tables += idle.values()
    state = "cancelled" if is_cancelled and outcome.state != "published" else outcome.state
    if state == "paused":
        # To resume is refused meanwhile, and the rest of the plan only the same command knows.
        is_noted = find_pause(instance, backfill.id) is not None
        commands = [f"backfill-assets unpause {backfill.id}"] if is_noted else []
    else:
        commands = [*outcome.commands, *_build_run_commands(catalog, progress.states)]
    return Verdicts(
        run_id=backfill.id,
        state=state,
        only_waits=outcome.only_waits,
        tables=tables,
        runs=[_describe_run(instance, run) for run in backfill.chain.runs],
        errors=[error, *outcome.errors] if error else outcome.errors,
        commands=commands,
        up_to_date=sum(table.up_to_date for table in tables),
    )


def _judge_table(
    catalog: Catalog,
    key: str,
    states: Mapping[str, State],
    left: Collection[str],
    outcome: BackfillOutcome,
    idle: TableVerdict | None,
) -> TableVerdict:
    """Judges a table by what became of its partitions; those that were not to be run are idle."""
    good = [one for one, state in states.items() if state is State.PUBLISHED]
    published = [one for one in good if one not in left]
    beside = idle.up_to_date if idle else 0
    return TableVerdict(
        key,
        len(states) + beside,
        len(published),
        format_ranges(find_partitions_def(catalog.find_table(key)), published),
        [one for one in outcome.held_back if one["table"] == key],
        len(good) - len(published) + beside,
    )


def _find_left(warehouse: Warehouse, chain: Chain) -> dict[str, frozenset[str]]:
    """Finds what runs of a chain left as it was, and none of them published, by table key."""
    left: dict[str, set[str]] = {}
    published: dict[str, set[str]] = {}
    for certificate in read_certificates(warehouse, chain):
        keys = {row.partition for row in certificate.partitions if row.is_left}
        left.setdefault(certificate.asset_key, set()).update(keys)
        published.setdefault(certificate.asset_key, set()).update(certificate.published)
    return {key: frozenset(keys - published[key]) for key, keys in left.items()}


def _build_run_commands(
    catalog: Catalog, states: Mapping[str, Mapping[str, State]]
) -> Iterator[str]:
    """Builds what runs the rest in the foreground, a command for each grain."""
    left: dict[Grain, dict[str, list[str]]] = {}
    for table, found in states.items():
        keys = [key for key, state in found.items() if state is not State.PUBLISHED]
        if keys:
            left.setdefault(catalog.find_table(table).grain, {})[table] = keys
    for tables in left.values():
        first = min(keys[0] for keys in tables.values())
        last = max(keys[-1] for keys in tables.values())
        yield (
            f"backfill-assets run --select {','.join(tables)} --from {first} --to {last} "
            "--only missing,failed,withheld"
        )


def _describe_run(instance: DagsterInstance, run: DagsterRun) -> dict[str, Any]:
    first, last = find_run_range(run) or ("", "")
    keys = sorted(key.to_user_string() for key in find_run_assets(instance, run))
    status = run.status.value.lower()
    return {"id": run.run_id, "tables": keys, "first": first, "last": last, "status": status}
