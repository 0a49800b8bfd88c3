"""`append_once`: a batch is added beside what is there, at most once."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame

from backfill_assets.lake.commits import Commit, Publish
from backfill_assets.lake.input_window import InputWindow
from backfill_assets.lake.slices import Partition
from backfill_assets.publishing.inputs import PinnedInputs
from backfill_assets.publishing.results import PartitionResult
from backfill_assets.publishing.write_modes.merge import Merge
from backfill_assets.publishing.write_modes.mode import WriteMode, read_published
from backfill_assets.publishing.write_modes.options import APPEND_ONCE, WriteOptions
from backfill_assets.publishing.write_modes.restore import RESTORING
from backfill_assets.rules.finding_names import FindingName
from backfill_assets.rules.measured import PartitionMeasures
from backfill_assets.rules.verdicts import Check, Finding, Outcome, Verdict
from backfill_assets.tables.declarations import Table


class AppendOnce(WriteMode):
    """Adds all rows of a batch to a partition, unless it holds that batch already."""

    name = APPEND_ONCE
    takes = {"batch": "a batch is for write_mode append_once, not {mode}"}  # noqa: RUF012

    def combine(self, computed: DataFrame, window: InputWindow, options: WriteOptions) -> DataFrame:
        """Adds the published rows to the computed ones."""
        del options
        if not window.target.exists:
            return computed
        return computed.unionByName(read_published(window), allowMissingColumns=True)

    def name_batches(
        self, partitions: Sequence[Partition], pinned: PinnedInputs, options: WriteOptions
    ) -> dict[str, str]:
        """Names the batch of each partition, by key.

        It is as the run names it, else the partition's inputs as they are. Of the landing zone
        these are the partition's files; of a table, its version.
        """
        return {
            partition.key: options.batch or f"inputs {_hash_inputs(pinned.restrict([partition]))}"
            for partition in partitions
        }

    def find_repeated(
        self, partitions: Sequence[Partition], pinned: PinnedInputs, options: WriteOptions
    ) -> list[PartitionResult]:
        """Finds results of the partitions that hold their batch.

        They are as the partitions' last commit left them.
        """
        log = pinned.target.reread()
        held = find_batches(log.table, log.known_commits)
        repeated: list[PartitionResult] = []
        for key, batch in self.name_batches(partitions, pinned, options).items():
            version, publish = held.get(key, {}).get(batch), log.publishes.get(key)
            if version is None or publish is None:
                continue
            bound = f"batch {batch} was appended as version {version}; nothing was written"
            finding = Finding(FindingName.BATCH_IS_APPENDED_ONCE, None, bound, Outcome.PASSED)
            repeated.append(
                PartitionResult(
                    Verdict(key, {Check.COMPLETE: (finding,)}),
                    PartitionMeasures(rows=publish.rows, checksum=publish.checksum),
                    version=publish.version,
                    input_versions=publish.record.input_versions,
                    consumed=publish.consumed,
                    repeated_batch=batch,
                )
            )
        return repeated


def find_batches(table: Table, commits: Iterable[Commit]) -> dict[str, dict[str, int]]:
    """Finds per partition key the batches that it holds and the version that appended each.

    An overwrite forgets them. A rollback, and a run that takes its own commit back, restore what
    was there at the version that they name. A merge keeps them.

    Args:
        table: the table.
        commits: of it, newest first, as far back as they go.
    """
    oldest_first = list(reversed(list(commits)))
    restored = {_find_restored(table, commit) for commit in oldest_first}
    held: dict[str, dict[str, int]] = {}
    at_version: dict[int | None, dict[str, dict[str, int]]] = {}
    for commit in oldest_first:
        for key in commit.record.rows if commit.record else ():
            held[key] = _apply(table, commit, key, held.get(key, {}), at_version)
        if commit.version in restored:
            at_version[commit.version] = dict(held)
    return held


def _apply(
    table: Table,
    commit: Commit,
    key: str,
    before: dict[str, int],
    at_version: Mapping[int | None, Mapping[str, dict[str, int]]],
) -> dict[str, int]:
    record = commit.record
    assert record is not None
    if record.write_mode == AppendOnce.name:
        return {**before, record.batches[key]: commit.version}
    if record.write_mode == Merge.name:
        return before
    return at_version.get(_find_restored(table, commit), {}).get(key, {})


def _find_restored(table: Table, commit: Commit) -> int | None:
    """Finds the version that a commit put back; None if it computed what it published."""
    record = commit.record
    if record is None or record.write_mode not in RESTORING:
        return None
    version = record.input_versions.get(table.key)
    return version if isinstance(version, int) else None


def build_transaction(
    table: Table, batches: Mapping[str, str], published: Mapping[str, Publish]
) -> str:
    """Builds the application id of Delta's transaction identifier for an append.

    The same attempt has the same id: Delta itself then writes it once at most, also where two
    processes commit at the same time and nothing else keeps them apart. The commit that published
    each partition last is part of it, so that a batch can be appended again once it was undone.

    Args:
        table: the table.
        batches: what is appended, by partition key.
        published: the last publish of each partition, by key; absent for those without.
    """
    digest = hashlib.sha256(table.key.encode())
    for key, batch in sorted(batches.items()):
        last = published[key].version if key in published else -1
        digest.update(repr((key, batch, last)).encode())
    return f"backfill_assets/{digest.hexdigest()[:32]}"


def _hash_inputs(pinned: PinnedInputs) -> str:
    inputs = json.dumps(pinned.describe(), sort_keys=True)
    return hashlib.sha256(inputs.encode()).hexdigest()[:16]
