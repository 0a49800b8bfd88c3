"""Which partitions runs at work have judged so far, chunk by chunk."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from dagster import DagsterEventType, DagsterInstance, DagsterRun, DagsterRunStatus

_PAGE = 1000


@dataclass
class _Judged:
    """Partitions of a run by table key, as far as its events were read."""

    cursor: str | None = None
    by_table: dict[str, set[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class JudgedPartitions:
    """Reads of which partitions runs at work have told a check; each event once.

    A step records what is good of a chunk before it tells any check of it. So what was judged, and
    is not materialized when that is looked up afterwards, is held back, and stays so in this run.
    """

    by_run: dict[str, _Judged] = field(default_factory=dict)

    def read(self, instance: DagsterInstance, runs: Iterable[DagsterRun]) -> None:
        """Reads what those of the runs that are at work have told since."""
        for run in runs:
            if run.status is DagsterRunStatus.STARTED:
                _read(instance, run.run_id, self.by_run.setdefault(run.run_id, _Judged()))

    def find(self, run_id: str, table: str) -> Collection[str]:
        """Finds those of a table, `layer/name`, that a run has judged, as far as it was read."""
        judged = self.by_run.get(run_id)
        return judged.by_table.get(table, ()) if judged else ()


def _read(instance: DagsterInstance, run_id: str, judged: _Judged) -> None:
    has_more = True
    while has_more:
        page = instance.get_records_for_run(
            run_id, judged.cursor, DagsterEventType.ASSET_CHECK_EVALUATION, _PAGE
        )
        judged.cursor, has_more = page.cursor, page.has_more
        for record in page.records:
            event = record.event_log_entry.get_dagster_event()
            check = event.asset_check_evaluation_data
            if check.partition is not None:
                table = check.asset_key.to_user_string()
                judged.by_table.setdefault(table, set()).add(check.partition)
