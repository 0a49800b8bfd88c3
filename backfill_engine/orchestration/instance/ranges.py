"""Partition keys as inclusive ranges, the way Dagster takes them, and as lists for people."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dagster import MultiPartitionsDefinition, PartitionsDefinition

from backfill_engine.catalog import Catalog
from backfill_engine.grains.grain import KEY_PARTS, find_hull


def find_ranges(partitions_def: PartitionsDefinition, keys: Iterable[str]) -> list[tuple[str, str]]:
    """Finds the fewest ranges that hold exactly `keys`, first and last key of each.

    Of partitions of two dimensions a range is a box: days that follow one another, and names.
    """
    if isinstance(partitions_def, MultiPartitionsDefinition):
        return _find_boxes(partitions_def, keys)
    subset = partitions_def.subset_with_partition_keys(keys)
    return [(found.start, found.end) for found in subset.get_partition_key_ranges(partitions_def)]


def _find_boxes(
    partitions_def: MultiPartitionsDefinition, keys: Iterable[str]
) -> list[tuple[str, str]]:
    """Finds boxes of days by the names that follow one another within each day."""
    of_days, of_names = (dimension.partitions_def for dimension in partitions_def.partitions_defs)
    names: dict[str, list[str]] = {}
    for key in keys:
        day, _, name = key.partition(KEY_PARTS)
        names.setdefault(day, []).append(name)
    days: dict[tuple[str, str], list[str]] = {}
    for day, found in names.items():
        for stretch in find_ranges(of_names, found):
            days.setdefault(stretch, []).append(day)
    return sorted(
        (f"{first}{KEY_PARTS}{low}", f"{last}{KEY_PARTS}{high}")
        for (low, high), found in days.items()
        for first, last in find_ranges(of_days, found)
    )


def describe_ranges(
    partitions_def: PartitionsDefinition, texts: Mapping[str, str], *, most: int | None = None
) -> list[str]:
    """Says a text of several partitions once: its ranges of keys, then the text.

    Args:
        partitions_def: of the partitions.
        texts: by partition key.
        most: ranges that are listed of a text; None lists all.
    """
    keys: dict[str, list[str]] = {}
    for key, text in texts.items():
        keys.setdefault(text, []).append(key)
    ranges = {text: format_ranges(partitions_def, same) for text, same in keys.items()}
    return [
        f"{', '.join(shorten(same, len(same) if most is None else most))}: {text}"
        for text, same in ranges.items()
    ]


def format_ranges(partitions_def: PartitionsDefinition, keys: Iterable[str]) -> list[str]:
    """Writes the fewest ranges that hold exactly `keys`: FIRST...LAST, or one key."""
    ranges = find_ranges(partitions_def, keys)
    return [first if first == last else f"{first}...{last}" for first, last in ranges]


def build_range_options(keys: Iterable[str]) -> str:
    """Builds a command's options for the least range that holds all keys, at least one."""
    first, last = map(shlex.quote, find_hull(keys))
    return f"--from {first} --to {last}"


def join_tables(
    ranges: Mapping[str, Sequence[tuple[str, str]]],
) -> list[tuple[list[str], Sequence[tuple[str, str]]]]:
    """Joins neighbouring tables that have the same ranges, so that one run does for all of them.

    Args:
        ranges: by table, those that others read first. Tables that aren't neighbours stay apart, as
            what is between them would come too late.
    """
    joined: list[tuple[list[str], Sequence[tuple[str, str]]]] = []
    for table, found in ranges.items():
        if joined and list(joined[-1][1]) == list(found):
            joined[-1][0].append(table)
        else:
            joined.append(([table], found))
    return joined


def build_command(
    catalog: Catalog, asset_keys: Sequence[str], first: str, last: str, config: Mapping[str, Any]
) -> str:
    """Builds the command that materializes a range, with a run's configuration if not empty."""
    options = f" --config-json {shlex.quote(json.dumps(config))}" if config else ""
    select = ",".join(f'key:"{key}"' for key in asset_keys)
    return (
        f"dagster asset materialize -m {catalog.module} "
        f"--select '{select}' --partition-range {shlex.quote(f'{first}...{last}')}{options}"
    )


def shorten(texts: Sequence[str], most: int) -> list[str]:
    """Keeps the first `most` of them, and says how many more there are."""
    rest = len(texts) - most
    return [*texts[:most], *([f"and {rest} more"] if rest > 0 else [])]
