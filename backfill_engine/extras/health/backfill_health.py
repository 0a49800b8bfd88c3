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
    AssetPartitionStatus,
    AssetsDefinition,
    Config,
    DagsterInstance,
    MaterializeResult,
    MetadataValue,
    asset,
)
from pydantic import Field

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError
from backfill_engine.escaping import write_code_block
from backfill_engine.extras.health.lateness import TableHealth, measure_lag
from backfill_engine.extras.health.outcomes import (
    Outcome,
    list_outcomes,
    summarize_runtimes,
)
from backfill_engine.extras.health.pages import write_page
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.watermarks import Watermark, read_watermarks
from backfill_engine.orchestration.due.due_partitions import Memory, describe_landed_beyond
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import build_command, shorten
from backfill_engine.orchestration.instance.recovered_runs import (
    Reconciliation,
    find_reconciliations,
)
from backfill_engine.orchestration.planning.work import FoundWork, look_for_work
from backfill_engine.orchestration.records.failures import fail_with_message
from backfill_engine.publishing.inputs import list_landing
from backfill_engine.publishing.statements import read_result
from backfill_engine.resources import LakehouseResource, find_resources, list_resources
from backfill_engine.rules.declared import KEYS_ARE_UNIQUE
from backfill_engine.rules.verdicts import Check
from backfill_engine.settings import MOST_DAYS
from backfill_engine.tables.declarations import Table

NOTHING_IS_DUE = "nothing_is_due"
_LISTED = 20
_RECONCILIATIONS = 30


class BackfillHealthConfig(Config):
    """How far back to look."""

    days: int = Field(default=90, ge=1, le=MOST_DAYS, description="Days of runs to look at.")


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
        """How backfills do: lag, what is due, runtimes, what changed; with a page of plots."""
        _, lakehouse = find_resources(catalog, context)
        with fail_with_message(context):
            warehouse, settings = lakehouse.warehouse(), catalog.settings
            now = dt.datetime.now(tz=dt.UTC)
            tables = _describe_tables(catalog, context.instance, lakehouse)
            outcomes = list_outcomes(warehouse, since=now - dt.timedelta(days=config.days))
            reconciled = find_reconciliations(context.instance, most=_RECONCILIATIONS)
            work = look_for_work(
                catalog,
                context.instance,
                context.repository_def.asset_graph,
                warehouse,
                Memory(),
                landing_root=lakehouse.landing_root,
                late_days=settings.late_days,
            )
            beyond = describe_landed_beyond(catalog.recipes, lakehouse.landing_root)
            # Altair takes a second to import, which the start of every process would pay.
            from backfill_engine.extras.health.health_page import render_health

            bound = settings.max_lag_days
            page = render_health(tables, outcomes, reconciled, work, bound=bound, now=now)
            place = write_page(warehouse, "backfill_health", page)
        yield MaterializeResult(
            metadata={
                "page": MetadataValue.path(place),
                **_describe(tables, outcomes, reconciled),
            },
            check_results=[
                _judge_work(catalog, work, beyond),
                *(
                    _judge_lag(table, health, bound)
                    for table, health in zip(catalog.tables, tables, strict=True)
                ),
            ],
        )

    return backfill_health


def _describe_tables(
    catalog: Catalog, instance: DagsterInstance, lakehouse: LakehouseResource
) -> list[TableHealth]:
    watermarks = read_watermarks(lakehouse.warehouse())
    found: list[TableHealth] = []
    for table in catalog.tables:
        try:
            found.append(
                _describe_table(catalog, instance, lakehouse, table, watermarks.get(table.key))
            )
        except BackfillError as error:  # of one table; the others are told of
            found.append(TableHealth(table.key, fault=str(error)))
    return found


def _describe_table(
    catalog: Catalog,
    instance: DagsterInstance,
    lakehouse: LakehouseResource,
    table: Table,
    watermark: Watermark | None,
) -> TableHealth:
    log = read_log(lakehouse.warehouse(), table)
    last = _find_last_key(catalog, table, lakehouse.landing_root) if watermark else ""
    return TableHealth(
        table.key,
        len(log.publishes),
        _count_failed(instance, table),
        _find_duplicates(log),
        measure_lag(table, watermark, last) if watermark and last else None,
    )


def _find_last_key(catalog: Catalog, table: Table, landing_root: str) -> str:
    """Finds the last partition that there can be by now; of buckets the last that landed.

    Of buckets that read others it is the last that landed for these.
    """
    keys = find_partitions_def(table).get_partition_keys()
    if table.grain.cron:
        return keys[-1] if keys else ""
    if not table.is_published:
        return max(read_log(catalog.warehouse, table).count_rows(), default="")
    recipe = catalog.recipes[table.key]
    if recipe.landing is None:
        return max(
            (_find_last_key(catalog, read, landing_root) for read in recipe.inputs), default=""
        )
    listing = list_landing(recipe, landing_root, build_partitions(table, keys))
    missing = {partition.key for partition in listing.missing} if listing else set(keys)
    return max((key for key in keys if key not in missing), default="")


def _count_failed(instance: DagsterInstance, table: Table) -> int:
    partitions_def = find_partitions_def(table)
    keys = partitions_def.get_partition_keys()
    statuses = instance.get_status_by_partition(find_asset_key(table), keys, partitions_def) or {}
    return sum(status is AssetPartitionStatus.FAILED for status in statuses.values())


def _find_duplicates(log: TableLog) -> float:
    """Finds the most duplicates per 1,000 rows that a publish was let pass with."""
    findings = (
        finding
        for publish in log.publishes.values()
        for finding in read_result(publish).verdict.findings.get(Check.VALID, ())
    )
    return max(
        (one.value or 0.0 for one in findings if one.rule == KEYS_ARE_UNIQUE),
        default=0.0,
    )


def _describe(
    tables: Sequence[TableHealth],
    outcomes: Sequence[Outcome],
    reconciled: Sequence[Reconciliation],
) -> dict[str, int | float]:
    """Describes it as numbers, which Dagster plots over time."""
    figures: dict[str, int | float] = {
        "partitions published": sum(one.published for one in outcomes),
        "partitions withheld": sum(one.withheld for one in outcomes),
        "partitions failed": sum(one.failed for one in outcomes),
        "partitions changed": sum(one.changed for one in outcomes),
        "rows in changed partitions": sum(one.changed_rows for one in outcomes),
        "duplicates per 1,000 rows": max((one.duplicates for one in tables), default=0.0),
    }
    for one in tables:
        figures[f"{one.table} failed now"] = one.failed
        if one.lag:
            figures[f"{one.table} behind, {one.lag.unit}"] = one.lag.behind
    for one in summarize_runtimes(outcomes):
        figures |= {f"{one.layer} seconds, p50": one.p50, f"{one.layer} seconds, p95": one.p95}
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


def _judge_work(catalog: Catalog, work: FoundWork, beyond: Sequence[str]) -> AssetCheckResult:
    commands = [
        build_command(catalog, [one.table], one.first, one.last, {}) for one in work.requested
    ]
    found = [
        *work.errors,
        *work.notices,
        *beyond,
        *(f"{one.table} {one.first}...{one.last}: {one.reason}" for one in work.requested),
    ]
    return AssetCheckResult(
        passed=not found,
        check_name=NOTHING_IS_DUE,
        severity=AssetCheckSeverity.WARN,
        description="; ".join(shorten([*found, *work.waiting, *work.protected], _LISTED))
        or "each is published from its input",
        metadata={
            "ranges": len(work.requested),
            **(
                {"what to do": MetadataValue.md(write_code_block("\n".join(commands[:_LISTED])))}
                if commands
                else {}
            ),
        },
    )
