"""`ops/backfill_health`: lag, what is due, how long runs take, what they changed and withheld.

All of it is told by watermarks, logs and certificates, and by Dagster's states; no JVM.
"""

import datetime as dt
from collections.abc import Iterator, Sequence

from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSelection,
    Config,
    MaterializeResult,
    MetadataValue,
    ScheduleDefinition,
    asset,
    define_asset_job,
    in_process_executor,
)
from pydantic import Field

from backfill_engine.catalog import Catalog
from backfill_engine.escaping import write_code_block
from backfill_engine.extras.health import late_arrivals
from backfill_engine.extras.health.outcomes import (
    Outcome,
    find_quantile,
    list_outcomes,
)
from backfill_engine.extras.health.table_health import DUPLICATES, TableHealth, describe_tables
from backfill_engine.extras.pages import Section, plot, render_page, write_page
from backfill_engine.orchestration.due.due_partitions import Memory, describe_landed_beyond
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.instance.ranges import build_command, shorten
from backfill_engine.orchestration.instance.recovered_runs import (
    Reconciliation,
    find_reconciliations,
)
from backfill_engine.orchestration.planning.run_requests import FoundWork, find_run_requests
from backfill_engine.orchestration.records.failures import fail_with_message
from backfill_engine.resources import find_resources, list_resources
from backfill_engine.settings import MOST_DAYS
from backfill_engine.tables.declarations import Table

NOTHING_IS_DUE = "nothing_is_due"
SOURCE_AGREES = "last_reconciliation_agrees"
_LISTED = 20
_RECONCILIATIONS = 30


class BackfillHealthConfig(Config):
    """How far back to look."""

    days: int = Field(default=90, ge=1, le=MOST_DAYS, description="Days of runs to look at.")


def build_watch_schedule(catalog: Catalog) -> ScheduleDefinition:
    """Builds the schedule of both assets about the tables, with the job that it starts."""
    name = catalog.prefix("watch")
    watch = define_asset_job(
        name,
        AssetSelection.assets(late_arrivals.find_key(catalog), find_key(catalog)),
        description=(
            "How late data comes and how backfills are doing: figures, checks of lag, pages."
        ),
        executor_def=in_process_executor,
    )
    return ScheduleDefinition(
        name=f"{name}_nightly",
        job=watch,
        cron_schedule="0 6 * * *",
        execution_timezone="UTC",
        description=(
            "At 06:00 UTC, after the runs of the night: is each day whose input has come published "
            "over all layers, how far do watermarks lag, how late does data come? It only watches: "
            "its checks warn, and publish nothing. Turn it on wherever runs go on by themselves."
        ),
    )


def name_lag_check(table: Table) -> str:
    """Names the check of the lag of one table."""
    return f"{table.layer}_{table.name}_lag"


def find_key(catalog: Catalog) -> AssetKey:
    """Finds the key of the asset."""
    return AssetKey(["ops", catalog.prefix("backfill_health")])


def build_backfill_health(catalog: Catalog) -> AssetsDefinition:
    """Builds the asset `ops/backfill_health`."""
    key = find_key(catalog)

    @asset(
        key=key,
        group_name="ops",
        kinds={"delta"},
        op_tags=OWN_STEP,
        required_resource_keys=list_resources(catalog),
        check_specs=[
            AssetCheckSpec(
                NOTHING_IS_DUE,
                asset=key,
                description=(
                    "Is each partition whose input has come published over all layers, from that "
                    "input, and did nothing land beyond BACKFILL_END? Looks as the sensor "
                    "process_due_partitions does, and forgets what that tried: what is withheld "
                    "counts."
                ),
            ),
            AssetCheckSpec(
                SOURCE_AGREES,
                asset=key,
                description="Did each partition that `reconcile` compared last agree?",
            ),
            *(
                AssetCheckSpec(
                    name_lag_check(table),
                    asset=key,
                    description=(
                        f"Is the watermark of {table.key} within BACKFILL_MAX_LAG_DAYS of the last "
                        "partition that there can be by now?"
                    ),
                )
                for table in catalog.tables
            ),
        ],
    )
    def backfill_health(
        context: AssetExecutionContext, config: BackfillHealthConfig
    ) -> Iterator[MaterializeResult]:
        """How backfills do: lag, what is due, runtimes, what changed; with a page."""
        _, lakehouse = find_resources(catalog, context)
        with fail_with_message(context):
            warehouse, settings = lakehouse.warehouse(), catalog.settings
            now = dt.datetime.now(tz=dt.UTC)
            tables = describe_tables(catalog, context.instance, lakehouse)
            outcomes = list_outcomes(warehouse, since=now - dt.timedelta(days=config.days))
            reconciled = find_reconciliations(
                context.instance, catalog.prefix("reconcile"), most=_RECONCILIATIONS
            )
            work = find_run_requests(
                catalog,
                context.instance,
                context.repository_def.asset_graph,
                warehouse,
                Memory(),
                landing_root=lakehouse.landing_root,
                late_days=settings.late_days,
            )
            beyond = describe_landed_beyond(catalog.recipes, lakehouse.landing_root)
            sections = _build_sections(tables, outcomes, reconciled, work)
            page = render_page("Backfill health", f"As of {_write(now)} UTC.", sections)
            place = write_page(warehouse, "backfill_health", page)
        yield MaterializeResult(
            metadata={
                "page": MetadataValue.path(place),
                **_describe(tables, outcomes, reconciled),
            },
            check_results=[
                _judge_work(catalog, work, beyond),
                _judge_reconciliation(reconciled),
                *(
                    _judge_lag(table, health, settings.max_lag_days)
                    for table, health in zip(catalog.tables, tables, strict=True)
                ),
            ],
        )

    return backfill_health


def _build_sections(
    tables: Sequence[TableHealth],
    outcomes: Sequence[Outcome],
    reconciled: Sequence[Reconciliation],
    work: FoundWork,
) -> list[Section]:
    of_note = [run for run in outcomes if run.withheld or run.failed or run.changed]
    return [
        Section(
            "Tables",
            "Of landed duplicates, the most of any published partition; blank where not counted.",
            head=("table", "published", "failed", *DUPLICATES.values(), "next", "behind"),
            rows=[
                (
                    *(health.table, health.published, health.failed),
                    *(_write_figure(health.duplicates.get(name)) for name in DUPLICATES),
                    health.fault or (health.lag.next_key if health.lag else "no watermark"),
                    f"{health.lag.behind:g} {health.lag.unit}" if health.lag else "",
                )
                for health in tables
            ],
        ),
        Section(
            "What is due",
            "; ".join((*work.errors, *work.notices, *work.waiting, *work.protected))
            or ("" if work.requested else "Nothing: each partition is published from its input."),
            head=("table", "first", "last", "why"),
            rows=[
                (request.table, request.first, request.last, request.reason)
                for request in work.requested[:_LISTED]
            ],
        ),
        Section(
            "What became of partitions",
            "By the day of the run that was to publish them.",
            plot("bar", _count_partitions(outcomes), x="day", y="partitions", color="became"),
        ),
        Section(
            "Withheld, failed or changed by reprocessing, the last",
            "" if of_note else "None.",
            head=("began, UTC", "table", "run", "withheld", "failed", "changed", "rows in them"),
            rows=[
                (
                    *(_write(run.started_at), run.table, run.run_id[:8]),
                    *(run.withheld, run.failed, run.changed, run.changed_rows),
                )
                for run in of_note[: -_LISTED - 1 : -1]
            ],
        ),
        Section(
            "Reconciliations, the last",
            "" if reconciled else "None has run.",
            head=("ended, UTC", "run", "partitions", "different"),
            rows=[
                (_write(found.ended_at), found.run_id[:8], found.compared, found.different)
                for found in reconciled
            ],
        ),
    ]


def _count_partitions(outcomes: Sequence[Outcome]) -> list[dict[str, str | int]]:
    """Counts by the day of the run what became of partitions, for a plot."""
    return [
        {"day": run.started_at.date().isoformat(), "became": became, "partitions": count}
        for run in outcomes
        for became, count in (
            ("published first", run.published - run.again),
            ("again, the same", run.again - run.changed),
            ("again, changed", run.changed),
            ("withheld", run.withheld),
            ("failed", run.failed),
        )
        if count
    ]


def _write_figure(figure: float | None) -> str:
    return "" if figure is None else f"{figure:,.2f}"


def _write(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def _describe(
    tables: Sequence[TableHealth],
    outcomes: Sequence[Outcome],
    reconciled: Sequence[Reconciliation],
) -> dict[str, int | float]:
    """Describes it as numbers, which Dagster plots over time."""
    figures: dict[str, int | float] = {
        "partitions published": sum(run.published for run in outcomes),
        "partitions withheld": sum(run.withheld for run in outcomes),
        "partitions failed": sum(run.failed for run in outcomes),
        "partitions changed": sum(run.changed for run in outcomes),
        "rows in changed partitions": sum(run.changed_rows for run in outcomes),
    }
    for name, words in DUPLICATES.items():
        if counted := [health.duplicates[name] for health in tables if name in health.duplicates]:
            figures[words] = max(counted)
    for health in tables:
        figures[f"{health.table} failed now"] = health.failed
        if health.lag:
            figures[f"{health.table} behind, {health.lag.unit}"] = health.lag.behind
    for layer in dict.fromkeys(run.layer for run in outcomes):
        seconds = [(run.seconds, 1) for run in outcomes if run.layer == layer]
        figures[f"{layer} seconds, p50"] = find_quantile(seconds, 0.5)
        figures[f"{layer} seconds, p95"] = find_quantile(seconds, 0.95)
    if reconciled:
        figures["different at the last reconciliation"] = reconciled[0].different
    return figures


def _judge_lag(table: Table, health: TableHealth, bound: float) -> AssetCheckResult:
    name, lag = name_lag_check(table), health.lag
    if health.fault:
        return AssetCheckResult(passed=False, check_name=name, description=health.fault)
    if lag is None:
        words = "no watermark: no incremental run has processed it"
        return AssetCheckResult(passed=True, check_name=name, description=words)
    return AssetCheckResult(
        passed=lag.behind <= bound,
        check_name=name,
        severity=AssetCheckSeverity.WARN,
        description=(
            f"{lag.behind:g} {lag.unit} behind: processed up to {lag.next_key}, which is next, of "
            f"{lag.last_key}; bound: {bound:g}"
        ),
        metadata={"behind": lag.behind, "bound": bound, "next": lag.next_key},
    )


def _judge_reconciliation(newest_first: Sequence[Reconciliation]) -> AssetCheckResult:
    if not newest_first:
        words = "no reconciliation has run"
        return AssetCheckResult(passed=True, check_name=SOURCE_AGREES, description=words)
    last = newest_first[0]
    return AssetCheckResult(
        passed=not last.different,
        check_name=SOURCE_AGREES,
        severity=AssetCheckSeverity.WARN,
        description=(
            f"{last.different:,} of {last.compared:,} partitions differed; run {last.run_id[:8]}, "
            f"ended {_write(last.ended_at)} UTC"
        ),
        metadata={"different": last.different, "partitions": last.compared},
    )


def _judge_work(catalog: Catalog, work: FoundWork, beyond: Sequence[str]) -> AssetCheckResult:
    found, commands = [*work.errors, *work.notices, *beyond], []
    for request in work.requested:
        table, first, last = request.table, request.first, request.last
        found.append(f"{table} {first}...{last}: {request.reason}")
        commands.append(build_command(catalog, [table], first, last, {}))
    metadata: dict[str, int | MetadataValue] = {"ranges": len(work.requested)}
    if commands:
        block = write_code_block("\n".join(commands[:_LISTED]))
        metadata["what to do"] = MetadataValue.md(block)
    described = shorten([*found, *work.waiting, *work.protected], _LISTED)
    return AssetCheckResult(
        passed=not found,
        check_name=NOTHING_IS_DUE,
        severity=AssetCheckSeverity.WARN,
        description="; ".join(described) or "each is published from its input",
        metadata=metadata,
    )
