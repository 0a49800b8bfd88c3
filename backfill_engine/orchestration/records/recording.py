"""Records what a step did: certificate and events, each after the commit, never before."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dagster import AssetCheckEvaluation, AssetExecutionContext, AssetMaterialization

from backfill_engine.contents.partition_reader import PartitionReader
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.due.input_tags import find_input_tags
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.partition_definitions import (
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import describe_ranges, shorten
from backfill_engine.orchestration.records.certificates import leave_certificate
from backfill_engine.orchestration.records.chunk_records import ChunkRecords
from backfill_engine.orchestration.records.events import build_materialization
from backfill_engine.orchestration.records.step_messages import describe_chunk
from backfill_engine.orchestration.records.told_evaluations import ToldEvaluations
from backfill_engine.proof.certificates import Certificate, CertifiedChunk, locate_certificate
from backfill_engine.publishing.differences import explain_change
from backfill_engine.publishing.results import PartitionResult, Run

_LISTED = 7


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
