"""Which check evaluations a step tells Dagster: all, or beyond its budget those that matter.

In a failed run Dagster shows a planned check that nothing was said of as failed. So a run that
withholds something tells more: also what passed, and what could not be asked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dagster import AssetCheckEvaluation, AssetCheckKey, AssetExecutionContext, DagsterInstance

from backfill_engine.catalog import Catalog
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.instance.dagster_internals import CheckStatus, find_run_assets
from backfill_engine.orchestration.instance.materializations import find_latest_materializations
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.orchestration.records.events import build_evaluations, build_unasked
from backfill_engine.orchestration.records.ui_pages import build_withheld_pages
from backfill_engine.publishing.results import PartitionResult, find_outcomes
from backfill_engine.resources import LakehouseResource
from backfill_engine.rules.verdicts import Check

_FAILING_BUDGET = 4
"""Times the budget of a run that publishes all: a year of hours of one table."""


@dataclass(frozen=True)
class ToldEvaluations:
    """The evaluations of a step.

    Attributes:
        catalog: of the code location.
        context: of the asset.
        target: the log of its table.
        budget: check evaluations of a run beyond which passes are folded.
        recovering: beyond it, the partitions whose passes are told all the same, as they failed
            before; None within it.
    """

    catalog: Catalog
    context: AssetExecutionContext
    target: TableLog
    budget: int
    recovering: frozenset[str] | None

    def build(self, results: Sequence[PartitionResult]) -> Iterator[AssetCheckEvaluation]:
        """Builds those of some partitions, after their audit."""
        asset_key, recovering = self.context.asset_key, self.recovering
        withheld = [result for result in results if result.version is None]
        tells_all = self._may_tell_all(withheld)
        if recovering is not None and tells_all:
            recovering |= {result.key for result in withheld}
        told = [
            result
            for result in results
            if recovering is None or result.key in recovering or not result.verdict.passed
        ]
        targets = find_latest_materializations(
            self.context.instance, asset_key, [result.key for result in told]
        )
        table = self.target.table
        pages = build_withheld_pages(self.catalog, table, withheld, run_id=self.context.run.run_id)
        yield from build_evaluations(
            asset_key, told, targets=targets, recovering=recovering, pages=pages
        )
        for result in withheld if tells_all else ():
            asked = () if result.not_due else find_outcomes(result.verdict)
            yield from build_unasked(
                table,
                result.key,
                "nothing of the partition was published",
                asked=[Check(check) for check in asked],
                target=targets.get(result.key),
            )

    def unfold(self, results: Sequence[PartitionResult]) -> Iterator[AssetCheckEvaluation]:
        """Builds the passes that were folded, in a run that fails after all."""
        if self.recovering is None or not self._may_tell_all(results):
            return
        published = [result for result in results if result.version is not None]
        targets = find_latest_materializations(
            self.context.instance, self.context.asset_key, [result.key for result in published]
        )
        for evaluation in build_evaluations(
            self.context.asset_key, published, targets=targets, recovering=None
        ):
            if evaluation.passed and evaluation.partition not in self.recovering:
                yield evaluation

    def _may_tell_all(self, results: Sequence[PartitionResult]) -> bool:
        return len(results) * len(Check) <= _FAILING_BUDGET * self.budget


def find_told_evaluations(
    catalog: Catalog,
    context: AssetExecutionContext,
    target: TableLog,
    lakehouse: LakehouseResource,
    *,
    partitions: int,
) -> ToldEvaluations:
    """Finds what a step of so many partitions tells."""
    assets = find_run_assets(context.instance, context.run)
    within = partitions * len(Check) * len(assets) <= lakehouse.check_events
    recovering = None if within else find_failed_before(context.instance, target)
    return ToldEvaluations(catalog, context, target, lakehouse.check_events, recovering)


_LOOKED_AT = 1000


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
            limit=_LOOKED_AT,
            status={CheckStatus.FAILED},
        )
    )
    return frozenset(
        record.partition
        for record in failures
        if record.partition is not None
        and record.create_timestamp > published_at.get(record.partition, 0)
    )
