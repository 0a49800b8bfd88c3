"""Jobs beside the assets: what a person or a schedule runs over partitions that are published."""

from dagster import Failure, OpExecutionContext, job, op

from backfill_assets.errors import BackfillError
from backfill_assets.orchestration.rollbacks import RollbackConfig, roll_back
from backfill_assets.resources import LakehouseResource, SparkResource


@op
def restore_partitions(
    context: OpExecutionContext,
    config: RollbackConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Takes partitions of a table back to what an earlier version held; returns what was done."""
    try:
        done = roll_back(context, config, spark, lakehouse)
    except BackfillError as error:
        context.log.error(str(error))
        raise Failure(description=str(error), allow_retries=False) from None
    context.log.info(done)
    return done


@job(description="Takes partitions of a table back to an earlier version, in one audited commit.")
def rollback_partitions() -> None:
    """One op, so that its configuration is short."""
    restore_partitions()
