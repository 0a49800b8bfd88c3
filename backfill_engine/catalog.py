"""What a project declares, as one value: its tables, how each is made, its settings.

A catalog travels with the definitions that are built of it; whoever has these has it. Nothing here
is global, so that two catalogs work beside each other in one process.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from backfill_engine.errors import SettingsError, TableError
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.settings import Settings, read_settings
from backfill_engine.tables.declarations import Table
from backfill_engine.tables.once_flows import History, OnceFlow

ALL_FLOWS = "all"
"""In place of the names of once-flows: all that there are."""


@dataclass(frozen=True, eq=False)
class Catalog:
    """The tables of a code location.

    Attributes:
        recipes: how each table is made, by its key, as declared.
        pipelines: the keys of the tables that are declared together, by the name of the pipeline.
        tables: all of them, by layer, then as declared.
        once_flows: all that are declared, active or not: by name, table key and flow.
        histories: the active ones by the key of their table; of a table without any, nothing.
        module: of the definitions, by which commands find them.
        name_prefix: of the names of jobs, sensors, schedules and resources.
        given: the settings that the project gave; None to go by the environment.
    """

    recipes: Mapping[str, Recipe]
    pipelines: Mapping[str, tuple[str, ...]]
    tables: tuple[Table, ...]
    once_flows: Mapping[str, tuple[str, OnceFlow]]
    histories: Mapping[str, History]
    module: str = ""
    name_prefix: str = ""
    given: Settings | None = None

    @property
    def settings(self) -> Settings:
        """The settings that hold now.

        Raises:
            SettingsError: naming each variable that has no usable value.
        """
        return self.given or read_settings()

    @property
    def warehouse(self) -> Warehouse:
        """The Delta tables, where the settings have them."""
        settings = self.settings
        return Warehouse(settings.warehouse, retention_days=settings.retention_days)

    @cached_property
    def external(self) -> tuple[Table, ...]:
        """The tables that are read and that nobody publishes here."""
        read = (table for recipe in self.recipes.values() for table in recipe.inputs)
        return tuple({table.key: table for table in read if not table.is_published}.values())

    def prefix(self, name: str) -> str:
        """Returns the name of a job, op, sensor, schedule or resource in this code location."""
        return f"{self.name_prefix}{name}"

    def find_table(self, key: str) -> Table:
        """Finds the table with this key, `layer/name`.

        Raises:
            TableError: if there is none; names those that there are.
        """
        if (recipe := self.recipes.get(key)) is not None:
            return recipe.table
        raise TableError(f"no table {key}: there are {', '.join(one.key for one in self.tables)}")


def choose_histories(
    tables: Iterable[Table], names: Collection[str], *, begin: dt.date
) -> dict[str, History]:
    """Chooses the once-flows that are active, by table key.

    Args:
        tables: with all of their flows.
        names: of the flows; `all` for all. One from its table's begin on is never active.
        begin: the first day of what lands daily, for a table that doesn't say.

    Raises:
        SettingsError: if there is no such flow, or a day between them and the feed would be left
            out.
    """
    flows = {table.key: table for table in tables if table.once}
    known = {flow.name for table in flows.values() for flow in table.once}
    if unknown := [name for name in names if name not in (*known, ALL_FLOWS)]:
        raise SettingsError(
            f"unusable environment: BACKFILL_ONCE_FLOWS: there is no once-flow {unknown[0]}: "
            f"choose of {', '.join((*sorted(known), ALL_FLOWS))}, or leave it empty"
        )
    chosen: dict[str, History] = {}
    for key, table in flows.items():
        feed = table.begin or begin
        active = [flow for flow in table.once if flow.name in names or ALL_FLOWS in names]
        active = sorted((flow for flow in active if flow.begin < feed), key=lambda flow: flow.begin)
        begins = [*(flow.begin for flow in active), feed]
        for flow, follows in zip(active, begins[1:], strict=True):
            if flow.end < follows:
                raise SettingsError(
                    f"unusable environment: BACKFILL_ONCE_FLOWS: nothing would fill {key} from "
                    f"{flow.end}, where {flow.name} ends, up to {follows}: name the flow that does,"
                    " or set BACKFILL_BEGIN to an earlier day"
                )
        if active:
            chosen[key] = History(tuple(active), feed)
    return chosen
