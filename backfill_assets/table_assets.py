"""Turns a compute function into a partitioned asset that publishes its table safely.

Each step of a run goes `window → transform → audit → publish → record`, for all partitions of its
range together: one Spark write and one Delta commit, whatever their number.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
    AssetCheckSpec,
    AssetDep,
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetsDefinition,
    BackfillPolicy,
    Failure,
    IdentityPartitionMapping,
    MaterializeResult,
    PartitionMapping,
    TableColumn,
    TableColumnConstraints,
    TableSchema,
    asset,
)

from backfill_assets.catalog import find_table
from backfill_assets.lake.input_window import InputWindow
from backfill_assets.orchestration.dagster_internals import EVENTS_ARE_LOGGED
from backfill_assets.orchestration.events import (
    build_readable_summary,
    build_summaries,
    list_publish_checks,
)
from backfill_assets.orchestration.failures import fail_with_message
from backfill_assets.orchestration.partition_definitions import find_partitions_def
from backfill_assets.orchestration.readiness import REQUIRED, Required
from backfill_assets.orchestration.run_options import (
    WITHHELD_TAG,
    PublishConfig,
    build_run,
    check_whole_run,
)
from backfill_assets.orchestration.step_messages import describe_withheld
from backfill_assets.orchestration.steps import Step, StepResult
from backfill_assets.publishing.code_versions import compute_code_version
from backfill_assets.publishing.recipes import Compute, CountSource, Recipe
from backfill_assets.resources import LakehouseResource, SparkResource
from backfill_assets.rules.verdicts import Check
from backfill_assets.tables.declarations import Table
from backfill_assets.tables.landings import Landing

RECIPES: dict[str, Recipe] = {}
"""Of all decorated functions, by table key: for running them without Dagster."""

_QUESTIONS = {
    Check.COMPLETE: "Are all rows there? Counts within bounds, reconciled with the layer above.",
    Check.VALID: "Is each row right? Unique keys, nulls, values, rejects, fields as declared.",
    Check.STABLE: "Does it look like before? Population stability index over fixed bins.",
}

SAME_KEY = IdentityPartitionMapping()


@dataclass(frozen=True)
class Upstream:
    """A table that an asset reads.

    Attributes:
        table: the table; becomes the one of the catalog.
        mapping: the partitions that a partition needs of it; else the one of the same key.
        required: which of these must be published before it may go; without the others it is
            provisional.
    """

    table: Table
    mapping: PartitionMapping = SAME_KEY
    required: Required = Required.ALL

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", find_table(self.table.key))


def table_asset(
    table: Table,
    *,
    inputs: Sequence[Upstream] = (),
    landing: Landing | None = None,
    count_source: CountSource | None = None,
) -> Callable[[Compute], AssetsDefinition]:
    """Decorates a function that computes partitions of `table` from a window of pinned inputs.

    Args:
        table: what the asset publishes, as declared; the catalog's table of this key gives the
            asset its key, group, partitions, columns, rules.
        inputs: the tables that the function reads.
        landing: what the function reads of the landing zone.
        count_source: records of the layer above that each partition must account for; left out, of
            what landed all, and of a single input those of the same partition.
    """
    table = find_table(table.key)
    partitions_def = find_partitions_def(table)

    def decorate(compute: Compute) -> AssetsDefinition:
        recipe = Recipe(
            table=table,
            compute=compute,
            inputs=tuple(one.table for one in inputs),
            landing=landing,
            count_source=count_source or _count_whole_source(inputs, landing),
            code_version=compute_code_version(compute, table, landing),
        )
        RECIPES[table.key] = recipe
        asset_key = AssetKey([table.layer, table.name])
        checks = list_publish_checks(table)

        @asset(
            key=asset_key,
            group_name=table.layer,
            description=compute.__doc__,
            kinds={"pyspark", "delta"},
            owners=["team:data-platform"],
            code_version=recipe.code_version,
            partitions_def=partitions_def,
            backfill_policy=BackfillPolicy.single_run(),
            deps=[
                AssetDep(AssetKey([one.table.layer, one.table.name]), partition_mapping=one.mapping)
                for one in inputs
            ],
            check_specs=[
                AssetCheckSpec(
                    check.value,
                    asset=asset_key,
                    description=_QUESTIONS[check],
                    partitions_def=partitions_def,
                )
                for check in checks
            ],
            metadata={
                "dagster/column_schema": _describe_columns(table),
                "dagster/table_name": table.key.replace("/", "."),
                REQUIRED: {one.table.key: one.required.value for one in inputs},
            },
        )
        def publish_range(
            context: AssetExecutionContext,
            config: PublishConfig,
            spark: SparkResource,
            lakehouse: LakehouseResource,
        ) -> Iterator[
            AssetMaterialization | AssetCheckEvaluation | AssetCheckResult | MaterializeResult
        ]:
            outcome, now = StepResult(), datetime.now(tz=UTC)
            with fail_with_message(context):
                check_whole_run(context.run, now=now)
                run = build_run(table, config, context.run, now=now)
                step = Step(context, recipe, run, spark, lakehouse)
                # As a generator, so that a chunk's events are stored before the next begins.
                yield from step.publish(outcome)
            summaries = build_summaries(outcome.results, checks)
            if outcome.withheld:
                tags = {WITHHELD_TAG: asset_key.to_user_string()}
                context.instance.add_run_tags(context.run.run_id, tags)
                yield from summaries
                yield build_readable_summary(asset_key, outcome.results)
                message = describe_withheld(context, table, outcome.withheld, len(outcome.results))
                raise Failure(description=message, allow_retries=False)
            yield MaterializeResult(metadata=EVENTS_ARE_LOGGED, check_results=summaries)

        return publish_range

    return decorate


def _count_whole_source(inputs: Sequence[Upstream], landing: Landing | None) -> CountSource | None:
    if landing is not None:
        return InputWindow.count_landing
    if len(inputs) == 1 and inputs[0].mapping == SAME_KEY:
        source = inputs[0].table
        return lambda window: window.count_input(source)
    return None


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
