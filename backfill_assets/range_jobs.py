"""Asset jobs: a range of partitions of several assets, the same keys for all of them, in one run.

A person starts those of the pipelines. A backfill of several assets would give the keys to the
first of them only, and to the others all that Dagster's mappings make of these.
"""

from collections.abc import Mapping, Sequence

from dagster import AssetKey, AssetSelection, define_asset_job

from backfill_assets.catalog import list_pipelines, list_tables
from backfill_assets.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_first_day,
)
from backfill_assets.settings import read_settings
from backfill_assets.tables.declarations import Table


def _define_range_job(name: str, tables: Sequence[Table], description: str):
    keys = map(find_asset_key, tables)
    return define_asset_job(name, AssetSelection.assets(*keys), description=description)


def _group_by_partitions(tables: Sequence[Table]) -> Mapping[str, list[Table]]:
    """Groups tables by a word for it, as the assets of one job must have the same partitions."""
    grouped: dict[str, list[Table]] = {}
    for table in tables:
        first_day = find_first_day(table)
        has_history = table.grain.cron and first_day < read_settings().begin
        since = f"_from_{first_day:%Y%m%d}" if has_history else ""
        grouped.setdefault(f"{table.grain.slug}{since}", []).append(table)
    return grouped


def _define_pipeline_jobs(pipeline: str, tables: Sequence[Table]):
    grouped = _group_by_partitions(tables)
    return [
        (
            _define_range_job(
                pipeline if len(grouped) == 1 else f"{pipeline}_{partitions}",
                chosen,
                f"Materializes a range of {chosen[0].grain} of "
                f"{' → '.join(table.key for table in chosen)}: "
                "one run for all of them, each with the same partitions.",
            ),
            chosen,
        )
        for partitions, chosen in grouped.items()
    ]


PIPELINE_JOBS = [
    found
    for pipeline, tables in list_pipelines().items()
    for found in _define_pipeline_jobs(pipeline, tables)
]
"""The jobs for people, each with its tables: one for each pipeline, and where it has several
grains, for each of them."""

_GRAIN_JOBS = [
    (
        _define_range_job(
            f"materialize_{partitions}",
            tables,
            f"Materializes a range of {tables[0].grain} of some assets in a run; for the sensors.",
        ),
        {table.key for table in tables},
    )
    for partitions, tables in _group_by_partitions(list_tables()).items()
]

grain_jobs = [job for job, _ in _GRAIN_JOBS]
"""The jobs whose runs the sensors request, over all pipelines: one for each grain, and for the
tables of it that have the same history."""


def find_grain_job(asset_key: AssetKey) -> str:
    """Finds the name of the job of all assets that have the partitions of this one."""
    key = asset_key.to_user_string()
    return next(job.name for job, keys in _GRAIN_JOBS if key in keys)
