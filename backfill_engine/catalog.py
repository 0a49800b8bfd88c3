"""What a project declares, as one value: its tables, how each is made, its settings.

A catalog travels with the definitions that are built of it; whoever has these has it. Nothing here
is global, so that two catalogs work beside each other in one process.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from backfill_engine.errors import UnknownTableError
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.settings import Settings, read_settings
from backfill_engine.tables.declarations import Table


@dataclass(frozen=True, eq=False)
class Catalog:
    """The tables of a code location.

    Attributes:
        recipes: how each table is made, by its key, as declared.
        pipelines: the keys of the tables that are declared together, by the name of the pipeline.
        tables: all of them, by layer, then as declared.
        module: of the definitions, by which commands find them.
        name_prefix: of the names of jobs, sensors, schedules and resources.
        given: the settings that the project gave; None to go by the environment.
    """

    recipes: Mapping[str, Recipe]
    pipelines: Mapping[str, tuple[str, ...]]
    tables: tuple[Table, ...]
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
            UnknownTableError: if there is none; names those that there are.
        """
        if (recipe := self.recipes.get(key)) is not None:
            return recipe.table
        raise UnknownTableError(
            f"no table {key}: there are {', '.join(table.key for table in self.tables)}"
        )
