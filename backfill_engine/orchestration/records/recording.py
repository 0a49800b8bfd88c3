"""Records what a step did: certificate and events, each after the commit, never before."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetExecutionContext,
    AssetMaterialization,
    DagsterInstance,
    EventLogRecord,
    OpExecutionContext,
)

from backfill_engine.catalog import Catalog
from backfill_engine.contents.partition_contents import IN_THIS_PROCESS, PartitionReader
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.due.input_tags import find_input_tags
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.dagster_internals import CheckStatus, find_run_assets
from backfill_engine.orchestration.instance.materializations import find_latest_materializations
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import describe_ranges, shorten
from backfill_engine.orchestration.records.events import (
    build_evaluations,
    build_materialization,
    build_unasked,
)
from backfill_engine.orchestration.records.failures import describe_in_a_line
from backfill_engine.orchestration.records.step_messages import log_chunk
from backfill_engine.orchestration.records.ui_pages import build_withheld_pages
from backfill_engine.proof.certificates import Certificate, CertifiedChunk, locate_certificate
from backfill_engine.proof.certifying import certify
from backfill_engine.publishing.differences import explain_change
from backfill_engine.publishing.results import PartitionResult, Run, fail, find_outcomes
from backfill_engine.rules.verdicts import Check

_LISTED = 7
_NOTHING = "none"
_AT_WORK = "at work"
_FAILING_BUDGET = 4
"""Times the budget of check evaluations in a run that withholds something: a year of hours of one
table."""


@dataclass(kw_only=True)
class Recorder:
    """Records what comes of the partitions of one step, as it comes.

    In a failed run Dagster shows a planned check that has no evaluation as failed. So a run that
    withholds something has more of them: also of what passed, and of what could not be asked.

    Attributes:
        catalog: of the code location.
        context: of the asset.
        run: the run, and what it was told.
        target: log of the table, as it was before the step.
        code_version: what its partitions are computed by.
        reader: reads partitions in folders that the run rewrote.
        check_events: check evaluations of a run beyond which passes are folded.
        newest: log of the table, with what the step has published so far.
        results: of its partitions so far.
        chunks: those that were begun, of a run that was told to work in chunks.
        certificate: the last that could be written.
    """

    catalog: Catalog
    context: AssetExecutionContext
    run: Run
    target: TableLog
    code_version: str
    reader: PartitionReader
    check_events: int
    newest: TableLog
    results: list[PartitionResult] = field(default_factory=list)
    chunks: list[CertifiedChunk] = field(default_factory=list)
    certificate: Certificate | None = None
    _begun_with: int = 0

    @property
    def withheld(self) -> list[PartitionResult]:
        """The partitions that were not published, ascending."""
        withheld = (result for result in self.results if result.version is None)
        return sorted(withheld, key=lambda result: result.key)

    def record_blocked(self, results: Sequence[PartitionResult]) -> Iterator[AssetCheckEvaluation]:
        """Records partitions that can't go, before any other."""
        self.results += results
        with store_together(self.context.instance):
            yield from self._build_evaluations(results)

    def begin_chunk(self, partitions: Sequence[Partition]) -> None:
        """Notes that a chunk begins."""
        chunk = CertifiedChunk(
            first=partitions[0].key,
            last=partitions[-1].key,
            operation_type=_NOTHING,
            status=_AT_WORK,
            started_at=_format_now(),
            completed_at=None,
            partitions=len(partitions),
            published=0,
            withheld=0,
            rows=0,
        )
        self.chunks.append(chunk)
        self._begun_with = len(self.results)

    def end_chunk(self, error: str) -> None:
        """Notes what ended the chunk that began last."""
        if self.chunks:
            self.chunks[-1] = replace(
                self.chunks[-1], status="failed", completed_at=_format_now(), error=error
            )

    def record(
        self, results: Sequence[PartitionResult], newest: TableLog | None = None
    ) -> Iterator[AssetMaterialization | AssetCheckEvaluation]:
        """Records what came of some partitions.

        Args:
            results: ascending, at least one.
            newest: log of the table, if it was read since they were published.
        """
        context, self.newest = self.context, newest or self.newest
        self.results += results
        if self.chunks:
            self.chunks[-1] = self._add_to_chunk(self.chunks[-1], results)
        # Before the events, which name it; that of the next ones replaces it.
        self.certify()
        log_chunk(context.log, self.target.table, results)
        with store_together(context.instance):
            yield from self._build_materializations(results)
        with store_together(context.instance):  # apart, as these name the materializations
            yield from self._build_evaluations(results)

    def unfold(self) -> Iterator[AssetCheckEvaluation]:
        """Records what was folded while all was well, if something was withheld."""
        recovering = self._recovering
        if not self.withheld or recovering is None or not self._may_record_all(self.results):
            return
        published = [result for result in self.results if result.version is not None]
        evaluations = build_evaluations(
            self.context.asset_key,
            published,
            targets=self._find_materializations(published),
            recovering=None,
        )
        with store_together(self.context.instance):
            for evaluation in evaluations:
                if evaluation.passed and evaluation.partition not in recovering:
                    yield evaluation

    def fail_rest(self, keys: Iterable[str], error: Exception) -> None:
        """Certifies what was done before an error ended the step, and that the rest failed by it.

        Args:
            keys: all partitions that the step was asked for.
            error: what ended it.
        """
        done = {result.key for result in self.results}
        why = describe_in_a_line(error)
        self.results += [fail(key, why) for key in keys if key not in done]
        self.reader = IN_THIS_PROCESS  # Spark may be what is lost.
        self.certify()

    def certify(self) -> None:
        """Writes the certificate of all that was recorded so far."""
        self.certificate = leave_certificate(
            self.context,
            self.newest,
            self.results,
            self.run,
            code_version=self.code_version,
            reader=self.reader,
            chunks=self.chunks,
        )

    def _add_to_chunk(
        self, chunk: CertifiedChunk, results: Sequence[PartitionResult]
    ) -> CertifiedChunk:
        """Adds results to the chunk that began last, which is done once it has all."""
        written = [result for result in results if result.is_written]
        chunk = replace(
            chunk,
            operation_type=self.run.options.write_mode if written else chunk.operation_type,
            published=chunk.published + len(written),
            withheld=chunk.withheld
            + sum(result.version is None and not result.failed for result in results),
            rows=chunk.rows + sum(result.measures.rows for result in written),
        )
        found = self.results[self._begun_with :]
        if chunk.completed_at or len(found) < chunk.partitions:
            return chunk
        return replace(chunk, completed_at=_format_now(), status=_find_status(found))

    @cached_property
    def _recovering(self) -> frozenset[str] | None:
        """Beyond the budget, the partitions of which passes are recorded, too: these failed before.

        None within the budget.
        """
        context = self.context
        assets = find_run_assets(context.instance, context.run)
        evaluations = len(context.partition_keys) * len(Check) * len(assets)
        if evaluations <= self.check_events:
            return None
        return find_failed_before(context.instance, self.target)

    def _build_evaluations(
        self, results: Sequence[PartitionResult]
    ) -> Iterator[AssetCheckEvaluation]:
        """Builds the evaluations of some partitions: all, or beyond the budget what matters."""
        table, recovering = self.target.table, self._recovering
        withheld = [result for result in results if result.version is None]
        records_all = self._may_record_all(withheld)
        if recovering is not None and records_all:
            recovering |= {result.key for result in withheld}
        chosen = [
            result
            for result in results
            if recovering is None or result.key in recovering or not result.verdict.passed
        ]
        targets = self._find_materializations(chosen)
        yield from build_evaluations(
            self.context.asset_key,
            chosen,
            targets=targets,
            recovering=recovering,
            pages=build_withheld_pages(
                self.catalog, table, withheld, run_id=self.context.run.run_id
            ),
        )
        for result in withheld if records_all else ():
            asked = () if result.not_due else find_outcomes(result.verdict)
            yield from build_unasked(
                table,
                result.key,
                "nothing of the partition was published",
                asked=[Check(check) for check in asked],
                target=targets.get(result.key),
            )

    def _find_materializations(
        self, results: Sequence[PartitionResult]
    ) -> Mapping[str, EventLogRecord]:
        keys = [result.key for result in results]
        return find_latest_materializations(self.context.instance, self.context.asset_key, keys)

    def _may_record_all(self, results: Sequence[PartitionResult]) -> bool:
        return len(results) * len(Check) <= _FAILING_BUDGET * self.check_events

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


def _find_status(results: Sequence[PartitionResult]) -> str:
    """Finds what came of a chunk that is done."""
    held_back = sum(result.version is None for result in results)
    if held_back:
        return "partly published" if held_back < len(results) else "withheld"
    return "published" if any(result.is_written for result in results) else "already published"


def _format_now() -> str:
    return datetime.now(tz=UTC).isoformat(timespec="milliseconds")


_MOST_FAILURES = 1000


def find_failed_before(instance: DagsterInstance, log: TableLog) -> frozenset[str]:
    """Finds partitions with a check that failed since they were published last.

    Of those that never were published, any failed check counts.
    """
    published_at = {
        key: publish.commit.committed_at.timestamp() for key, publish in log.publishes.items()
    }
    failures = (
        record
        for check in Check
        for record in instance.event_log_storage.get_asset_check_execution_history(
            AssetCheckKey(find_asset_key(log.table), check.value),
            limit=_MOST_FAILURES,
            status={CheckStatus.FAILED},
        )
    )
    return frozenset(
        record.partition
        for record in failures
        if record.partition is not None
        and record.create_timestamp > published_at.get(record.partition, 0)
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
