"""Which tables go in one run: those that read each other, of the same ranges, share a session."""

from collections.abc import Mapping, Sequence

from dagster import AssetKey

from backfill_engine.catalog import Catalog
from backfill_engine.orchestration.due.readiness import find_upstream_tables
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph

Ranges = Sequence[tuple[str, str]]


def group_tables(
    catalog: Catalog, graph: AssetGraph, ranges: Mapping[str, Ranges]
) -> list[tuple[str, ...]]:
    """Groups tables so that each group can be one run for each of its ranges.

    Run in their order, each finds what it reads.

    Args:
        catalog: of the code location.
        graph: of all assets.
        ranges: first and last keys by table, upstream ones first.
    """
    groups: list[list[str]] = []
    placed: dict[str, int] = {}
    for table in ranges:
        at = max((placed.get(key, -1) for key in _list_upstream(graph, table)), default=-1)
        if at < 0 or not _is_alike(catalog, ranges, groups[at][0], table):
            groups.append([])
            at = len(groups) - 1
        groups[at].append(table)
        placed[table] = at
    return [tuple(group) for group in groups]


def reads_others(graph: AssetGraph, group: Sequence[str], ranges: Mapping[str, Ranges]) -> bool:
    """Tells whether any of a group reads a table of `ranges` that is not of the group."""
    return any(
        upstream in ranges and upstream not in group
        for table in group
        for upstream in _list_upstream(graph, table)
    )


def _list_upstream(graph: AssetGraph, table: str) -> list[str]:
    upstream = find_upstream_tables(graph, AssetKey.from_user_string(table))
    return [key.to_user_string() for key in upstream]


def _is_alike(catalog: Catalog, ranges: Mapping[str, Ranges], one: str, other: str) -> bool:
    same_grain = catalog.find_table(one).grain == catalog.find_table(other).grain
    return same_grain and list(ranges[one]) == list(ranges[other])
