"""Three assets that do nothing, over the pipeline's partitions: what Dagster alone costs."""

from dagster import (
    AssetsDefinition,
    BackfillPolicy,
    DailyPartitionsDefinition,
    Definitions,
    MaterializeResult,
    asset,
    in_process_executor,
)

_days = DailyPartitionsDefinition(start_date="2013-01-01", end_date="2014-01-02")


def _empty_asset(name: str) -> AssetsDefinition:
    @asset(name=name, partitions_def=_days, backfill_policy=BackfillPolicy.single_run())
    def do_nothing() -> MaterializeResult:
        return MaterializeResult()

    return do_nothing


defs = Definitions(
    assets=[_empty_asset(name) for name in ("first", "second", "third")],
    executor=in_process_executor,
)
