"""One step of a run: one table, all partitions of the run's range, chunk by chunk."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dagster import AssetCheckEvaluation, AssetExecutionContext, AssetMaterialization

from backfill_assets.contents.partition_reader import IN_THIS_PROCESS, PartitionReader
from backfill_assets.errors import PartitionRangeError
from backfill_assets.lake.filesystems import check_landing_root
from backfill_assets.lake.partitions import build_partitions
from backfill_assets.lake.slices import Partition
from backfill_assets.lake.stored_declarations import check_readable, check_stored
from backfill_assets.lake.table_log import TableLog, read_log
from backfill_assets.lake.watermark_writer import move_watermark
from backfill_assets.orchestration.batching_instance import store_together
from backfill_assets.orchestration.certificates import leave_certificate
from backfill_assets.orchestration.claims import fail_dead_runs, keep_claim
from backfill_assets.orchestration.dagster_internals import AssetPartitionStatus
from backfill_assets.orchestration.events import build_materialization
from backfill_assets.orchestration.input_tags import find_input_tags
from backfill_assets.orchestration.partition_definitions import (
    find_landing_key,
    find_partitions_def,
)
from backfill_assets.orchestration.ranges import describe_ranges, shorten
from backfill_assets.orchestration.readiness import Readiness, find_readiness
from backfill_assets.orchestration.recovering import recover_table
from backfill_assets.orchestration.recovery_messages import describe_dead_runs, describe_recovery
from backfill_assets.orchestration.run_options import INCREMENTAL_TAG
from backfill_assets.orchestration.step_messages import describe_chunk
from backfill_assets.orchestration.told_evaluations import find_told_evaluations
from backfill_assets.proof.certificates import Certificate, locate_certificate
from backfill_assets.proof.certified_publishes import keep_publishes
from backfill_assets.publishing.differences import explain_change
from backfill_assets.publishing.inputs import (
    PinnedInputs,
    measure_input_bytes,
    pin_inputs,
    split_chunks,
)
from backfill_assets.publishing.publisher import Publisher
from backfill_assets.publishing.recipes import Recipe
from backfill_assets.publishing.results import (
    PartitionResult,
    fail,
    postpone,
    withhold,
)
from backfill_assets.publishing.runs import Run
from backfill_assets.resources import LakehouseResource, SparkResource, build_reader
from backfill_assets.rules.finding_names import FindingName
from backfill_assets.tables.landings import JsonLanding

_LISTED = 7
_LOOK_AGAIN_SECONDS = 5.0


@dataclass
class StepResult:
    """What a step came to so far; filled while it runs.

    Attributes:
        results: of its partitions.
        certificate: the last that could be written.
    """

    results: list[PartitionResult] = field(default_factory=list)
    certificate: Certificate | None = None

    @property
    def withheld(self) -> list[PartitionResult]:
        """The partitions that were not published, ascending."""
        withheld = (result for result in self.results if result.version is None)
        return sorted(withheld, key=lambda result: result.key)


@dataclass(frozen=True)
class Step:
    """A step and all it needs.

    Attributes:
        context: of the asset.
        recipe: how the table is made.
        run: the run, and what it was told.
        spark: gives the session, once it is needed.
        lakehouse: landing zone, tables, bounds.
    """

    context: AssetExecutionContext
    recipe: Recipe
    run: Run
    spark: SparkResource
    lakehouse: LakehouseResource

    @property
    def _reader(self) -> PartitionReader:
        return build_reader(self.spark, self.lakehouse)

    def publish(self, outcome: StepResult) -> Iterator[AssetMaterialization | AssetCheckEvaluation]:
        """Publishes what is good, chunk by chunk, and yields the events of each.

        However it ends, but for a kill, a certificate says what was done.

        Raises:
            BackfillError: if nothing can be done at all, or not all.
        """
        partitions = self._find_partitions()
        warehouse = self.lakehouse.warehouse()
        warehouse.check_writable()
        if self.recipe.landing is not None:
            check_landing_root(self.lakehouse.landing_root)
        target = read_log(warehouse, self.recipe.table)
        inputs = [read_log(warehouse, table) for table in self.recipe.inputs]
        check_stored(target, evolves=isinstance(self.recipe.landing, JsonLanding))
        for log in inputs:
            check_readable(log)
        try:
            with keep_claim(self.context.instance, self.run.run_id):
                *inputs, target = self._recover([*inputs, target])
                yield from self._publish(
                    partitions, target, {log.table.key: log for log in inputs}, outcome
                )
        except Exception as error:
            done = {result.key for result in outcome.results}
            left = (partition.key for partition in partitions if partition.key not in done)
            why = next(iter(str(error).splitlines()), type(error).__name__)
            results = [*outcome.results, *(fail(key, why) for key in left)]
            self._certify(target, results, reader=IN_THIS_PROCESS)  # Spark may be what is lost
            raise

    def _publish(
        self,
        partitions: Sequence[Partition],
        target: TableLog,
        inputs: Mapping[str, TableLog],
        outcome: StepResult,
    ) -> Iterator[AssetMaterialization | AssetCheckEvaluation]:
        context = self.context
        keys = [partition.key for partition in partitions]
        readiness = self._wait_for_upstream(keys, inputs.values())
        evaluations = find_told_evaluations(
            context, target, self.lakehouse, partitions=len(partitions)
        )
        blocked = [
            postpone(key, readiness.not_due[key])
            if key in readiness.not_due
            else withhold(key, FindingName.UPSTREAM_IS_PUBLISHED, why)
            for key, why in readiness.blocked.items()
        ]
        outcome.results += blocked
        with store_together(context.instance):
            yield from evaluations.build(blocked)
        ready = [partition for partition in partitions if partition.key not in readiness.blocked]
        if not ready:
            outcome.certificate = self._certify(target, outcome.results, reader=self._reader)
            return
        pinned = pin_inputs(
            target,
            inputs,
            self.recipe,
            landing_root=self.lakehouse.landing_root,
            partitions=ready,
            windows=readiness.windows,
        )
        provisional = _find_provisional(readiness, pinned)
        publisher = Publisher(
            spark=self.spark.spark_session,
            recipe=self.recipe,
            run=self.run,
            landing_root=self.lakehouse.landing_root,
            withheld_days=self.lakehouse.withheld_days,
            reader=self._reader,
            provisional=provisional,
        )
        for chunk in split_chunks(
            ready,
            measure_input_bytes(pinned, ready),
            max_partitions=self.lakehouse.chunk_partitions,
            max_bytes=self.lakehouse.chunk_bytes,
        ):
            results = publisher.publish_chunk(chunk, pinned)
            outcome.results += results
            # Before the events, which name it; the next chunk's replaces it.
            outcome.certificate = self._certify(target, outcome.results, reader=self._reader)
            messages = describe_chunk(self.recipe.table, results)
            context.log.info(messages.published)
            for warning in messages.warnings:
                context.log.warning(warning)
            with store_together(context.instance):
                yield from self._build_materializations(results, target)
            with store_together(context.instance):  # apart, as these name the materializations
                yield from evaluations.build(results)
            if self.run.saves_watermark:
                final = {result.key for result in results if result.version is not None}
                final -= set(provisional)
                done = [partition for partition in chunk if partition.key in final]
                self._move_watermark([*done, *self._find_done_after(chunk, target.reread())])
        keep_publishes(target.reread())
        if outcome.withheld:
            with store_together(context.instance):
                yield from evaluations.unfold(outcome.results)

    def _certify(
        self, target: TableLog, results: Sequence[PartitionResult], *, reader: PartitionReader
    ) -> Certificate | None:
        return leave_certificate(
            self.context,
            target,
            results,
            self.run,
            code_version=self.recipe.code_version,
            reader=reader,
        )

    def _find_partitions(self) -> tuple[Partition, ...]:
        keys = self.context.partition_keys
        if not keys:
            first, last = self.context.partition_key_range
            raise PartitionRangeError(
                f"no partition lies in {first}...{last}: a range is FIRST...LAST, ascending; "
                "nothing was written"
            )
        return build_partitions(self.recipe.table, keys)

    def _recover(self, logs: Iterable[TableLog]) -> list[TableLog]:
        """Records what the instance was not told of tables; returns their logs as they are now."""
        instance, now = self.context.instance, datetime.now(tz=UTC)
        silent_seconds = self.lakehouse.silent_seconds
        dead = fail_dead_runs(instance, now=now, silent_seconds=silent_seconds)
        warnings = describe_dead_runs(dead)
        recovered: list[TableLog] = []
        for log in logs:
            recoveries = recover_table(instance, log.reread(), now=now, reader=self._reader)
            for recovery in recoveries:
                warnings += describe_recovery(recovery)
            recovered.append(recoveries[-1].log)
        for warning in warnings:
            self.context.log.warning(warning)
        return recovered

    def _wait_for_upstream(self, keys: Sequence[str], inputs: Iterable[TableLog]) -> Readiness:
        """Finds what may go, once no other run works on what it needs; or patience ends."""
        context, patience = self.context, self.lakehouse.wait_seconds
        graph = context.job_def.asset_layer.asset_graph
        deadline, waits = time.monotonic() + patience, False
        while True:
            readiness = find_readiness(
                context.instance, graph, context.asset_key, keys, run_id=self.run.run_id
            )
            if not readiness.in_progress or time.monotonic() >= deadline:
                return readiness
            if not waits:
                listed = ", ".join(shorten(sorted(readiness.in_progress), _LISTED))
                context.log.info(f"waiting for {listed}, for up to {patience} s")
                waits = True
            time.sleep(_LOOK_AGAIN_SECONDS)
            inputs = self._recover(inputs)

    def _build_materializations(
        self, results: Sequence[PartitionResult], target: TableLog
    ) -> Iterator[AssetMaterialization]:
        certificate = locate_certificate(target, self.run.run_id, self.run.backfill_id)
        published = [result for result in results if result.version is not None]
        code_version = self.recipe.code_version
        before = target.publishes
        changed = {
            result.key: why
            for result in published
            if (why := explain_change(before.get(result.key), result, code_version=code_version))
        }
        if changed:
            table = self.recipe.table
            listed = describe_ranges(find_partitions_def(table), changed)
            self.context.log.warning(
                f"{table.key}: {len(changed)} final partitions hold something else than before: "
                + "; ".join(shorten(listed, _LISTED))
            )
        input_tags = find_input_tags(
            self.context.instance, published, landing_key=find_landing_key(self.recipe.table)
        )
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

    def _find_done_after(self, chunk: Sequence[Partition], target: TableLog) -> Sequence[Partition]:
        """Finds later partitions that are final already, as those after one that was withheld.

        For incremental runs: a backfill that is told to move the watermark moves it over its own.
        Commits of earlier releases, which don't say what they consumed, don't say whether it was
        all of it either.
        """
        if INCREMENTAL_TAG not in self.context.run.tags:
            return ()
        later = [
            key
            for key, publish in target.publishes.items()
            if key > chunk[-1].key
            and key not in publish.record.provisional
            and (publish.record.landed or publish.record.upstream)
        ]
        if not later:
            return ()
        instance, table = self.context.instance, self.recipe.table
        statuses = instance.get_status_by_partition(
            self.context.asset_key, later, find_partitions_def(table)
        )
        materialized = [
            key
            for key, status in (statuses or {}).items()
            if status is AssetPartitionStatus.MATERIALIZED
        ]
        return build_partitions(table, materialized)

    def _move_watermark(self, done: Sequence[Partition]) -> None:
        table = self.recipe.table
        first_key = find_partitions_def(table).get_first_partition_key()
        assert first_key is not None
        (first,) = build_partitions(table, [first_key])
        moved = move_watermark(
            self.spark.spark_session,
            self.lakehouse.warehouse(),
            table,
            done,
            first=first,
            run_id=self.run.run_id,
            now=self.run.started_at,
        )
        if moved:
            self.context.log.info(f"{table.key}: the watermark is at {moved.next_key}")


def _find_provisional(readiness: Readiness, pinned: PinnedInputs) -> dict[str, str]:
    """Finds what of a partition's input is not there yet, or not final, by partition key."""
    unfinished = pinned.listing.unfinished if pinned.listing else {}
    return {**readiness.provisional, **unfinished}
