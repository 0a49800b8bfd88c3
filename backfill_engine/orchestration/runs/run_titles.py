"""What a run or a backfill is about, in words: a tag, as the UI's lists of runs show no title.

Who launches a backfill in the UI can't give it one either.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dagster import AssetKey

from backfill_engine.orchestration.instance.dagster_internals import PartitionBackfill
from backfill_engine.orchestration.instance.own_runs import is_ours
from backfill_engine.orchestration.runs.run_tags import ABOUT_TAG, find_tagged_range


def build_run_title(
    job_name: str, assets: Collection[AssetKey] | None, tags: Mapping[str, Any]
) -> str:
    """Builds the title of a run: its assets, else its job, and the ends of its range.

    Args:
        job_name: of the run.
        assets: that were chosen; None and none mean all of the job.
        tags: of the run.
    """
    what = _list_assets(assets) if assets else job_name
    ends = find_tagged_range(tags)
    return what if ends is None else f"{what} {_write_range(ends)}"


def add_title(backfill: PartitionBackfill, own_assets: Collection[AssetKey]) -> PartitionBackfill:
    """Returns a backfill of ours with its title, or one that it gets, as a tag; others as is.

    Args:
        backfill: that somebody asks for.
        own_assets: the assets that are known to be ours.
    """
    title = backfill.title or _build_backfill_title(backfill)
    if not title or not (is_ours(backfill.tags or {}) or _is_of(backfill, own_assets)):
        return backfill
    return backfill._replace(tags={**(backfill.tags or {}), ABOUT_TAG: title})


def _is_of(backfill: PartitionBackfill, assets: Collection[AssetKey]) -> bool:
    """Tells whether a backfill is of any of some assets; of a job's nobody knows: it counts."""
    data = backfill.asset_backfill_data
    return data is None or not data.target_subset.asset_keys.isdisjoint(assets)


def _build_backfill_title(backfill: PartitionBackfill) -> str:
    """Builds the title of one that has none: of its assets, or of its job."""
    if backfill.partition_names:
        return f"{backfill.job_name} {_write_ends(backfill.partition_names)}"
    data = backfill.asset_backfill_data
    if data is None:
        return _list_assets(backfill.asset_selection or ())
    subsets = data.target_subset.partitions_subsets_by_asset_key
    keys = [key for subset in subsets.values() for key in subset.get_partition_keys()]
    what = _list_assets(data.target_subset.asset_keys)
    return f"{what} {_write_ends(keys)}" if keys else what


def _list_assets(assets: Collection[AssetKey]) -> str:
    return ", ".join(sorted(key.to_user_string() for key in assets))


def _write_ends(keys: Sequence[str]) -> str:
    return _write_range((min(keys), max(keys)))


def _write_range(ends: tuple[str, str]) -> str:
    first, last = ends
    return first if first == last else f"{first}...{last}"
