"""A code location with the keys and partitions of two tables, whose assets only take their time.

What Dagster does of a backfill is so seen without Spark: `SECONDS_A_DAY` says how long each
partition takes, and none begins while the file `HELD_BY` is there.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetsDefinition,
    BackfillPolicy,
    Definitions,
    MaterializeResult,
    asset,
    in_process_executor,
)

from backfill_engine.orchestration.instance.dagster_internals import EVENTS_ARE_LOGGED
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.runs.claims import keep_claim
from backfill_engine.tables.declarations import Table
from backfill_engine_tests.project import RAW_FLIGHTS, STAGING_FLIGHTS


def build_slow_asset(table: Table, *upstream: Table) -> AssetsDefinition:
    """Publishes day after day."""

    @asset(
        key=find_asset_key(table),
        deps=[AssetKey([dependency.layer, dependency.name]) for dependency in upstream],
        partitions_def=find_partitions_def(table),
        backfill_policy=BackfillPolicy.single_run(),
        op_tags=OWN_STEP,
    )
    def take_time(context: AssetExecutionContext) -> Iterator[MaterializeResult]:
        with keep_claim(context.instance, context.run.run_id):
            for key in context.partition_keys:
                while "HELD_BY" in os.environ and Path(os.environ["HELD_BY"]).exists():
                    time.sleep(0.2)
                time.sleep(float(os.environ.get("SECONDS_A_DAY", "1")))
                context.log_event(AssetMaterialization(context.asset_key, partition=key))
        yield MaterializeResult(metadata=EVENTS_ARE_LOGGED)

    return take_time


defs = Definitions(
    assets=[build_slow_asset(RAW_FLIGHTS), build_slow_asset(STAGING_FLIGHTS, RAW_FLIGHTS)],
    executor=in_process_executor,
)
