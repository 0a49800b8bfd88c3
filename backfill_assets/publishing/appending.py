"""Which partitions of an append hold their batch already."""

import hashlib
import json
from collections.abc import Sequence

from backfill_assets.lake.batches import find_batches
from backfill_assets.lake.slices import Partition
from backfill_assets.lake.table_log import find_latest_publishes, read_commits
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.publishing.inputs import PinnedInputs
from backfill_assets.publishing.results import PartitionResult
from backfill_assets.publishing.write_options import WriteOptions
from backfill_assets.rules.measured import PartitionMeasures
from backfill_assets.rules.verdicts import Check, Finding, Outcome, Verdict
from backfill_assets.tables.declarations import Table


def name_batches(
    partitions: Sequence[Partition], pinned: PinnedInputs, options: WriteOptions
) -> dict[str, str]:
    """The batch of each partition, by key: as the run names it, else its inputs as they are.

    Of the landing zone these are the partition's files; of a table, its version.
    """
    if options.batch:
        return {one.key: options.batch for one in partitions}
    return {one.key: f"inputs {_hash(pinned.restrict([one]))}" for one in partitions}


def find_repeated(
    warehouse: Warehouse,
    table: Table,
    partitions: Sequence[Partition],
    pinned: PinnedInputs,
    options: WriteOptions,
) -> list[PartitionResult]:
    """Results of the partitions that hold their batch: as their last commit left them."""
    commits = read_commits(warehouse, table)
    held, latest = find_batches(table, commits), find_latest_publishes(commits)
    repeated: list[PartitionResult] = []
    for key, batch in name_batches(partitions, pinned, options).items():
        version = held.get(key, {}).get(batch)
        record = latest[key].record if key in latest else None
        if version is None or record is None:
            continue
        bound = f"batch {batch} was appended as version {version}; nothing was written"
        finding = Finding("batch_is_appended_once", None, bound, Outcome.PASSED)
        repeated.append(
            PartitionResult(
                Verdict(key, {Check.COMPLETE: (finding,)}),
                PartitionMeasures(rows=record.rows[key], checksum=record.checksums[key]),
                version=latest[key].version,
                input_versions=record.input_versions,
                repeated_batch=batch,
            )
        )
    return repeated


def _hash(pinned: PinnedInputs) -> str:
    inputs = json.dumps(pinned.describe(), sort_keys=True)
    return hashlib.sha256(inputs.encode()).hexdigest()[:16]
