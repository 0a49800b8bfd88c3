"""What a question is about: tables by name, partitions by first and last key.

Tables can be named by Dagster's asset selection language, as `dagster asset materialize --select`
takes it. A list of names needs no asset graph.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Sequence

from dagster import AssetKey, AssetSelection, DagsterError, PartitionKeyRange, PartitionsDefinition

from backfill_engine.catalog import Catalog
from backfill_engine.errors import PartitionRangeError, SettingsError
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.tables.declarations import Table


def select_tables(
    catalog: Catalog,
    warehouse: Warehouse,
    selection: str | None,
    *,
    first: str | None = None,
    last: str | None = None,
    load_graph: Callable[[], AssetGraph] | None = None,
) -> tuple[Table, ...]:
    """Selects the tables of a comma-separated list of keys, or else those asked about.

    These are the tables that have the partitions, of the pipelines of which a table is there; of
    all pipelines, if none is.

    Args:
        catalog: of the code location.
        warehouse: says which pipelines have begun.
        selection: keys, or pieces of Dagster's asset selection language; None for those asked
            about. What a wildcard or a group selects and lacks the partitions drops out; what is
            named stays, for whoever needs them to refuse.
        first: first partition key; None with `last` where any will do.
        last: last partition key.
        load_graph: gives the graph of all assets, for a selection that is more than names; None
            where only names are taken.

    Raises:
        TableError: if one doesn't exist.
        PartitionRangeError: if none has the partitions.
        SettingsError: if the selection can't be read, or selects no table.
    """
    if selection and (load_graph is None or is_list_of_names(selection)):
        return tuple(catalog.find_table(key.strip()) for key in selection.split(","))
    if selection and load_graph is not None:
        candidates, named = (
            resolve_selection(catalog, selection, load_graph()),
            find_named(selection),
        )
    else:
        candidates, named = _list_begun(catalog, warehouse), frozenset[str]()
    wanted = [key for key in (first, last) if key is not None]
    found = tuple(
        table
        for table in candidates
        if table.key in named
        or all(find_partitions_def(table).has_partition_key(key) for key in wanted)
    )
    if not found:
        examples = {
            find_partitions_def(table).get_first_partition_key(): table.key for table in candidates
        }
        listed = ", ".join(f"{key} of {table}" for key, table in examples.items())
        whose = "of these tables" if selection else "here"
        keys = f"a partition {first}" if first == last else f"both partitions {first} and {last}"
        raise PartitionRangeError(f"no table {whose} has {keys}: give keys such as {listed}")
    return found


def _list_begun(catalog: Catalog, warehouse: Warehouse) -> Sequence[Table]:
    """Lists the tables of the pipelines of which one is there; of all, if none is."""
    there = {table.key for table in catalog.tables if warehouse.exists(table)}
    begun = {
        key for keys in catalog.pipelines.values() if not there.isdisjoint(keys) for key in keys
    }
    return [table for table in catalog.tables if table.key in begun or not begun]


def find_table_ranges(
    tables: Iterable[Table], *, first: str | None, last: str | None
) -> dict[Table, tuple[str, str]]:
    """Finds first and last partition key of each table: those given, or all that it has.

    Raises:
        PartitionRangeError: if only one is given.
    """
    if first is not None and last is not None:
        return dict.fromkeys(tables, (first, last))
    if first is not None or last is not None:
        raise PartitionRangeError("--from and --to belong together: give both, or neither")
    found: dict[Table, tuple[str, str]] = {}
    for table in tables:
        keys = find_partitions_def(table).get_partition_keys()
        if keys:
            found[table] = keys[0], keys[-1]
    return found


def find_keys_in_range(
    partitions_def: PartitionsDefinition, *, first: str, last: str
) -> Sequence[str]:
    """Finds the keys from `first` to `last`, both included.

    Raises:
        PartitionRangeError: if a key is unknown or the range is reversed.
    """
    known = all(partitions_def.has_partition_key(key) for key in (first, last))
    range_ = PartitionKeyRange(first, last)
    keys = partitions_def.get_partition_keys_in_range(range_) if known else ()
    if not keys:
        all_keys = partitions_def.get_partition_keys()
        raise PartitionRangeError(
            f"no partitions {first}...{last}: "
            f"give two keys of {all_keys[0]}...{all_keys[-1]}, ascending"
        )
    return keys


_EXAMPLES = 'group:staging, key:"raw/*", staging/flights+, not group:raw'
_OPERATORS = re.compile(r"""[\s:*+()"']""")
_COMMA = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')  # none between quotes
_NAME = re.compile(r"""(?<![\w:+/"'-])(?:key:)?["']?([\w-]+/[\w-]+)(?![\w/*-])["']?(?![+"'])""")


def is_list_of_names(text: str) -> bool:
    """Tells a comma-separated list of names from a selection that Dagster has to read."""
    return not any(_OPERATORS.search(piece.strip()) for piece in text.split(","))


def find_named(text: str) -> frozenset[str]:
    """Finds the keys that a selection names in full, and not as where a traversal begins."""
    return frozenset(_NAME.findall(text))


def resolve_selection(catalog: Catalog, text: str, graph: AssetGraph) -> tuple[Table, ...]:
    """Finds the tables that a selection means, upstream ones first.

    Args:
        catalog: of the code location.
        text: pieces of the language, separated by commas: what any of them selects.
        graph: of all assets. Those that are no tables, as the landing zone, drop out.

    Raises:
        SettingsError: if it can't be read, selects no table, or names what is none.
    """
    tables = {find_asset_key(table): table for table in catalog.tables}
    found: set[AssetKey] = set()
    for piece in _COMMA.split(text):
        found |= _resolve(piece.strip(), graph)
    for key in found - tables.keys():
        if key.to_user_string() in find_named(text):
            raise SettingsError(f"--select {text}: {key.to_user_string()} is no table")
    if not found & tables.keys():
        listed = ", ".join(table.key for table in catalog.tables)
        raise SettingsError(f"--select {text} selects no table: there are {listed}")
    return tuple(
        tables[key] for key in graph.toposorted_asset_keys if key in found and key in tables
    )


def _resolve(piece: str, graph: AssetGraph) -> set[AssetKey]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is beta in Dagster
            return set(AssetSelection.from_string(piece).resolve(graph))
    except DagsterError as error:
        why = str(error).splitlines()[0].partition(", but no AssetsDefinition")[0]
        raise SettingsError(
            f"--select {piece}: {why}: give tables, or a selection such as {_EXAMPLES}"
        ) from error
