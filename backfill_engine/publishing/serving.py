"""A served table as a recipe: of its versions, the one that it holds is its only input."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pyspark.sql import DataFrame

from backfill_engine.errors import TableError
from backfill_engine.lake.served_versions import (
    SERVED,
    find_served,
)
from backfill_engine.lake.table_log import TableLog
from backfill_engine.publishing.hooks import PublishHook
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.sources.input_window import InputWindow


def choose_served(recipe: Recipe, log: TableLog) -> Recipe:
    """Reduces the inputs of a served table to the version that it holds, at first the oldest.

    Recipes of other tables are returned as they are.

    Args:
        recipe: of a table.
        log: of the same.

    Raises:
        TableError: if what it holds isn't declared as a version of it.
    """
    if not recipe.table.versions:
        return recipe
    return serve(recipe, find_held_version(log))


def find_held_version(log: TableLog) -> str:
    """Finds the key of the version that a served table holds, at first the oldest."""
    return find_served(log) or log.table.versions[0].key


def serve(recipe: Recipe, version: str) -> Recipe:
    """Reduces the inputs of a served table to one of its versions.

    Raises:
        TableError: if there is no such version.
    """
    chosen = tuple(table for table in recipe.inputs if table.key == version)
    if not chosen:
        versions = ", ".join(version_table.key for version_table in recipe.table.versions)
        raise TableError(
            f"{recipe.table.key} serves {version}, which isn't declared among its versions "
            f"({versions}): declare it again, or promote one of these"
        )
    return replace(recipe, inputs=chosen, serves=version)


@dataclass(frozen=True)
class ServedHook(PublishHook):
    """Keeps partitions of two versions from lying side by side in a served table.

    Attributes:
        version: key of the version that the table holds from the commit on.
        is_whole: whether the commit may switch to it; else the table must hold it already.
        switch: of a switch, the version `before`, `by` whom and `why`.
    """

    name: ClassVar[str] = SERVED
    version: str
    is_whole: bool = False
    switch: Mapping[str, str] = field(default_factory=dict)

    def choose_inputs(self, recipe: Recipe) -> Recipe:
        """Reduces the inputs to the version."""
        return serve(recipe, self.version)

    def check(self, target: TableLog, keys: Collection[str]) -> None:
        """Refuses a table that was switched meanwhile; or of a switch, that has other partitions.

        Raises:
            TableError: saying what to do.
        """
        if self.is_whole:
            if others := sorted(set(target.publishes).difference(keys)):
                raise TableError(
                    f"{target.table.key}: {others[0]} was published meanwhile: look again at what "
                    "is to be switched; nothing was written"
                )
        elif (served := find_served(target)) not in ("", self.version):
            raise TableError(
                f"{target.table.key} was switched from {self.version} to {served} meanwhile: run "
                "these partitions again; nothing of them was written"
            )

    def describe(self) -> dict[str, str]:
        """Describes the version, and the switch to it."""
        return {"version": self.version, **self.switch}


def read_served(window: InputWindow) -> DataFrame:
    """One row per row of the version that is served, whole: what consumers read, under one path.

    Which version its own commits say; `backfill-assets version promote` switches to another one.
    """
    (log,) = window.inputs.values()
    return window.read(log.table, column=window.table.partition_by)


def count_served(window: InputWindow) -> dict[str, int]:
    """Counts the rows that the served version has, by partition key."""
    (log,) = window.inputs.values()
    return window.count_input(log.table)
