"""What reads a table: which partitions of it could be built, once those of the table are there."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dagster import AssetKey, DagsterInstance

from backfill_engine.orchestration.due.readiness import (
    find_downstream_keys,
    find_readiness,
    find_upstream_tables,
)
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.publishing.recipes import Recipe


@dataclass(frozen=True)
class Reader:
    """A table that reads another, and its partitions that can be built.

    Attributes:
        recipe: how it is made.
        reads: by each of these partitions, which of the other it reads.
        provisional: by partition, what of its input is not there yet, or not final.
    """

    recipe: Recipe
    reads: Mapping[str, Sequence[str]]
    provisional: Mapping[str, str]


def find_reader(
    instance: DagsterInstance,
    graph: AssetGraph,
    recipe: Recipe,
    read: AssetKey,
    keys: Sequence[str],
    *,
    among: Collection[str] | None = None,
) -> Reader:
    """Finds the partitions of a reader that any of `keys` gives, once these are published.

    Those that another input keeps back are left out.

    Args:
        instance: the Dagster instance.
        graph: of all assets.
        recipe: of the reader.
        read: the asset that it reads.
        keys: partitions of that, taken as published.
        among: only these partitions of the reader; None for all.
    """
    reader = AssetKey.from_user_string(recipe.table.key)
    mapping = find_upstream_tables(graph, reader)[read]
    reached = find_downstream_keys(graph, reader, read, mapping, keys)
    chosen = sorted(reached if among is None else reached.intersection(among))
    readiness = find_readiness(instance, graph, reader, chosen, expected={read: keys})
    windows = readiness.windows[read.to_user_string()]
    return Reader(
        recipe,
        {key: windows[key] for key in chosen if key not in readiness.blocked},
        readiness.provisional,
    )


def list_readers(recipes: Iterable[Recipe], key: str) -> Iterator[Recipe]:
    """Lists how each table is made that reads the one of this key."""
    return (recipe for recipe in recipes if key in {one.key for one in recipe.inputs})
