"""A migration of a table's columns as a Dagster run."""

from functools import partial

from dagster import Config, OpExecutionContext
from pydantic import Field

from backfill_engine.catalog import Catalog
from backfill_engine.lake.side_tables import build_withheld_table, enter_table
from backfill_engine.lake.table_log import read_log
from backfill_engine.orchestration.runs.protecting import refuse_protected
from backfill_engine.orchestration.runs.run_options import read_override_of
from backfill_engine.orchestration.runs.run_tags import OVERRIDE_TAG, read_origin
from backfill_engine.publishing.migrating import migrate_columns
from backfill_engine.resources import LakehouseResource, SparkResource, build_reader


class MigrationConfig(Config):
    """Which table to migrate."""

    table: str = Field(description="As staging/flights.")
    override_protection: str | None = Field(
        default=None, description="Why protected partitions are to be rewritten all the same."
    )


def migrate_table(
    catalog: Catalog,
    context: OpExecutionContext,
    config: MigrationConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Gives columns of a table the names and the wider types that are declared, in one commit.

    Its rows stay what they are: delta-rs reads every partition before and after it. What the table
    has of withheld rows is migrated first.
    """
    warehouse, reader = lakehouse.warehouse(), build_reader(spark, lakehouse)
    warehouse.check_writable()
    table = catalog.find_table(config.table)
    log = read_log(warehouse, table).require()
    overrides = refuse_protected(
        warehouse,
        table,
        [partition.key for partition in log.list_held_partitions()],
        override=read_override_of(context.run, config.override_protection),
        how=f"with --override-protection, or by the tag {OVERRIDE_TAG}",
    )
    session, run = spark.spark_session, context.run
    origin = read_origin(run.tags, run.run_config, operation="migration")
    migrate = partial(migrate_columns, session, run_id=run.run_id, reader=reader, origin=origin)
    aside = read_log(warehouse, build_withheld_table(log.table))
    if aside.exists:
        kept = migrate(aside, overrides={})
        if kept.changes or kept.finished is not None:
            enter_table(warehouse, aside.table.key)
    migrated = migrate(log, overrides=overrides)
    found = [*map(str, migrated.changes)]
    if migrated.finished is not None:
        found.insert(
            0,
            f"version {migrated.finished}, which a migration made that was stopped before it was "
            "compared, is compared now, and has the same checksums as before",
        )
    if migrated.changes:
        rows = sum(migrated.log.count_folder_rows().values())
        found.append(
            f"its {rows} rows have the same checksums as before, as version {migrated.log.version}"
        )
    if migrated.statistics:
        found.append(f"statistics are of {migrated.statistics}")
    return f"{table.key}: {'; '.join(found) or 'nothing to migrate: it is stored as declared'}"
