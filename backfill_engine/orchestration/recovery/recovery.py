"""Tells the Dagster instance what the tables know and it does not.

The tables need nothing: a commit is there or isn't. But a run that was killed between a commit and
its events leaves partitions published that Dagster takes for missing, and a new or older Dagster
home knows nothing of what happened since. Nor does one whose events were wiped, deleted or lost. So
what the tables say is compared with what the instance shows, whatever else the instance remembers.
The log of a table says what is published, with all that the run's events said; the certificates say
what was withheld.

A partition that doesn't hold what its last run published was changed by another writer, whose
commits are in the table's log. What only the Dagster instance knows of, and the log doesn't have,
was lost with an older copy of the table, or with the table itself.

Upstream goes first: what a home is told of an upstream partition later is something new to Dagster.
"""

import datetime as dt
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dagster import (
    AssetCheckEvaluation,
    AssetCheckSeverity,
    AssetExecutionContext,
    AssetKey,
    AssetPartitionStatus,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    EventLogRecord,
    RunsFilter,
)

from backfill_engine.catalog import Catalog
from backfill_engine.contents.partition_contents import IN_THIS_PROCESS, PartitionReader
from backfill_engine.lake.commits import (
    Publish,
    describe_foreign_changes,
    find_changed_partitions,
    group_publishes,
)
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.due.input_tags import find_input_tags
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.materializations import (
    DATA_VERSION,
    PartitionStatusCache,
    find_data_versions,
    find_latest_materializations,
    find_planning_runs,
)
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.orchestration.instance.recovered_runs import (
    RECOVERED_JOB,
    RECOVERED_TAG,
    enter_evaluation,
    enter_materialization,
    enter_plan,
    enter_runs,
)
from backfill_engine.orchestration.records.events import (
    build_evaluations,
    build_materialization,
    build_unasked,
    describe_target,
)
from backfill_engine.orchestration.records.withheld_records import (
    WithheldRecords,
    find_withheld_records,
)
from backfill_engine.orchestration.runs.claims import fail_dead_runs, find_dead_runs
from backfill_engine.orchestration.runs.pausing import Continuation, find_continuation
from backfill_engine.proof.certificates import keep_publishes, locate_certificate
from backfill_engine.publishing.differences import explain_change
from backfill_engine.publishing.results import PartitionResult, judge_contents
from backfill_engine.publishing.statements import read_result
from backfill_engine.publishing.write_modes.options import TAKE_BACK
from backfill_engine.rules.verdicts import Check, Outcome

_LISTED = 50
_EVALUATIONS = 10_000
"""Of a recovery; beyond, only those are recorded that did not pass."""


@dataclass(frozen=True)
class Recovery:
    """What the instance has yet to be told of one table.

    Attributes:
        log: of the table.
        published: partitions that a commit published and no event tells of, as audited, ascending.
        doubtful: of these, by key, those that are to be run again, and why: they are not as their
            run audited them, or replaced what came from newer inputs. They stay missing or failed.
        withheld: what certificates say was withheld since the partition was published last, of
            which the instance shows nothing; and which certificates can't be read.
        changed: partitions that another writer has changed, by key, and how.
        is_new: whether the instance shows nothing of the table, of which partitions are published.
    """

    log: TableLog
    published: tuple[PartitionResult, ...] = ()
    doubtful: Mapping[str, str] = field(default_factory=dict)
    withheld: WithheldRecords = field(default_factory=WithheldRecords)
    changed: Mapping[str, str] = field(default_factory=dict)
    is_new: bool = False

    @property
    def withheld_keys(self) -> list[str]:
        """The partitions that were withheld, ascending."""
        return sorted(key for record in self.withheld.runs for key in record.keys)


def find_recovery(
    instance: DagsterInstance,
    log: TableLog,
    *,
    dead: Collection[str] = (),
    with_certificates: bool = False,
    reader: PartitionReader = IN_THIS_PROCESS,
) -> Recovery:
    """Finds what the instance has yet to be told of a table; reads what it was not told of.

    Args:
        instance: the Dagster instance.
        log: of the table.
        dead: unfinished runs that are dead; of other unfinished ones nothing is to be recorded.
        with_certificates: look for withheld partitions in any case, and not only if the instance
            lacks something that was published.
        reader: reads what it was not told of.
    """
    asset_key = find_asset_key(log.table)
    shown = find_data_versions(instance, asset_key)
    lost = _find_unsure(instance, log, dead, shown)
    known = find_recorded_versions(instance, asset_key, lost)
    lost = [key for key in lost if _is_lost(log.publishes[key], known.get(key))]
    published: list[PartitionResult] = []
    doubtful: dict[str, str] = {}
    partitions = build_partitions(log.table, lost)
    for key, found in reader.read_published(log, partitions).items():
        publish = log.publishes[key]
        result, judged = read_result(publish), judge_contents(found, publish)
        if judged.outcome is not Outcome.PASSED:
            doubtful[key] = f"{found.rows} rows are not as they were audited"
        elif newer := _find_replaced_newer(log, publish):
            doubtful[key] = f"it replaced version {newer}, of newer inputs"
        else:
            findings = {**result.verdict.findings, Check.READABLE: (judged,)}
            verdict = replace(result.verdict, findings=findings)
            published.append(replace(result, verdict=verdict))
    return Recovery(
        log,
        tuple(published),
        doubtful,
        find_withheld_records(instance, log, entered=[result.key for result in published])
        if lost or with_certificates
        else WithheldRecords(),
        find_changed(instance, log, shown),
        is_new=bool(lost) and not known and len(lost) == len(log.publishes),
    )


def apply_recovery(instance: DagsterInstance, recovery: Recovery, *, now: dt.datetime) -> None:
    """Records what was found: first what was published, then what was withheld later.

    Args:
        instance: the Dagster instance.
        recovery: what was found.
        now: UTC.
    """
    log, asset_key = recovery.log, find_asset_key(recovery.log.table)
    published = (*(result.key for result in recovery.published), *recovery.doubtful)
    runs = {key: log.publishes[key].record.run_id for key in published}
    withholding = (withheld.certificate.run_id for withheld in recovery.withheld.runs)
    enter_runs(instance, log.warehouse, (*runs.values(), *withholding))
    at_work = _find_runs_at_work(instance, asset_key, [result.key for result in recovery.published])
    input_tags = find_input_tags(instance, recovery.published, log.table)
    before = _find_publishes_before(log, [result.key for result in recovery.published])
    with store_together(instance):
        for result in recovery.published:
            record = log.publishes[result.key].record
            event = build_materialization(
                asset_key,
                result,
                uri=log.uri,
                code_version=record.code_version,
                certificate=locate_certificate(log, record.run_id, record.backfill_id),
                input_tags=input_tags[result.key],
                final_changed=explain_change(
                    before.get(result.key), result, code_version=record.code_version
                ),
                recovered_at=now,
            )
            enter_materialization(instance, record.run_id, event)
    _enter_evaluations(instance, asset_key, recovery.published, runs)
    with store_together(instance):
        for key, run_id in at_work.items():
            # What was entered is newer than its plan, and would pass for its own success.
            enter_plan(instance, run_id, asset_key, key)
        planned_by = find_planning_runs(instance, asset_key) if recovery.doubtful else {}
        for key in recovery.doubtful:
            if planned_by.get(key) != runs[key]:
                enter_plan(instance, runs[key], asset_key, key)
    for withheld in recovery.withheld.runs:
        run_id = withheld.certificate.run_id
        with store_together(instance):
            for key in withheld.keys:
                enter_plan(instance, run_id, asset_key, key)
        of_run = dict.fromkeys(withheld.keys, run_id)
        _enter_evaluations(instance, asset_key, withheld.results, of_run)
    enter_changed(instance, log, recovery.changed)


def _find_publishes_before(log: TableLog, keys: Collection[str]) -> dict[str, Publish]:
    """Finds what of another run was published before the last publish of each partition."""
    publishes = group_publishes(log.known_commits) if keys else {}
    found: dict[str, Publish] = {}
    for key in keys:
        last = log.publishes[key]
        for publish in publishes.get(key, ()):
            if publish.version < last.version and publish.record.run_id != last.record.run_id:
                found[key] = publish
                break
    return found


def _find_runs_at_work(
    instance: DagsterInstance, asset_key: AssetKey, keys: Collection[str]
) -> dict[str, str]:
    """Finds the unfinished runs that are to materialize partitions, by key."""
    planned_by = find_planning_runs(instance, asset_key) if keys else {}
    planned_by = {key: run_id for key, run_id in planned_by.items() if key in keys}
    if not planned_by:
        return {}
    runs = instance.get_runs(RunsFilter(run_ids=sorted(set(planned_by.values()))))
    unfinished = {run.run_id for run in runs if not run.is_finished}
    return {key: run_id for key, run_id in planned_by.items() if run_id in unfinished}


def _enter_evaluations(
    instance: DagsterInstance,
    asset_key: AssetKey,
    results: Sequence[PartitionResult],
    runs: Mapping[str, str],
) -> None:
    """Enters the checks of partitions, each under the run that `runs` has for its key."""
    targets = find_latest_materializations(instance, asset_key, [result.key for result in results])
    many = len(results) * len(Check) > _EVALUATIONS
    recovering = frozenset[str]() if many else None
    with store_together(instance):
        for evaluation in build_evaluations(
            asset_key, results, targets=targets, recovering=recovering
        ):
            assert evaluation.partition is not None
            enter_evaluation(instance, runs[evaluation.partition], evaluation)


def _find_runs(instance: DagsterInstance, log: TableLog) -> dict[str, DagsterRun]:
    """Finds the runs that published partitions last, by id; those that the instance saw itself.

    Of one that was entered for another table, this table's events may still be lacking.
    """
    run_ids = sorted({publish.record.run_id for publish in log.publishes.values()})
    if not run_ids:
        return {}
    runs = instance.get_runs(RunsFilter(run_ids=run_ids))
    return {run.run_id: run for run in runs if RECOVERED_TAG not in run.tags}


def _find_unsure(
    instance: DagsterInstance, log: TableLog, dead: Collection[str], shown: Mapping[str, str]
) -> list[str]:
    """Finds the partitions of which the instance may lack the last publish.

    Of a run that still works it will be told. Of one that ended well it shows what is there, unless
    events were lost since; that takes one look at all partitions.
    """
    runs = _find_runs(instance, log)
    unsure: list[str] = []
    for key, publish in log.publishes.items():
        run = runs.get(publish.record.run_id)
        if run is None or run.run_id in dead:
            unsure.append(key)
        elif run.is_finished:
            ended_well = run.status is DagsterRunStatus.SUCCESS
            if not ended_well or shown.get(key) != publish.checksum:
                unsure.append(key)
    return unsure


def _is_lost(publish: Publish, recorded: int | None) -> bool:
    # Of what a run took back, an earlier event tells; that run had no success.
    if publish.record.write_mode == TAKE_BACK:
        return recorded is None
    return recorded is None or recorded < publish.version


def _find_replaced_newer(log: TableLog, publish: Publish) -> int | None:
    """Finds a version that a run replaced without knowing of it; None if there is none.

    Where nothing locks a table, a run sees only after its commit that another came before; one that
    died between the two leaves what it computed from older inputs.
    """
    based_on = publish.record.based_on
    if based_on is None:
        return None
    run_id = publish.record.run_id
    between = (
        commit
        for commit in log.list_commits_after(based_on)
        if commit.version < publish.version
        and find_changed_partitions([commit], [publish.key], run_id=run_id)
    )
    return max((commit.version for commit in between), default=None)


def find_recorded_versions(
    instance: DagsterInstance, asset_key: AssetKey, keys: Collection[str]
) -> dict[str, int]:
    """Finds the Delta version that the latest event of each partition tells of."""
    latest = find_latest_materializations(instance, asset_key, keys)
    versions = {key: _read_version(record) for key, record in latest.items()}
    return {key: version for key, version in versions.items() if version is not None}


CHANGED_TAG = "backfill_assets/changed_by_another_writer"
"""Tag of an entered run, under which partitions show as failed: the table's newest version."""


def find_changed(
    instance: DagsterInstance, log: TableLog, shown: Mapping[str, str]
) -> dict[str, str]:
    """Finds the partitions that another writer has changed, and says how, by key.

    Args:
        instance: the Dagster instance.
        log: of the table.
        shown: the data version of each partition that the instance shows, by key.
    """
    foreign = describe_foreign_changes(log.foreign_changes)
    return {**_find_lost(instance, log, shown), **foreign}


def enter_changed(instance: DagsterInstance, log: TableLog, changed: Mapping[str, str]) -> None:
    """Enters a failed run of the partitions that the instance still shows as materialized."""
    asset_key, partitions_def = find_asset_key(log.table), find_partitions_def(log.table)
    statuses = PartitionStatusCache(instance).find(asset_key, sorted(changed), partitions_def)
    shown = [key for key, status in statuses.items() if status is AssetPartitionStatus.MATERIALIZED]
    if not shown:
        return
    tags = {RECOVERED_TAG: "true", CHANGED_TAG: str(log.version)}
    run_id = str(uuid.uuid4())
    instance.add_run(
        DagsterRun(RECOVERED_JOB, run_id=run_id, status=DagsterRunStatus.FAILURE, tags=tags)
    )
    latest = find_latest_materializations(instance, asset_key, shown)
    with store_together(instance):
        for key in shown:
            enter_plan(instance, run_id, asset_key, key)
            evaluation = AssetCheckEvaluation(
                asset_key=asset_key,
                check_name=Check.READABLE.value,
                passed=False,
                partition=key,
                severity=AssetCheckSeverity.ERROR,
                description=changed[key],
                metadata={"why": changed[key]},
                target_materialization_data=describe_target(latest.get(key)),
            )
            enter_evaluation(instance, run_id, evaluation)


def _find_lost(
    instance: DagsterInstance, log: TableLog, shown: Mapping[str, str]
) -> dict[str, str]:
    """Finds the partitions whose last publish the instance knows of, and the log does not have."""
    publishes = log.publishes
    unlike = [key for key in shown if key not in publishes or publishes[key].checksum != shown[key]]
    if not unlike:
        return {}
    checksums = {
        commit.version: commit.record.checksums for commit in log.known_commits if commit.record
    }
    latest = find_latest_materializations(instance, find_asset_key(log.table), unlike)
    return {
        key: f"changed by another writer (version {_read_version(record)}, which this Dagster home "
        "knows of, is no longer in the table)"
        for key, record in latest.items()
        if not _is_in_log(record, log, checksums)
    }


def _is_in_log(
    record: EventLogRecord, log: TableLog, checksums: Mapping[int, Mapping[str, str]]
) -> bool:
    """Tells whether the log has the publish that an event is about, as far as it is known."""
    version, event = _read_version(record), record.asset_materialization
    if version is None or event is None or event.partition is None:
        return True
    if version not in checksums:
        return version <= log.version
    published = checksums[version].get(event.partition)
    if published is None:
        # A table that was made anew has other commits under the same numbers.
        return event.partition in log.publishes or log.known_since > 0
    return published == (event.tags or {}).get(DATA_VERSION)


def _read_version(record: EventLogRecord) -> int | None:
    event = record.asset_materialization
    version = event.metadata.get("delta_version") if event else None
    return version.value if version is not None and isinstance(version.value, int) else None


@dataclass(frozen=True)
class RecoveryReport:
    """What was recorded, or is to be.

    Attributes:
        dead_runs: runs whose process is gone.
        published: partitions, as `layer/name key`, that no event told of.
        withheld: likewise those that were withheld.
        to_run_again: likewise those that a dead run published and that can't be relied on.
        changed: likewise those that another writer has changed.
        messages: all of it in words.
    """

    dead_runs: tuple[str, ...]
    published: tuple[str, ...]
    withheld: tuple[str, ...]
    to_run_again: tuple[str, ...]
    changed: tuple[str, ...]
    messages: tuple[str, ...]


def recover_table(
    catalog: Catalog,
    instance: DagsterInstance,
    log: TableLog,
    *,
    now: dt.datetime,
    dead: Collection[str] = (),
    with_certificates: bool = False,
    reader: PartitionReader = IN_THIS_PROCESS,
) -> list[Recovery]:
    """Finds what the instance has yet to be told of a table, and records it.

    What a dead run committed is kept from the log's retention, too. The rest is as in
    `find_recovery`.

    Returns:
        What was found of upstream tables, and of the table.
    """
    recovery = find_recovery(
        instance,
        keep_publishes(log),
        dead=dead,
        with_certificates=with_certificates,
        reader=reader,
    )
    upstream = _recover_upstream(catalog, instance, recovery, reader, now=now)
    apply_recovery(instance, recovery, now=now)
    return [*upstream, recovery]


def recover_tables(
    catalog: Catalog,
    instance: DagsterInstance,
    select: str | None,
    *,
    dry_run: bool,
    reader: PartitionReader = IN_THIS_PROCESS,
) -> RecoveryReport:
    """Marks dead runs failed, and records what tables and certificates know of all partitions.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        select: tables, comma-separated; None for all.
        dry_run: only find it.
        reader: reads what the instance was not told of.

    Raises:
        TableError: if a table doesn't exist.
    """
    now = dt.datetime.now(tz=dt.UTC)
    find = find_dead_runs if dry_run else fail_dead_runs
    dead = find(instance, now=now, silent_seconds=catalog.settings.silent_seconds)
    messages = describe_dead_runs(dead, done=not dry_run)
    warehouse = catalog.warehouse
    tables = (
        [catalog.find_table(key.strip()) for key in select.split(",")] if select else catalog.tables
    )
    published, withheld, doubtful, changed = (list[str]() for _ in range(4))
    for table in tables:
        log = read_log(warehouse, table)
        if dry_run:
            found = [find_recovery(instance, log, dead=dead, with_certificates=True, reader=reader)]
        else:
            found = recover_table(
                catalog, instance, log, now=now, dead=dead, with_certificates=True, reader=reader
            )
        for recovery in found:
            messages += describe_recovery(recovery, done=not dry_run)
        recovery = found[-1]
        published += [f"{table.key} {result.key}" for result in recovery.published]
        withheld += [f"{table.key} {key}" for key in recovery.withheld_keys]
        doubtful += [f"{table.key} {key}" for key in recovery.doubtful]
        changed += [f"{table.key} {key}" for key in recovery.changed]
    return RecoveryReport(
        *map(tuple, (dead, published, withheld, doubtful, changed, messages)),
    )


def _recover_upstream(
    catalog: Catalog,
    instance: DagsterInstance,
    recovery: Recovery,
    reader: PartitionReader,
    *,
    now: dt.datetime,
) -> list[Recovery]:
    """Recovers the upstream of what was found, where the instance lacks something of it."""
    log = recovery.log
    keys = {key for result in recovery.published for key in result.consumed.upstream}
    return [
        found
        for table in catalog.tables
        if table.key in keys
        for found in recover_table(
            catalog, instance, read_log(log.warehouse, table), now=now, reader=reader
        )
    ]


def describe_dead_runs(dead: Mapping[str, str], *, done: bool = True) -> list[str]:
    """Describes dead runs, by id and how that is known; `done`: whether they are marked failed."""
    state = "was dead and is marked failed" if done else "is dead"
    return [f"run {run_id} {state}: {why}" for run_id, why in dead.items()]


def describe_recovery(recovery: Recovery, *, done: bool = True) -> list[str]:
    """Describes what the instance was not told of; nothing if there is nothing of it.

    Args:
        recovery: what was found.
        done: whether it has been recorded.
    """
    key, verb = recovery.log.table.key, "recorded" if done else "to be recorded:"
    messages: list[str] = []
    if recovery.is_new:
        messages.append(
            f"{key}: this Dagster home shows nothing of the table at {recovery.log.uri}, of which "
            f"{len(recovery.log.publishes)} partitions are published"
        )
    if recovery.published:
        found = [result.key for result in recovery.published]
        messages.append(
            f"{key}: {verb} {len(found)} partitions that were published, of which this Dagster "
            f"home has no events ({found[0]} … {found[-1]})"
        )
    if recovery.doubtful:
        listed = shorten([f"{name}: {why}" for name, why in recovery.doubtful.items()], _LISTED)
        messages.append(f"{key}: published, but to be run again: {'; '.join(listed)}")
    if recovery.changed:
        listed = shorten([f"{name} {why}" for name, why in recovery.changed.items()], _LISTED)
        messages.append(
            f"{key}: {'; '.join(listed)}: run these again, or accept them as they are with "
            f"`backfill-assets accept {key} --from … --to … --reason …`"
        )
    if recovery.log.lacks_commits:
        messages.append(
            f"{key}: the log begins with version {recovery.log.begins_with}; what was published "
            "before is to be read from certificates"
        )
    messages += recovery.withheld.unreadable
    for withheld in recovery.withheld.runs:
        messages.append(
            f"{key}: {verb} {', '.join(shorten(withheld.keys, _LISTED))} as withheld by run "
            f"{withheld.certificate.run_id}"
        )
    return messages


def skip_downstream_checks(
    catalog: Catalog, context: AssetExecutionContext, warehouse: Warehouse, check_events: int
) -> Continuation:
    """Finds what can go on after a step that withheld partitions, and what can't.

    Records of the checks of what can't that they were not asked, within a budget of events; the
    others are asked when their partitions go on.
    """
    instance, asset_key = context.instance, context.asset_key
    graph = context.job_def.asset_layer.asset_graph
    rest = find_continuation(catalog, instance, graph, asset_key, context.run, warehouse=warehouse)
    if len(rest.assets) * len(rest.blocked) * len(Check) <= check_events:
        why = f"held up by what was withheld of {asset_key.to_user_string()}"
        with store_together(instance):
            for held_up in rest.assets:
                table = catalog.find_table(held_up.to_user_string())
                for key in rest.blocked:
                    for evaluation in build_unasked(table, key, why):
                        enter_evaluation(instance, context.run.run_id, evaluation)
    return rest
