"""A promotion as a Dagster run: what stands against serving a version, and the switch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dagster import Config, MetadataValue, OpExecutionContext
from pydantic import Field

from backfill_engine.catalog import Catalog
from backfill_engine.contents.partition_contents import PartitionReader
from backfill_engine.errors import PromotionError
from backfill_engine.extras.rehearsal.applying import RehearsalHook, Shown, list_shown
from backfill_engine.extras.rehearsal.records import remove_scratch
from backfill_engine.extras.rehearsal.rehearser import Rehearser
from backfill_engine.extras.versions.described import find_retired, find_version, list_switches
from backfill_engine.extras.versions.promotions import (
    DriftGates,
    Promotion,
    describe_promotion,
    describe_refusal,
    write_promotion,
)
from backfill_engine.extras.versions.version_rehearsal import VersionRehearsal
from backfill_engine.grains.grain import is_in_range
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.served_versions import find_served
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.orchestration.due.downstream import Reader, find_reader, list_readers
from backfill_engine.orchestration.due.readiness import find_readiness
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
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import Run, describe_failures
from backfill_engine.publishing.serving import ServedHook, choose_served, serve
from backfill_engine.resources import LakehouseResource, SparkResource, build_reader
from backfill_engine.tables.declarations import Table


@dataclass(frozen=True)
class _Switching:
    """A served table, the version that it is to hold, and what both are made from."""

    log: TableLog
    recipe: Recipe
    keys: Sequence[str]
    pinned: PinnedInputs
    blocked: Mapping[str, str]


_CANARY = 7


class PromotionConfig(Config):
    """Which version is to be served, and how far it may differ before a person is asked."""

    table: str = Field(description="The served table, as serving/carrier_delays.")
    version: str = Field(
        default="",
        description="The version, as v2; empty for the one that was served before, to go back.",
    )
    reason: str = Field(default="", description="Why; kept in the commit.")
    by: str = Field(default="", description="Who asks for it; kept in the commit.")
    accept: str = Field(
        default="", description="Why it is right though it differs by more than the gates."
    )
    dry_run: bool = Field(default=False, description="Only look what stands against it.")
    canary: list[str] = Field(
        default_factory=list,
        description="Range [first, last] that is computed and judged before the rest; else the "
        f"last {_CANARY} partitions.",
    )
    max_psi: float | None = Field(
        default=0.25, ge=0, description="Of a column with a drift rule, in one partition."
    )
    max_mean_shift: float | None = Field(
        default=0.5, ge=0, description="Of a column's mean, as a share of it."
    )
    max_null_shift: float | None = Field(
        default=0.05, ge=0, le=1, description="Of a column's share of nulls."
    )
    override_protection: str | None = Field(
        default=None, description="Why protected partitions are switched all the same."
    )

    def find_canary(self, keys: Sequence[str]) -> list[str]:
        """Finds those of the partitions to be switched that are judged before the rest.

        Raises:
            PromotionError: if none of them lies in the range that is named.
        """
        if not self.canary:
            return list(keys[-_CANARY:])
        first, last = self.canary[0], self.canary[-1]
        found = [key for key in keys if is_in_range(key, first, last)]
        if not found:
            raise PromotionError(
                f"no partition to be switched lies in the canary {first}...{last}: they are "
                f"{keys[0]} to {keys[-1]}"
            )
        return found


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
        switching = self._look(now)
        promotion = Promotion(
            promotion_id=context.run_id,
            table=switching.log.table.key,
            version=switching.recipe.serves,
            before=find_served(switching.log),
            at=now,
            by=config.by,
            why=config.reason or config.accept,
            partitions=len(switching.keys),
            gates=DriftGates(config.max_psi, config.max_mean_shift, config.max_null_shift),
            missing=_describe_blocked(switching),
            accepted=config.accept,
        )
        if not promotion.is_served:
            shown: Mapping[str, Shown] = {}
            if promotion.may_go and config.version:
                promotion, shown = self._rehearse(switching, promotion)
            if promotion.may_go and not config.dry_run:
                promotion = self._switch(switching, promotion, shown)
        write_promotion(warehouse, promotion)
        return promotion

    def _look(self, now: datetime) -> _Switching:
        """Looks at the tables, and finds the partitions that the version lacks."""
        table, recipe = (
            self.catalog.find_table(self.config.table),
            self.catalog.recipes[self.config.table],
        )
        log = self._recover(table, now)
        (held,) = choose_served(recipe, log).inputs
        version = find_version(table, self.config.version or _find_before(log))
        recipe, source = (
            serve(recipe, version.key),
            self._recover(self.catalog.find_table(version.key), now),
        )
        keys = sorted({*log.publishes, *read_log(log.warehouse, held).publishes})
        readiness = find_readiness(
            self.context.instance,
            self._graph,
            find_asset_key(table),
            keys,
            unread=recipe.unread,
        )
        pinned = pin_inputs(
            log,
            {version.key: source},
            recipe,
            landing_root=self.lakehouse.landing_root,
            partitions=build_partitions(table, keys),
            windows=readiness.windows,
        )
        return _Switching(log, recipe, keys, pinned, readiness.blocked)

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
        self, switching: _Switching, promotion: Promotion
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

    def _list_readers(self, switching: _Switching, canary: Sequence[str]) -> Iterator[Reader]:
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
        self, switching: _Switching, promotion: Promotion, shown: Mapping[str, Shown]
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
        results = publisher.publish_as_pinned(partitions, switching.pinned)
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


def _find_before(log: TableLog) -> str:
    switches = list_switches(log)
    if not switches or not switches[0].before:
        raise PromotionError(
            f"{log.table.key} has served nothing else before: there is nothing to go back to"
        )
    return switches[0].before


def _describe_blocked(switching: _Switching) -> tuple[str, ...]:
    """Says which partitions the version lacks, or that it is kept up no more."""
    source = switching.pinned.inputs[switching.recipe.serves]
    if retired := find_retired(source):
        return (
            f"{source.table.key}: {retired}: lift that (`protect --lift`) and backfill it first",
        )
    partitions_def = find_partitions_def(switching.log.table)
    return tuple(describe_ranges(partitions_def, switching.blocked))


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
