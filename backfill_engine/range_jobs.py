"""Asset jobs: a range of partitions of several assets, the same keys for all of them, in one run.

A person starts those of the pipelines. A backfill of several assets would give the keys to the
first of them only, and to the others all that Dagster's mappings make of these.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dagster import AssetKey, AssetSelection, define_asset_job, in_process_executor

from backfill_engine.catalog import Catalog
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.tables.declarations import Table


@dataclass(frozen=True)
class RangeJob:
    """A job that materializes a range of some tables.

    Attributes:
        name: of the job.
        tables: with the same partitions.
        description: for the UI.
    """

    name: str
    tables: Sequence[Table]
    description: str

    @cached_property
    def definition(self):
        """The job, as Dagster knows it."""
        return define_asset_job(
            self.name,
            AssetSelection.assets(*map(find_asset_key, self.tables)),
            description=self.description,
            # All steps of a run in one process, so that they share one Spark session.
            executor_def=in_process_executor,
        )


@dataclass(frozen=True)
class RangeJobs:
    """The jobs that materialize ranges.

    Attributes:
        of_pipelines: for people: one for each pipeline, and where it has several grains, for each
            of them.
        of_grains: whose runs the sensors request, over all pipelines: one for each grain, and for
            the tables of it that have the same days.
    """

    of_pipelines: Sequence[RangeJob]
    of_grains: Sequence[RangeJob]

    def find_grain_job(self, asset_key: AssetKey) -> str:
        """Finds the name of the job of all assets that have the partitions of this one."""
        return next(
            job.name for job in self.of_grains if asset_key in map(find_asset_key, job.tables)
        )

    @property
    def grain_definitions(self):
        """The jobs of the grains, as Dagster knows them."""
        return [job.definition for job in self.of_grains]


def build_range_jobs(catalog: Catalog) -> RangeJobs:
    """Builds the jobs that materialize ranges."""
    return RangeJobs(
        [
            job
            for pipeline, keys in catalog.pipelines.items()
            for job in _build_pipeline_jobs(catalog, pipeline, map(catalog.find_table, keys))
        ],
        [
            RangeJob(
                catalog.prefix(f"materialize_{partitions}"),
                tables,
                f"Materializes a range of {tables[0].grain} of some assets in a run; for the "
                "sensors.",
            )
            for partitions, tables in _group_by_partitions(catalog.tables).items()
        ],
    )


def _build_pipeline_jobs(
    catalog: Catalog, pipeline: str, tables: Iterable[Table]
) -> Iterator[RangeJob]:
    grouped = _group_by_partitions(tables)
    for partitions, chosen in grouped.items():
        yield RangeJob(
            catalog.prefix(pipeline if len(grouped) == 1 else f"{pipeline}_{partitions}"),
            chosen,
            f"Materializes a range of {chosen[0].grain} of "
            f"{' → '.join(table.key for table in chosen)}: "
            "one run for all of them, each with the same partitions.",
        )


def _group_by_partitions(tables: Iterable[Table]) -> Mapping[str, list[Table]]:
    """Groups tables by a word for it, as the assets of one job must have the same partitions."""
    grouped: dict[str, list[Table]] = {}
    for table in tables:
        grouped.setdefault(f"{table.grain.slug}{_name_days(table)}", []).append(table)
    return grouped


def _name_days(table: Table) -> str:
    """Names the days of a table that has others than most."""
    calendar = table.calendar
    if not table.grain.cron or calendar is None:
        return ""
    first = calendar.first_day or table.begin
    since = f"_from_{first:%Y%m%d}" if first else ""
    return f"{since}_to_{table.end:%Y%m%d}" if table.end else since
