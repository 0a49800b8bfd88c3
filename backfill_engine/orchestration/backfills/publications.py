"""Which partitions were published since a time, by any run."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from dagster import AssetKey, AssetRecordsFilter, DagsterInstance, RunsFilter

from backfill_engine.orchestration.instance.materializations import find_latest_materializations

_PAGE = 1000


def find_published_since(
    instance: DagsterInstance, table: str, keys: Collection[str], *, since: datetime
) -> set[str]:
    """Finds those partitions of a table, `layer/name`, that any run published since."""
    found: set[str] = set()
    listed = sorted(keys)
    for first in range(0, len(listed), _PAGE):
        page = listed[first : first + _PAGE]
        wanted = AssetRecordsFilter(
            AssetKey.from_user_string(table),
            asset_partitions=page,
            after_timestamp=since.timestamp(),
        )
        records = instance.fetch_materializations(wanted, limit=10 * _PAGE).records
        found |= {record.partition_key for record in records if record.partition_key}
    return found


@dataclass(frozen=True)
class EarlierRuns:
    """Finds what runs that have ended published of what others of their backfill go over again.

    It is looked up again once another one has ended.
    """

    known: dict[tuple[str, str], tuple[frozenset[str], Collection[str]]] = field(
        default_factory=dict
    )

    def find_published(
        self,
        instance: DagsterInstance,
        backfill_id: str,
        table: str,
        keys: Collection[str],
        ended: Collection[str],
    ) -> Collection[str]:
        """Finds partitions of a table, `layer/name`, that runs which have ended published last.

        Args:
            instance: the Dagster instance.
            backfill_id: of the backfill.
            table: the table.
            keys: all that the backfill is to publish of it.
            ended: ids of the runs.
        """
        run_ids = frozenset(ended)
        at, found = self.known.get((backfill_id, table), (frozenset(), ()))
        if run_ids != at:
            asset_key = AssetKey.from_user_string(table)
            latest = find_latest_materializations(instance, asset_key, keys)
            found = {key for key, record in latest.items() if record.run_id in run_ids}
            self.known[backfill_id, table] = run_ids, found
        return found


def find_published_by(
    instance: DagsterInstance,
    table: str,
    keys: Collection[str],
    run_ids: Collection[str],
    *,
    since: datetime,
) -> set[str]:
    """Finds those that one of some runs, or a run that was made since, was the last to publish.

    The time of a materialization doesn't tell where an old one was entered again.
    """
    latest = find_latest_materializations(instance, AssetKey.from_user_string(table), keys)
    others = {record.run_id for record in latest.values()} - set(run_ids)
    good = set(run_ids)
    if others:
        made_since = RunsFilter(run_ids=sorted(others), created_after=since)
        good |= {run.run_id for run in instance.get_runs(made_since)}
    return {key for key, record in latest.items() if record.run_id in good}
