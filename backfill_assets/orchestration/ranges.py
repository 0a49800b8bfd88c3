"""Partition keys as inclusive ranges, the way Dagster takes them, and as lists for people."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dagster import PartitionsDefinition


def find_ranges(partitions_def: PartitionsDefinition, keys: Iterable[str]) -> list[tuple[str, str]]:
    """Finds the fewest ranges that hold exactly `keys`, first and last key of each."""
    subset = partitions_def.subset_with_partition_keys(keys)
    return [(found.start, found.end) for found in subset.get_partition_key_ranges(partitions_def)]


def describe_ranges(partitions_def: PartitionsDefinition, texts: Mapping[str, str]) -> list[str]:
    """Says a text of several partitions once: its ranges of keys, then the text.

    Args:
        partitions_def: of the partitions.
        texts: by partition key.
    """
    keys: dict[str, list[str]] = {}
    for key, text in texts.items():
        keys.setdefault(text, []).append(key)
    return [
        f"{', '.join(_format_ranges(partitions_def, same))}: {text}" for text, same in keys.items()
    ]


def _format_ranges(partitions_def: PartitionsDefinition, keys: Sequence[str]) -> list[str]:
    ranges = find_ranges(partitions_def, keys)
    return [first if first == last else f"{first}...{last}" for first, last in ranges]


def build_command(
    asset_keys: Sequence[str], first: str, last: str, config: Mapping[str, Any]
) -> str:
    """Builds the command that materializes a range, with a run's configuration if not empty."""
    options = f" --config-json {shlex.quote(json.dumps(config))}" if config else ""
    select = ",".join(f'key:"{key}"' for key in asset_keys)
    return (
        "dagster asset materialize -m backfill_assets.definitions "
        f"--select '{select}' --partition-range {first}...{last}{options}"
    )


def shorten(texts: Sequence[str], most: int) -> list[str]:
    """Keeps the first `most` of them, and says how many more there are."""
    rest = len(texts) - most
    return [*texts[:most], *([f"and {rest} more"] if rest > 0 else [])]
