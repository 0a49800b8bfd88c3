"""A promotion as a Dagster run: what stands against serving a version, and the switch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dagster import MetadataValue, OpExecutionContext

from backfill_engine.catalog import Catalog
from backfill_engine.contents.partition_contents import PartitionReader
from backfill_engine.extras.rehearsal.applying import RehearsalHook, Shown, list_shown
from backfill_engine.extras.rehearsal.records import remove_scratch
from backfill_engine.extras.rehearsal.rehearser import Rehearser
from backfill_engine.extras.versions.promotions import (
    Promotion,
    describe_promotion,
    describe_refusal,
    write_promotion,
)
from backfill_engine.extras.versions.switching import (
    PromotionConfig,
    Switching,
    begin_promotion,
    find_switching,
)
from backfill_engine.extras.versions.version_rehearsal import VersionRehearsal
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.orchestration.due.downstream import Reader, find_reader, list_readers
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import describe_ranges
from backfill_engine.orchestration.records.failures import build_failure
from backfill_engine.orchestration.records.recording import leave_certificate, record_results
from backfill_engine.orchestration.recovery.recovery import recover_table
from backfill_engine.orchestration.runs.claims import fail_dead_runs
from backfill_engine.orchestration.runs.protecting import ProtectionHook, refuse_protected
from backfill_engine.orchestration.runs.run_options import read_override_of
from backfill_engine.orchestration.runs.run_tags import OVERRIDE_TAG, read_origin
from backfill_engine.proof.certificates import keep_publishes
from backfill_engine.publishing.inputs import PinnedInputs, pin_inputs
from backfill_engine.publishing.publisher import Publisher
from backfill_engine.publishing.results import Run, describe_failures
from backfill_engine.publishing.serving import ServedHook
from backfill_engine.resources import LakehouseResource, SparkResource, build_reader
from backfill_engine.tables.declarations import Table


@dataclass(frozen=True)
class Promoter:
    """A promotion, and all it needs.

    Attributes:
        context: of the op.
        config: of the run.
        catalog: of the code location.
        spark: gives the session.
        lakehouse: landing zone, tables, bounds.
    """

    context: OpExecutionContext
    config: PromotionConfig
    catalog: Catalog
    spark: SparkResource
    lakehouse: LakehouseResource

    def promote(self) -> Promotion:
        """Looks what stands against serving a version; if nothing does, switches in one commit.

        First the canary range is rehearsed, then all other partitions, then what reads the served
        table, all in scratch tables. Going back skips that: it was served before.

        Returns:
            What was found; nothing is published of a dry run, nor where it may not go.

        Raises:
            BackfillError: if there is no such version, or what is published keeps changing.
        """
        context, config, lakehouse = self.context, self.config, self.lakehouse
        now, warehouse = datetime.now(tz=UTC), lakehouse.warehouse()
        fail_dead_runs(context.instance, now=now, silent_seconds=lakehouse.silent_seconds)
        warehouse.check_writable()
        switching = find_switching(
            self.catalog,
            context.instance,
            self._graph,
            config,
            lambda table: self._recover(table, now),
        )
        pinned = pin_inputs(
            switching.log,
            {switching.source.table.key: switching.source},
            switching.recipe,
            landing_root=lakehouse.landing_root,
            partitions=build_partitions(switching.log.table, switching.keys),
            windows=switching.readiness.windows,
        )
        promotion = begin_promotion(switching, config, promotion_id=context.run_id, now=now)
        if not promotion.is_served:
            shown: Mapping[str, Shown] = {}
            if promotion.may_go and config.version:
                promotion, shown = self._rehearse(switching, promotion)
            if promotion.may_go and not config.dry_run:
                promotion = self._switch(switching, pinned, promotion, shown)
        write_promotion(warehouse, promotion)
        return promotion

    def _recover(self, table: Table, now: datetime) -> TableLog:
        """Reads a table's log, once Dagster knows of all that it tells."""
        log = read_log(self.lakehouse.warehouse(), table).require()
        recoveries = recover_table(
            self.catalog, self.context.instance, log, now=now, reader=self._reader
        )
        return recoveries[-1].log

    @property
    def _reader(self) -> PartitionReader:
        return build_reader(self.spark, self.lakehouse)

    @property
    def _graph(self) -> AssetGraph:
        return self.context.repository_def.asset_graph

    def _rehearse(
        self, switching: Switching, promotion: Promotion
    ) -> tuple[Promotion, Mapping[str, Shown]]:
        """Rehearses the switch, canary first, and adds what stands against it.

        A dry run goes on where a person could still say that what drifts is right.
        """
        spark, run_id = self.spark.spark_session, self.context.run_id
        rehearser = Rehearser(spark, self.lakehouse, run_id, promotion.at, self._reader)
        found = VersionRehearsal(rehearser, switching.recipe, switching.log, promotion)
        canary = self.config.find_canary(switching.keys)
        stages = (canary, [key for key in switching.keys if key not in set(canary)])
        try:
            for stage in filter(None, stages):
                if self._goes_on(found.promotion):
                    found.rehearse_stage(stage)
            if self._goes_on(found.promotion):
                for reader in self._list_readers(switching, canary):
                    found.rehearse_reader(reader.recipe, sorted(reader.reads), reader.provisional)
            found.keep()
        finally:
            remove_scratch(rehearser.warehouse, run_id)
        return found.promotion, list_shown(found.served)

    def _goes_on(self, promotion: Promotion) -> bool:
        return promotion.may_go or (self.config.dry_run and not promotion.missing)

    def _list_readers(self, switching: Switching, canary: Sequence[str]) -> Iterator[Reader]:
        """Lists what reads the served table: of each what is published, else what the canary gives.

        Without what other inputs of it keep back.
        """
        log, instance = switching.log, self.context.instance
        served = find_asset_key(log.table)
        for recipe in list_readers(self.catalog.recipes.values(), log.table.key):
            published = read_log(log.warehouse, recipe.table).publishes
            reader = find_reader(
                instance, self._graph, recipe, served, switching.keys, among=published
            )
            if not reader.reads:
                reader = find_reader(instance, self._graph, recipe, served, canary)
            if reader.reads:
                yield reader

    def _switch(
        self,
        switching: Switching,
        pinned: PinnedInputs,
        promotion: Promotion,
        shown: Mapping[str, Shown],
    ) -> Promotion:
        """Publishes all partitions in one commit, or says which of them keep it from that."""
        log, recipe, context = switching.log, switching.recipe, self.context
        override = read_override_of(context.run, self.config.override_protection)
        overrides = refuse_protected(
            log.warehouse,
            log.table,
            switching.keys,
            override=override,
            how=f"with --override-protection, or by the tag {OVERRIDE_TAG}",
        )
        switch = {"before": promotion.before, "by": promotion.by, "why": promotion.why}
        run = Run(
            run_id=context.run_id,
            started_at=promotion.at,
            config=context.run.run_config,
            origin=read_origin(
                context.run.tags,
                context.run.run_config,
                operation="promotion" if self.config.version else "rollback",
            ),
            hooks=(
                *([RehearsalHook(context.run_id, shown)] if shown else []),
                ProtectionHook(overrides),
                ServedHook(recipe.serves, is_whole=True, switch=switch),
            ),
        )
        publisher = Publisher(
            spark=self.spark.spark_session,
            recipe=recipe,
            run=run,
            landing_root=self.lakehouse.landing_root,
            withheld_days=self.lakehouse.withheld_days,
            reader=self._reader,
        )
        partitions = build_partitions(log.table, switching.keys)
        results = publisher.publish_as_pinned(partitions, pinned)
        withheld = {
            result.key: describe_failures(result.verdict)
            for result in results
            if result.verdict.withheld
        }
        if withheld:
            partitions_def = find_partitions_def(log.table)
            return replace(promotion, missing=tuple(describe_ranges(partitions_def, withheld)))
        code_version = recipe.code_version
        leave_certificate(
            context, log, results, run, code_version=code_version, reader=self._reader
        )
        record_results(context, log, results, run, code_version=code_version)
        keep_publishes(log.reread())
        return replace(promotion, published=results[0].version)


def promote_version(
    catalog: Catalog,
    context: OpExecutionContext,
    config: PromotionConfig,
    spark: SparkResource,
    lakehouse: LakehouseResource,
) -> str:
    """Serves another version of a table to its consumers, whole and in one commit.

    Only if nothing stands against it.
    """
    found = Promoter(context, config, catalog, spark, lakehouse).promote()
    context.add_output_metadata(
        {
            "promotion": MetadataValue.md(describe_promotion(found)),
            "drift": MetadataValue.path(found.page or "nothing was rehearsed"),
        }
    )
    if not found.is_served and found.published is None and not config.dry_run:
        raise build_failure(describe_refusal(found))
    return found.promotion_id
