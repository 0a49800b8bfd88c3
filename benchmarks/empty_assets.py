"""Three assets that do nothing, over the pipeline's partitions: what Dagster alone costs."""

from collections.abc import Iterator

from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetsDefinition,
    BackfillPolicy,
    DailyPartitionsDefinition,
    Definitions,
    MaterializeResult,
    asset,
    in_process_executor,
)

from backfill_assets.quality.judging import Check
from backfill_assets.settings import Settings

DAYS = DailyPartitionsDefinition(start_date="2013-01-01", end_date="2014-01-02")
NAMES = ("first", "second", "third")


def count_evaluations(days: int) -> int:
    """Of single partitions, in a run of all three assets: none beyond the budget."""
    evaluations = days * len(NAMES) * len(Check)
    return evaluations if evaluations <= Settings.model_fields["check_events"].default else 0


def build_empty_asset(name: str) -> AssetsDefinition:
    """Materializes."""

    @asset(name=name, partitions_def=DAYS, backfill_policy=BackfillPolicy.single_run())
    def do_nothing() -> MaterializeResult:
        return MaterializeResult()

    return do_nothing


def build_checked_asset(name: str) -> AssetsDefinition:
    """Materializes, and stores as many check evaluations as an asset of the project."""
    checks = [AssetCheckSpec(check.value, asset=name, partitions_def=DAYS) for check in Check]

    @asset(
        name=name,
        partitions_def=DAYS,
        backfill_policy=BackfillPolicy.single_run(),
        check_specs=checks,
    )
    def do_nothing_and_check(
        context: AssetExecutionContext,
    ) -> Iterator[AssetCheckEvaluation | MaterializeResult]:
        keys = context.partition_keys
        for key in keys if count_evaluations(len(keys)) else ():
            for check in checks:
                yield AssetCheckEvaluation(
                    asset_key=context.asset_key, check_name=check.name, passed=True, partition=key
                )
        yield MaterializeResult(
            check_results=[AssetCheckResult(check_name=one.name, passed=True) for one in checks]
        )

    return do_nothing_and_check


defs = Definitions(assets=[build_empty_asset(name) for name in NAMES], executor=in_process_executor)
