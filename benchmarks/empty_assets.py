"""Three assets that do nothing, over the pipeline's partitions: what Dagster alone costs."""

from collections.abc import Iterator, Sequence

from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetsDefinition,
    BackfillPolicy,
    DailyPartitionsDefinition,
    Definitions,
    MaterializeResult,
    asset,
    in_process_executor,
)

from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.dagster_internals import EVENTS_ARE_LOGGED
from backfill_engine.rules.verdicts import Check
from backfill_engine.settings import Settings

DAYS = DailyPartitionsDefinition(start_date="2013-01-01", end_date="2014-01-02")
NAMES = ("first", "second", "third")

METADATA: dict[str, float | str] = {
    **{f"values(column_{number})": number / 7 for number in range(10)},
    **{f"values(column_{number}): bound": "0 values outside 1 to 31" for number in range(5)},
}
"""Of about the size of what the project's events have."""


def count_evaluations(days: int) -> int:
    """Of single partitions, in a run of all three assets: none beyond the budget."""
    evaluations = days * len(NAMES) * len(Check)
    return evaluations if evaluations <= Settings.model_fields["check_events"].default else 0


def tell_passes(
    asset_key: AssetKey, checks: Sequence[AssetCheckSpec], keys: Sequence[str]
) -> Iterator[AssetCheckEvaluation]:
    """Evaluations of all checks for each partition, unless these are too many."""
    for key in keys if count_evaluations(len(keys)) else ():
        for check in checks:
            yield AssetCheckEvaluation(
                asset_key=asset_key,
                check_name=check.name,
                passed=True,
                partition=key,
                metadata=METADATA,
            )


def build_result(checks: Sequence[AssetCheckSpec]) -> MaterializeResult:
    """What ends a step whose events are stored: all checks have passed."""
    return MaterializeResult(
        metadata=EVENTS_ARE_LOGGED,
        check_results=[AssetCheckResult(check_name=check.name, passed=True) for check in checks],
    )


def build_empty_asset(name: str) -> AssetsDefinition:
    """Materializes."""

    @asset(name=name, partitions_def=DAYS, backfill_policy=BackfillPolicy.single_run())
    def do_nothing() -> MaterializeResult:
        return MaterializeResult()

    return do_nothing


def build_checked_asset(name: str) -> AssetsDefinition:
    """Stores as many events as an asset of the project, with metadata of the same size."""
    checks = [AssetCheckSpec(check.value, asset=name, partitions_def=DAYS) for check in Check]

    @asset(
        name=name,
        partitions_def=DAYS,
        backfill_policy=BackfillPolicy.single_run(),
        check_specs=checks,
    )
    def do_nothing_and_check(
        context: AssetExecutionContext,
    ) -> Iterator[AssetMaterialization | AssetCheckEvaluation | MaterializeResult]:
        keys = context.partition_keys
        with store_together(context.instance):
            for key in keys:
                yield AssetMaterialization(context.asset_key, partition=key, metadata=METADATA)
        with store_together(context.instance):
            yield from tell_passes(context.asset_key, checks, keys)
        yield build_result(checks)

    return do_nothing_and_check


defs = Definitions(assets=[build_empty_asset(name) for name in NAMES], executor=in_process_executor)
