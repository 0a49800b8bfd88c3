"""Three assets that do nothing, with the events of the orders pipeline: what these cost alone.

`GROWTH_PARTITIONS` says over how many partitions. As `checked_assets`, but with each table's own
checks, and with the tags that the project's materializations have.
"""

import os
from collections.abc import Iterator

from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
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

from backfill_assets.grains.buckets import Buckets
from backfill_assets.orchestration.dagster_internals import EVENTS_ARE_LOGGED
from backfill_assets.orchestration.events import list_publish_checks
from backfill_assets.rules.verdicts import Check
from backfill_assets.tables.declarations import Table
from backfill_assets.tables.orders import CUSTOMER_ORDERS, RAW_ORDERS, STAGING_ORDERS
from benchmarks.empty_assets import count_evaluations

BUCKETS = StaticPartitionsDefinition(
    Buckets(step=1, space=int(os.environ["GROWTH_PARTITIONS"])).list_keys()
)

_METADATA: dict[str, float | str] = {
    **{f"values(column_{number})": number / 7 for number in range(10)},
    **{f"values(column_{number}): bound": "0 values outside 1 to 31" for number in range(5)},
}
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
        for key in keys:
            yield AssetMaterialization(asset_key, partition=key, metadata=_METADATA, tags=_TAGS)
        for key in keys if count_evaluations(len(keys)) else ():
            for spec in specs:
                yield AssetCheckEvaluation(
                    asset_key=asset_key,
                    check_name=spec.name,
                    passed=True,
                    partition=key,
                    metadata=_METADATA,
                )
        yield MaterializeResult(
            metadata=EVENTS_ARE_LOGGED,
            check_results=[AssetCheckResult(check_name=one.name, passed=True) for one in specs],
        )

    return do_nothing_and_check


defs = Definitions(
    assets=[build_checked_asset(table) for table in (RAW_ORDERS, STAGING_ORDERS, CUSTOMER_ORDERS)],
    executor=in_process_executor,
)
