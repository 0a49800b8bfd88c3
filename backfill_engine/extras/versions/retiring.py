"""Retiring a version as a Dagster run: it is kept up no more, and its rows go."""

from collections.abc import Mapping
from datetime import UTC, datetime

from dagster import Config, OpExecutionContext
from pydantic import Field

from backfill_engine.catalog import Catalog
from backfill_engine.errors import PromotionError
from backfill_engine.extras.versions.described import RETIRED, find_retired, find_version
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.protections import Protection, add_protection, read_protections
from backfill_engine.lake.reader import read_table
from backfill_engine.lake.served_versions import find_served
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import build_record, overwrite_partitions, vacuum_table
from backfill_engine.orchestration.recovery.recovery import recover_table
from backfill_engine.orchestration.runs.claims import fail_dead_runs
from backfill_engine.orchestration.runs.run_tags import read_origin
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.quality.measures import measure_partitions
from backfill_engine.resources import LakehouseResource, SparkResource, build_reader
from backfill_engine.tables.declarations import Table


class RetirementConfig(Config):
    """Which version is retired, by whom and why."""

    table: str = Field(description="The served table, as serving/carrier_delays.")
    version: str = Field(description="The version, as v1.")
    reason: str = Field(default="", description="Why; kept in the commit.")
    by: str = Field(default="", description="Who asks for it; kept in the commit.")


def retire_version(
    catalog: Catalog,
    context: OpExecutionContext,
    config: RetirementConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Retires a version of a table that is no longer served: its rows go, and it is protected.

    Its files go with `maintain` once the table's retention is over; until then a rollback brings
    the rows back.
    """
    # It is protected before it is emptied: what is left of a crash between the two, the same
    # command finishes.
    instance, warehouse, now = context.instance, lakehouse.warehouse(), datetime.now(tz=UTC)
    fail_dead_runs(instance, now=now, silent_seconds=lakehouse.silent_seconds)
    warehouse.check_writable()
    log, held = find_retirable(catalog, warehouse, config.table, config.version)
    table, served = log.table, catalog.find_table(config.table)
    log = recover_table(catalog, instance, log, now=now, reader=build_reader(spark, lakehouse))[
        -1
    ].log
    why = f"retired by {config.by or 'somebody'}: {config.reason or 'no longer served'}"
    full = list_full(log)
    if not read_protections(warehouse).find(table, full or list(log.publishes)):
        protection = Protection(table=table.key, reason=why, by=config.by or "retire")
        add_protection(warehouse, protection, now=now)
    if not full:
        return f"{table.key} is retired already: {find_retired(log) or 'it holds no rows'}"
    partitions = build_partitions(table, full)
    nothing = read_table(spark.spark_session, log).where("false")
    measures = measure_partitions(nothing, table, partitions)
    run = context.run
    origin = read_origin(run.tags, run.run_config, operation="retirement")
    record = build_record(
        table,
        partitions,
        run_id=run.run_id,
        code_version=catalog.recipes[table.key].code_version,
        input_versions={},
        options={"write_mode": "overwrite"},
        rows={key: measured.rows for key, measured in measures.items()},
        checksums={key: measured.checksum for key, measured in measures.items()},
        features={RETIRED: why, **origin.describe()},
    )
    freed = sum(log.sum_folder_bytes().values())
    version = overwrite_partitions(nothing, log, partitions, record)
    recover_table(catalog, instance, log.reread(), now=now, reader=build_reader(spark, lakehouse))
    vacuum_table(spark.spark_session, warehouse.uri(table))
    return (
        f"{table.key} is retired, as version {version}: {len(full)} partitions are empty and "
        f"protected; their {freed:,} bytes go with `maintain` once the {warehouse.retention_days} "
        f"days are over in which a rollback could bring them back; {served.key} serves "
        f"{held}. Take it out of the versions of {served.key} and out of `assets/`, too"
    )


def find_retirable(
    catalog: Catalog, warehouse: Warehouse, served: str, version: str
) -> tuple[TableLog, str]:
    """Finds the table of a version that may be retired.

    Args:
        catalog: of the code location.
        warehouse: where the tables are.
        served: key of the served table.
        version: name of the version.

    Returns:
        Its log; and the key of the version that is served.

    Raises:
        UnknownTableError: if there is no such table or version.
        PromotionError: if it is served, or read by other tables.
        TableError: if it was never published.
    """
    table = catalog.find_table(served)
    retired = catalog.find_table(find_version(table, version).key)
    held = find_served(read_log(warehouse, table))
    _refuse_read(held, table, retired, catalog.recipes)
    return read_log(warehouse, retired).require(), held


def list_full(log: TableLog) -> list[str]:
    """Lists the partitions that hold rows, ascending."""
    return sorted(key for key, publish in log.publishes.items() if publish.rows)


def _refuse_read(held: str, served: Table, table: Table, recipes: Mapping[str, Recipe]) -> None:
    if held in ("", table.key):
        raise PromotionError(
            f"{served.key} serves {held or served.versions[0].key}: promote another version before "
            "this one is retired; nothing was changed"
        )
    readers = [
        key
        for key, recipe in recipes.items()
        if table.key in {read.key for read in recipe.inputs} and not recipe.table.versions
    ]
    if readers:
        raise PromotionError(
            f"{table.key} is read by {', '.join(readers)}: let these read {served.key} before it "
            "is retired; nothing was changed"
        )
