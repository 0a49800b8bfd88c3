"""The pipelines of this installation: what the modules of `assets` declare, with its own tables."""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache

from dagster import TimeWindowPartitionMapping

from backfill_assets import assets
from backfill_assets.catalog import find_table, list_histories, list_tables
from backfill_assets.errors import DeclarationError
from backfill_assets.publishing.code_versions import compute_code_version
from backfill_assets.publishing.recipes import Recipe
from backfill_assets.publishing.write_modes.choosing import choose_options
from backfill_assets.table_assets import SAME_KEY, TableAsset, Upstream
from backfill_assets.tables.declarations import Table


@cache
def list_table_assets() -> tuple[TableAsset, ...]:
    """Lists all that the modules of `assets` declare, by module and in their order there.

    Raises:
        DeclarationError: if they don't fit together, or not with the tables.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(assets.__path__))
    modules = (importlib.import_module(f"{assets.__name__}.{name}") for name in names)
    declared = (value for module in modules for value in vars(module).values())
    found = tuple(value for value in declared if isinstance(value, TableAsset))
    check_together(found, list_tables())
    return found


def check_together(found: Sequence[TableAsset], tables: Sequence[Table]) -> None:
    """Refuses assets and tables that don't fit together.

    Args:
        found: what `assets` declares.
        tables: what `tables` declares, as this installation partitions it.

    Raises:
        DeclarationError: if a table has no asset or several, an asset no table, a partition of
            an input can't be found, or what two of them read of the landing zone has one name.
    """
    declared, published = {table.key: table for table in tables}, [one.table.key for one in found]
    for table in tables:
        if (count := published.count(table.key)) > 1:
            raise DeclarationError(
                f"{table.key} is published by {count} assets: leave it to one of them"
            )
    for one in found:
        if one.table.key not in declared:
            raise DeclarationError(
                f"{one.table.key} has an asset and isn't declared in a module of `tables`: "
                "declare it there, so that every command knows it"
            )
        for upstream in one.inputs:
            if upstream.table.key not in published:
                raise DeclarationError(
                    f"{one.table.key} reads {upstream.table.key}, which no asset publishes: write "
                    "one with @table_asset in a module of `assets`, or don't read it"
                )
            _check_mapping(declared[one.table.key], upstream, declared[upstream.table.key])
        _check_begin(one)
    _check_landings(found)
    for table in tables:
        if table.key not in published:
            raise DeclarationError(
                f"{table.key} is declared, and no asset publishes it: write one with @table_asset "
                "in a module of `assets`, or remove the table"
            )


def _check_begin(asset: TableAsset) -> None:
    """Refuses a table that begins before one that it reads, or leaves out history that it could."""
    table = asset.table
    origins = {_find_origin(upstream.table) for upstream in asset.inputs}
    begins = origins.pop() if len(origins) == 1 else None
    if table.begins_with is not None and _find_origin(table) != begins:
        raise DeclarationError(
            f"{table.key} begins with {table.begins_with.key}, and not all that it reads does: "
            "leave `begins_with` out, or let them begin with the same history"
        )
    if table.begins_with is None and begins is not None and begins.once:
        raise DeclarationError(
            f"all that {table.key} reads begins with the history of {begins.key}, and it doesn't: "
            "declare `begins_with`"
        )


def _find_origin(table: Table) -> Table:
    """Finds the table with whose history another begins, itself if it does with none."""
    while table.begins_with is not None:
        table = table.begins_with
    return table


def _check_landings(found: Sequence[TableAsset]) -> None:
    """Refuses two tables of one name that both read the landing zone."""
    readers: dict[str, str] = {}
    for table in (one.table for one in found if one.landing is not None):
        if readers.setdefault(table.name, table.key) != table.key:
            raise DeclarationError(
                f"{readers[table.name]} and {table.key} both read the landing zone, and what they "
                f"read would be one asset, landing/{table.name}: give one of them another name"
            )


def _check_mapping(table: Table, upstream: Upstream, read: Table) -> None:
    """Refuses an input of which no partition could be told that a partition needs."""
    both = f"{table.key} is partitioned by {table.grain} and reads {read.key}, by {read.grain}"
    if upstream.mapping == SAME_KEY and table.grain != read.grain:
        cure = "give Upstream a mapping, such as map_offsets(), or both tables one grain"
        raise DeclarationError(f"{both}, by the same key: {cure}")
    by_time = isinstance(upstream.mapping, TimeWindowPartitionMapping)
    if by_time and not (table.grain.cron and read.grain.cron):
        raise DeclarationError(f"{both}, by its time: give both a grain of time, or both buckets")


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
        history=list_histories().get(table.key),
        count_source=asset.count_source,
        code_version=compute_code_version(
            asset.compute,
            table,
            asset.landing,
            count_source=asset.count_source,
            files=asset.files,
        ),
        guards=frozenset(upstream.table.key for upstream in asset.inputs if upstream.guards),
    )
