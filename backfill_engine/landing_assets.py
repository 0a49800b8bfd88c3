"""Makes the external assets that stand for what lands: Dagster observes them, and runs nothing."""

from dagster import AssetSpec

from backfill_engine.orchestration.due.readiness import EXTERNAL
from backfill_engine.orchestration.instance.partition_definitions import (
    LANDING,
    find_asset_key,
    find_landing_key,
    find_partitions_def,
)
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.tables.declarations import Table
from backfill_engine.uris import join_uri


def build_landing_asset(recipe: Recipe, landing_root: str) -> AssetSpec:
    """Builds the asset that stands for what a table reads of the landing zone.

    Its partitions are the table's. The sensor `observe_landing` observes them.

    Args:
        recipe: how the table is made; it reads the landing zone.
        landing_root: root of the landing zone.
    """
    landing, table = recipe.landing, recipe.table
    assert landing is not None, f"{table.key} reads no landing zone"
    uri = join_uri(landing_root, landing.dataset)
    kind, below = landing.describe_place(table)
    return AssetSpec(
        find_landing_key(table),
        description=(
            f"What lands for `{table.key}`, by its partitions, at `{uri}/{below}`. Observations "
            "say what came, went or was rewritten, and when that was seen; nothing is run here."
        ),
        group_name=LANDING,
        kinds={kind},
        partitions_def=find_partitions_def(table),
        metadata={"dagster/uri": uri},
    )


def build_external_asset(table: Table) -> AssetSpec:
    """Builds the asset that stands for a Delta table that somebody else writes."""
    return AssetSpec(
        find_asset_key(table),
        description=f"A Delta table at `{table.location}` that somebody else writes.",
        group_name=table.layer,
        kinds={"delta"},
        owners=list(table.owners),
        partitions_def=find_partitions_def(table),
        metadata={"dagster/uri": table.location, EXTERNAL: True},
    )
