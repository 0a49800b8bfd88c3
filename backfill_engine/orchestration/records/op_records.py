"""Records what an op published, which has no asset of its own: as a step of the asset would."""

from collections.abc import Sequence

from dagster import OpExecutionContext

from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.due.input_tags import find_input_tags
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.materializations import find_latest_materializations
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.orchestration.records.events import build_evaluations, build_materialization
from backfill_engine.proof.certificates import locate_certificate
from backfill_engine.publishing.results import PartitionResult, Run


def record_results(
    context: OpExecutionContext,
    log: TableLog,
    results: Sequence[PartitionResult],
    run: Run,
    *,
    code_version: str,
) -> None:
    """Records results after their commit: materializations of what is published, then checks.

    Args:
        context: of the op.
        log: of the table.
        results: of some of its partitions.
        run: that published them.
        code_version: by which they were computed.
    """
    instance, asset_key = context.instance, find_asset_key(log.table)
    published = [result for result in results if result.version is not None]
    input_tags = find_input_tags(instance, published, log.table)
    with store_together(instance):
        for result in published:
            event = build_materialization(
                asset_key,
                result,
                uri=log.uri,
                code_version=code_version,
                certificate=locate_certificate(log, run.run_id, run.backfill_id),
                input_tags=input_tags[result.key],
            )
            context.log_event(event)
    keys = [result.key for result in results]
    targets = find_latest_materializations(instance, asset_key, keys)
    with store_together(instance):
        for evaluation in build_evaluations(asset_key, results, targets=targets, recovering=None):
            # Dagster takes it, though its signature doesn't say so.
            context.log_event(evaluation)  # pyright: ignore[reportArgumentType]
