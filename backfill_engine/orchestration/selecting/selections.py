"""What a question is about: tables by name, partitions by keys or bounds, rows by bounds.

Tables can be named by Dagster's asset selection language, as `dagster asset materialize --select`
takes it. A list of names needs no asset graph. Keys are included; bounds are dates, times or
integers, half-open, and touch partitions of a table of any grain, or are values of a column.
"""

import datetime as dt
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dagster import AssetKey, AssetSelection, DagsterError, PartitionKeyRange, PartitionsDefinition

from backfill_engine.catalog import Catalog
from backfill_engine.errors import PartitionRangeError, SettingsError
from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.overlaps import find_moment
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import build_range_options
from backfill_engine.rules.rule import INTEGERS
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
    candidates, named = _list_begun(catalog, warehouse), frozenset[str]()
    if selection and load_graph is not None:
        candidates = resolve_selection(catalog, selection, load_graph())
        named = find_named(selection)
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
    existing = {table.key for table in catalog.tables if warehouse.exists(table)}
    begun = {
        key for keys in catalog.pipelines.values() if not existing.isdisjoint(keys) for key in keys
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


@dataclass(frozen=True)
class TouchedPartitions:
    """The partitions of a table that a range touches.

    Attributes:
        first: key of the first.
        last: key of the last, included.
        snapped: which bounds cut a partition, so that all of it is taken, in words; empty if none.
    """

    first: str
    last: str
    snapped: str = ""


def find_touched_partitions(
    table: Table, start: str, end: str, *, strict: bool = False
) -> TouchedPartitions:
    """Finds the partitions with values from `start` on and before `end`.

    A bound inside a partition takes all of it.

    Args:
        table: has the partitions.
        start: a date, a time (ISO 8601, UTC unless it says otherwise) or an integer, as the table's
            partitions are of.
        end: likewise.
        strict: refuse bounds inside a partition.

    Raises:
        PartitionRangeError: if a bound can't be read, the range is empty or reversed, it touches no
            partition, or a bound cuts one and must not.
    """
    if not table.grain.cron and not isinstance(table.grain, Buckets):
        ends = build_range_options(table.grain.list_keys())
        raise PartitionRangeError(
            f"{table.key} has no partitions that bounds could touch: give {ends}"
        )
    is_integer = isinstance(table.grain, Buckets)
    begin, stop = _read_bounds(
        _read_integer if is_integer else _read_moment,
        (start, end),
        what=f"the partitions of {table.key} are {table.grain}",
        wanted="an integer" if is_integer else "a date or a time, as 2013-01-31 or 2013-01-31T18",
    )
    partitions = build_partitions(table, find_partitions_def(table).get_partition_keys())
    bounds = [
        (partition.key, *map(find_moment, table.grain.find_times(partition.slice.start)))  # type: ignore[arg-type]
        for partition in partitions
    ]
    touched = [bound for bound in bounds if bound[1] < stop and bound[2] > begin]
    if not touched:
        known = f"{partitions[0].key} to {partitions[-1].key}" if partitions else "none yet"
        raise PartitionRangeError(
            f"no partition of {table.key} has values from {start} on and before {end}: there are "
            f"{known}"
        )
    cut = [
        f"{name} {text} lies in {key}"
        for name, text, bound, (key, first, after) in (
            ("--start", start, begin, touched[0]),
            ("--end", end, stop, touched[-1]),
        )
        if first < bound < after
    ]
    snapped = f"{table.key}: {' and '.join(cut)}, which is taken whole" if cut else ""
    if snapped and strict:
        raise PartitionRangeError(f"{snapped.replace('is taken', 'would be taken')}: --strict")
    return TouchedPartitions(touched[0][0], touched[-1][0], snapped)


def is_of_partitions(tables: Iterable[Table], column: str) -> bool:
    """Tells whether a column decides the partition of all tables, so that it bounds partitions.

    Raises:
        PartitionRangeError: if it does of some of them, and of others it doesn't.
    """
    decides = {table.key: table.partition_by.lower() == column.lower() for table in tables}
    if len({*decides.values()}) > 1:
        own, others = (
            [key for key, found in decides.items() if found is so] for so in (True, False)
        )
        raise PartitionRangeError(
            f"--column {column} decides the partition of {', '.join(own)}, but not of "
            f"{', '.join(others)}: ask for these apart"
        )
    return all(decides.values())


def build_column_filter(tables: Iterable[Table], column: str, start: str, end: str) -> str:
    """Builds the row filter of the values from `start` on and before `end`.

    Args:
        tables: all have the column, of one type.
        column: its name, regardless of case.
        start: a date, a time (ISO 8601, UTC unless it says otherwise) or an integer, as the column
            is of.
        end: likewise; the first value that is no longer meant.

    Raises:
        PartitionRangeError: if a table has no such column, it is of a type that has no ranges or
            of several, a bound can't be read as that type, or the range is empty or reversed.
    """
    filters: dict[str, str] = {}
    for table in tables:
        filters.setdefault(_build_filter(table, column, start, end), table.key)
    if len(filters) > 1:
        raise PartitionRangeError(
            f"--column {column} is of another type in {' than in '.join(filters.values())}: ask "
            "for these apart"
        )
    return next(iter(filters))


def _build_filter(table: Table, column: str, start: str, end: str) -> str:
    found = next((each for each in table.columns if each.name.lower() == column.lower()), None)
    bounded = ", ".join(each.name for each in table.columns if each.type in _BOUNDED)
    if found is None:
        raise PartitionRangeError(
            f"--column {column}: {table.key} has none of that name: choose of {bounded}"
        )
    if found.type not in _BOUNDED:
        raise PartitionRangeError(
            f"--column {column}: it is {found.type} in {table.key}, which has no ranges: choose a "
            f"date, a time or an integer of {bounded}"
        )
    read, wanted = _BOUNDED[found.type]
    bounds = _read_bounds(
        read,
        (start, end),
        what=f"the values of {found.name} in {table.key} are {found.type}",
        wanted=wanted,
    )
    begin, stop = map(_write_bound, bounds)
    return f"`{found.name}` >= {begin} AND `{found.name}` < {stop}"


def _read_bounds(
    read: Callable[[str], Any], texts: tuple[str, str], *, what: str, wanted: str
) -> list[Any]:
    """Reads two bounds of which the second is after the first.

    Raises:
        PartitionRangeError: if one can't be read, or nothing lies between them.
    """
    bounds: list[Any] = []
    for text in texts:
        try:
            bounds.append(read(text))
        except (ValueError, OverflowError):
            raise PartitionRangeError(f"{text}: {what}: give {wanted}") from None
    begin, stop = bounds
    if not begin < stop:
        raise PartitionRangeError(
            f"--start {texts[0]} --end {texts[1]}: that is empty; the end is the first value that "
            "is no longer meant"
        )
    return bounds


def _read_moment(text: str) -> dt.datetime:
    """Reads a date or a time in ISO 8601, UTC unless it says otherwise."""
    found = dt.datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)


def _read_integer(text: str) -> int:
    value = int(text)
    if not -_BIGGEST <= value < _BIGGEST:
        raise ValueError(text)
    return value


_BIGGEST = 2**63
_BOUNDED: dict[str, tuple[Callable[[str], Any], str]] = {
    "DATE": (dt.date.fromisoformat, "a date, as 2013-01-31"),
    "TIMESTAMP": (_read_moment, "a time, as 2013-01-31T18:00"),
    **dict.fromkeys(INTEGERS, (_read_integer, "an integer of 64 bits")),
}
"""By the type of a column: what reads its bounds, and how they are to be written."""


def _write_bound(bound: dt.date | int) -> str:
    match bound:
        case dt.datetime():
            return f"TIMESTAMP '{bound.isoformat(' ').replace('+00:00', 'Z')}'"
        case dt.date():
            return f"DATE '{bound.isoformat()}'"
    return str(bound)
