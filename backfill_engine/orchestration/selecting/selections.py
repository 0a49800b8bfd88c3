"""What a question is about: tables by name, partitions by first and last key."""

from collections.abc import Callable, Iterable, Sequence

from dagster import PartitionKeyRange, PartitionsDefinition

from backfill_engine.catalog import Catalog
from backfill_engine.errors import PartitionRangeError
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.orchestration.selecting.asset_selections import (
    find_named,
    is_list_of_names,
    resolve_selection,
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
