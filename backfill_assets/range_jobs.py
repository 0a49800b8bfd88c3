"""Asset jobs: a range of partitions of several assets, the same keys for all of them, in one run.

A person starts those of the pipelines. A backfill of several assets would give the keys to the
first of them only, and to the others all that Dagster's mappings make of these.
"""

from collections.abc import Mapping, Sequence

from dagster import AssetKey, AssetSelection, define_asset_job

from backfill_assets.catalog import find_table, list_pipelines, list_tables
from backfill_assets.grains.grain import Grain
from backfill_assets.orchestration.instance.partition_definitions import find_asset_key
from backfill_assets.tables.declarations import Table


def _define_range_job(name: str, tables: Sequence[Table], description: str):
    keys = map(find_asset_key, tables)
    return define_asset_job(name, AssetSelection.assets(*keys), description=description)


def _group_by_grain(tables: Sequence[Table]) -> Mapping[Grain, list[Table]]:
    """Groups tables, as the assets of one job must have the same partitions."""
    grains = dict.fromkeys(table.grain for table in tables)
    return {grain: [table for table in tables if table.grain == grain] for grain in grains}


def _define_pipeline_jobs(pipeline: str, tables: Sequence[Table]):
    grouped = _group_by_grain(tables)
    return [
        (
            _define_range_job(
                pipeline if len(grouped) == 1 else f"{pipeline}_{grain.slug}",
                chosen,
                f"Materializes a range of {grain} of {' → '.join(table.key for table in chosen)}: "
                "one run for all of them, each with the same partitions.",
            ),
            chosen,
        )
        for grain, chosen in grouped.items()
    ]


PIPELINE_JOBS = [
    found
    for pipeline, tables in list_pipelines().items()
    for found in _define_pipeline_jobs(pipeline, tables)
]
"""The jobs for people, each with its tables: one for each pipeline, and where it has several
grains, for each of them."""

_GRAIN_JOBS = {
    grain: _define_range_job(
        f"materialize_{grain.slug}",
        tables,
        f"Materializes a range of {grain} of some assets in one run; for the sensors.",
    )
    for grain, tables in _group_by_grain(list_tables()).items()
}

grain_jobs = list(_GRAIN_JOBS.values())
"""The jobs whose runs the sensors request, over all pipelines: one for each grain."""


def find_grain_job(asset_key: AssetKey) -> str:
    """Finds the name of the job of all assets that have the partitions of this one."""
    return _GRAIN_JOBS[find_table(asset_key.to_user_string()).grain].name
