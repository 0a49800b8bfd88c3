"""Reads back what was published, without Spark, and takes back what isn't there as audited."""

from collections.abc import Sequence
from dataclasses import replace

from backfill_engine.contents.partition_contents import PartitionReader, ReadBack, read_back
from backfill_engine.errors import SparkUnavailableError
from backfill_engine.lake.commits import CommitInputs
from backfill_engine.lake.partitions import Partition, build_table_predicate
from backfill_engine.lake.reader import read_table
from backfill_engine.lake.served_versions import describe_served
from backfill_engine.lake.table_log import TableLog
from backfill_engine.lake.writer import (
    PartitionsChangedError,
    build_record,
    overwrite_partitions,
)
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import PartitionResult, Run, judge_contents
from backfill_engine.publishing.write_modes.mode import Revert
from backfill_engine.quality.measures import measure_partitions
from backfill_engine.rules.verdicts import Check, Outcome
from backfill_engine.sources.input_window import InputWindow


def verify_publish(
    window: InputWindow,
    log: TableLog,
    recipe: Recipe,
    run: Run,
    published: Sequence[PartitionResult],
    *,
    reader: PartitionReader,
) -> list[PartitionResult]:
    """Answers `partition_is_readable` for each partition of a commit.

    Args:
        window: what was computed.
        log: of the table, with the commit.
        recipe: how.
        run: the run, which takes back what can't be read.
        published: its results; all of one version.
        reader: reads what was committed.

    Returns:
        The same with that finding; without a version where the partition was taken back.
    """
    version = published[0].version
    assert version is not None
    by_key = {partition.key: partition for partition in window.partitions}
    partitions = [by_key[result.key] for result in published]
    contents = _read_back(reader, log.as_of(version), partitions)
    verified: list[PartitionResult] = []
    unreadable: list[Partition] = []
    for result in published:
        finding = judge_contents(contents[result.key], result.measures)
        readable = finding.outcome is Outcome.PASSED
        findings = {**result.verdict.findings, Check.READABLE: (finding,)}
        verdict = replace(result.verdict, findings=findings)
        verified.append(replace(result, verdict=verdict, version=version if readable else None))
        if not readable:
            unreadable.append(by_key[result.key])
    if unreadable and any(hook.is_whole for hook in run.hooks):
        # Of a switch nothing may stay: readers would find two versions side by side.
        verified, unreadable = [replace(result, version=None) for result in verified], partitions
    if unreadable:
        _take_back(window, log, recipe, run, unreadable, version=version)
    return verified


def _read_back(
    reader: PartitionReader, log: TableLog, partitions: Sequence[Partition]
) -> dict[str, ReadBack]:
    try:
        return reader.read_back(log, partitions)
    except SparkUnavailableError:
        # The commit came out so much larger than its inputs that nobody had asked the workers
        # before. It is there now, and to read it slowly is better than not at all.
        return read_back(log, partitions)


def _take_back(
    window: InputWindow,
    log: TableLog,
    recipe: Recipe,
    run: Run,
    partitions: list[Partition],
    *,
    version: int,
) -> None:
    """Puts back what the partitions held before `version`, where no other run replaced them."""
    published, before = log.as_of(version), window.target.as_of(version - 1)
    while partitions:
        predicate = build_table_predicate(
            recipe.table, (partition.slice for partition in partitions)
        )
        rows = read_table(window.spark, before, window.stored_table).where(predicate)
        measures = measure_partitions(rows, recipe.table, partitions)
        record = build_record(
            recipe.table,
            partitions,
            run_id=run.run_id,
            code_version=recipe.code_version,
            input_versions={recipe.table.key: version - 1},
            options={"write_mode": Revert.name},
            rows={key: measured.rows for key, measured in measures.items()},
            checksums={key: measured.checksum for key, measured in measures.items()},
            profiles={key: measured.profile().to_json() for key, measured in measures.items()},
            backfill_id=run.backfill_id or "",
            features={**describe_served(before), **run.origin.describe()},
            consumed=CommitInputs.of(
                {
                    key: publish.consumed
                    for key in measures
                    if (publish := before.publishes.get(key)) is not None
                }
            ),
        )
        try:
            overwrite_partitions(rows, published, partitions, record)
        except PartitionsChangedError as error:
            partitions = [partition for partition in partitions if partition.key not in error.keys]
        else:
            return
