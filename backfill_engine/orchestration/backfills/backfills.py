"""What was asked for once: a backfill, or a run of none, with all that goes on from it.

Read from the Dagster instance, whoever asked and however: a command, the UI, the API.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus

from backfill_engine.catalog import Catalog
from backfill_engine.errors import PartitionRangeError, UnknownRunError
from backfill_engine.lake.origins import Origin
from backfill_engine.lake.whole_files import find_id
from backfill_engine.orchestration.instance.dagster_internals import (
    BULK_ACTION_TERMINAL_STATUSES,
    BulkActionStatus,
    PartitionBackfill,
    find_run_assets,
)
from backfill_engine.orchestration.instance.own_runs import is_ours
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import find_ranges
from backfill_engine.orchestration.runs.chains import UNFINISHED, Chain, read_chain
from backfill_engine.orchestration.runs.run_tags import (
    FOREGROUND_CANCELLED_TAG,
    FOREGROUND_ENDED_TAG,
    FOREGROUND_TAG,
    find_chain,
    find_run_range,
    is_paused,
    read_origin,
    was_dropped,
)
from backfill_engine.orchestration.selecting.selections import find_keys_in_range

_SHELL_SECONDS = 60.0
"""Between two of its runs a shell takes some seconds; after these it was killed."""


@dataclass(frozen=True)
class Backfill:
    """A backfill, or a run that belongs to none.

    Attributes:
        chain: its runs, their retries, and those that continue them.
        record: what Dagster keeps of the backfill; None of a run that belongs to none.
        targets: the partitions that it is to publish, by table key, in the order of the pipelines.
        goes_on: whether a shell may have more runs of it to make, of which Dagster doesn't know.
    """

    chain: Chain
    record: PartitionBackfill | None
    targets: Mapping[str, Sequence[str]]
    goes_on: bool = False

    @property
    def id(self) -> str:
        """Dagster's id of the backfill, or of the first run."""
        return self.chain.id

    @property
    def kind(self) -> str:
        """`backfill` or `run`."""
        return "run" if self.record is None else "backfill"

    @property
    def tags(self) -> Mapping[str, str]:
        """What it was tagged with when it was asked for."""
        if self.record is not None:
            return self.record.tags or {}
        return self.chain.runs[0].tags

    @property
    def is_ours(self) -> bool:
        """Whether it is of this project, as far as is known; of a job without a run it is not."""
        runs, of_assets = self.chain.runs, self.record and self.record.asset_backfill_data
        tags = [self.record.tags or {} if self.record else {}, *(run.tags for run in runs)]
        return bool(self.targets) or any(map(is_ours, tags)) or not (runs or of_assets)

    @property
    def origin(self) -> Origin:
        """Who launched it, and why; the person is empty of what the UI launched."""
        is_run = self.record is None
        return read_origin(self.tags, operation="" if is_run else "backfill")

    @property
    def title(self) -> str:
        """As the UI shows it, or else its tables and the ends of their ranges."""
        if self.record is not None and self.record.title:
            return self.record.title
        keys = [key for found in self.targets.values() for key in (found[0], found[-1])]
        if not keys:
            runs = self.chain.runs
            job = (self.record and self.record.job_name) or (runs[0].job_name if runs else "")
            return job or "nothing"
        return f"{', '.join(self.targets)} {min(keys)}...{max(keys)}"

    @property
    def requested_at(self) -> datetime:
        """When it was asked for, UTC."""
        if self.record is not None:
            return datetime.fromtimestamp(self.record.backfill_timestamp, tz=UTC)
        return self.chain.begun_at

    @property
    def started_at(self) -> datetime | None:
        """When the first of its runs began to work, UTC; None if none has."""
        starts = [record.start_time for record in self.chain.records if record.start_time]
        return datetime.fromtimestamp(min(starts), tz=UTC) if starts else None

    @property
    def ended_at(self) -> datetime | None:
        """When all had ended, UTC; None while anything is at work or to come."""
        if self.unfinished_runs or not self.is_settled:
            return None
        if self.chain.records:
            return self.chain.ended_at
        end = self.record.backfill_end_timestamp if self.record else None
        return datetime.fromtimestamp(end, tz=UTC) if end else None

    @property
    def unfinished_runs(self) -> list[DagsterRun]:
        """Its runs that are queued or at work, in the order in which they were made."""
        return [run for run in self.chain.runs if run.status in UNFINISHED]

    @property
    def is_settled(self) -> bool:
        """Whether no more runs of it are requested."""
        if self.goes_on:
            return False
        return self.record is None or self.record.status in BULK_ACTION_TERMINAL_STATUSES

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody cancelled it; also, while it was paused, what Dagster calls failed."""
        runs, statuses = self.chain.runs, (BulkActionStatus.CANCELING, BulkActionStatus.CANCELED)
        if self.record is not None and self.record.status in statuses:
            return True
        if self.record is None and (
            runs[-1].status.value in ("CANCELING", "CANCELED")
            or any(FOREGROUND_CANCELLED_TAG in run.tags for run in runs)
        ):
            return True
        is_at_end = self.is_settled and not self.unfinished_runs and not any(map(is_paused, runs))
        return is_at_end and any(map(was_dropped, runs))

    @property
    def error(self) -> str:
        """What Dagster itself failed at with the backfill, in one line; empty if it did not."""
        found = self.record.error if self.record is not None else None
        return " ".join(found.message.split())[:300] if found else ""

    def list_target_ranges(self, catalog: Catalog) -> list[tuple[str, list[tuple[str, str]]]]:
        """Lists its tables, each with first and last key of its contiguous partitions."""
        tables = {table.key: table for table in catalog.tables}
        return [
            (key, find_ranges(find_partitions_def(tables[key]), keys))
            for key, keys in self.targets.items()
        ]


def find_whole_id(catalog: Catalog, instance: DagsterInstance, wanted: str) -> str:
    """Finds the id of a backfill or a run that `wanted` is, or is the beginning of.

    Raises:
        UnknownRunError: if there is none, or more than one, or the beginning is too short; or if it
            is of another code location.
    """
    whole = wanted
    if not (wanted and (instance.get_backfill(wanted) or instance.has_run(wanted))):
        backfills = (backfill.backfill_id for backfill in instance.get_backfills())
        whole = find_id(wanted, (*backfills, *instance.get_run_ids()))
    if whole is None:
        raise UnknownRunError(
            f"this Dagster home knows no backfill and no run {wanted}: "
            "`backfill-assets backfill list` lists the backfills, and DAGSTER_HOME says which "
            "home it is"
        )
    run = instance.get_run_by_id(whole)
    if not (is_ours(run.tags) if run else read_backfill(catalog, instance, whole).is_ours):
        raise UnknownRunError(f"{whole} is of another code location: see to it in Dagster's UI")
    return whole


def find_backfill(catalog: Catalog, instance: DagsterInstance, wanted: str) -> Backfill:
    """Finds a backfill by its id, or by that of any of its runs; or by the beginning of one.

    Raises:
        UnknownRunError: as `find_whole_id`.
    """
    whole = find_whole_id(catalog, instance, wanted)
    run = instance.get_run_by_id(whole)
    return read_backfill(catalog, instance, find_chain(run) if run else whole)


def read_backfill(
    catalog: Catalog, instance: DagsterInstance, backfill_id: str, *, chain: Chain | None = None
) -> Backfill:
    """Reads a backfill, or a run that belongs to none, as they are now.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        backfill_id: the backfill, or the first of its runs.
        chain: its runs, where not all of them are meant.
    """
    record, chain = instance.get_backfill(backfill_id), chain or read_chain(instance, backfill_id)
    targets = _find_targets(catalog, instance, record, chain)
    is_shells = any(FOREGROUND_TAG in run.tags for run in chain.runs)
    has_ended = any(FOREGROUND_ENDED_TAG in run.tags for run in chain.runs) or (
        is_shells and chain.runs[-1].status is DagsterRunStatus.CANCELED
    )
    return Backfill(chain, record, targets, goes_on=is_shells and not has_ended)


def awaits_shell(backfill: Backfill, *, now: datetime) -> bool:
    """Tells whether a shell is at work on its runs, or between two of them, as far as is known."""
    if not backfill.goes_on or backfill.unfinished_runs:
        return backfill.goes_on
    return (now - backfill.chain.ended_at).total_seconds() < _SHELL_SECONDS


def list_backfills(catalog: Catalog, instance: DagsterInstance, *, limit: int) -> list[Backfill]:
    """Lists the backfills of ours that were asked for last, newest first."""
    looked_at = limit
    while True:  # without Dagster's cursor, at which SQLAlchemy warns
        records = instance.get_backfills(limit=looked_at)
        read = (read_backfill(catalog, instance, record.backfill_id) for record in records)
        found = list(islice((backfill for backfill in read if backfill.is_ours), limit))
        if len(found) == limit or len(records) < looked_at:
            return found
        looked_at *= 4


def _find_targets(
    catalog: Catalog, instance: DagsterInstance, record: PartitionBackfill | None, chain: Chain
) -> dict[str, Sequence[str]]:
    """Finds the partitions by table: as Dagster keeps them, or else of all runs so far."""
    targets: dict[str, Iterable[str]]
    if record is not None and record.asset_backfill_data is not None:
        subsets = record.asset_backfill_data.target_subset.partitions_subsets_by_asset_key
        targets = {
            key.to_user_string(): subset.get_partition_keys() for key, subset in subsets.items()
        }
    else:
        names = record.partition_names if record is not None else None
        requested = find_last_requested(catalog, instance, chain.runs)
        targets = {key: runs if names is None else names for key, runs in requested.items()}
    sought = ((table.key, targets.get(table.key)) for table in catalog.tables)
    return {table: sorted(keys) for table, keys in sought if keys}


def find_last_requested(
    catalog: Catalog,
    instance: DagsterInstance,
    runs: Iterable[DagsterRun],
    *,
    known: dict[str, dict[str, list[str]]] | None = None,
) -> dict[str, dict[str, DagsterRun]]:
    """Finds, by table and partition, the last of some runs that was to publish it.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        runs: in the order in which they were made.
        known: what runs were to publish, by run id, for who asks again and again.
    """
    known = {} if known is None else known
    found: dict[str, dict[str, DagsterRun]] = {}
    for run in runs:
        if run.run_id not in known:
            known[run.run_id] = find_requested(catalog, instance, run)
        for table, keys in known[run.run_id].items():
            found.setdefault(table, {}).update(dict.fromkeys(keys, run))
    return found


def find_requested(
    catalog: Catalog, instance: DagsterInstance, run: DagsterRun
) -> dict[str, list[str]]:
    """Finds the partitions that a run was to publish, by table; none if it doesn't say which."""
    ends, assets = find_run_range(run), find_run_assets(instance, run)
    found: dict[str, list[str]] = {}
    for table in catalog.tables:
        if ends is not None and find_asset_key(table) in assets:
            try:
                keys = find_keys_in_range(find_partitions_def(table), first=ends[0], last=ends[1])
            except PartitionRangeError:  # Its step will say so.
                continue
            found[table.key] = list(keys)
    return found
