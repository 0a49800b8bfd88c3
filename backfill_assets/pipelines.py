"""The pipelines of this installation: what the modules of `assets` declare, with its own tables."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from backfill_assets import assets
from backfill_assets.catalog import find_table
from backfill_assets.publishing.code_versions import compute_code_version
from backfill_assets.publishing.recipes import Recipe
from backfill_assets.publishing.write_modes.choosing import choose_options
from backfill_assets.table_assets import TableAsset


@cache
def list_table_assets() -> tuple[TableAsset, ...]:
    """Lists all that the modules of `assets` declare, by module and in their order there."""
    names = sorted(module.name for module in pkgutil.iter_modules(assets.__path__))
    modules = (importlib.import_module(f"{assets.__name__}.{name}") for name in names)
    declared = (value for module in modules for value in vars(module).values())
    return tuple(value for value in declared if isinstance(value, TableAsset))


@cache
def list_recipes() -> Mapping[str, Recipe]:
    """Lists how each table is made, by its key: for running it with and without Dagster."""
    return {asset.table.key: _build_recipe(asset) for asset in list_table_assets()}


def _build_recipe(asset: TableAsset) -> Recipe:
    table = find_table(asset.table.key)
    choose_options(table)  # What it can't honour of its own declaration is refused here.
    return Recipe(
        table=table,
        compute=asset.compute,
        inputs=tuple(find_table(upstream.table.key) for upstream in asset.inputs),
        landing=asset.landing,
        count_source=asset.count_source,
        code_version=compute_code_version(asset.compute, table, asset.landing),
    )
