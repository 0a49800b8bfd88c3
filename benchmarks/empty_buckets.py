"""Three assets that do nothing, with the events of the orders pipeline: what these cost alone.

`GROWTH_PARTITIONS` says over how many partitions. As `checked_assets`, but with each table's own
checks, and with the tags that the project's materializations have.
"""

import os
from collections.abc import Iterator

from dagster import (
    AssetCheckEvaluation,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetsDefinition,
    BackfillPolicy,
    Definitions,
    MaterializeResult,
    StaticPartitionsDefinition,
    asset,
    in_process_executor,
)

from backfill_engine.grains.buckets import Buckets
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.records.events import list_publish_checks
from backfill_engine.rules.verdicts import Check
from backfill_engine.tables.declarations import Table
from backfill_engine_tests.project import CUSTOMER_ORDERS, RAW_ORDERS, STAGING_ORDERS
from benchmarks.empty_assets import METADATA, build_result, tell_passes

BUCKETS = StaticPartitionsDefinition(
    Buckets(step=1, space=int(os.environ["GROWTH_PARTITIONS"])).list_keys()
)

_TAGS = {"dagster/code_version": "0123456789abcdef", "dagster/data_version": "0123456789abcdef"}


def build_checked_asset(table: Table) -> AssetsDefinition:
    """Stores as many events as the table's asset, with metadata of about the same size."""
    asset_key = AssetKey([table.layer, table.name])
    specs = [
        AssetCheckSpec(check.value, asset=asset_key, partitions_def=BUCKETS)
        for check in (*list_publish_checks(table), Check.READABLE)
    ]

    @asset(
        key=asset_key,
        partitions_def=BUCKETS,
        backfill_policy=BackfillPolicy.single_run(),
        check_specs=specs,
    )
    def do_nothing_and_check(
        context: AssetExecutionContext,
    ) -> Iterator[AssetMaterialization | AssetCheckEvaluation | MaterializeResult]:
        keys = context.partition_keys
        with store_together(context.instance):
            for key in keys:
                yield AssetMaterialization(asset_key, partition=key, metadata=METADATA, tags=_TAGS)
        with store_together(context.instance):
            yield from tell_passes(asset_key, specs, keys)
        yield build_result(specs)

    return do_nothing_and_check


defs = Definitions(
    assets=[build_checked_asset(table) for table in (RAW_ORDERS, STAGING_ORDERS, CUSTOMER_ORDERS)],
    executor=in_process_executor,
)
