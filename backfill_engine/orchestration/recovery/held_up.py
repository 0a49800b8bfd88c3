"""What a step that withheld partitions holds up: the assets after it, which Dagster won't run."""

from dagster import AssetExecutionContext

from backfill_engine.catalog import Catalog
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.recovered_runs import enter_evaluation
from backfill_engine.orchestration.records.events import build_unasked
from backfill_engine.orchestration.runs.continuation import Continuation, find_continuation
from backfill_engine.rules.verdicts import Check


def find_what_can_go_on(
    catalog: Catalog, context: AssetExecutionContext, warehouse: Warehouse
) -> Continuation:
    """Finds the run's next assets, and their partitions whose upstream is published."""
    return find_continuation(
        catalog,
        context.instance,
        context.job_def.asset_layer.asset_graph,
        context.asset_key,
        context.run,
        warehouse=warehouse,
        first=context.partition_keys[0],
        last=context.partition_keys[-1],
    )


def hold_up(
    catalog: Catalog, context: AssetExecutionContext, found: Continuation, check_events: int
) -> None:
    """Says of the checks of what can't go on that they were not asked, within a budget of events.

    The others are asked when their partitions go on.
    """
    if len(found.assets) * len(found.blocked) * len(Check) > check_events:
        return
    why = f"held up by what was withheld of {context.asset_key.to_user_string()}"
    with store_together(context.instance):
        for asset_key in found.assets:
            table = catalog.find_table(asset_key.to_user_string())
            for key in found.blocked:
                for evaluation in build_unasked(table, key, why):
                    enter_evaluation(context.instance, context.run.run_id, evaluation)
