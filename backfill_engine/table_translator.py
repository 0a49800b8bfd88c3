"""How a table shows in Dagster: its asset's key, group, owners and description."""

import inspect
from collections.abc import Sequence

from dagster import AssetKey

from backfill_engine.publishing.recipes import Recipe
from backfill_engine.tables.declarations import Table


class TableTranslator:
    """Says how tables show in Dagster; a subclass changes what should be otherwise.

    Where the table lies is not its matter: that is `<warehouse>/<layer>/<name>`, or the table's
    `location`.
    """

    def get_asset_key(self, table: Table) -> AssetKey:
        """Returns the key of the table's asset, by which commands know the table, too."""
        return AssetKey([table.layer, table.name])

    def get_group_name(self, table: Table) -> str:
        """Returns the group of the table's asset."""
        return table.layer

    def get_owners(self, table: Table) -> Sequence[str]:
        """Returns the owners of the table's asset: `team:name`, or addresses."""
        return table.owners

    def get_description(self, recipe: Recipe) -> str | None:
        """Returns the description of the table's asset."""
        return inspect.getdoc(recipe.compute)
