"""`append_once`: a batch is added beside what is there, at most once."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from backfill_engine.lake.commits import Commit, CommitRecord, Consumed, Publish
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog
from backfill_engine.publishing.inputs import PinnedInputs
from backfill_engine.publishing.results import PartitionResult, withhold
from backfill_engine.publishing.write_modes.mode import RESTORING, Merge, WriteMode, read_published
from backfill_engine.publishing.write_modes.options import APPEND_ONCE, WriteOptions
from backfill_engine.rules.count_rules import SOURCE_FILE, FilesOnce
from backfill_engine.rules.finding_names import BATCH_IS_APPENDED_ONCE
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Check, Finding, Outcome, Verdict
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.tables.declarations import Table


class AppendOnce(WriteMode):
    """Adds all rows of a batch to a partition, unless it holds that batch already."""

    name = APPEND_ONCE
    takes = {"batch": "a batch is for write_mode append_once, not {mode}"}  # noqa: RUF012

    def add_rules(self, table: Table, *, is_landed: bool) -> Table:
        """Of a table that keeps the landed file of a row: that none is appended twice.

        That the inputs are others says only that not all of them are in the partition.
        """
        if not is_landed or SOURCE_FILE not in table.column_names:
            return table
        return replace(table, rules=(*table.rules, FilesOnce()))

    def combine(self, computed: DataFrame, window: InputWindow, options: WriteOptions) -> DataFrame:
        """Adds the published rows to the computed ones."""
        if not window.target.exists:
            return computed
        return computed.unionByName(read_published(window), allowMissingColumns=True)

    def name_batches(
        self, partitions: Sequence[Partition], pinned: PinnedInputs, options: WriteOptions
    ) -> dict[str, str]:
        """Names the batch of each partition, by key: as the run names it, else by its inputs."""
        if options.batch:
            return {partition.key: options.batch for partition in partitions}
        return _name_inputs(partitions, pinned)

    def find_repeated(
        self, partitions: Sequence[Partition], pinned: PinnedInputs, options: WriteOptions
    ) -> list[PartitionResult]:
        """Finds results of the partitions that hold their batch, or what it is computed from.

        They are as the partitions' last commit left them. A partition of which nobody knows what it
        holds is withheld.
        """
        held = find_held(pinned.current.reread(), [partition.key for partition in partitions])
        inputs = _name_inputs(partitions, pinned)
        results: list[PartitionResult] = []
        for key, batch in self.name_batches(partitions, pinned, options).items():
            found = next((name for name in (batch, inputs[key]) if name in held[key].batches), None)
            if found is not None:
                results.append(_describe_repeated(held[key], found))
            elif held[key].doubt:
                why = f"{held[key].doubt}, so that nobody knows which batches it holds"
                cure = "overwrite it from all of its input, then append what comes later"
                results.append(withhold(key, BATCH_IS_APPENDED_ONCE, f"{why}: {cure}"))
        return results


@dataclass(frozen=True)
class Held:
    """What a partition holds, as its table's commits tell.

    Attributes:
        batches: the version that brought each batch that is in it, by name.
        doubt: why there may be others; empty if there are none.
        changed_in: the newest version that may have changed it; -1 if none did.
        publish: the publish whose contents it has; None where that isn't known.
    """

    batches: Mapping[str, int] = field(default_factory=dict)
    doubt: str = ""
    changed_in: int = -1
    publish: Publish | None = None


def find_held(log: TableLog, keys: Collection[str]) -> dict[str, Held]:
    """Finds what partitions hold, by key."""
    known, is_whole = log.known_commits, True
    if any(commit.restores is not None or _is_restoring(commit) for commit in known):
        # The index doesn't have all that a version held to which somebody went back.
        is_whole = log.begins_with == 0
        known = log.commits if is_whole else known
    doubt = f"the log begins with version {log.known_since}" if log.known_since else ""
    return trace_batches(log.table, known, keys, doubt=doubt, is_whole=is_whole)


def trace_batches(
    table: Table,
    commits: Iterable[Commit],
    keys: Collection[str],
    *,
    doubt: str = "",
    is_whole: bool = True,
) -> dict[str, Held]:
    """Traces what partitions hold through the commits of their table.

    An overwrite forgets all batches, but what it was computed from counts as one. A rollback, a run
    that takes its own commit back, and a RESTORE by hand put back what was there at a version. A
    merge keeps batches, unless it deletes what was not computed. What another writer changed is in
    doubt until it is overwritten.

    Args:
        table: the table.
        commits: of it, newest first, as far back as they go.
        keys: the partitions.
        doubt: what is unknown of the time before `commits`; empty if nothing is.
        is_whole: whether `commits` has all of them, and not only the last of each partition.
    """
    history: dict[str, list[Held]] = {key: [Held(doubt=doubt)] for key in keys}
    for commit in reversed(list(commits)):
        restored = _find_restored(table, commit)
        for key in commit.find_changed(history):
            then = history[key][-1]
            if restored is not None:
                then = next(
                    state for state in reversed(history[key]) if state.changed_in <= restored
                )
                if then.publish is None and not is_whole:
                    then = Held(doubt=f"version {restored}, which was put back, is forgotten")
            after = _apply(commit, key, then, is_restored=restored is not None)
            history[key].append(replace(after, changed_in=commit.version))
    return {key: states[-1] for key, states in history.items()}


def _apply(commit: Commit, key: str, before: Held, *, is_restored: bool) -> Held:
    """Finds what a partition holds after a commit that touched it.

    Args:
        commit: the commit.
        key: the partition.
        before: what it held then, or, if the commit put a version back, at that version.
        is_restored: whether it did.
    """
    record = commit.record
    if record is None:
        other = f"another writer changed it in version {commit.version}"
        return before if is_restored else Held(doubt=other)
    held = replace(before, publish=Publish(commit, record, key))
    if is_restored:
        return held
    brought = _list_brought(record, key, commit.version)
    unsaid = "" if record.commit_id else "only a certificate tells of its publish"
    is_merge = record.write_mode == Merge.name
    if record.write_mode == AppendOnce.name or (
        is_merge and not record.options.get("delete_missing")
    ):
        return replace(held, batches={**before.batches, **brought}, doubt=before.doubt or unsaid)
    if is_merge and record.row_filter:
        unsaid = before.doubt or (
            f"version {commit.version} deleted part of its rows" if before.batches else ""
        )
    return replace(held, batches=brought, doubt=unsaid)


def _list_brought(record: CommitRecord, key: str, version: int) -> dict[str, int]:
    """Lists the batches that a commit brought: by its name, and by what it was computed from."""
    names = [record.batches.get(key, "")]
    if not record.row_filter:  # What a filter left out has not come.
        names.append(_name_batch(record.consumed.find(key), record.input_versions))
    return {name: version for name in names if name}


def _is_restoring(commit: Commit) -> bool:
    return commit.record is not None and commit.record.write_mode in RESTORING


def _find_restored(table: Table, commit: Commit) -> int | None:
    """Finds the version that a commit put back; None if it put none back."""
    if commit.record is None or not _is_restoring(commit):
        return commit.restores
    version = commit.record.input_versions.get(table.key)
    return version if isinstance(version, int) else None


def build_transaction(table: Table, batches: Mapping[str, str], held: Mapping[str, Held]) -> str:
    """Builds the application id of Delta's transaction identifier for an append.

    The same attempt has the same id: Delta itself then writes it once at most, also where two
    processes commit at the same time and nothing else keeps them apart. Delta keeps the id even
    where a RESTORE takes the append back. So the commit that changed each partition last is part of
    it, and a batch can be appended again once it was undone, however it was.

    Args:
        table: the table.
        batches: what is appended, by partition key.
        held: what each of the partitions holds, by key.
    """
    digest = hashlib.sha256(table.key.encode())
    for key, batch in sorted(batches.items()):
        digest.update(repr((key, batch, held[key].changed_in)).encode())
    return f"backfill_assets/{digest.hexdigest()[:32]}"


def _describe_repeated(held: Held, batch: str) -> PartitionResult:
    publish = held.publish
    assert publish is not None
    bound = f"batch {batch} came with version {held.batches[batch]}; nothing was written"
    finding = Finding(BATCH_IS_APPENDED_ONCE, None, bound, Outcome.PASSED)
    return PartitionResult(
        Verdict(publish.key, {Check.COMPLETE: (finding,)}),
        PartitionMeasures(rows=publish.rows, checksum=publish.checksum),
        version=publish.version,
        input_versions=publish.record.input_versions,
        consumed=publish.consumed,
        repeated_batch=batch,
    )


def _name_inputs(partitions: Sequence[Partition], pinned: PinnedInputs) -> dict[str, str]:
    """Names the batch that the inputs of each partition are as they were pinned, by key."""
    consumed = pinned.describe_consumed([partition.key for partition in partitions])
    return {
        partition.key: _name_batch(consumed[partition.key], pinned.restrict([partition]).describe())
        for partition in partitions
    }


def _name_batch(consumed: Consumed, versions: Mapping[str, int | str]) -> str:
    """Names inputs by what a partition consumed of them, else by their versions; "" without any."""
    if consumed.state:
        return f"inputs {consumed.state}"
    text = json.dumps(dict(versions), sort_keys=True)
    return f"inputs {hashlib.sha256(text.encode()).hexdigest()[:16]}" if versions else ""
