"""Builds the catalog of a project from the table assets that its modules declare."""

import datetime as dt
import importlib
import pkgutil
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from types import ModuleType
from typing import TypeAlias

from dagster import (
    AllPartitionMapping,
    IdentityPartitionMapping,
    PartitionsDefinition,
    SpecificPartitionsPartitionMapping,
    TimeWindowPartitionMapping,
)

from backfill_engine.catalog import Catalog
from backfill_engine.errors import DeclarationError, SettingsError
from backfill_engine.grains.grain import Grain
from backfill_engine.grains.overlaps import are_comparable
from backfill_engine.grains.whole import WHOLE
from backfill_engine.orchestration.due.readiness import Required, map_keys
from backfill_engine.orchestration.instance.partition_definitions import (
    find_landing_key,
    find_partitions_def,
)
from backfill_engine.publishing.reached_code import compute_code_version
from backfill_engine.publishing.recipes import MapKeys, Recipe
from backfill_engine.publishing.write_modes.choosing import choose_options
from backfill_engine.settings import Settings, read_settings
from backfill_engine.sources.history import History
from backfill_engine.table_assets import TableAsset, TableTranslator, Upstream, is_same_key
from backfill_engine.tables.declarations import NAME, Calendar, Table

Declared: TypeAlias = ModuleType | TableAsset
"""A table asset, a module that has some, or a package of such modules."""

_ALL_LOADS = "all"
"""In place of the names of historical loads: all that there are."""


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
        SettingsError: if the settings can't be used, or name a historical load that there isn't.
    """
    chosen = settings or read_settings()
    days = calendar or Calendar(chosen.begin, chosen.end)
    translator = translator or TableTranslator()
    pipelines = {
        name: [_name_tables(asset, translator) for asset in assets]
        for name, assets in _list_pipelines(declared).items()
    }
    assets = _list_distinct(pipelines)
    check_together(assets)
    tables = [asset.table for asset in assets]
    read = [upstream.table for asset in assets for upstream in asset.inputs]
    histories = choose_histories(assets, chosen.historical_loads, begin=days.begin)
    dated = {
        table.key: replace(
            _set_calendar(table, days, histories),
            grain=(grains or {}).get(table.grain, table.grain),
        )
        for table in (*tables, *(table for table in read if not table.is_published))
    }
    catalog = Catalog(
        recipes={
            asset.table.key: _build_recipe(asset, dated, histories.get(asset.table.key))
            for asset in assets
        },
        pipelines=_move_versions(pipelines),
        tables=tuple(dated[table.key] for table in _sort_by_layer(assets)),
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
    return _list_distinct(_list_pipelines(declared))


def _list_distinct(pipelines: Mapping[str, Iterable[TableAsset]]) -> tuple[TableAsset, ...]:
    found: list[TableAsset] = []
    for asset in chain.from_iterable(pipelines.values()):
        # A module that imports an asset of another declares it no second time.
        if asset not in found:
            found.append(asset)
    return tuple(found)


def _name_tables(asset: TableAsset, translator: TableTranslator) -> TableAsset:
    """Gives each table the key of its asset, wherever the declaration names the table."""

    def name(table: Table) -> Table:
        path = tuple(translator.get_asset_key(table).path)
        if not all(map(NAME.fullmatch, path)):
            raise DeclarationError(
                f"{table.place}: its asset can't be called {'/'.join(path)}: let the translator "
                "name it by letters, digits and _"
            )
        return replace(
            table,
            asset_path=() if path == (table.layer, table.name) else path,
            versions=tuple(map(name, table.versions)),
            begins_with=name(table.begins_with) if table.begins_with is not None else None,
        )

    inputs = tuple(replace(upstream, table=name(upstream.table)) for upstream in asset.inputs)
    return replace(asset, table=name(asset.table), inputs=inputs)


def _list_modules(module: ModuleType) -> list[ModuleType]:
    """Lists a module, and where it is a package those in it."""
    if not hasattr(module, "__path__"):
        return [module]
    names = sorted(inner.name for inner in pkgutil.iter_modules(module.__path__))
    return [
        module,
        *(importlib.import_module(f"{module.__name__}.{name}") for name in names),
    ]


def _move_versions(pipelines: Mapping[str, Sequence[TableAsset]]) -> dict[str, tuple[str, ...]]:
    """Lists a served table's versions after the first apart, not where they are declared.

    Who works with the first version alone misses nothing, and what serves holds no features.
    """
    later = {
        f"{name}_versions": tuple(
            version.key for asset in assets for version in asset.table.versions[1:]
        )
        for name, assets in pipelines.items()
    }
    moved = set(chain.from_iterable(later.values()))
    kept = {
        name: tuple(asset.table.key for asset in assets if asset.table.key not in moved)
        for name, assets in pipelines.items()
    }
    return {name: keys for name, keys in {**later, **kept}.items() if keys}


def _sort_by_layer(assets: Sequence[TableAsset]) -> list[Table]:
    """Sorts tables by layer: those first of which a table reads least; then as declared."""
    tables = {asset.table.key: asset.table for asset in assets}
    by_depth = TopologicalSorter(_list_inputs(assets)).static_order()
    layers = list(dict.fromkeys(tables[key].layer for key in by_depth))
    return sorted(tables.values(), key=lambda table: layers.index(table.layer))


def _list_inputs(assets: Iterable[TableAsset]) -> dict[str, list[str]]:
    """Lists the tables of the project that each table reads, by key."""
    return {
        asset.table.key: [read.table.key for read in asset.inputs if read.table.is_published]
        for asset in assets
    }


def choose_histories(
    assets: Iterable[TableAsset], names: Collection[str], *, begin: dt.date
) -> dict[str, History]:
    """Chooses the historical loads that are active, by table key.

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
    if unknown := [name for name in names if name not in (*known, _ALL_LOADS)]:
        raise SettingsError(
            f"unusable environment: BACKFILL_HISTORICAL_LOADS: there is no historical load "
            f"{unknown[0]}: choose of {', '.join((*sorted(known), _ALL_LOADS))}, or leave it empty"
        )
    chosen: dict[str, History] = {}
    for asset in found:
        feed = asset.table.begin or begin
        flows = [
            flow
            for flow in sorted(asset.history, key=lambda flow: flow.begin)
            if flow.begin < feed and (flow.name in names or _ALL_LOADS in names)
        ]
        for flow, follows in zip(flows, [*(flow.begin for flow in flows[1:]), feed], strict=False):
            if flow.end < follows:
                raise SettingsError(
                    f"unusable environment: BACKFILL_HISTORICAL_LOADS: nothing would fill "
                    f"{asset.table.key} from {flow.end}, where {flow.name} ends, up to {follows}: "
                    "name the flow that does, or set BACKFILL_BEGIN to an earlier day"
                )
        if flows and asset.landing is not None:
            chosen[asset.table.key] = History(asset.landing, tuple(flows), feed)
    return chosen


def _set_calendar(table: Table, days: Calendar, histories: Mapping[str, History]) -> Table:
    """Sets the calendar of a table, and of those that its declaration names."""
    history = histories.get(_find_origin(table, histories).key)
    calendar = Calendar(
        table.begin or days.begin, table.end or days.end, history.begin if history else None
    )
    return replace(
        table,
        calendar=calendar,
        versions=tuple(_set_calendar(version, days, histories) for version in table.versions),
    )


def _find_origin(table: Table, histories: Container[str] = ()) -> Table:
    """Finds the table with whose history another begins, itself if it does with none."""
    while table.begins_with is not None and table.key not in histories:
        table = table.begins_with
    return table


def check_together(found: Sequence[TableAsset]) -> None:
    """Refuses table assets that don't fit together.

    Args:
        found: all of a project.

    Raises:
        DeclarationError: if a table has several assets, one reads a table that no asset publishes
            or itself in a circle, a partition of an input can't be found, or what two of them read
            of the landing zone, or two of their historical loads, have one name.
    """
    tables = [asset.table for asset in found]
    published = [table.key for table in tables]
    for asset in found:
        if (count := published.count(asset.table.key)) > 1:
            raise DeclarationError(
                f"{asset.table.key} is published by {count} assets: leave it to one of them"
            )
        for upstream in asset.inputs:
            if upstream.table.is_published and upstream.table.key not in published:
                raise DeclarationError(
                    f"{asset.table.key} reads {upstream.table.key}, which no asset publishes: "
                    "write one with @table_asset, or declare an ExternalDelta"
                )
            _check_mapping(asset.table, upstream)
        _check_begin(asset, {other.table.key for other in found if other.history})
    try:
        TopologicalSorter(_list_inputs(found)).prepare()
    except CycleError as error:
        circle = " → ".join(error.args[1])
        raise DeclarationError(f"tables read each other, {circle}: break the circle") from error
    _refuse_shared(
        ((table.location or table.place, table.key) for table in tables),
        "{} and {} both lie at {}: give one of them another place",
    )
    _refuse_shared(
        (
            (find_landing_key(asset.table).to_user_string(), asset.table.key)
            for asset in found
            if asset.landing is not None
        ),
        "{} and {} both read the landing zone, and what they read would be one asset, {}: give one "
        "of them another name",
    )
    _refuse_shared(
        ((flow.name, asset.table.key) for asset in found for flow in asset.history),
        "{} and {} both have a historical load `{}`: rename one",
    )


def _refuse_shared(things: Iterable[tuple[str, str]], message: str) -> None:
    """Refuses a thing that two tables have, of things each with the key of its table."""
    owners: dict[str, str] = {}
    for thing, table in things:
        if owners.setdefault(thing, table) != table:
            raise DeclarationError(message.format(owners[thing], table, thing))


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


def _check_mapping(table: Table, upstream: Upstream) -> None:
    """Refuses an input of which no partition could be told that a partition needs."""
    read, mapping = upstream.table, upstream.mapping
    both = f"{table.key} is partitioned by {table.grain} and reads {read.key}, by {read.grain}"
    if mapping is None and not are_comparable(table.grain, read.grain):
        raise DeclarationError(f"{both}: give Upstream a mapping, such as AllPartitionMapping()")
    has_other_keys = table.grain.slug != read.grain.slug
    if mapping is not None and is_same_key(mapping) and has_other_keys:
        raise DeclarationError(f"{both}, by the same key: leave the mapping of its Upstream out")
    if upstream.required is Required.OWN and has_other_keys:
        raise DeclarationError(f"{both}: none is its OWN, so require ALL or ANY")
    by_time = isinstance(mapping, TimeWindowPartitionMapping)
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
        mapped=_map_inputs(asset, dated),
    )


def _check_keys(partitions_def: PartitionsDefinition, keys: Iterable[str]) -> None:
    for key in keys:
        if not partitions_def.has_partition_key(key):
            raise ValueError(f"there is no partition {key}")


def _map_inputs(asset: TableAsset, dated: Mapping[str, Table]) -> dict[str, MapKeys | None]:
    """Finds what is read of inputs whose mapping doesn't go by values, by table key."""
    table = dated[asset.table.key]
    found: dict[str, MapKeys | None] = {}
    for upstream in asset.inputs:
        mapping, read = upstream.mapping, dated[upstream.table.key]
        goes_by_values = isinstance(mapping, IdentityPartitionMapping | TimeWindowPartitionMapping)
        if mapping is None or goes_by_values or upstream.rows_for is not None:
            continue
        if isinstance(mapping, AllPartitionMapping) or read.grain == WHOLE:
            found[read.key] = None
            continue
        downstream_def, upstream_def = find_partitions_def(table), find_partitions_def(read)
        try:
            mapping.validate_partition_mapping(upstream_def, downstream_def)
            if isinstance(mapping, SpecificPartitionsPartitionMapping):
                _check_keys(upstream_def, mapping.partition_keys)
        except Exception as error:  # Mappings raise what they like.
            raise DeclarationError(
                f"{table.key} can't read {read.key} by its {type(mapping).__name__} ({error}): "
                "correct the mapping, or leave it out to read partitions of the same values"
            ) from error
        found[read.key] = partial(map_keys, mapping, downstream_def, upstream_def)
    return found
