"""Tables by Dagster's asset selection language, as `dagster asset materialize --select` takes it.

A list of names needs none of it, and not the asset graph either: see `selections`.
"""

import re
import warnings

from dagster import AssetKey, AssetSelection, DagsterError

from backfill_engine.catalog import Catalog
from backfill_engine.errors import SettingsError
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.tables.declarations import Table

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
