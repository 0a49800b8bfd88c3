"""All tables of the project, as this installation partitions them.

The modules of `tables` declare them. What an installation chooses (`BACKFILL_ORDER_KEY_STEP` and
`BACKFILL_ORDER_KEY_SPACE`, and by `BACKFILL_ONCE_FLOWS` what history it has) is applied here and
nowhere else.
"""

import datetime as dt
import importlib
import pkgutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache

import backfill_assets.tables as declared
from backfill_assets.errors import DeclarationError, SettingsError, TableError
from backfill_assets.settings import read_settings
from backfill_assets.tables.declarations import LAYERS, Table
from backfill_assets.tables.once_flows import History, OnceFlow
from backfill_assets.tables.orders import ORDER_BUCKETS

ALL_FLOWS = "all"
"""In place of the names of once-flows: all that there are."""


@cache
def list_pipelines() -> Mapping[str, tuple[Table, ...]]:
    """Lists the tables of each module that declares any, by its name; reads them once.

    A served table's versions after the first are listed with it: who works with the first alone
    misses nothing.
    """
    chosen = read_settings().build_order_buckets()
    pipelines: dict[str, tuple[Table, ...]] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(declared.__path__)):
        values = vars(importlib.import_module(f"{declared.__name__}.{name}")).values()
        tables = dict.fromkeys(value for value in values if isinstance(value, Table))
        if tables:
            pipelines[name] = tuple(
                replace(table, grain=chosen) if table.grain is ORDER_BUCKETS else table
                for table in tables
            )
    return _move_versions(pipelines)


def _move_versions(pipelines: Mapping[str, tuple[Table, ...]]) -> dict[str, tuple[Table, ...]]:
    later = {
        name: [version for table in tables for version in table.versions[1:]]
        for name, tables in pipelines.items()
    }
    moved = {version.key for versions in later.values() for version in versions}
    return {
        name: (*later[name], *(table for table in tables if table.key not in moved))
        for name, tables in pipelines.items()
    }


@cache
def list_tables() -> tuple[Table, ...]:
    """Lists all tables, by layer, then by module."""
    tables = dict.fromkeys(table for tables in list_pipelines().values() for table in tables)
    return tuple(sorted(tables, key=lambda table: LAYERS.index(table.layer)))


def find_table(key: str) -> Table:
    """Finds the table with this key, `layer/name`.

    Raises:
        TableError: if there is none; names those that there are.
    """
    for table in list_tables():
        if table.key == key:
            return table
    raise TableError(f"no table {key}: there are {', '.join(table.key for table in list_tables())}")


@cache
def list_once_flows() -> Mapping[str, tuple[str, OnceFlow]]:
    """Lists all once-flows that are declared, active or not: by name, table key and flow.

    Raises:
        DeclarationError: if two have one name.
    """
    found: dict[str, tuple[str, OnceFlow]] = {}
    for table in list_tables():
        for flow in table.once:
            if flow.name in found:
                raise DeclarationError(
                    f"{found[flow.name][0]} and {table.key} both have a once-flow `{flow.name}`, "
                    "and a job is called so: rename one"
                )
            found[flow.name] = table.key, flow
    return found


@cache
def list_histories() -> Mapping[str, History]:
    """Lists the active once-flows by the key of their table; of a table without any, nothing.

    Raises:
        SettingsError: if `BACKFILL_ONCE_FLOWS` can't be what it is.
    """
    settings = read_settings()
    return choose_histories(list_tables(), settings.once_flows, begin=settings.begin)


def choose_histories(
    tables: Iterable[Table], names: Collection[str], *, begin: dt.date
) -> dict[str, History]:
    """Chooses the once-flows that are active, by table key.

    Args:
        tables: with all of their flows.
        names: of the flows; `all` for all. One from `begin` on is never active.
        begin: the first day of what lands daily.

    Raises:
        SettingsError: if there is no such flow, or a day between them and the feed would be left
            out.
    """
    flows = {table.key: table.once for table in tables if table.once}
    known = {flow.name for of_table in flows.values() for flow in of_table}
    if unknown := [name for name in names if name not in (*known, ALL_FLOWS)]:
        raise SettingsError(
            f"unusable environment: BACKFILL_ONCE_FLOWS: there is no once-flow {unknown[0]}: "
            f"choose of {', '.join((*sorted(known), ALL_FLOWS))}, or leave it empty"
        )
    chosen: dict[str, History] = {}
    for key, of_table in flows.items():
        active = [one for one in of_table if one.name in names or ALL_FLOWS in names]
        active = sorted((one for one in active if one.begin < begin), key=lambda flow: flow.begin)
        begins = [*(flow.begin for flow in active), begin]
        for flow, follows in zip(active, begins[1:], strict=True):
            if flow.end < follows:
                raise SettingsError(
                    f"unusable environment: BACKFILL_ONCE_FLOWS: nothing would fill {key} from "
                    f"{flow.end}, where {flow.name} ends, up to {follows}: name the flow that does,"
                    " or set BACKFILL_BEGIN to an earlier day"
                )
        if active:
            chosen[key] = History(tuple(active), begin)
    return chosen
