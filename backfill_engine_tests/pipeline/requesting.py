"""Backfills of the tests: asked for as commands do, and looked at."""

import datetime as dt
from collections.abc import Sequence

from dagster import AssetKey, DagsterInstance

from backfill_engine.orchestration.backfills.progress_reader import Progress, ProgressReader
from backfill_engine.orchestration.due.downstream import request_backfill
from backfill_engine.orchestration.instance.dagster_internals import BulkActionStatus
from backfill_engine.orchestration.runs.run_tags import REASON_TAG
from backfill_engine_tests.project import CATALOG, defs


def request(
    instance: DagsterInstance, *keys: str, days: Sequence[str], title: str = "mend them"
) -> str:
    """Asks for a backfill of some days of tables."""
    return request_backfill(
        instance,
        defs.get_repository_def().asset_graph,
        {AssetKey.from_user_string(key): days for key in keys},
        title=title,
        tags={REASON_TAG: "wrong numbers"},
    )


def set_status(instance: DagsterInstance, backfill: str, status: BulkActionStatus) -> None:
    """What the daemon does at the end."""
    record = instance.get_backfill(backfill)
    assert record is not None
    instance.update_backfill(record.with_status(status))


def read_progress(instance: DagsterInstance, backfill: str, *, later: float = 0) -> Progress:
    """How far it has come, some seconds later than now."""
    now = dt.datetime.now(tz=dt.UTC) + dt.timedelta(seconds=later)
    return ProgressReader(CATALOG, instance).read(backfill, now=now)
