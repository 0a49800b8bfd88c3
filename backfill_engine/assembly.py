"""Builds the catalog of a project from the table assets that its modules declare."""

import datetime as dt
import importlib
import pkgutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from types import ModuleType
from typing import TypeAlias

from dagster import AssetKey, TimeWindowPartitionMapping

from backfill_engine.catalog import Catalog
from backfill_engine.errors import DeclarationError, SettingsError
from backfill_engine.grains.grain import Grain
from backfill_engine.orchestration.instance.partition_definitions import find_landing_key
from backfill_engine.publishing.reached_code import compute_code_version
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.write_modes.choosing import choose_options
from backfill_engine.settings import Settings, read_settings
from backfill_engine.sources.history import History
from backfill_engine.table_assets import SAME_KEY, TableAsset, Upstream
from backfill_engine.table_translator import TableTranslator
from backfill_engine.tables.declarations import NAME, Calendar, Table

Declared: TypeAlias = ModuleType | TableAsset
"""A table asset, a module that has some, or a package of such modules."""

_ALL_FLOWS = "all"
"""In place of the names of once-flows: all that there are."""


def build_catalog(
    declared: Sequence[Declared],
    *,
    settings: Settings | None = None,
    calendar: Calendar | None = None,
    translator: TableTranslator | None = None,
    grains: Mapping[Grain, Grain] | None = None,
    module: str = "",
    name_prefix: str = "",
) -> tuple[Catalog, tuple[TableAsset, ...]]:
    """Builds a catalog.

    Args:
        declared: what declares tables; each module is a pipeline of its name.
        settings: of the project; None to go by the environment.
        calendar: the days of tables that don't say theirs; None for that of the settings.
        translator: says what assets are called; None for `TableTranslator()`.
        grains: what an installation chose in place of declared grains.
        module: of the definitions, by which commands find them.
        name_prefix: of the names of jobs, sensors, schedules and resources.

    Returns:
        The catalog, and the table assets that it was built of.

    Raises:
        DeclarationError: if they don't fit together.
        SettingsError: if the settings can't be used, or name a once-flow that there isn't.
    """
    chosen = settings or read_settings()
    days = calendar or Calendar(chosen.begin, chosen.end)
    modules = _translate(_list_pipelines(declared), translator or TableTranslator())
    assets = _list_assets(modules)
    check_together(assets)
    tables = [asset.table for asset in assets]
    read = [upstream.table for asset in assets for upstream in asset.inputs]
    histories = choose_histories(assets, chosen.once_flows, begin=days.begin)
    dated = {
        table.key: replace(
            _set_calendar(table, days, histories),
            grain=(grains or {}).get(table.grain, table.grain),
        )
        for table in (*tables, *(table for table in read if not table.is_published))
    }
    pipelines = {name: [one.table for one in found] for name, found in modules.items()}
    recipes = {
        asset.table.key: _build_recipe(asset, dated, histories.get(asset.table.key))
        for asset in assets
    }
    catalog = Catalog(
        recipes=recipes,
        pipelines=_move_versions(pipelines),
        tables=_sort_by_layer(recipes.values()),
        module=module,
        name_prefix=name_prefix,
        given=settings,
    )
    return catalog, assets


def _list_pipelines(declared: Iterable[Declared]) -> dict[str, list[TableAsset]]:
    """Lists what each module declares, in its order there, by the module's name."""
    found: dict[str, list[TableAsset]] = {}
    for item in declared:
        if isinstance(item, TableAsset):
            found.setdefault(item.table.name, []).append(item)
            continue
        for module in _list_modules(item):
            assets = [value for value in vars(module).values() if isinstance(value, TableAsset)]
            if assets:
                found.setdefault(module.__name__.rpartition(".")[2], []).extend(assets)
    return found


def list_table_assets(declared: Iterable[Declared]) -> tuple[TableAsset, ...]:
    """Lists what modules declare, by module and in their order there."""
    return _list_assets(_list_pipelines(declared))


def _list_assets(pipelines: Mapping[str, Iterable[TableAsset]]) -> tuple[TableAsset, ...]:
    # A module that imports an asset of another declares it no second time.
    return tuple({id(one): one for found in pipelines.values() for one in found}.values())


def _translate(
    pipelines: Mapping[str, Sequence[TableAsset]], translator: TableTranslator
) -> dict[str, list[TableAsset]]:
    """Gives each table the key of its asset, wherever a declaration names the table."""

    def place(table: Table) -> Table:
        path = tuple(translator.get_asset_key(table).path)
        if not all(map(NAME.fullmatch, path)):
            raise DeclarationError(
                f"{table.place}: its asset can't be called {'/'.join(path)}: let the translator "
                "name it by letters, digits and _"
            )
        return replace(
            table,
            asset_path=() if path == (table.layer, table.name) else path,
            versions=tuple(map(place, table.versions)),
            begins_with=place(table.begins_with) if table.begins_with is not None else None,
        )

    placed = {
        id(asset): replace(
            asset,
            table=place(asset.table),
            inputs=tuple(replace(read, table=place(read.table)) for read in asset.inputs),
        )
        for assets in pipelines.values()
        for asset in assets
    }
    return {name: [placed[id(asset)] for asset in assets] for name, assets in pipelines.items()}


def _list_modules(module: ModuleType) -> list[ModuleType]:
    """Lists a module, and where it is a package those in it."""
    if not hasattr(module, "__path__"):
        return [module]
    names = sorted(inner.name for inner in pkgutil.iter_modules(module.__path__))
    return [
        module,
        *(importlib.import_module(f"{module.__name__}.{name}") for name in names),
    ]


def _move_versions(pipelines: Mapping[str, Sequence[Table]]) -> dict[str, tuple[str, ...]]:
    """Lists a served table's versions after the first with it, not where they are declared.

    Who works with the first version alone misses nothing.
    """
    later = {
        name: [version.key for table in tables for version in table.versions[1:]]
        for name, tables in pipelines.items()
    }
    moved = {version for versions in later.values() for version in versions}
    return {
        name: (*later[name], *(table.key for table in tables if table.key not in moved))
        for name, tables in pipelines.items()
    }


def _sort_by_layer(recipes: Iterable[Recipe]) -> tuple[Table, ...]:
    """Sorts tables by layer: those first of which a table reads least; then as declared."""
    by_key = {recipe.table.key: recipe for recipe in recipes}
    depths: dict[str, int] = {}

    def measure_depth(key: str) -> int:
        if key not in depths:
            inputs = [read.key for read in by_key[key].inputs if read.is_published]
            depths[key] = 1 + max(map(measure_depth, inputs), default=-1)
        return depths[key]

    layers: dict[str, int] = {}
    for key, recipe in by_key.items():
        layer = recipe.table.layer
        layers[layer] = min(layers.get(layer, len(by_key)), measure_depth(key))
    ranks = {layer: at for at, layer in enumerate(sorted(layers, key=layers.__getitem__))}
    tables = (recipe.table for recipe in by_key.values())
    return tuple(sorted(tables, key=lambda table: ranks[table.layer]))


def choose_histories(
    assets: Iterable[TableAsset], names: Collection[str], *, begin: dt.date
) -> dict[str, History]:
    """Chooses the once-flows that are active, by table key.

    Args:
        assets: with all of their flows.
        names: of the flows; `all` for all. One from its table's begin on is never active.
        begin: the first day of what lands daily, for a table that doesn't say.

    Raises:
        SettingsError: if there is no such flow, or a day between them and the feed would be left
            out.
    """
    found = list(assets)
    known = {flow.name for asset in found for flow in asset.history}
    if unknown := [name for name in names if name not in (*known, _ALL_FLOWS)]:
        raise SettingsError(
            f"unusable environment: BACKFILL_ONCE_FLOWS: there is no once-flow {unknown[0]}: "
            f"choose of {', '.join((*sorted(known), _ALL_FLOWS))}, or leave it empty"
        )
    chosen: dict[str, History] = {}
    for asset in found:
        feed = asset.table.begin or begin
        flows = [
            flow
            for flow in sorted(asset.history, key=lambda flow: flow.begin)
            if flow.begin < feed and (flow.name in names or _ALL_FLOWS in names)
        ]
        for flow, follows in zip(flows, [*(flow.begin for flow in flows[1:]), feed], strict=False):
            if flow.end < follows:
                raise SettingsError(
                    f"unusable environment: BACKFILL_ONCE_FLOWS: nothing would fill "
                    f"{asset.table.key} from {flow.end}, where {flow.name} ends, up to {follows}: "
                    "name the flow that does, or set BACKFILL_BEGIN to an earlier day"
                )
        if flows and asset.landing is not None:
            chosen[asset.table.key] = History(asset.landing, tuple(flows), feed)
    return chosen


def _set_calendar(table: Table, days: Calendar, histories: Mapping[str, History]) -> Table:
    """Sets the calendar of a table, and of those that its declaration names."""
    origin = table
    while origin.begins_with is not None and origin.key not in histories:
        origin = origin.begins_with
    history = histories.get(origin.key)
    calendar = Calendar(
        table.begin or days.begin, table.end or days.end, history.begin if history else None
    )
    return replace(
        table,
        calendar=calendar,
        versions=tuple(_set_calendar(version, days, histories) for version in table.versions),
    )


def check_together(found: Sequence[TableAsset]) -> None:
    """Refuses table assets that don't fit together.

    Args:
        found: all of a project.

    Raises:
        DeclarationError: if a table has several assets, one reads a table that no asset publishes
            or itself in a circle, a partition of an input can't be found, or what two of them read
            of the landing zone has one name.
    """
    published = [asset.table.key for asset in found]
    lie_at: dict[str, str] = {}
    for asset in found:
        if (count := published.count(asset.table.key)) > 1:
            raise DeclarationError(
                f"{asset.table.key} is published by {count} assets: leave it to one of them"
            )
        place = asset.table.location or asset.table.place
        if lie_at.setdefault(place, asset.table.key) != asset.table.key:
            raise DeclarationError(
                f"{lie_at[place]} and {asset.table.key} both lie at {place}: give one of them "
                "another place"
            )
        for upstream in asset.inputs:
            if upstream.table.is_published and upstream.table.key not in published:
                raise DeclarationError(
                    f"{asset.table.key} reads {upstream.table.key}, which no asset publishes: "
                    "write one with @table_asset, or declare an ExternalDelta"
                )
            _check_mapping(asset.table, upstream, upstream.table)
        _check_begin(asset, {one.table.key for one in found if one.history})
    _check_circles({asset.table.key: [one.table.key for one in asset.inputs] for asset in found})
    _check_landings(found)


def _check_circles(inputs: Mapping[str, Sequence[str]]) -> None:
    """Refuses tables that read each other in a circle."""
    try:
        TopologicalSorter(inputs).prepare()
    except CycleError as error:
        circle = " → ".join(error.args[1])
        raise DeclarationError(f"tables read each other, {circle}: break the circle") from error


def _check_begin(asset: TableAsset, with_history: Collection[str]) -> None:
    """Refuses a table that begins before one that it reads, or leaves out history that it could."""
    table = asset.table
    origins = {_find_origin(upstream.table) for upstream in asset.inputs}
    begins = origins.pop() if len(origins) == 1 else None
    if table.begins_with is not None and _find_origin(table) != begins:
        raise DeclarationError(
            f"{table.key} begins with {table.begins_with.key}, and not all that it reads does: "
            "leave `begins_with` out, or let them begin with the same history"
        )
    if table.begins_with is None and begins is not None and begins.key in with_history:
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
    """Refuses two tables of which what they read of the landing zone would be one asset."""
    readers: dict[AssetKey, str] = {}
    for table in (asset.table for asset in found if asset.landing is not None):
        landing = find_landing_key(table)
        if readers.setdefault(landing, table.key) != table.key:
            raise DeclarationError(
                f"{readers[landing]} and {table.key} both read the landing zone, and what they "
                f"read would be one asset, {landing.to_user_string()}: give one of them another "
                "name"
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


def _build_recipe(asset: TableAsset, dated: Mapping[str, Table], history: History | None) -> Recipe:
    table = dated[asset.table.key]
    choose_options(table)  # What it can't honour of its own declaration is refused here.
    return Recipe(
        table=table,
        compute=asset.compute,
        inputs=tuple(dated[upstream.table.key] for upstream in asset.inputs),
        landing=asset.landing,
        history=history,
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
