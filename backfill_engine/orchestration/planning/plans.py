"""What a plan says: partitions and why, runs, commits, bytes, time, before anything runs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dagster import AssetKey

from backfill_engine.catalog import Catalog
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.selecting.selections import find_keys_in_range
from backfill_engine.orchestration.status.partition_statuses import (
    CHANGED,
    FAILED,
    IN_PROGRESS,
    MATERIALIZED,
    MISSING,
    NOT_DUE,
    WITHHELD,
)


class Only(StrEnum):
    """Which partitions of a range are to be run."""

    ALL = "all"
    MISSING = "missing"
    """No run ever tried them."""
    FAILED = "failed"
    """Their step ended before it came to them, or they are in doubt; also those not due."""
    WITHHELD = "withheld"
    """The last run that tried them withheld them by a verdict."""
    STALE = "stale"
    """Published, and input or code is another one since."""


@dataclass(frozen=True)
class TablePlan:
    """What would be done to one table.

    Attributes:
        table: `layer/name`.
        code_version: of what computes it.
        states: how many partitions of the range are `materialized`, `missing`, `failed`,
            `withheld` and so on; `stale` ones, which are among them, are counted where all or the
            stale ones are asked for.
        stale: why, in words, by ranges of partitions.
        ranges: first and last key of each run's partitions.
        partitions: how many these are.
        chunks: into how many these are cut, of all runs. This and what follows is without those
            that stand.
        commits: how many would publish them.
        bytes_read: of their input.
        rows: that are published of them now; what never was counts as the mean of the table.
        bytes_written: likewise.
        seconds: of its runs, by earlier steps; None if there was none.
        waits: why some can't go before others that are not of this plan.
        at_work: ranges of them that unfinished runs are to materialize.
        protected: which of them are, and why, so that runs of them are refused.
        stands: how many of the partitions runs leave as they are: published from the same inputs by
            the same code, of which runs in chunks compute nothing, and reading none that this plan
            computes; as far as is known before it runs.
        rows_read: of the input of the others; None if nobody knows without reading it.
        up_to_date: partitions of the range that weren't chosen, as they are published from the same
            inputs by the same code; 0 where nobody looked.
    """

    table: str
    code_version: str
    states: Mapping[str, int]
    stale: Sequence[str]
    ranges: Sequence[tuple[str, str]]
    partitions: int
    chunks: int
    commits: int
    bytes_read: int
    rows: int
    bytes_written: int
    seconds: float | None
    waits: Sequence[str] = ()
    at_work: Sequence[str] = ()
    protected: Sequence[str] = ()
    stands: int = 0
    rows_read: int | None = None
    up_to_date: int = 0


@dataclass(frozen=True)
class Plan:
    """What would be done.

    Attributes:
        tables: as selected, upstream ones first; also what is downstream, if that is to be run.
        downstream: by table, ranges of other partitions that were computed from the selected; which
            of them change is known once these are published, so they are the most there can be.
        row_filter: which of the computed rows count, as SQL; empty for all. The others stay as they
            are published, so that runs of it merge.
        total: seconds of all tables, one after the other; None if nothing is to be run, or of some
            there was no earlier step.
        operation: `replay` where all that is to be run was published before, else `backfill`.
    """

    tables: Sequence[TablePlan]
    downstream: Mapping[str, Sequence[tuple[str, str]]]
    row_filter: str = ""
    total: float | None = None
    operation: str = "backfill"


def list_planned_partitions(catalog: Catalog, plan: Plan) -> dict[AssetKey, list[str]]:
    """Lists what a plan would run: partition keys by asset; assets without any are left out."""
    found: dict[AssetKey, list[str]] = {}
    for planned in plan.tables:
        table = catalog.find_table(planned.table)
        keys = [
            key
            for first, last in planned.ranges
            for key in find_keys_in_range(find_partitions_def(table), first=first, last=last)
        ]
        if keys:
            found[find_asset_key(table)] = keys
    return found


_STATES = {
    Only.MISSING: {MISSING},
    Only.FAILED: {FAILED, NOT_DUE, CHANGED},
    Only.WITHHELD: {WITHHELD},
}


def choose_partitions(
    states: Mapping[str, str], stale: Collection[str], only: Collection[Only]
) -> list[str]:
    """Chooses partitions by their states, in their order.

    Args:
        states: of all partitions of a range.
        stale: those whose input or code is another one since.
        only: which to choose.
    """
    wanted = {state for choice in only for state in _STATES.get(choice, ())}
    return [
        key
        for key, state in states.items()
        if Only.ALL in only or state in wanted or (Only.STALE in only and key in stale)
    ]


def count_states(states: Mapping[str, str], stale: Collection[str]) -> dict[str, int]:
    """Counts partitions by state, and the stale ones; what there is none of is left out."""
    order = (MATERIALIZED, MISSING, FAILED, WITHHELD, CHANGED, NOT_DUE, IN_PROGRESS)
    counts = {state: sum(chosen == state for chosen in states.values()) for state in order}
    counts["stale"] = len(stale)
    return {state: count for state, count in counts.items() if count}
