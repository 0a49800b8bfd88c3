"""What a backfill came to: what it left unpublished, by ranges, why, and what to do next."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError
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
from backfill_engine.orchestration.instance.dagster_internals import (
    BACKFILL_TAG,
    find_run_assets,
)
from backfill_engine.orchestration.instance.materializations import find_planning_runs
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import (
    build_range_options,
    describe_ranges,
    format_ranges,
    shorten,
)
from backfill_engine.orchestration.planning.plans import Plan
from backfill_engine.orchestration.runs.chains import (
    CANCELLED,
    FAILED,
    HELD_UP,
    PAUSED_STATUS,
    WITHHELD,
    Chain,
    FailureReasons,
)
from backfill_engine.orchestration.runs.pausing import find_pause
from backfill_engine.orchestration.runs.run_tags import (
    CHAIN_TAG,
    PAUSED_TAG,
    REFUSED_TAG,
    WITHHELD_TAG,
    find_run_range,
)
from backfill_engine.orchestration.status.attempts import find_attempts
from backfill_engine.proof.certificates import (
    NOT_DUE,
    Certificate,
    list_documents,
    read_readable,
)
from backfill_engine.publishing.statements import WARNED
from backfill_engine.tables.declarations import Table

_SHOWN_OF_ID = 8
_LISTED = 50
_RANGES_OF_A_REASON = 7
_CANCELLED_BEFORE = (CANCELLED, "cancelled before a run of it was requested")
_NEVER_REQUESTED = (HELD_UP, "no run of it was requested, as what it reads is held back")


@dataclass(frozen=True)
class UnpublishedPartitions:
    """Partitions of one table that runs left unpublished, with the same status.

    Attributes:
        table: the table.
        status: `withheld` by an audit, `held up` by what was withheld upstream, `failed` with the
            run, `cancelled` or `paused` with it, or `not due`.
        reasons: why, in one line, by partition key; ascending.
    """

    table: Table
    status: str
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class ChainResult:
    """What a chain came to.

    Attributes:
        held_back: by table, in the order of the pipeline, then by status.
        continued: partitions that its continuing runs published, by table key.
        errors: of runs that failed, where no partition says so, a line each.
    """

    held_back: Sequence[UnpublishedPartitions] = ()
    continued: Mapping[str, int] = field(default_factory=dict)
    errors: Sequence[str] = ()

    @property
    def is_good(self) -> bool:
        """Whether there is nothing that a person has to know of; what is not due only waits."""
        return not self.errors and all(group.status == NOT_DUE for group in self.held_back)


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
        warned: by table key and partition, what the published ones were warned about.
    """

    state: str
    published: Mapping[str, int]
    partitions: Mapping[str, int]
    only_waits: bool
    held_back: Sequence[Mapping[str, Any]]
    errors: Sequence[str]
    commands: Sequence[str]
    warned: Mapping[str, Mapping[str, str]]


def find_outcome(
    catalog: Catalog,
    instance: DagsterInstance,
    warehouse: Warehouse,
    progress: Progress,
    *,
    unrequested: tuple[str, str] | None = None,
    certificates: Sequence[Certificate] | None = None,
) -> BackfillOutcome:
    """Finds what a backfill that is over came to.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        warehouse: has the certificates.
        progress: of the backfill.
        unrequested: status and reason of partitions that no run was made for, if who makes the runs
            knows better than that what they read is held back.
        certificates: of its chain, if they were read already.
    """
    backfill = progress.backfill
    if certificates is None:
        certificates = _read_certificates(warehouse, backfill.chain)
    result = ChainResult(errors=[backfill.error] if backfill.error else [])
    commands: list[str] = []
    if progress.state != "published":
        requested = find_last_requested(catalog, instance, backfill.chain.runs)
        unrequested = unrequested or (
            _CANCELLED_BEFORE if backfill.is_cancelled else _NEVER_REQUESTED
        )
        keys = {
            table: {
                key: requested.get(table, {}).get(key) for key in progress.find_unpublished(table)
            }
            for table in progress.states
        }
        found = _explain(catalog, instance, warehouse, backfill.chain, keys, unrequested)
        result = replace(found, errors=[*result.errors, *found.errors])
        resume = f"backfill-assets backfill retry {backfill.id[:_SHOWN_OF_ID]}"
        commands = [*build_look_commands(result.held_back), resume]
    return BackfillOutcome(
        state=progress.state,
        published={table.table: table.published for table in progress.tables},
        partitions={table.table: table.partitions for table in progress.tables},
        only_waits=bool(result.held_back) and result.is_good,
        held_back=list(map(describe_held_back, result.held_back)),
        errors=result.errors,
        commands=commands,
        warned=_find_warnings(certificates),
    )


def find_chain_result(
    catalog: Catalog, instance: DagsterInstance, warehouse: Warehouse, chain: Chain
) -> ChainResult:
    """Finds what a chain came to.

    Dagster says which partitions are held back: those that a run of the chain was the last to plan,
    and that nobody has published since. The certificates say why, as far as the runs got.
    """
    runs = {run.run_id: run for run in chain.runs}
    selected = {key for run in chain.runs for key in find_run_assets(instance, run)}
    keys: dict[str, dict[str, DagsterRun | None]] = {}
    for table in catalog.tables:
        asset_key = find_asset_key(table)
        planned_by = find_planning_runs(instance, asset_key) if asset_key in selected else {}
        keys[table.key] = {
            key: runs[planned_by[key]]
            for key in find_partitions_def(table).get_partition_keys()
            if planned_by.get(key) in runs
        }
    result = _explain(catalog, instance, warehouse, chain, keys, _NEVER_REQUESTED)
    continued: dict[str, set[str]] = {}
    continuing = {run.run_id for run in chain.runs if CHAIN_TAG in run.tags}
    for certificate in _read_certificates(warehouse, chain):
        if certificate.run_id in continuing and certificate.published:
            continued.setdefault(certificate.asset_key, set()).update(certificate.published)
    return replace(result, continued={key: len(keys) for key, keys in continued.items()})


def _explain(
    catalog: Catalog,
    instance: DagsterInstance,
    warehouse: Warehouse,
    chain: Chain,
    keys: Mapping[str, Mapping[str, DagsterRun | None]],
    unrequested: tuple[str, str],
) -> ChainResult:
    """Explains why partitions are unpublished at the end of a chain.

    What a dead run had published, and could not record, is left out: a sensor records it soon.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        warehouse: has the certificates.
        chain: the runs.
        keys: the partitions by table, each with the last run of the chain that was to publish it.
        unrequested: status and reason of partitions that no run of the chain was requested for.
    """
    own, reasons = {run.run_id for run in chain.runs}, FailureReasons(instance)
    groups: dict[tuple[str, str], dict[str, str]] = {}
    blamed: set[str] = set()
    for table, runs in keys.items():
        attempts = {}
        try:
            log = read_log(warehouse, catalog.find_table(table))
            attempts = find_attempts(instance, log, list(runs)) if runs else {}
        except (BackfillError, OSError):  # a status without its reason is better than none
            pass
        for key, run in runs.items():
            attempt = attempts.get(key)
            if run is None:
                status, why = unrequested
            elif attempt is None or REFUSED_TAG in run.tags:
                status, why = reasons.find(run)
            elif attempt.run_id in own:
                status, why = attempt.status, attempt.error
            else:
                status, by = attempt.status, attempt.run_id[:_SHOWN_OF_ID]
                why = f"run {by} was the last to try it: {attempt.error or status}"
            if status == "published":
                continue
            if run is not None:
                blamed.add(run.run_id)
            groups.setdefault((table, status), {})[key] = why
    held_back = [
        UnpublishedPartitions(catalog.find_table(table), status, found)
        for (table, status), found in groups.items()
    ]
    errors = [
        f"run {run.run_id[:_SHOWN_OF_ID]} ({run.job_name}): {reasons.find_error(run)}"
        for run in _find_unmended(chain)
        if run.run_id not in blamed
    ]
    return ChainResult(held_back, errors=errors)


def _find_unmended(chain: Chain) -> Iterator[DagsterRun]:
    """Finds failed runs of which neither a verdict nor a later run of the chain made good."""
    succeeded = [
        record.storage_id
        for record in chain.records
        if record.dagster_run.status is DagsterRunStatus.SUCCESS
    ]
    for record in chain.records:
        run = record.dagster_run
        mended = any(later > record.storage_id for later in succeeded)
        # A run that was paused has gone on, as otherwise the chain would not be at its end.
        explained = WITHHELD_TAG in run.tags or PAUSED_TAG in run.tags
        if run.status is DagsterRunStatus.FAILURE and not mended and not explained:
            yield run


def _read_certificates(warehouse: Warehouse, chain: Chain) -> list[Certificate]:
    """Reads what the runs left; nothing, where the warehouse can't be read."""
    owners = dict.fromkeys(
        run.tags.get(BACKFILL_TAG) or run.tags.get(CHAIN_TAG) or run.run_id for run in chain.runs
    )
    try:
        return [
            certificate
            for owner in owners
            for certificate in read_readable(list_documents(warehouse, owner))
        ]
    except OSError:
        return []


def describe_held_back(held_back: UnpublishedPartitions) -> dict[str, Any]:
    """Describes what is held back of a table: how many, their ranges and the reasons; cut short."""
    partitions_def = find_partitions_def(held_back.table)
    reasons = held_back.reasons
    # Ranges of thousands of reasons would take seconds to find, and nobody reads them.
    different = list(dict.fromkeys(reasons.values()))
    few = frozenset(different[:_LISTED])
    listed = {key: why for key, why in reasons.items() if why in few}
    described = describe_ranges(partitions_def, listed, most=_RANGES_OF_A_REASON)
    return {
        "table": held_back.table.key,
        "status": held_back.status,
        "partitions": len(reasons),
        "ranges": shorten(format_ranges(partitions_def, reasons), _LISTED),
        "reasons": shorten([*described, *different[_LISTED:]], _LISTED),
    }


def build_look_commands(held_back: Sequence[UnpublishedPartitions]) -> Iterator[str]:
    """Builds the commands that show the rows of what was withheld."""
    for group in held_back:
        if group.status == WITHHELD:
            ends = build_range_options(group.reasons)
            yield f"backfill-assets status --withheld --select {group.table.key} {ends}"


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
        warned: by partition, what the published ones were warned about.
    """

    table: str
    partitions: int
    published: int
    published_ranges: Sequence[str]
    held_back: Sequence[Mapping[str, Any]]
    up_to_date: int = 0
    warned: Mapping[str, str] = field(default_factory=dict)


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
    unrequested = None
    if error:
        unrequested = (FAILED, f"no run of it was made: {error}")
    elif progress.why_paused and not is_cancelled:
        unrequested = (PAUSED_STATUS, "paused before a run of it was made")
    ended = replace(progress, at_work="")
    certificates = _read_certificates(warehouse, backfill.chain)
    outcome = find_outcome(
        catalog, instance, warehouse, ended, unrequested=unrequested, certificates=certificates
    )
    left = _find_left(certificates)
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
        outcome.warned.get(table, {}),
    )


def _find_warnings(certificates: Sequence[Certificate]) -> dict[str, dict[str, str]]:
    """Finds what the last publish of each partition was warned about, by table and key."""
    rows = {
        (certificate.asset_key, row.partition): row
        for certificate in certificates
        for row in certificate.partitions
        if row.status == "published"
    }
    found: dict[str, dict[str, str]] = {}
    for (table, key), row in sorted(rows.items()):
        if WARNED in row.notes:
            found.setdefault(table, {})[key] = row.notes[WARNED]
    return found


def _find_left(certificates: Sequence[Certificate]) -> set[tuple[str, str]]:
    """Finds tables and keys of what runs left as it was, and none of them published."""
    left, published = set[tuple[str, str]](), set[tuple[str, str]]()
    for certificate in certificates:
        table, rows = certificate.asset_key, certificate.partitions
        left |= {(table, row.partition) for row in rows if row.is_left}
        published |= {(table, key) for key in certificate.published}
    return left - published


def _build_run_commands(
    catalog: Catalog, states: Mapping[str, Mapping[str, State]]
) -> Iterator[str]:
    """Builds what runs the rest in the foreground, a command for each grain."""
    left: dict[Grain, dict[str, list[str]]] = {}
    for table, by_key in states.items():
        keys = [key for key, state in by_key.items() if state is not State.PUBLISHED]
        if keys:
            left.setdefault(catalog.find_table(table).grain, {})[table] = keys
    for tables in left.values():
        ends = build_range_options(chain.from_iterable(tables.values()))
        yield (
            f"backfill-assets run --select {','.join(tables)} {ends} --only missing,failed,withheld"
        )


def _describe_run(instance: DagsterInstance, run: DagsterRun) -> dict[str, Any]:
    first, last = find_run_range(run) or ("", "")
    keys = sorted(key.to_user_string() for key in find_run_assets(instance, run))
    status = run.status.value.lower()
    return {"id": run.run_id, "tables": keys, "first": first, "last": last, "status": status}
