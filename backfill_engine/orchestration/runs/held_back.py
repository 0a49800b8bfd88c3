"""What a chain of runs was to publish and did not, and why: by table, as it stands at the end."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dagster import DagsterEventType, DagsterInstance, DagsterRun, DagsterRunStatus

from backfill_engine.catalog import Catalog
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.dagster_internals import (
    BACKFILL_TAG,
    find_run_assets,
)
from backfill_engine.orchestration.instance.materializations import find_planning_runs
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import describe_ranges, format_ranges, shorten
from backfill_engine.orchestration.runs.chains import Chain
from backfill_engine.orchestration.runs.run_tags import (
    CHAIN_TAG,
    PAUSED_AT_TAG,
    PAUSED_TAG,
    WITHHELD_TAG,
    is_paused,
    was_dropped,
)
from backfill_engine.proof.certificates import (
    NOT_DUE,
    Certificate,
    CertifiedPartition,
    list_documents,
    read_readable,
)
from backfill_engine.tables.declarations import Table

WITHHELD, FAILED, HELD_UP, CANCELLED = "withheld", "failed", "held up", "cancelled"
PAUSED = "paused"

_LINE_LENGTH = 300
_LISTED = 50
_RANGES_OF_A_REASON = 7


@dataclass(frozen=True)
class HeldBack:
    """Partitions of one table that stand unpublished for a like cause.

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

    held_back: tuple[HeldBack, ...] = ()
    continued: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether there is nothing that a person has to know of; what is not due only waits."""
        return not self.errors and all(one.status == NOT_DUE for one in self.held_back)


def find_chain_result(
    catalog: Catalog, instance: DagsterInstance, warehouse: Warehouse, chain: Chain
) -> ChainResult:
    """Finds what a chain came to.

    Which partitions are held back Dagster says: those that a run of the chain was the last to plan,
    and that nobody has published since. Why, the certificates of the runs say, as far as they got.
    """
    certificates = read_certificates(warehouse, chain)
    rows: dict[tuple[str, str], CertifiedPartition] = {
        (certificate.asset_key, row.partition): row
        for certificate in certificates
        for row in certificate.partitions
    }
    runs = {run.run_id: run for run in chain.runs}
    causes = Causes(instance)
    selected = {key for run in chain.runs for key in find_run_assets(instance, run)}
    held_back: list[HeldBack] = []
    blamed: set[str] = set()
    for table in catalog.tables:
        if find_asset_key(table) not in selected:
            continue
        groups: dict[str, dict[str, str]] = {}
        planned_by = find_planning_runs(instance, find_asset_key(table))
        for key in find_partitions_def(table).get_partition_keys():
            run, row = runs.get(planned_by.get(key, "")), rows.get((table.key, key))
            # What a dead run had published is recorded soon by another sensor.
            if run is None or (row is not None and not row.is_held_back):
                continue
            blamed.add(run.run_id)
            if row is None or is_left_by_pause(run, table, row):
                status, why = causes.find(run)
            else:
                status, why = row.status, row.failures
            groups.setdefault(status, {})[key] = why
        held_back += [HeldBack(table, status, reasons) for status, reasons in groups.items()]
    errors = (
        f"run {run.run_id[:8]} ({run.job_name}): {causes.find_error(run)}"
        for run in _find_unmended(chain)
        if run.run_id not in blamed
    )
    continuing = {run.run_id for run in chain.runs if CHAIN_TAG in run.tags}
    return ChainResult(tuple(held_back), _count(certificates, continuing), tuple(errors))


def is_left_by_pause(run: DagsterRun, table: Table, row: CertifiedPartition) -> bool:
    """Tells whether a step did not come to a partition, as its run paused there.

    Its certificate has that as an error, and what became of the pause since it can't know.
    """
    ended = is_paused(run) or was_dropped(run)
    return ended and row.status == FAILED and table.key in run.tags[PAUSED_AT_TAG].split(",")


def read_certificates(warehouse: Warehouse, chain: Chain) -> list[Certificate]:
    """Reads what the runs left, oldest first; nothing, where the warehouse can't be read."""
    owners = dict.fromkeys(
        run.tags.get(BACKFILL_TAG) or run.tags.get(CHAIN_TAG) or run.run_id for run in chain.runs
    )
    try:
        found = [
            certificate
            for owner in owners
            for certificate in read_readable(list_documents(warehouse, owner))
        ]
    except OSError:  # a notice without its reasons is better than none
        return []
    return sorted(found, key=lambda certificate: certificate.started_at)


def _count(certificates: list[Certificate], run_ids: set[str]) -> dict[str, int]:
    published: dict[str, set[str]] = {}
    for certificate in certificates:
        if certificate.run_id in run_ids and certificate.published:
            published.setdefault(certificate.asset_key, set()).update(certificate.published)
    return {key: len(keys) for key, keys in published.items()}


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
        # One that was paused has gone on, as otherwise the chain would not be at its end.
        told = WITHHELD_TAG in run.tags or PAUSED_TAG in run.tags
        if run.status is DagsterRunStatus.FAILURE and not mended and not told:
            yield run


@dataclass(frozen=True)
class Causes:
    """Why partitions are held back of which no certificate tells; each run is asked once."""

    instance: DagsterInstance
    known: dict[str, str] = field(default_factory=dict)

    def find(self, run: DagsterRun) -> tuple[str, str]:
        """Finds the status, and why."""
        if run.status is DagsterRunStatus.CANCELED:
            return CANCELLED, "its run was cancelled"
        if was_dropped(run):
            return CANCELLED, "its run was cancelled while it was paused"
        if run.status is DagsterRunStatus.SUCCESS:
            return FAILED, "its run ended without it"
        if WITHHELD_TAG in run.tags:
            return HELD_UP, f"held up by what was withheld of {run.tags[WITHHELD_TAG]}"
        if is_paused(run):
            return PAUSED, "its run is paused"
        return FAILED, f"its run failed: {self.find_error(run)}"

    def find_error(self, run: DagsterRun) -> str:
        """Finds in one line what a run failed with."""
        if run.run_id not in self.known:
            errors = filter(None, self._list_errors(run.run_id))
            text = next(errors, "it says not why")
            self.known[run.run_id] = text.splitlines()[0][:_LINE_LENGTH]
        return self.known[run.run_id]

    def _list_errors(self, run_id: str) -> Iterator[str]:
        for entry in self.instance.all_logs(run_id, of_type=DagsterEventType.STEP_FAILURE):
            step = entry.get_dagster_event().step_failure_data
            if step.user_failure_data and step.user_failure_data.description:
                yield step.user_failure_data.description
            cause = step.error and (step.error.cause or step.error)
            if cause:
                yield cause.message.strip()
        for entry in self.instance.all_logs(run_id, of_type=DagsterEventType.RUN_FAILURE):
            failure = entry.get_dagster_event()
            # It has no data of a run that was marked failed.
            error = failure.event_specific_data and failure.job_failure_data.error
            if error:
                yield error.message.strip()
            yield (failure.message or entry.user_message).strip()


def describe_held_back(held_back: HeldBack) -> dict[str, Any]:
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


def build_look_commands(held_back: Sequence[HeldBack]) -> Iterator[str]:
    """Builds the commands that show the rows of what was withheld."""
    for one in held_back:
        if one.status == WITHHELD:
            first, last = min(one.reasons), max(one.reasons)
            ends = f"--from {first} --to {last}"
            yield f"backfill-assets status --withheld --select {one.table.key} {ends}"
