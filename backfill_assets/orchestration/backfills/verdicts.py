"""What became of a plan that was carried out, by table: published, or not and why, as ranges."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dagster import DagsterInstance, DagsterRun

from backfill_assets.catalog import find_table
from backfill_assets.grains.grain import Grain
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.orchestration.alerts.held_back import FAILED, PAUSED
from backfill_assets.orchestration.backfills.backfill_outcomes import find_outcome
from backfill_assets.orchestration.backfills.foreground import Foreground
from backfill_assets.orchestration.backfills.progress import State
from backfill_assets.orchestration.backfills.progress_reader import ProgressReader
from backfill_assets.orchestration.instance.dagster_internals import find_run_assets
from backfill_assets.orchestration.instance.partition_definitions import find_partitions_def
from backfill_assets.orchestration.instance.ranges import format_ranges
from backfill_assets.orchestration.runs.pausing import find_pause
from backfill_assets.orchestration.runs.run_tags import find_run_range


@dataclass(frozen=True)
class TableVerdict:
    """What became of the partitions of one table.

    Attributes:
        table: `layer/name`.
        partitions: how many were to be published.
        published: how many were.
        published_ranges: which.
        held_back: the others by status: how many, their ranges, and the reasons.
    """

    table: str
    partitions: int
    published: int
    published_ranges: Sequence[str]
    held_back: Sequence[Mapping[str, Any]]


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
    """

    run_id: str
    state: str
    only_waits: bool
    tables: Sequence[TableVerdict] = ()
    runs: Sequence[Mapping[str, Any]] = ()
    errors: Sequence[str] = ()
    commands: Sequence[str] = ()


def find_verdicts(
    instance: DagsterInstance,
    warehouse: Warehouse,
    foreground: Foreground,
    *,
    is_cancelled: bool,
    error: str = "",
) -> Verdicts:
    """Finds what became of runs that have ended, by the instance and their certificates.

    Args:
        instance: the Dagster instance.
        warehouse: has the certificates.
        foreground: the runs.
        is_cancelled: whether somebody cancelled them at the shell.
        error: why no more runs were made; empty if nothing went wrong.
    """
    if not foreground.runs:
        return Verdicts(run_id="", state="cancelled", only_waits=False)
    backfill = foreground.read()
    progress = ProgressReader(instance).measure(backfill, now=datetime.now(tz=UTC))
    # Where a daemon is, too, others' runs are waited for; these go on by nobody.
    unmade = None
    if error:
        unmade = (FAILED, f"no run of it was made: {error}")
    elif progress.why_paused and not is_cancelled:
        unmade = (PAUSED, "paused before a run of it was made")
    found = replace(progress, at_work="")
    outcome = find_outcome(instance, warehouse, found, unmade=unmade)
    tables = [
        TableVerdict(
            key,
            len(states),
            outcome.published[key],
            format_ranges(
                find_partitions_def(find_table(key)),
                (one for one, state in states.items() if state is State.PUBLISHED),
            ),
            [one for one in outcome.held_back if one["table"] == key],
        )
        for key, states in progress.states.items()
    ]
    everything = all(one.published == one.partitions for one in tables)
    state = "cancelled" if is_cancelled and not everything else outcome.state
    if state == "paused":
        # To resume is refused meanwhile, and the rest of the plan only the same command knows.
        is_noted = find_pause(instance, backfill.id) is not None
        commands = [f"backfill-assets unpause {backfill.id}"] if is_noted else []
    else:
        commands = [*outcome.commands, *_build_run_commands(progress.states)]
    return Verdicts(
        run_id=backfill.id,
        state=state,
        only_waits=outcome.only_waits,
        tables=tables,
        runs=[_describe_run(instance, run) for run in backfill.chain.runs],
        errors=[error, *outcome.errors] if error else outcome.errors,
        commands=commands,
    )


def _build_run_commands(states: Mapping[str, Mapping[str, State]]) -> Iterator[str]:
    """Builds what runs the rest in the foreground, a command for each grain."""
    left: dict[Grain, dict[str, list[str]]] = {}
    for table, found in states.items():
        keys = [key for key, state in found.items() if state is not State.PUBLISHED]
        if keys:
            left.setdefault(find_table(table).grain, {})[table] = keys
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
