"""One step of a run: one table, all partitions of the run's range, chunk by chunk."""

import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain

from dagster import AssetCheckEvaluation, AssetExecutionContext, AssetMaterialization

from backfill_engine.catalog import Catalog
from backfill_engine.contents.partition_contents import PartitionReader
from backfill_engine.errors import PartitionRangeError
from backfill_engine.filesystems import check_landing_root
from backfill_engine.lake.partitions import Partition, build_partitions
from backfill_engine.lake.reader import check_catalog_location
from backfill_engine.lake.stored_declarations import check_readable, check_stored
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.orchestration.due.downstream import find_reader
from backfill_engine.orchestration.due.readiness import Readiness, find_readiness
from backfill_engine.orchestration.due.stale_partitions import find_up_to_date
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.orchestration.records.failures import describe_in_a_line
from backfill_engine.orchestration.records.recording import Recorder
from backfill_engine.orchestration.records.watermark_moves import advance_watermark
from backfill_engine.orchestration.recovery.recovery import (
    Recovery,
    describe_dead_runs,
    describe_recovery,
    recover_table,
)
from backfill_engine.orchestration.runs.claims import fail_dead_runs
from backfill_engine.orchestration.runs.pausing import check_may_go_on
from backfill_engine.proof.certificates import keep_publishes
from backfill_engine.publishing.audit import BatchedAudits, group_small_chunks
from backfill_engine.publishing.inputs import (
    PinnedInputs,
    pin_inputs,
    split_chunks,
)
from backfill_engine.publishing.publisher import Publisher
from backfill_engine.publishing.read_tests import ReadTest
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import (
    PartitionResult,
    Run,
    fail,
    postpone,
    withhold,
)
from backfill_engine.publishing.write_modes.options import OVERWRITE
from backfill_engine.resources import LakehouseResource, SparkResource, build_reader
from backfill_engine.rules.finding_names import UPSTREAM_IS_PUBLISHED

_LISTED = 7
_LOOK_AGAIN_SECONDS = 5.0


@dataclass(frozen=True)
class Step:
    """A step and all it needs.

    Attributes:
        catalog: of the code location.
        context: of the asset.
        recipe: how the table is made.
        run: the run, and what it was told.
        spark: gives the session, once it is needed.
        lakehouse: landing zone, tables, bounds.
        guards: how each table is made that guards this one.
    """

    catalog: Catalog
    context: AssetExecutionContext
    recipe: Recipe
    run: Run
    spark: SparkResource
    lakehouse: LakehouseResource
    guards: Sequence[Recipe] = ()

    @property
    def _reader(self) -> PartitionReader:
        return build_reader(self.spark, self.lakehouse)

    def publish(self) -> Generator[AssetMaterialization | AssetCheckEvaluation, None, Recorder]:
        """Publishes what is good, chunk by chunk, and yields the events of each.

        However it ends, but for a kill, a certificate says what was done.

        Returns:
            What was recorded.

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
        check_stored(
            target, evolves=bool(self.recipe.landing and self.recipe.landing.takes_new_fields)
        )
        for log in inputs:
            check_readable(log)
        recorder = Recorder(
            catalog=self.catalog,
            context=self.context,
            run=self.run,
            target=target,
            newest=target,
            code_version=self.recipe.code_version,
            reader=self._reader,
            check_events=self.lakehouse.check_events,
        )
        try:
            *upstream, recovery = self._recover([*inputs, target])
            recorder.target = recorder.newest = recovery.log
            doubtful = {*recovery.doubtful, *recovery.changed}
            yield from self._publish(partitions, upstream, doubtful, recorder)
        except Exception as error:
            recorder.fail_rest((partition.key for partition in partitions), error)
            raise
        return recorder

    def _publish(
        self,
        partitions: Sequence[Partition],
        upstream: Sequence[Recovery],
        doubtful: Collection[str],
        recorder: Recorder,
    ) -> Iterator[AssetMaterialization | AssetCheckEvaluation]:
        context, target = self.context, recorder.target
        keys = [partition.key for partition in partitions]
        self._check_may_go_on(left=len(keys), of=len(keys))
        readiness = self._wait_for_upstream(keys, upstream)
        inputs = {found.log.table.key: found.log for found in upstream}
        blocked = [
            postpone(key, readiness.not_due[key])
            if key in readiness.not_due
            else withhold(key, UPSTREAM_IS_PUBLISHED, why)
            for key, why in readiness.blocked.items()
        ]
        yield from recorder.record_blocked(blocked)
        ready = [partition for partition in partitions if partition.key not in readiness.blocked]
        if not ready:
            recorder.certify()
            return
        pinned = pin_inputs(
            target,
            inputs,
            self.recipe,
            landing_root=self.lakehouse.landing_root,
            partitions=ready,
            windows=readiness.windows,
        )
        self.spark.expect_input(sum(pinned.measure_bytes(ready).values()))
        for log in pinned.inputs.values():
            check_catalog_location(self.spark.spark_session, log)
        publisher = Publisher(
            spark=self.spark.spark_session,
            recipe=self.recipe,
            run=self.run,
            landing_root=self.lakehouse.landing_root,
            withheld_days=self.lakehouse.withheld_days,
            reader=self._reader,
            provisional=_find_provisional(readiness, pinned),
            read_tests=self._prepare_read_tests(target, [partition.key for partition in ready]),
        )
        if self.recipe.table.infers:
            publisher, pinned = publisher.infer_columns(pinned, ready)
            recorder.target = recorder.newest = pinned.target
        standing = find_up_to_date(
            context.job_def.asset_layer.asset_graph,
            self.recipe,
            self.run,
            pinned,
            [partition.key for partition in ready if partition.key not in doubtful],
            provisional=publisher.provisional,
        )
        yield from self._publish_chunks(publisher, recorder, pinned, ready, standing)
        keep_publishes(recorder.newest.reread())
        yield from recorder.unfold()

    def _prepare_read_tests(self, target: TableLog, keys: Sequence[str]) -> list[ReadTest]:
        """Finds what of the tables that guard this one could be built over its partitions."""
        context, tests = self.context, list[ReadTest]()
        for recipe in self.guards:
            reader = find_reader(
                context.instance,
                context.repository_def.asset_graph,  # The job's own may end with this asset.
                recipe,
                context.asset_key,
                keys,
            )
            others = (table for table in recipe.inputs if table.key != target.table.key)
            inputs = {table.key: read_log(target.warehouse, table) for table in others}
            log = read_log(target.warehouse, recipe.table)
            tests.append(
                ReadTest(
                    replace(recipe, table=log.table), log, inputs, reader.reads, reader.provisional
                )
            )
        return tests

    def _publish_chunks(
        self,
        publisher: Publisher,
        recorder: Recorder,
        pinned: PinnedInputs,
        ready: Sequence[Partition],
        standing: Mapping[str, PartitionResult],
    ) -> Iterator[AssetMaterialization | AssetCheckEvaluation]:
        """Publishes chunk after chunk; what stands as it would be computed stays as it is."""
        chunks = pinned.cut(ready, self.run.pace.chunk)
        left = [
            [partition for partition in chunk if partition.key not in standing] for chunk in chunks
        ]
        with self._batch_audits(pinned, left) as ahead:
            publisher = replace(publisher, ahead=ahead)
            for at, chunk in enumerate(chunks):
                self._check_may_go_on(left=sum(map(len, chunks[at:])), of=len(ready))
                if self.run.pace.chunk:
                    recorder.begin_chunk(chunk)
                stands = [partition for partition in chunk if partition.key in standing]
                if stands:
                    yield from recorder.record([standing[partition.key] for partition in stands])
                    self._advance_watermark(publisher, recorder)
                if left[at]:
                    yield from self._publish_chunk(publisher, recorder, pinned, left[at])

    def _batch_audits(
        self, pinned: PinnedInputs, chunks: Sequence[Sequence[Partition]]
    ) -> BatchedAudits:
        """Prepares to audit small chunks together: those that were asked for, not memory's."""
        if self.run.pace.chunk is None or self.run.options != OVERWRITE:
            return BatchedAudits(pinned)
        sizes = pinned.measure_bytes(list(chain.from_iterable(chunks)))
        return BatchedAudits(pinned, group_small_chunks(pinned, chunks, sizes, **self._bounds))

    @property
    def _bounds(self) -> dict[str, int]:
        lakehouse = self.lakehouse
        return {"max_partitions": lakehouse.chunk_partitions, "max_bytes": lakehouse.chunk_bytes}

    def _check_may_go_on(self, *, left: int, of: int) -> None:
        check_may_go_on(
            self.context.instance,
            self.context.run,
            self.recipe.table.key,
            self.run.pace.window,
            now=datetime.now(tz=UTC),
            left=left,
            of=of,
        )

    def _publish_chunk(
        self,
        publisher: Publisher,
        recorder: Recorder,
        pinned: PinnedInputs,
        chunk: Sequence[Partition],
    ) -> Iterator[AssetMaterialization | AssetCheckEvaluation]:
        """Publishes one chunk, in as many commits as memory's bounds ask for.

        Where the run keeps going, what an error keeps from being published has failed with it.
        """
        parts = split_chunks(chunk, pinned.measure_bytes(chunk), **self._bounds)
        for at, part in enumerate(parts):
            try:
                results, newest = publisher.publish_chunk(
                    part, replace(pinned, newest=recorder.newest)
                )
            except Exception as caught:
                error = describe_in_a_line(caught)
                recorder.end_chunk(error)
                if not self.run.pace.keep_going:
                    raise
                self.context.log.error(f"{part[0].key}...{chunk[-1].key}: {error}")
                lost = chain.from_iterable(parts[at:])
                yield from recorder.record([fail(partition.key, error) for partition in lost])
                return
            yield from recorder.record(results, newest)
            self._advance_watermark(publisher, recorder)

    def _advance_watermark(self, publisher: Publisher, recorder: Recorder) -> None:
        """Moves the watermark over what is published of all that is recorded, and is final.

        Of what was recorded before, too: what stands of a chunk comes before what it computes.
        """
        grain = self.recipe.table.grain
        # No name comes after another one.
        if not self.run.saves_watermark or (grain.is_named and not grain.cron):
            return
        results = sorted(recorder.results, key=lambda result: result.key)
        recorded = build_partitions(self.recipe.table, [result.key for result in results])
        published = {result.key for result in results if result.version is not None}
        final = published - set(publisher.provisional)
        target = recorder.newest.reread()
        advance_watermark(self.context, publisher.spark, target, self.run, recorded, final)

    def _find_partitions(self) -> tuple[Partition, ...]:
        keys = self.context.partition_keys
        if not keys:
            first, last = self.context.partition_key_range
            raise PartitionRangeError(
                f"no partition lies in {first}...{last}: a range is FIRST...LAST, ascending; "
                "nothing was written"
            )
        return build_partitions(self.recipe.table, keys)

    def _recover(self, logs: Iterable[TableLog]) -> list[Recovery]:
        """Records what the instance was not told of tables; returns what that was, of each."""
        instance, now = self.context.instance, datetime.now(tz=UTC)
        silent_seconds = self.lakehouse.silent_seconds
        dead = fail_dead_runs(instance, now=now, silent_seconds=silent_seconds)
        warnings = describe_dead_runs(dead)
        recovered: list[Recovery] = []
        for log in logs:
            recoveries = recover_table(
                self.catalog, instance, log.reread(), now=now, reader=self._reader
            )
            for recovery in recoveries:
                warnings += describe_recovery(recovery)
            recovered.append(recoveries[-1])
        for warning in warnings:
            self.context.log.warning(warning)
        return recovered

    def _wait_for_upstream(self, keys: Sequence[str], upstream: Sequence[Recovery]) -> Readiness:
        """Finds what may go, once no other run works on what it needs; or patience ends."""
        context, patience = self.context, self.lakehouse.wait_seconds
        graph = context.job_def.asset_layer.asset_graph
        deadline, waits = time.monotonic() + patience, False
        while True:
            readiness = find_readiness(
                context.instance,
                graph,
                context.asset_key,
                keys,
                run_id=self.run.run_id,
                unread=self.recipe.unread,
                # What is lost, too: the log of a table that was made anew tells nothing of it.
                inputs={found.log.table.key: found.log for found in upstream},
                foreign={found.log.table.key: found.changed for found in upstream},
            )
            if not readiness.in_progress or time.monotonic() >= deadline:
                return readiness
            if not waits:
                listed = ", ".join(shorten(sorted(readiness.in_progress), _LISTED))
                context.log.info(f"waiting for {listed}, for up to {patience} s")
                waits = True
            time.sleep(_LOOK_AGAIN_SECONDS)
            upstream = self._recover(found.log for found in upstream)


def _find_provisional(readiness: Readiness, pinned: PinnedInputs) -> dict[str, str]:
    """Finds what of a partition's input is not there yet, or not final, by partition key."""
    unfinished = pinned.listing.unfinished if pinned.listing else {}
    return {**readiness.provisional, **unfinished}
