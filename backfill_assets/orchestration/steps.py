"""One step of a run: one table, all partitions of the run's range, chunk by chunk."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from dagster import AssetCheckEvaluation, AssetExecutionContext, AssetMaterialization

from backfill_assets.errors import PartitionRangeError
from backfill_assets.lake.partitions import build_partitions
from backfill_assets.lake.slices import Partition
from backfill_assets.lake.watermark_writer import move_watermark
from backfill_assets.orchestration.continuation import find_continuation
from backfill_assets.orchestration.dagster_internals import BACKFILL_TAG
from backfill_assets.orchestration.events import build_evaluations, build_materialization
from backfill_assets.orchestration.materializations import find_latest_materializations
from backfill_assets.orchestration.partition_definitions import find_partitions_def
from backfill_assets.orchestration.ranges import build_command
from backfill_assets.orchestration.readiness import find_readiness
from backfill_assets.orchestration.recovery import (
    claim_run,
    fail_dead_runs,
    find_failed_before,
    record_lost_commits,
)
from backfill_assets.orchestration.run_options import build_asset_config
from backfill_assets.proof.certificates import locate_certificate
from backfill_assets.proof.certifying import RunFacts, certify
from backfill_assets.publishing.inputs import measure_input_bytes, pin_inputs, split_chunks
from backfill_assets.publishing.publisher import Publisher
from backfill_assets.publishing.recipes import Recipe
from backfill_assets.publishing.results import PartitionResult, describe_failures, withhold
from backfill_assets.publishing.write_options import WriteOptions
from backfill_assets.resources import LakehouseResource, SparkResource
from backfill_assets.rules.verdicts import Acceptance, Check

WITHHELD_TAG = "backfill_assets/withheld"
"""Tag of a run: the asset of which it withheld partitions."""

_LISTED = 50


@dataclass
class StepResult:
    """What a step came to so far; filled while it runs."""

    results: list[PartitionResult] = field(default_factory=list)

    @property
    def withheld(self) -> list[PartitionResult]:
        """The partitions that were not published, ascending."""
        return sorted((one for one in self.results if one.version is None), key=_key)


@dataclass(frozen=True)
class Step:
    """A step and all it needs.

    Attributes:
        context: of the asset.
        recipe: how the table is made.
        spark: gives the session, once it is needed.
        lakehouse: landing zone, tables, bounds.
        acceptances: of the run.
        options: how it writes.
        saves_watermark: whether it moves the production watermark.
        now: when the step began, UTC.
    """

    context: AssetExecutionContext
    recipe: Recipe
    spark: SparkResource
    lakehouse: LakehouseResource
    acceptances: tuple[Acceptance, ...]
    options: WriteOptions
    saves_watermark: bool
    now: datetime

    def run(self, outcome: StepResult) -> Iterator[AssetMaterialization | AssetCheckEvaluation]:
        """Publishes what is good, chunk by chunk, and yields the events of each.

        However it ends, a certificate says what was done.

        Raises:
            BackfillError: if nothing can be done at all, or not all.
        """
        try:
            yield from self._publish(outcome)
        finally:
            if outcome.results:
                self._certify(outcome)

    def _publish(
        self, outcome: StepResult
    ) -> Iterator[AssetMaterialization | AssetCheckEvaluation]:
        context, warehouse, table = self.context, self.lakehouse.warehouse(), self.recipe.table
        partitions = self._find_partitions()
        self._recover()
        keys = [one.key for one in partitions]
        graph = context.job_def.asset_layer.asset_graph
        readiness = find_readiness(context.instance, graph, context.asset_key, keys)
        failed_before = find_failed_before(context.instance, warehouse, table)
        blocked = [
            withhold(key, "upstream_is_published", why) for key, why in readiness.blocked.items()
        ]
        outcome.results += blocked
        noteworthy = self._fold_passes(len(partitions), failed_before)
        yield from self._build_evaluations(blocked, noteworthy)
        ready = [one for one in partitions if one.key not in readiness.blocked]
        if not ready:
            return
        pinned = pin_inputs(
            warehouse,
            self.recipe,
            landing_root=self.lakehouse.landing_root,
            partitions=ready,
        )
        publisher = Publisher(
            spark=self.spark.spark_session,
            warehouse=warehouse,
            recipe=self.recipe,
            landing_root=self.lakehouse.landing_root,
            run_id=context.run.run_id,
            today=self.now.date(),
            withheld_days=self.lakehouse.withheld_days,
            acceptances=self.acceptances,
            options=self.options,
        )
        provisional = {
            **readiness.provisional,
            **(pinned.listing.unfinished if pinned.listing else {}),
        }
        certificate = self._locate_certificate()
        for chunk in split_chunks(
            ready,
            measure_input_bytes(warehouse, self.recipe, pinned, ready),
            max_partitions=self.lakehouse.chunk_partitions,
            max_bytes=self.lakehouse.chunk_bytes,
        ):
            results = publisher.publish_chunk(chunk, pinned)
            outcome.results += results
            self._log(results)
            for result in results:
                if result.version is not None:
                    yield build_materialization(
                        context.asset_key,
                        result,
                        uri=warehouse.uri(table),
                        code_version=self.recipe.code_version,
                        certificate=certificate,
                        provisional=provisional.get(result.key),
                    )
            yield from self._build_evaluations(results, noteworthy)
            if self.saves_watermark:
                final = {one.key for one in results if one.version is not None} - set(provisional)
                self._move_watermark([one for one in chunk if one.key in final])

    def describe_withheld(self, outcome: StepResult) -> str:
        """One message: each withheld partition with its reasons, and how to go on."""
        withheld = outcome.withheld
        self.context.instance.add_run_tags(
            self.context.run.run_id, {WITHHELD_TAG: self.context.asset_key.to_user_string()}
        )
        lines = [f"{one.key}: {describe_failures(one.verdict)}" for one in withheld[:_LISTED]]
        if len(withheld) > _LISTED:
            lines.append(f"and {len(withheld) - _LISTED} more")
        published = len(outcome.results) - len(withheld)
        message = (
            f"{self.recipe.table.key}: withheld {len(withheld)} of {len(outcome.results)} "
            f"partitions (the other {published} are published):\n  " + "\n  ".join(lines)
        )
        commands = self._build_commands_to_go_on()
        if commands:
            message += "\nTo go on with what does not depend on them:\n  " + "\n  ".join(commands)
        return message

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
            run_id=self.context.run.run_id,
            now=self.now,
        )
        if moved:
            self.context.log.info(f"{table.key}: the watermark is at {moved.next_key}")

    def _certify(self, outcome: StepResult) -> None:
        run = self.context.run
        facts = RunFacts(
            run_id=run.run_id,
            backfill_id=run.tags.get(BACKFILL_TAG),
            run_config=run.run_config,
            started_at=self.now,
            code_version=self.recipe.code_version,
            options=self.options,
        )
        certify(self.lakehouse.warehouse(), self.recipe.table, outcome.results, facts)

    def _locate_certificate(self) -> str:
        run = self.context.run
        return locate_certificate(
            self.lakehouse.warehouse(),
            self.recipe.table,
            run_id=run.run_id,
            backfill_id=run.tags.get(BACKFILL_TAG),
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

    def _recover(self) -> None:
        instance, warehouse = self.context.instance, self.lakehouse.warehouse()
        claim_run(instance, self.context.run.run_id)
        for run_id in fail_dead_runs(instance):
            self.context.log.warning(f"run {run_id} was dead and is marked failed")
        for table in (*self.recipe.inputs, self.recipe.table):
            lost = record_lost_commits(instance, warehouse, table)
            if lost.recorded:
                self.context.log.warning(
                    f"{table.key}: recorded {len(lost.recorded)} partitions that a dead run had "
                    f"published ({lost.recorded[0]} … {lost.recorded[-1]})"
                )
            if lost.unreadable:
                self.context.log.warning(
                    f"{table.key}: a dead run published {', '.join(lost.unreadable)}, which can't "
                    "be read as it was audited: run these partitions again"
                )

    def _fold_passes(self, partitions: int, failed_before: frozenset[str]) -> frozenset[str] | None:
        """None if all partitions may have their own evaluations; else those that still may."""
        checks = len(Check)
        in_run = partitions * checks * len(self.context.run.asset_selection or [None])
        return None if in_run <= self.lakehouse.check_events else failed_before

    def _build_evaluations(
        self, results: Sequence[PartitionResult], noteworthy: frozenset[str] | None
    ) -> Iterator[AssetCheckEvaluation]:
        instance, asset_key = self.context.instance, self.context.asset_key
        targets = find_latest_materializations(instance, asset_key, [one.key for one in results])
        return build_evaluations(asset_key, results, targets=targets, noteworthy=noteworthy)

    def _log(self, results: Sequence[PartitionResult]) -> None:
        published = [one for one in results if one.version is not None and not one.repeated_batch]
        repeated = [one.key for one in results if one.repeated_batch]
        rows = sum(one.measures.rows for one in published)
        versions = sorted({str(one.version) for one in published})
        self.context.log.info(
            f"{self.recipe.table.key}: published {len(published)} of {len(results)} partitions "
            f"({results[0].key}...{results[-1].key}, {rows:,} rows)"
            + (f" as version {', '.join(versions)}" if versions else "")
        )
        if repeated:
            self.context.log.warning(
                f"{self.recipe.table.key}: {repeated[0]} … {repeated[-1]} ({len(repeated)} "
                "partitions) hold this batch already: nothing was written there"
            )
        emptied = [one.key for one in published if one.verdict.emptied]
        if emptied:
            more = f" and {len(emptied) - _LISTED} more" if len(emptied) > _LISTED else ""
            self.context.log.warning(
                f"{self.recipe.table.key}: {', '.join(emptied[:_LISTED])}{more}: the source has no "
                "records; published empty"
            )

    def _build_commands_to_go_on(self) -> list[str]:
        """Commands for the run's assets that come next, where their upstream is published."""
        context = self.context
        found = find_continuation(
            context.instance,
            context.job_def.asset_layer.asset_graph,
            context.asset_key,
            context.run.asset_selection or context.selected_asset_keys,
            first=context.partition_keys[0],
            last=context.partition_keys[-1],
        )
        assets = [key.to_user_string() for key in found.assets]
        config = build_asset_config(context.run, found.assets)
        return [build_command(assets, first, last, config) for first, last in found.ranges]


def _key(result: PartitionResult) -> str:
    return result.key
