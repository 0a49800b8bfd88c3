"""Records what a step did: certificate and events, each after the commit, never before."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dagster import (
    AssetCheckEvaluation,
    AssetExecutionContext,
    AssetMaterialization,
    OpExecutionContext,
)

from backfill_engine.contents.partition_reader import PartitionReader
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.due.input_tags import find_input_tags
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.materializations import find_latest_materializations
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import describe_ranges, shorten
from backfill_engine.orchestration.records.events import build_evaluations, build_materialization
from backfill_engine.orchestration.records.step_messages import describe_chunk
from backfill_engine.orchestration.records.told_evaluations import ToldEvaluations
from backfill_engine.proof.certificates import Certificate, CertifiedChunk, locate_certificate
from backfill_engine.proof.certifying import certify
from backfill_engine.publishing.differences import explain_change
from backfill_engine.publishing.results import PartitionResult, Run

_LISTED = 7


_NOTHING = "none"


@dataclass(frozen=True)
class _BegunChunk:
    keys: frozenset[str]
    first: str
    last: str
    started_at: dt.datetime
    completed_at: dt.datetime | None = None
    error: str = ""


@dataclass
class ChunkRecords:
    """The chunks that a step has begun; filled while it runs.

    Attributes:
        write_mode: of the run.
    """

    write_mode: str
    _begun: list[_BegunChunk] = field(default_factory=list)

    def begin(self, partitions: Sequence[Partition]) -> None:
        """Notes that a chunk begins."""
        keys = frozenset(partition.key for partition in partitions)
        chunk = _BegunChunk(keys, partitions[0].key, partitions[-1].key, dt.datetime.now(tz=dt.UTC))
        self._begun.append(chunk)

    def note(self, results: Iterable[PartitionResult]) -> None:
        """Notes that there are results; the chunk which began last is done once it has all."""
        if self._begun and self._begun[-1].keys <= {result.key for result in results}:
            self.end()

    def end(self, error: str = "") -> None:
        """Notes that the chunk which began last is done, or what ended it; what is said first."""
        chunk = self._begun[-1]
        if chunk.completed_at is None:
            now = dt.datetime.now(tz=dt.UTC)
            self._begun[-1] = replace(chunk, completed_at=now, error=error)

    def describe(self, results: Iterable[PartitionResult]) -> list[CertifiedChunk]:
        """Describes the chunks, in order, by what came of their partitions so far."""
        by_key = {result.key: result for result in results}
        return [
            self._describe(chunk, [by_key[key] for key in chunk.keys if key in by_key])
            for chunk in self._begun
        ]

    def _describe(self, chunk: _BegunChunk, results: Sequence[PartitionResult]) -> CertifiedChunk:
        written = [result for result in results if result.is_written]
        withheld = [result for result in results if result.version is None and not result.failed]
        return CertifiedChunk(
            first=chunk.first,
            last=chunk.last,
            operation_type=self.write_mode if written else _NOTHING,
            status=_find_status(chunk, results, written),
            started_at=chunk.started_at.isoformat(timespec="milliseconds"),
            completed_at=chunk.completed_at.isoformat(timespec="milliseconds")
            if chunk.completed_at
            else None,
            partitions=len(chunk.keys),
            published=len(written),
            withheld=len(withheld),
            rows=sum(result.measures.rows for result in written),
            error=chunk.error,
        )


def _find_status(
    chunk: _BegunChunk, results: Sequence[PartitionResult], written: Sequence[PartitionResult]
) -> str:
    if chunk.completed_at is None:
        return "at work"
    if chunk.error:
        return "failed"
    held_back = [result for result in results if result.version is None]
    if held_back:
        return "partly published" if len(held_back) < len(results) else "withheld"
    return "published" if written else "already published"


@dataclass
class StepResult:
    """What a step came to so far; filled while it runs.

    Attributes:
        results: of its partitions.
        certificate: the last that could be written.
        chunks: of a run that was told to work in chunks; else None.
    """

    results: list[PartitionResult] = field(default_factory=list)
    certificate: Certificate | None = None
    chunks: ChunkRecords | None = None

    def describe_chunks(self) -> Sequence[CertifiedChunk]:
        """Describes the chunks that were begun; none of a run without."""
        return self.chunks.describe(self.results) if self.chunks else ()

    @property
    def withheld(self) -> list[PartitionResult]:
        """The partitions that were not published, ascending."""
        withheld = (result for result in self.results if result.version is None)
        return sorted(withheld, key=lambda result: result.key)


@dataclass(frozen=True)
class Recorder:
    """Records what came of the partitions of one step.

    Attributes:
        context: of the asset.
        run: the run, and what it was told.
        target: log of the table, as it was before the step.
        code_version: what its partitions are computed by.
        reader: reads partitions in folders that the run rewrote.
        evaluations: those that the step tells Dagster.
        outcome: what the step came to so far; what is recorded is added to it.
    """

    context: AssetExecutionContext
    run: Run
    target: TableLog
    code_version: str
    reader: PartitionReader
    evaluations: ToldEvaluations
    outcome: StepResult

    def record_blocked(self, results: Sequence[PartitionResult]) -> Iterator[AssetCheckEvaluation]:
        """Records partitions that can't go, before any other."""
        self.outcome.results += results
        with store_together(self.context.instance):
            yield from self.evaluations.build(results)

    def record(
        self, results: Sequence[PartitionResult]
    ) -> Iterator[AssetMaterialization | AssetCheckEvaluation]:
        """Records what came of some partitions; ascending, at least one."""
        context = self.context
        self.outcome.results += results
        if self.outcome.chunks:
            self.outcome.chunks.note(self.outcome.results)
        # Before the events, which name it; that of the next ones replaces it.
        self.certify()
        messages = describe_chunk(self.target.table, results)
        context.log.info(messages.published)
        for warning in messages.warnings:
            context.log.warning(warning)
        with store_together(context.instance):
            yield from self._build_materializations(results)
        with store_together(context.instance):  # apart, as these name the materializations
            yield from self.evaluations.build(results)

    def unfold(self) -> Iterator[AssetCheckEvaluation]:
        """Records what was folded while all was well, if something was withheld."""
        if self.outcome.withheld:
            with store_together(self.context.instance):
                yield from self.evaluations.unfold(self.outcome.results)

    def certify(self) -> None:
        """Writes the certificate of all that was recorded so far."""
        certify_outcome(
            self.context,
            self.target,
            self.outcome,
            self.run,
            code_version=self.code_version,
            reader=self.reader,
        )

    def _build_materializations(
        self, results: Sequence[PartitionResult]
    ) -> Iterator[AssetMaterialization]:
        target = self.target
        certificate = locate_certificate(target, self.run.run_id, self.run.backfill_id)
        published = [result for result in results if result.version is not None]
        before, code_version = target.publishes, self.code_version
        changed = {
            result.key: why
            for result in published
            if (why := explain_change(before.get(result.key), result, code_version=code_version))
        }
        if changed:
            listed = describe_ranges(find_partitions_def(target.table), changed)
            self.context.log.warning(
                f"{target.table.key}: {len(changed)} final partitions hold something else than "
                "before: " + "; ".join(shorten(listed, _LISTED))
            )
        input_tags = find_input_tags(self.context.instance, published, target.table)
        for result in published:
            yield build_materialization(
                self.context.asset_key,
                result,
                uri=target.uri,
                code_version=code_version,
                certificate=certificate,
                input_tags=input_tags[result.key],
                final_changed=changed.get(result.key, ""),
            )


def certify_outcome(
    context: AssetExecutionContext,
    target: TableLog,
    outcome: StepResult,
    run: Run,
    *,
    code_version: str,
    reader: PartitionReader,
) -> None:
    """Writes the certificate of what a step came to so far, which knows it then."""
    outcome.certificate = leave_certificate(
        context,
        target,
        outcome.results,
        run,
        code_version=code_version,
        reader=reader,
        chunks=outcome.describe_chunks(),
    )


def record_results(
    context: OpExecutionContext,
    log: TableLog,
    results: Sequence[PartitionResult],
    run: Run,
    *,
    code_version: str,
) -> None:
    """Records results after their commit: materializations of what is published, then checks.

    Args:
        context: of the op.
        log: of the table.
        results: of some of its partitions.
        run: that published them.
        code_version: by which they were computed.
    """
    instance, asset_key = context.instance, find_asset_key(log.table)
    published = [result for result in results if result.version is not None]
    input_tags = find_input_tags(instance, published, log.table)
    with store_together(instance):
        for result in published:
            event = build_materialization(
                asset_key,
                result,
                uri=log.uri,
                code_version=code_version,
                certificate=locate_certificate(log, run.run_id, run.backfill_id),
                input_tags=input_tags[result.key],
            )
            context.log_event(event)
    keys = [result.key for result in results]
    targets = find_latest_materializations(instance, asset_key, keys)
    with store_together(instance):
        for evaluation in build_evaluations(asset_key, results, targets=targets, recovering=None):
            # Dagster takes it, though its signature doesn't say so.
            context.log_event(evaluation)  # pyright: ignore[reportArgumentType]


def leave_certificate(
    context: AssetExecutionContext | OpExecutionContext,
    log: TableLog,
    results: Sequence[PartitionResult],
    run: Run,
    *,
    code_version: str,
    reader: PartitionReader,
    chunks: Sequence[CertifiedChunk] = (),
) -> Certificate | None:
    """Writes the certificate of a run's results; where that fails, says so in the run's log.

    What is published is published, and an error that ends the step is what people must see: so
    nothing that goes wrong here is raised, and None is returned.
    """
    try:
        record = context.instance.get_run_record_by_id(run.run_id)
        return certify(
            log.reread(),
            results,
            run,
            code_version=code_version,
            reader=reader,
            chunks=chunks,
            requested_at=record.create_timestamp if record else run.started_at,
        )
    except Exception as error:
        cause = " ".join(str(error).split()) or type(error).__name__
        place = locate_certificate(log, run.run_id, run.backfill_id)
        context.log.error(
            f"the certificate of {log.table.key} can't be written at {place}: {cause}; what was "
            "published stands, and the table's log tells of it"
        )
        return None
