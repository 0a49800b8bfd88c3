"""A served table as a recipe: of its versions, the one that it holds is its only input."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pyspark.sql import DataFrame

from backfill_engine.errors import TableError
from backfill_engine.lake.served_versions import (
    SERVED,
    Switch,
    find_retired,
    find_served,
    list_switches,
)
from backfill_engine.lake.table_log import TableLog
from backfill_engine.publishing.hooks import PublishHook
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.tables.declarations import Table


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
    chosen = tuple(one for one in recipe.inputs if one.key == version)
    if not chosen:
        versions = ", ".join(one.key for one in recipe.table.versions)
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


def name_version(table: Table, key: str) -> str:
    """Names a version as people do: `v2` of features/carrier_delays_v2; by its place if unnumbered.

    Args:
        table: the served one.
        key: of the version.
    """
    _, _, number = key.rpartition("_v")
    if number.isdigit():
        return f"v{number}"
    keys = [version.key for version in table.versions]
    return f"v{keys.index(key) + 1}" if key in keys else key


def find_version(table: Table, name: str) -> Table:
    """Finds a version of a served table by its name (`v2`), or by its table's name or key.

    Raises:
        TableError: if there is none; names those that there are.
    """
    for one in table.versions:
        if name in (one.key, one.name, name_version(table, one.key)):
            return one
    if not table.versions:
        raise TableError(f"{table.key} serves no versions: declare them with it, as `versions`")
    known = ", ".join(f"{name_version(table, one.key)} ({one.key})" for one in table.versions)
    raise TableError(f"{table.key} has no version {name}: there are {known}")


@dataclass(frozen=True)
class DescribedVersion:
    """A version of a served table.

    Attributes:
        name: as people say it, `v2`.
        table: `layer/name`.
        is_served: whether consumers read it now.
        partitions: that it has published.
        retired: why it is kept up no more; empty if it is.
    """

    name: str
    table: str
    is_served: bool
    partitions: int
    retired: str = ""


@dataclass(frozen=True)
class DescribedTable:
    """A served table.

    Attributes:
        table: `layer/name`.
        versions: as declared.
        switches: newest first.
    """

    table: str
    versions: tuple[DescribedVersion, ...]
    switches: tuple[Switch, ...]


def describe_versions(log: TableLog, versions: Sequence[TableLog]) -> DescribedTable:
    """Describes the versions of a served table, and when which was served.

    Args:
        log: of the served table.
        versions: of its versions.
    """
    served = find_served(log)
    return DescribedTable(
        log.table.key,
        tuple(
            DescribedVersion(
                name_version(log.table, one.table.key),
                one.table.key,
                one.table.key == served,
                sum(publish.rows > 0 for publish in one.publishes.values()),
                find_retired(one),
            )
            for one in versions
        ),
        tuple(list_switches(log)),
    )


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
