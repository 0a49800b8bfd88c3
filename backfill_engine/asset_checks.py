"""`partition_is_readable`: an independent reader still finds what the audit saw.

Each publish answers it too; this is the check on its own, to be run over any range from the UI.
"""

from dagster import (
    AssetCheckEvaluation,
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    MetadataValue,
    asset_check,
)

from backfill_engine.catalog import Catalog
from backfill_engine.contents.partition_reader import PartitionReader
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.dagster_internals import find_run_assets
from backfill_engine.orchestration.instance.materializations import find_latest_materializations
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.records.events import describe_target
from backfill_engine.orchestration.records.failures import fail_with_message
from backfill_engine.resources import build_reader, find_resources, list_resources
from backfill_engine.rules.verdicts import Check
from backfill_engine.tables.declarations import Table


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
    contents = reader.read_back(log.require(), build_partitions(table, published))
    targets = find_latest_materializations(context.instance, asset_key, published)
    different: list[str] = []
    with store_together(context.instance):
        for key, found in contents.items():
            audited = log.publishes[key]
            passed = found.agrees_with(audited)
            if not passed:
                different.append(key)
            evaluation = AssetCheckEvaluation(
                asset_key=asset_key,
                check_name=Check.READABLE.value,
                passed=passed,
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
    return AssetCheckResult(
        passed=not different,
        metadata={
            "partitions": len(contents),
            "never published": len(keys) - len(contents),
            "different": MetadataValue.json(different),
        },
    )
