"""What the incremental runs do next: each table from its watermark on, as far as its input is."""

from collections.abc import Sequence
from dataclasses import dataclass

from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

from backfill_assets.errors import LandingError, LandingNotFoundError
from backfill_assets.lake.partitions import build_partitions
from backfill_assets.lake.table_log import read_log
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.lake.watermarks import Watermark
from backfill_assets.orchestration.dagster_internals import AssetGraph, find_run_assets
from backfill_assets.orchestration.partition_definitions import find_asset_key
from backfill_assets.orchestration.ranges import find_ranges
from backfill_assets.orchestration.readiness import find_readiness, get_partitions_def
from backfill_assets.orchestration.run_options import INCREMENTAL_TAG
from backfill_assets.publishing.inputs import list_landing
from backfill_assets.publishing.recipes import Recipe

_UNFINISHED = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


@dataclass(frozen=True)
class Increment:
    """Partitions of a table to process next: first and last key, and the state of their input.

    The same three mean that it was tried before, and that nothing has changed since.
    """

    first: str
    last: str
    input_state: str


def find_increments(
    instance: DagsterInstance,
    graph: AssetGraph,
    warehouse: Warehouse,
    recipe: Recipe,
    watermark: Watermark | None,
    *,
    landing_root: str,
) -> list[Increment]:
    """Finds ranges of partitions from the watermark on whose input is there.

    They have landed, or their upstream is published. What landed is taken up to the newest, gaps
    included: a day that never came is for a person to look at, and its run says so.

    Args:
        instance: knows what is published.
        graph: of all assets.
        warehouse: the tables.
        recipe: of the table.
        watermark: of the table; None if nothing has been processed.
        landing_root: root of the landing zone.

    Raises:
        LandingNotFoundError: if the landing zone isn't there, and the table is.
        LandingError: if nothing landed but a file that can't be read.
    """
    asset_key = find_asset_key(recipe.table)
    partitions_def = get_partitions_def(graph, asset_key)
    keys = list(partitions_def.get_partition_keys())
    if watermark is not None:
        keys = [key for key in keys if key >= watermark.next_key]
    if not keys:
        return []
    if recipe.landing is not None:
        try:
            return _find_landed(recipe, landing_root, keys)
        except LandingNotFoundError:
            # A pipeline that nobody feeds here; one with a table has lost its source.
            if warehouse.exists(recipe.table):
                raise
            return []
    if not all(warehouse.exists(table) for table in recipe.inputs):
        return []
    blocked = find_readiness(instance, graph, asset_key, keys).blocked
    ready = [key for key in keys if key not in blocked]
    versions = ",".join(str(read_log(warehouse, table).version) for table in recipe.inputs)
    return [Increment(first, last, versions) for first, last in find_ranges(partitions_def, ready)]


def _find_landed(recipe: Recipe, landing_root: str, keys: Sequence[str]) -> list[Increment]:
    partitions = build_partitions(recipe.table, keys)
    listing = list_landing(recipe, landing_root, partitions)
    assert listing is not None
    missing = set(listing.missing)
    landed = [partition for partition in partitions if partition not in missing]
    if not landed:
        for fault in listing.faults:
            raise LandingError(f"{fault.name} {fault.fault}")
        return []
    due = listing.restrict(
        [partition for partition in partitions if partition.key <= landed[-1].key]
    )
    return [Increment(partitions[0].key, landed[-1].key, due.fingerprint())]


def has_unfinished_run(instance: DagsterInstance, recipe: Recipe) -> bool:
    """Tells whether an incremental run of the table has not ended yet."""
    asset_key = find_asset_key(recipe.table)
    runs = instance.get_runs(RunsFilter(statuses=_UNFINISHED, tags={INCREMENTAL_TAG: "true"}))
    return any(asset_key in find_run_assets(instance, run) for run in runs)
