"""Partition keys as inclusive ranges, the way Dagster takes them, and as lists for people."""

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any


def find_ranges(all_keys: Sequence[str], keys: Collection[str]) -> list[tuple[str, str]]:
    """The fewest ranges of `all_keys`, in its order, that hold exactly `keys`.

    Args:
        all_keys: the partitions in their order.
        keys: some of them.
    """
    wanted = set(keys)
    ranges: list[tuple[str, str]] = []
    previous = None
    for key in all_keys:
        if key in wanted:
            if ranges and ranges[-1][1] == previous:
                ranges[-1] = (ranges[-1][0], key)
            else:
                ranges.append((key, key))
        previous = key
    return ranges


def build_command(
    asset_keys: Sequence[str], first: str, last: str, config: Mapping[str, Any]
) -> str:
    """The command that materializes a range, with a run's configuration if it isn't empty."""
    options = f" --config-json {shlex.quote(json.dumps(config))}" if config else ""
    select = ",".join(f'key:"{key}"' for key in asset_keys)
    return (
        "dagster asset materialize -m backfill_assets.definitions "
        f"--select '{select}' --partition-range {first}...{last}{options}"
    )


def shorten(texts: Sequence[str], most: int) -> list[str]:
    """The first `most` of them, and how many more there are."""
    rest = len(texts) - most
    return [*texts[:most], *([f"and {rest} more"] if rest > 0 else [])]
