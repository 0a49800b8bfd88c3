"""What a backfill came to: what is held back, by ranges, why, and what to do next."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dagster import DagsterInstance, DagsterRun

from backfill_engine.catalog import Catalog
from backfill_engine.grains.grain import Grain
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.backfills.backfills import find_last_requested
from backfill_engine.orchestration.backfills.foreground import Foreground
from backfill_engine.orchestration.backfills.progress_reader import (
    Progress,
    ProgressReader,
    State,
)
from backfill_engine.orchestration.instance.dagster_internals import find_run_assets
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.orchestration.instance.ranges import format_ranges
from backfill_engine.orchestration.planning.plans import Plan
from backfill_engine.orchestration.runs.chains import Chain
from backfill_engine.orchestration.runs.held_back import (
    CANCELLED,
    FAILED,
    HELD_UP,
    PAUSED,
    Causes,
    ChainResult,
    HeldBack,
    build_look_commands,
    describe_held_back,
    find_chain_result,
    read_certificates,
)
from backfill_engine.orchestration.runs.pausing import find_pause
from backfill_engine.orchestration.runs.run_tags import REFUSED_TAG, find_run_range
from backfill_engine.orchestration.status.attempts import find_attempts

_SHOWN_OF_ID = 8
_CANCELLED_BEFORE = (CANCELLED, "cancelled before a run of it was requested")
_NEVER_REQUESTED = (HELD_UP, "no run of it was requested, as what it reads is held back")


@dataclass(frozen=True)
class BackfillOutcome:
    """What a backfill came to.

    Attributes:
        state: `published`, `held back`, `cancelled`, `failed`; or `paused`, for a shell that waits.
        published: partitions by table key; of the others there are none.
        partitions: of the backfill, by table key.
        only_waits: whether all that isn't published waits for upstream partitions that never came.
        held_back: by table and status: how many, their ranges, and the reasons.
        errors: what runs, or Dagster itself, failed with where no partition says so.
        commands: what to do next.
    """

    state: str
    published: Mapping[str, int]
    partitions: Mapping[str, int]
    only_waits: bool
    held_back: Sequence[Mapping[str, Any]]
    errors: Sequence[str]
    commands: Sequence[str]


def find_outcome(
    catalog: Catalog,
    instance: DagsterInstance,
    warehouse: Warehouse,
    progress: Progress,
    *,
    unmade: tuple[str, str] | None = None,
) -> BackfillOutcome:
    """Finds what a backfill that is over came to.

    Why partitions are held back, the certificates of its runs say, as they do in an alert.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        warehouse: has the certificates.
        progress: of the backfill.
        unmade: status and reason of what no run was made for, if who makes them knows better than
            that what it reads is held back.
    """
    backfill = progress.backfill
    held_back: Sequence[HeldBack] = ()
    errors = [backfill.error] if backfill.error else []
    commands: list[str] = []
    if progress.state != "published":
        result = find_chain_result(catalog, instance, warehouse, backfill.chain)
        others = _find_others(catalog, instance, warehouse, progress, result.held_back, unmade)
        held_back = (*result.held_back, *others)
        errors += result.errors
        resume = f"backfill-assets backfill retry {backfill.id[:_SHOWN_OF_ID]}"
        commands = [*build_look_commands(held_back), resume]
    return BackfillOutcome(
        state=progress.state,
        published={table.table: table.published for table in progress.tables},
        partitions={table.table: table.partitions for table in progress.tables},
        only_waits=bool(held_back) and ChainResult(held_back, errors=tuple(errors)).is_good,
        held_back=list(map(describe_held_back, held_back)),
        errors=errors,
        commands=commands,
    )


def _find_others(
    catalog: Catalog,
    instance: DagsterInstance,
    warehouse: Warehouse,
    progress: Progress,
    known: Sequence[HeldBack],
    unmade: tuple[str, str] | None,
) -> list[HeldBack]:
    """Finds what else is held back: of that, no run of the backfill was the last to plan it.

    It was refused as protected, and shows as published; or another run tried it last; or no run of
    it was requested.
    """
    backfill, causes = progress.backfill, Causes(instance)
    own = {run.run_id for run in backfill.chain.runs}
    requested = find_last_requested(catalog, instance, backfill.chain.runs)
    unmade = unmade or (_CANCELLED_BEFORE if backfill.is_cancelled else _NEVER_REQUESTED)
    explained = {(found.table.key, key) for found in known for key in found.reasons}
    groups: dict[tuple[str, str], dict[str, str]] = {}
    for table in progress.states:
        keys = [key for key in progress.find_held_back(table) if (table, key) not in explained]
        attempts = find_attempts(instance, read_log(warehouse, catalog.find_table(table)), keys)
        for key in keys:
            run, attempt = requested.get(table, {}).get(key), attempts.get(key)
            if run is None:
                status, why = unmade
            elif REFUSED_TAG in run.tags or attempt is None or attempt.run_id in own:
                status, why = causes.find(run)
            else:
                why = f"run {attempt.run_id[:_SHOWN_OF_ID]} was the last to try it: "
                status, why = attempt.status, why + (attempt.error or attempt.status)
            groups.setdefault((table, status), {})[key] = why
    return [
        HeldBack(catalog.find_table(table), status, reasons)
        for (table, status), reasons in groups.items()
    ]


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
    idle = {table.table: table.up_to_date for table in plan.tables if table.up_to_date}
    tables = [
        _judge_table(catalog, key, progress, left, outcome, idle.get(key, 0))
        for key in dict.fromkeys((*progress.states, *idle))
    ]
    state = "cancelled" if is_cancelled and outcome.state != "published" else outcome.state
    if state == "paused":
        # To resume is refused meanwhile, and the rest of the plan only the same command knows.
        is_noted = find_pause(instance, backfill.id) is not None
        commands = [f"backfill-assets backfill resume {backfill.id}"] if is_noted else []
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
    table: str,
    progress: Progress,
    left: Collection[tuple[str, str]],
    outcome: BackfillOutcome,
    idle: int,
) -> TableVerdict:
    """Judges a table by what became of its partitions; so many others were not to be run."""
    states = progress.states.get(table, {})
    good = [key for key, state in states.items() if state is State.PUBLISHED]
    published = [key for key in good if (table, key) not in left]
    return TableVerdict(
        table,
        len(states) + idle,
        len(published),
        format_ranges(find_partitions_def(catalog.find_table(table)), published),
        [held_back for held_back in outcome.held_back if held_back["table"] == table],
        len(good) - len(published) + idle,
    )


def _find_left(warehouse: Warehouse, chain: Chain) -> set[tuple[str, str]]:
    """Finds tables and keys of what runs left as it was, and none of them published."""
    left, published = set[tuple[str, str]](), set[tuple[str, str]]()
    for certificate in read_certificates(warehouse, chain):
        table, rows = certificate.asset_key, certificate.partitions
        left |= {(table, row.partition) for row in rows if row.is_left}
        published |= {(table, key) for key in certificate.published}
    return left - published


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
