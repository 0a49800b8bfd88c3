"""Schedules of runs by night: of what is due, and of the last days again.

They are off unless turned on, as the sensor `process_due_partitions` finds all day long what is due
or changed, however late.
"""

import datetime as dt
import json
from collections.abc import Iterator, Sequence

from dagster import (
    DagsterInstance,
    DefaultScheduleStatus,
    RunRequest,
    RunsFilter,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SkipReason,
)

from backfill_engine.catalog import Catalog
from backfill_engine.jobs import OF_SENSORS, RangeJob, RangeJobs
from backfill_engine.lake.protections import read_protections
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.due.due_partitions import Memory
from backfill_engine.orchestration.instance.dagster_internals import RUN_KEY_TAG
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import find_ranges
from backfill_engine.orchestration.runs.chains import find_partitions_at_work
from backfill_engine.orchestration.runs.protecting import split_protected
from backfill_engine.orchestration.runs.run_tags import (
    IN_BACKGROUND,
    OPERATION_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
)
from backfill_engine.sensors import build_work_request, find_work
from backfill_engine.tables.declarations import Table


def find_last_days(warehouse: Warehouse, tables: Sequence[Table], days: int) -> list[str]:
    """Finds the partitions of the last days that each of the tables has published, ascending.

    Args:
        warehouse: where they are.
        tables: of one grain of time, each with something published.
        days: back from the newest partition, its own day included.
    """
    published = [set(read_log(warehouse, table).publishes) for table in tables]
    keys = sorted(set.intersection(*published)) if published else []
    if not keys:
        return []
    grain = tables[0].grain
    newest, _ = grain.find_times(grain.find_start(keys[-1]))
    assert isinstance(newest, dt.date)
    since = newest - dt.timedelta(days=days)
    return [key for key in keys if grain.find_times(grain.find_start(key))[0] > since]  # type: ignore[operator]


def _build_schedule(catalog: Catalog, job: RangeJob) -> ScheduleDefinition:
    def request_last_days(context: ScheduleEvaluationContext) -> Iterator[RunRequest | SkipReason]:
        warehouse = catalog.warehouse
        # A table that is new, as a second version of features, mustn't keep the others waiting.
        tables = [table for table in job.tables if read_log(warehouse, table).publishes]
        keys = find_last_days(warehouse, tables, catalog.settings.rolling_days)
        if not keys:
            yield SkipReason("no partition is published in all of its tables")
            return
        keys, left_out = split_protected(read_protections(warehouse), tables, keys)
        for text in left_out:
            context.log.info(text)
        if not keys:
            yield SkipReason("; ".join(left_out))
            return
        assert context.repository_def is not None
        at_work = find_partitions_at_work(context.instance, context.repository_def.asset_graph)
        for table in tables:
            if busy := at_work.get(find_asset_key(table), frozenset()) & set(keys):
                yield SkipReason(
                    f"runs are at work on {len(busy)} of these partitions of {table.key}: the "
                    "next night will do"
                )
                return
        # What was never published, as it is withheld, is left out; so is what is protected.
        for first, last in find_ranges(find_partitions_def(tables[0]), keys):
            yield RunRequest(
                run_key=f"{context.scheduled_execution_time:%Y-%m-%d} {first}",
                asset_selection=[find_asset_key(table) for table in tables],
                tags={
                    **IN_BACKGROUND,
                    OPERATION_TAG: "replay",
                    RANGE_START_TAG: first,
                    RANGE_END_TAG: last,
                },
            )

    return ScheduleDefinition(
        name=catalog.prefix(f"rolling_reprocess_{job.name.removeprefix(catalog.name_prefix)}"),
        job_name=job.name,
        cron_schedule="0 4 * * *",
        execution_timezone="UTC",
        execution_fn=request_last_days,
        default_status=DefaultScheduleStatus.STOPPED,
        description=(
            f"At 04:00 UTC: the last BACKFILL_ROLLING_DAYS days of "
            f"{', '.join(table.key for table in job.tables)} again. Turn it on only where input "
            "may change without a trace, as in a source that keeps no evidence: what changed in "
            "files and tables is found without it. Behind other runs in the queue, and not while "
            "runs are at work on these days. Tables of which nothing is published are left out."
        ),
    )


def _build_due_schedule(catalog: Catalog, job: RangeJob) -> ScheduleDefinition:
    keys = {table.key for table in job.tables}
    partitions = job.name.removeprefix(catalog.prefix(OF_SENSORS))
    name = catalog.prefix(f"process_due_nightly_{partitions}")

    def request_due(context: ScheduleEvaluationContext) -> Iterator[RunRequest | SkipReason]:
        requested = _read_requested(context.instance, name)
        tried: dict[str, dict[str, str]] = {}
        for table, states in requested.values():
            tried.setdefault(table, {}).update(states)
        found = find_work(catalog, context, Memory(tried))
        for text in (*found.errors, *found.notices):
            context.log.warning(text)
        works = [work for work in found.requested if work.table in keys]
        still_due = {
            run_key: (table, states)
            for run_key, (table, states) in requested.items()
            if found.memory.tried.get(table, {}).keys() & states
        }
        new = {work.run_key: (work.table, work.states) for work in works}
        context.instance.daemon_cursor_storage.set_cursor_values(
            {name: json.dumps({**still_due, **new})}
        )
        why = (*found.errors, *found.waiting, *found.notices, *found.protected)
        yield from map(build_work_request, works)
        if not works:
            yield SkipReason("; ".join(why) or "all is as its input is")

    return ScheduleDefinition(
        name=name,
        job_name=job.name,
        cron_schedule="*/10 2-5 * * *",
        execution_timezone="UTC",
        execution_fn=request_due,
        default_status=DefaultScheduleStatus.STOPPED,
        description=(
            f"From 02:00 to 05:50 UTC: publishes what is due of tables by {job.tables[0].grain}, "
            "layer after layer, so that a day is published over all layers in the night after all "
            "of its input has come (D+2 where that lands up to two days late). Turn it on, for all "
            "grains, where runs are to begin by night only, in place of the sensor "
            "process_due_partitions, which does the same all day long. Missed nights are caught up."
        ),
    )


def _read_requested(instance: DagsterInstance, name: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Reads what a schedule requested: by run key the table, and of each partition the state.

    What was withheld is requested again once its input is another one. What a look found that no
    run came of, as a preview in the UI, doesn't count. If it is lost, that is tried once more.
    """
    noted = json.loads(instance.daemon_cursor_storage.get_cursor_values({name}).get(name, "{}"))
    return {
        run_key: (table, states)
        for run_key, (table, states) in noted.items()
        if instance.get_runs_count(RunsFilter(tags={RUN_KEY_TAG: run_key}))
    }


def build_rolling_schedules(catalog: Catalog, jobs: RangeJobs) -> list[ScheduleDefinition]:
    """Builds one for each pipeline of time, and where it has several grains, for each of them."""
    return [_build_schedule(catalog, job) for job in jobs.of_pipelines if job.tables[0].grain.cron]


def build_due_schedules(catalog: Catalog, jobs: RangeJobs) -> list[ScheduleDefinition]:
    """Builds one for each of the sensors' jobs, of what is due of its tables."""
    return [_build_due_schedule(catalog, job) for job in jobs.of_grains]
