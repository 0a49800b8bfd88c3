"""A rehearsal as a Dagster run: which partitions, in which order, and what they would become.

The job `rehearse` is made of it.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from dagster import AssetKey, Config, MetadataValue, OpExecutionContext
from pydantic import Field

from backfill_engine.catalog import Catalog
from backfill_engine.errors import SettingsError
from backfill_engine.extras.rehearsal.records import (
    Gates,
    Rehearsal,
    RehearsedTable,
    describe_rehearsal,
    remove_scratch,
    write_rehearsal,
)
from backfill_engine.extras.rehearsal.rehearser import Rehearser
from backfill_engine.filesystems import check_landing_root
from backfill_engine.lake.table_log import read_log
from backfill_engine.orchestration.due.readiness import find_readiness
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.selecting.selections import find_keys_in_range
from backfill_engine.publishing.serving import choose_served
from backfill_engine.resources import LakehouseResource, SparkResource, build_reader


class RehearsalConfig(Config):
    """What to rehearse, and how much of it may change before a person is asked."""

    ranges: dict[str, list[list[str]]] = Field(
        description="By table, as staging/flights: ranges of partitions, each as [first, last]."
    )
    reason: str = Field(default="", description="Why; kept with what the rehearsal showed.")
    keep: bool = Field(
        default=False, description="Keep the rehearsed tables; else only what they showed is kept."
    )
    max_changed_share: float | None = Field(
        default=None, ge=0, le=1, description="Of a partition's rows, that may differ (0 to 1)."
    )
    max_psi: float | None = Field(
        default=None, ge=0, description="Of a column with a drift rule, against what is published."
    )

    def list_keys(self, catalog: Catalog) -> dict[AssetKey, list[str]]:
        """Lists the partitions, by asset.

        Raises:
            SettingsError: if there are none.
            TableError: if there is no such table.
            PartitionRangeError: if a key is unknown, or a range is reversed.
        """
        found: dict[AssetKey, list[str]] = {}
        for name, ranges in self.ranges.items():
            table = catalog.find_table(name)
            keys: dict[str, None] = {}
            for ends in ranges:
                if len(ends) != 2:
                    raise SettingsError(f"{name} {ends}: a range is [first, last]")
                first, last = ends
                partitions_def = find_partitions_def(table)
                keys |= dict.fromkeys(find_keys_in_range(partitions_def, first=first, last=last))
            if keys:
                found[find_asset_key(table)] = sorted(keys)
        if not found:
            raise SettingsError("nothing to rehearse: name tables and ranges of their partitions")
        return found


def rehearse_partitions(
    catalog: Catalog,
    context: OpExecutionContext,
    config: RehearsalConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Shows what publishing partitions would change, and publishes nothing.

    The partitions are computed and audited as a run would do it, into tables of their own.
    """
    # Published tables, their watermarks and checks, and what Dagster knows stay as they are.
    chosen, graph = config.list_keys(catalog), context.repository_def.asset_graph
    ordered = [key for key in graph.toposorted_asset_keys if key in chosen]
    warehouse, now = lakehouse.warehouse(), datetime.now(tz=UTC)
    warehouse.check_writable()
    if any(catalog.recipes[key.to_user_string()].landing for key in ordered):
        check_landing_root(lakehouse.landing_root)
    reader = build_reader(spark, lakehouse)
    rehearser = Rehearser(spark.spark_session, lakehouse, context.run_id, now, reader)
    try:
        tables = _rehearse_tables(context, graph, rehearser, catalog, ordered, chosen)
    except BaseException:
        remove_scratch(warehouse, context.run_id)
        raise
    gates = Gates(config.max_changed_share, config.max_psi)
    if not config.keep:
        remove_scratch(warehouse, context.run_id)
    rehearsal = Rehearsal(
        rehearsal_id=context.run_id,
        at=now,
        reason=config.reason,
        gates=gates,
        tables=tuple(tables),
        exceeded=tuple(what for table in tables for what in gates.list_exceeded(table)),
        kept=rehearser.scratch.root if config.keep else "",
    )
    write_rehearsal(warehouse, rehearsal)
    context.add_output_metadata({"differences": MetadataValue.md(describe_rehearsal(rehearsal))})
    context.log.info(f"`backfill-assets apply {context.run_id}` publishes what was rehearsed")
    return context.run_id


def _rehearse_tables(
    context: OpExecutionContext,
    graph: AssetGraph,
    rehearser: Rehearser,
    catalog: Catalog,
    ordered: Sequence[AssetKey],
    chosen: Mapping[AssetKey, Sequence[str]],
) -> list[RehearsedTable]:
    """Rehearses tables, upstream ones first; what reads withheld partitions is held back, too."""
    good: dict[AssetKey, list[str]] = {}
    bad: dict[AssetKey, list[str]] = {}
    tables: list[RehearsedTable] = []
    for key in ordered:
        name = key.to_user_string()
        recipe = catalog.recipes[name]
        recipe = choose_served(recipe, read_log(rehearser.warehouse, recipe.table))
        inputs = [read_log(rehearser.warehouse, table) for table in recipe.inputs]
        readiness = find_readiness(
            context.instance,
            graph,
            key,
            chosen[key],
            expected=good,
            refused=bad,
            unread=recipe.unread,
            inputs={log.table.key: log for log in inputs},
        )
        table = rehearser.rehearse(
            recipe,
            chosen[key],
            blocked=readiness.blocked,
            provisional=readiness.provisional,
        )
        good[key] = table.good
        bad[key] = [partition.partition for partition in table.withheld]
        context.log.info(
            f"{table.table}: {len(good[key])} rehearsed, {len(bad[key])} would be withheld"
        )
        tables.append(table)
    return tables
