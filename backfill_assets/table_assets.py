"""Turns a compute function into a partitioned asset that publishes its table safely.

Each step of a run goes `window → transform → audit → publish → record`, for all partitions of its
range together: one Spark write and one Delta commit, whatever their number.
"""

import json
from collections.abc import Callable, Mapping

from dagster import (
    AssetDep,
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetsDefinition,
    BackfillPolicy,
    DailyPartitionsDefinition,
    Failure,
    MaterializeResult,
    PartitionMapping,
    TableColumn,
    TableColumnConstraints,
    TableSchema,
    asset,
)
from pyspark.sql import DataFrame

from backfill_assets.code_versions import compute_code_version
from backfill_assets.errors import BackfillError, PartitionRangeError
from backfill_assets.lake.slices import Partition
from backfill_assets.tables.declarations import Table
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.lake.window import Window
from backfill_assets.lake.writer import Provenance
from backfill_assets.partitions import build_daily_partitions
from backfill_assets.publishing import (
    PinnedInputs,
    Publication,
    find_emptied_days,
    pin_inputs,
    publish_window,
)
from backfill_assets.resources import LakehouseResource, SparkResource

_Compute = Callable[[Window], DataFrame]

# A range run logs one materialization for each partition, with that partition's figures and data
# version. The event that Dagster would add for every partition of the output (the same for all) is
# turned off by this key, with which Dagster itself marks outputs whose events are already logged.
_EVENTS_ARE_LOGGED = {"__source_asset_observation__": True}


def table_asset(
    table: Table,
    *,
    partitions_def: DailyPartitionsDefinition,
    inputs: Mapping[Table, PartitionMapping] | None = None,
    landing: str | None = None,
) -> Callable[[_Compute], AssetsDefinition]:
    """Decorates a function that computes partitions of `table` from a window of pinned inputs.

    Args:
        table: what the asset publishes; gives the asset its key, group and columns.
        partitions_def: the partitions, one for each value of the table's partition column.
        inputs: the tables that the function reads, with the partitions it needs of them.
        landing: the dataset of the landing zone that the function reads.
    """
    upstream = dict(inputs or {})

    def decorate(compute: _Compute) -> AssetsDefinition:
        code_version = compute_code_version(compute, table)

        @asset(
            key=AssetKey([table.layer, table.name]),
            group_name=table.layer,
            description=compute.__doc__,
            kinds={"pyspark", "delta"},
            owners=["team:data-platform"],
            code_version=code_version,
            partitions_def=partitions_def,
            backfill_policy=BackfillPolicy.single_run(),
            deps=[
                AssetDep(AssetKey([one.layer, one.name]), partition_mapping=mapping)
                for one, mapping in upstream.items()
            ],
            metadata={
                "dagster/column_schema": _describe_columns(table),
                "dagster/table_name": table.key.replace("/", "."),
            },
        )
        def publish_range(
            context: AssetExecutionContext, spark: SparkResource, lakehouse: LakehouseResource
        ) -> MaterializeResult:
            try:
                warehouse = lakehouse.warehouse()
                partitions = _find_partitions(context)
                pinned = pin_inputs(
                    warehouse,
                    inputs=tuple(upstream),
                    landing=lakehouse.landing(landing) if landing else None,
                    partitions=partitions,
                )
                _warn_of_emptied_days(context, warehouse, table, pinned)
                window = Window(
                    spark=spark.spark_session,
                    warehouse=warehouse,
                    table=table,
                    partitions=partitions,
                    versions=pinned.versions,
                    listing=pinned.listing,
                )
                provenance = Provenance(context.run_id, code_version, pinned.describe())
                publication = publish_window(compute, window, provenance)
            except BackfillError as error:
                context.log.error(str(error))
                # The same input gives the same error: a retry would only hide it for longer.
                raise Failure(description=str(error), allow_retries=False) from None
            _record(context, warehouse.uri(table), publication, provenance)
            context.log.info(
                f"{table.key}: published {len(partitions)} partitions "
                f"({partitions[0].key}...{partitions[-1].key}, "
                f"{sum(one.rows for one in publication.measures.values()):,} rows) "
                f"as version {publication.version}"
            )
            return MaterializeResult(metadata=_EVENTS_ARE_LOGGED)

        return publish_range

    return decorate


def _find_partitions(context: AssetExecutionContext) -> tuple[Partition, ...]:
    keys = context.partition_keys
    if not keys:
        first, last = context.partition_key_range
        raise PartitionRangeError(
            f"no partition lies in {first}...{last}: a range is FIRST...LAST, ascending; "
            "nothing was written"
        )
    return build_daily_partitions(keys)


def _warn_of_emptied_days(
    context: AssetExecutionContext, warehouse: Warehouse, table: Table, pinned: PinnedInputs
) -> None:
    for day in find_emptied_days(warehouse, table, pinned.listing) if pinned.listing else ():
        context.log.warning(f"{table.key} {day}: its files are gone; it is published empty")


def _record(
    context: AssetExecutionContext, uri: str, publication: Publication, provenance: Provenance
) -> None:
    """Logs a materialization for each partition. After the commit: these events start children."""
    for key, measures in publication.measures.items():
        if measures.unknown_fields:
            context.log.warning(
                f"{context.asset_key.to_user_string()} {key}: fields that no schema declares were "
                f"left out: {', '.join(measures.unknown_fields)}"
            )
        context.log_event(
            AssetMaterialization(
                asset_key=context.asset_key,
                partition=key,
                metadata={
                    "dagster/partition_row_count": measures.rows,
                    "dagster/uri": uri,
                    "delta_version": publication.version,
                    "checksum": measures.checksum,
                    "input_versions": json.dumps(dict(provenance.input_versions)),
                },
                tags={
                    "dagster/code_version": provenance.code_version,
                    "dagster/data_version": measures.checksum,
                },
            )
        )


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
