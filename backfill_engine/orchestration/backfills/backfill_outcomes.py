"""What a backfill came to: what is held back, by ranges, why, and what to do next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dagster import DagsterInstance

from backfill_engine.catalog import Catalog
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.alerts.held_back import (
    CANCELLED,
    FAILED,
    HELD_UP,
    Causes,
    ChainResult,
    HeldBack,
    find_chain_result,
)
from backfill_engine.orchestration.alerts.notices import build_look_commands, describe_held_back
from backfill_engine.orchestration.backfills.backfills import find_requested
from backfill_engine.orchestration.backfills.progress import Progress, State
from backfill_engine.orchestration.runs.run_tags import REFUSED_TAG
from backfill_engine.orchestration.status.attempts import find_attempts

_SHOWN_OF_ID = 8


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
    tables = {table.table: table for table in progress.tables}
    held_back: Sequence[HeldBack] = ()
    errors = [backfill.error] if backfill.error else []
    commands: list[str] = []
    if progress.state != "published":
        result = find_chain_result(catalog, instance, warehouse, backfill.chain)
        held_back = (
            *result.held_back,
            *_find_refused(catalog, instance, progress, result.held_back),
        )
        held_back = (
            *held_back,
            *_find_taken_over(catalog, instance, warehouse, progress, held_back),
        )
        held_back = (*held_back, *_find_never_requested(catalog, progress, held_back, unmade))
        errors += result.errors
        resume = f"backfill-assets resume {backfill.id[:_SHOWN_OF_ID]}"
        commands = [*build_look_commands(held_back), resume]
    return BackfillOutcome(
        state=progress.state,
        published={key: table.published for key, table in tables.items()},
        partitions={key: table.partitions for key, table in tables.items()},
        only_waits=bool(held_back) and ChainResult(held_back, errors=tuple(errors)).is_good,
        held_back=[describe_held_back(one) for one in held_back],
        errors=errors,
        commands=commands,
    )


def _find_refused(
    catalog: Catalog, instance: DagsterInstance, progress: Progress, others: Sequence[HeldBack]
) -> list[HeldBack]:
    """Finds what is protected and shows as published in the instance, though its run was refused.

    The rest of such a run has failed with it.
    """
    causes = Causes(instance)
    told = {(one.table.key, key) for one in others for key in one.reasons}
    reasons: dict[str, dict[str, str]] = {}
    for run in progress.backfill.chain.runs:
        if REFUSED_TAG not in run.tags:
            continue
        for table, keys in find_requested(catalog, instance, run).items():
            for key in keys:
                state = progress.states.get(table, {}).get(key)
                if state is State.HELD_BACK and (table, key) not in told:
                    reasons.setdefault(table, {})[key] = causes.find(run)[1]
    return [HeldBack(catalog.find_table(table), FAILED, found) for table, found in reasons.items()]


def _find_taken_over(
    catalog: Catalog,
    instance: DagsterInstance,
    warehouse: Warehouse,
    progress: Progress,
    others: Sequence[HeldBack],
) -> list[HeldBack]:
    """Finds what its runs were to publish, and a run that is none of its own tried last."""
    told = {(one.table.key, key) for one in others for key in one.reasons}
    runs = progress.backfill.chain.runs
    requested: dict[str, set[str]] = {}
    for run in runs:
        for table, keys in find_requested(catalog, instance, run).items():
            requested.setdefault(table, set()).update(keys)
    groups: dict[tuple[str, str], dict[str, str]] = {}
    for table, states in progress.states.items():
        untold = {
            key
            for key, state in states.items()
            if state is State.HELD_BACK and (table, key) not in told
        } & requested.get(table, set())
        attempts = find_attempts(
            instance, read_log(warehouse, catalog.find_table(table)), sorted(untold)
        )
        for key, attempt in attempts.items():
            if attempt.run_id not in {run.run_id for run in runs}:
                why = f"run {attempt.run_id[:_SHOWN_OF_ID]} was the last to try it: "
                why += attempt.error or attempt.status
                groups.setdefault((table, attempt.status), {})[key] = why
    return [
        HeldBack(catalog.find_table(table), status, reasons)
        for (table, status), reasons in groups.items()
    ]


def _find_never_requested(
    catalog: Catalog, progress: Progress, others: Sequence[HeldBack], unmade: tuple[str, str] | None
) -> list[HeldBack]:
    """Finds what no run was requested for, as what it reads was held back, or by a cancellation."""
    told = {(one.table.key, key) for one in others for key in one.reasons}
    status, why = unmade or (
        (CANCELLED, "cancelled before a run of it was requested")
        if progress.backfill.is_cancelled
        else (HELD_UP, "no run of it was requested, as what it reads is held back")
    )
    found: list[HeldBack] = []
    for table, states in progress.states.items():
        keys = [
            key
            for key, state in states.items()
            if state is State.HELD_BACK and (table, key) not in told
        ]
        if keys:
            found.append(HeldBack(catalog.find_table(table), status, dict.fromkeys(keys, why)))
    return found
