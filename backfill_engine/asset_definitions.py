"""Makes Dagster's assets and checks of the tables of a catalog.

A partitioned asset publishes its table safely: each step of a run goes `window → transform → audit
→ publish → record`, for all partitions of its range together: one Spark write and one Delta commit,
whatever their number. External assets stand for what lands and for tables that somebody else
writes; Dagster runs nothing for these. The check `partition_is_readable` asks whether an
independent reader still finds what the audit saw: each publish answers that, too, and the UI runs
the check over any range.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from dagster import (
    AssetCheckEvaluation,
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSpec,
    AssetDep,
    AssetExecutionContext,
    AssetMaterialization,
    AssetsDefinition,
    AssetSpec,
    BackfillPolicy,
    MaterializeResult,
    MetadataValue,
    TableColumn,
    TableColumnConstraints,
    TableSchema,
    asset,
    asset_check,
)

from backfill_engine.catalog import Catalog
from backfill_engine.contents.partition_contents import PartitionReader
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.due.readiness import EXTERNAL, REQUIRED, ROWS_FOR
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.dagster_internals import (
    EVENTS_ARE_LOGGED,
    AssetGraph,
    ObjectMetadataValue,
    find_run_assets,
)
from backfill_engine.orchestration.instance.materializations import find_latest_materializations
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.instance.partition_definitions import (
    LANDING,
    find_asset_key,
    find_landing_key,
    find_partitions_def,
    map_overlap,
)
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.orchestration.records.events import (
    build_readable_summary,
    build_summaries,
    describe_target,
    list_publish_checks,
)
from backfill_engine.orchestration.records.failures import build_failure, fail_with_message
from backfill_engine.orchestration.records.step_messages import describe_withheld
from backfill_engine.orchestration.records.ui_pages import (
    build_certificate_metadata,
    build_failure_metadata,
)
from backfill_engine.orchestration.recovery.recovery import skip_downstream_checks
from backfill_engine.orchestration.runs.features import Feature, StepRequest, prepare_hooks
from backfill_engine.orchestration.runs.run_options import PublishConfig, build_run, check_whole_run
from backfill_engine.orchestration.runs.run_tags import WITHHELD_TAG
from backfill_engine.orchestration.steps import Step
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.resources import build_reader, find_resources, list_resources
from backfill_engine.rules.verdicts import Check
from backfill_engine.table_assets import SAME_KEY, TableTranslator, Upstream
from backfill_engine.tables.declarations import Table

CATALOG = "backfill_engine/catalog"
"""Name under which an asset's metadata has the catalog that it was built of."""

_LISTED = 7

_WITHHOLDS = (
    "A partition that fails is withheld before it is published, though Dagster calls the check "
    "non-blocking; a rule that only warns says why."
)

_QUESTIONS = {
    Check.COMPLETE: "Are all rows there? Counts within bounds, reconciled with the layer above.",
    Check.VALID: "Is each row right? Unique keys, nulls, values, rejects, fields as declared.",
    Check.STABLE: "Does it look like before? Population stability index over fixed bins.",
}


def build_asset(
    catalog: Catalog,
    recipe: Recipe,
    upstreams: Sequence[Upstream],
    *,
    translator: TableTranslator,
    features: Sequence[Feature],
) -> AssetsDefinition:
    """Builds the asset that publishes a table.

    Args:
        catalog: of the code location.
        recipe: how the table is made.
        upstreams: the tables that it reads, and which of their partitions.
        translator: says how the table shows in Dagster.
        features: that take part in each publish.
    """
    table = recipe.table
    asset_key, partitions_def = find_asset_key(table), find_partitions_def(table)
    checks = list_publish_checks(table)

    @asset(
        key=asset_key,
        group_name=translator.get_group_name(table),
        description=translator.get_description(recipe),
        kinds={"pyspark", "delta"},
        owners=list(translator.get_owners(table)),
        code_version=recipe.code_version,
        op_tags=OWN_STEP,
        required_resource_keys=list_resources(catalog),
        partitions_def=partitions_def,
        backfill_policy=BackfillPolicy.single_run(),
        deps=_list_deps(recipe, upstreams),
        check_specs=[
            AssetCheckSpec(
                check.value,
                asset=asset_key,
                description=_describe_check(check, table),
                partitions_def=partitions_def,
            )
            for check in checks
        ],
        metadata={
            "dagster/column_schema": _describe_columns(table),
            "dagster/table_name": table.key.replace("/", "."),
            CATALOG: ObjectMetadataValue(catalog),
            REQUIRED: {upstream.table.key: upstream.required.value for upstream in upstreams},
            ROWS_FOR: {
                upstream.table.key: upstream.rows_for for upstream in upstreams if upstream.rows_for
            },
        },
    )
    def publish_range(
        context: AssetExecutionContext, config: PublishConfig
    ) -> Iterator[
        AssetMaterialization | AssetCheckEvaluation | AssetCheckResult | MaterializeResult
    ]:
        spark, lakehouse = find_resources(catalog, context)
        now = datetime.now(tz=UTC)
        with fail_with_message(context):
            check_whole_run(catalog, context.instance, context.run, now=now)
            run = build_run(table, config, context.run, now=now)
            request = StepRequest(
                catalog,
                context.instance,
                context.run,
                recipe,
                context.partition_keys,
                lakehouse.warehouse(),
            )
            hooks, chosen = prepare_hooks(features, request), recipe
            for hook in hooks:
                chosen = hook.choose_inputs(chosen)
            run = replace(run, hooks=hooks)
            guards = [other for other in catalog.recipes.values() if table.key in other.guards]
            step = Step(catalog, context, chosen, run, spark, lakehouse, guards)
            # As a generator, so that a chunk's events are stored before the next begins.
            recorder = yield from step.publish()
        certificate = build_certificate_metadata(recorder.certificate)
        summaries = build_summaries(recorder.results, checks, certificate)
        if recorder.withheld:
            tags = {WITHHELD_TAG: asset_key.to_user_string()}
            context.instance.add_run_tags(context.run.run_id, tags)
            yield from summaries
            yield from build_readable_summary(asset_key, recorder.results)
            rest = skip_downstream_checks(
                catalog, context, lakehouse.warehouse(), lakehouse.check_events
            )
            message = describe_withheld(
                catalog, context.run, table, recorder.withheld, len(recorder.results), rest
            )
            raise build_failure(message, build_failure_metadata(message, recorder.certificate))
        yield MaterializeResult(metadata=EVENTS_ARE_LOGGED, check_results=summaries)

    return publish_range


def find_catalogs(graph: AssetGraph) -> list[Catalog]:
    """Finds the catalogs whose assets are in a graph."""
    values = (graph.get(key).metadata.get(CATALOG) for key in graph.get_all_asset_keys())
    found = (value.instance for value in values if isinstance(value, ObjectMetadataValue))
    return list({id(value): value for value in found if isinstance(value, Catalog)}.values())


def _list_deps(recipe: Recipe, upstreams: Sequence[Upstream]) -> list[AssetDep]:
    tables = [
        AssetDep(
            find_asset_key(read),
            partition_mapping=map_overlap(recipe.table, read)
            if upstream.mapping is None
            else upstream.mapping,
        )
        for upstream, read in zip(upstreams, recipe.inputs, strict=True)
    ]
    if recipe.landing is None:
        return tables
    return [*tables, AssetDep(find_landing_key(recipe.table), partition_mapping=SAME_KEY)]


def _describe_check(check: Check, table: Table) -> str:
    """Describes the question that a check answers, what it does, and the table's rules."""
    rules = (f"- {rule.describe()}" for rule in table.all_rules if rule.check is check)
    return "\n".join((_QUESTIONS[check], _WITHHOLDS, "", *rules))


def _describe_columns(table: Table) -> TableSchema:
    return TableSchema(
        columns=[
            TableColumn(
                name=column.name,
                type=column.type,
                description=column.comment,
                constraints=TableColumnConstraints(nullable=column.nullable),
            )
            for column in table.columns
        ]
    )


def build_landing_asset(recipe: Recipe, landing_root: str) -> AssetSpec:
    """Builds the asset that stands for what a table reads of the landing zone.

    Its partitions are the table's. The sensor `observe_landing` observes them.

    Args:
        recipe: how the table is made; it reads the landing zone.
        landing_root: root of the landing zone.
    """
    landing, table = recipe.landing, recipe.table
    assert landing is not None, f"{table.key} reads no landing zone"
    uri = landing.locate(landing_root)
    kind, below = landing.describe_place(table)
    return AssetSpec(
        find_landing_key(table),
        description=(
            f"What lands for `{table.key}`, by its partitions, at `{uri}/{below}`. Observations "
            "say what came, went or was rewritten, and when that was seen; nothing is run here."
        ),
        group_name=LANDING,
        kinds={kind},
        partitions_def=find_partitions_def(table),
        metadata={"dagster/uri": uri},
    )


def build_external_asset(table: Table) -> AssetSpec:
    """Builds the asset that stands for a Delta table that somebody else writes."""
    return AssetSpec(
        find_asset_key(table),
        description=f"A Delta table at `{table.location}` that somebody else writes.",
        group_name=table.layer,
        kinds={"delta"},
        owners=list(table.owners),
        partitions_def=find_partitions_def(table),
        metadata={"dagster/uri": table.location, EXTERNAL: True},
    )


def build_readable_check(catalog: Catalog, table: Table) -> AssetChecksDefinition:
    """Builds the check of one table, over its asset's partitions."""
    asset_key, partitions_def = find_asset_key(table), find_partitions_def(table)

    @asset_check(
        name=Check.READABLE.value,
        asset=asset_key,
        description="Does an independent reader find the rows and checksum that the audit saw?",
        partitions_def=partitions_def,
        op_tags=OWN_STEP,
        required_resource_keys=list_resources(catalog),
    )
    def partition_is_readable(context: AssetCheckExecutionContext) -> AssetCheckResult:
        spark, lakehouse = find_resources(catalog, context)
        with fail_with_message(context):
            return _check_range(
                context, table, build_reader(spark, lakehouse), lakehouse.warehouse()
            )

    return partition_is_readable


def _check_range(
    context: AssetCheckExecutionContext, table: Table, reader: PartitionReader, warehouse: Warehouse
) -> AssetCheckResult:
    """Reads back what is published of the run's range, and logs an evaluation of each partition."""
    asset_key = find_asset_key(table)
    keys = context.op_execution_context.partition_keys
    if asset_key in find_run_assets(context.instance, context.run):
        # The asset ran in this very run: its publish has read back each partition.
        return AssetCheckResult(
            passed=True, metadata={"partitions": len(keys), "checked": "when published"}
        )
    log = read_log(warehouse, table)
    published = [key for key in keys if key in log.publishes]
    contents = reader.read_published(log.require(), build_partitions(table, published))
    targets = find_latest_materializations(context.instance, asset_key, published)
    different = [
        key for key, found in contents.items() if not found.agrees_with(log.publishes[key])
    ]
    with store_together(context.instance):
        for key, found in contents.items():
            audited = log.publishes[key]
            evaluation = AssetCheckEvaluation(
                asset_key=asset_key,
                check_name=Check.READABLE.value,
                passed=key not in different,
                partition=key,
                metadata={
                    "rows": found.rows,
                    "rows audited": audited.rows,
                    "checksum": found.checksum,
                    "checksum audited": audited.checksum,
                    "delta_version": log.version,
                },
                target_materialization_data=describe_target(targets.get(key)),
            )
            # Dagster takes it, though its signature doesn't say so.
            context.op_execution_context.log_event(evaluation)  # pyright: ignore[reportArgumentType]
    listed = ", ".join(shorten(different, _LISTED))
    return AssetCheckResult(
        passed=True,  # of no partition: those that differ have failed evaluations of their own
        description=f"not as audited: {listed}" if different else None,
        metadata={
            "partitions": len(contents),
            "never published": len(keys) - len(contents),
            "different": MetadataValue.json(different),
        },
    )
