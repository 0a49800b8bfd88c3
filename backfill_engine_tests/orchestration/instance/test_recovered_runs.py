"""What the last reconciliations found is read from their runs, whatever else went wrong since."""

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.utils import make_new_run_id

from backfill_engine.orchestration.instance.recovered_runs import (
    find_reconciliations,
    note_reconciliation,
)


def test_runs_that_compared_nothing_hide_no_reconciliation() -> None:
    with DagsterInstance.ephemeral() as instance:
        for different in (1, 2, 3, None, None, None, None):
            run = DagsterRun("reconcile", make_new_run_id(), status=DagsterRunStatus.STARTED)
            instance.add_run(run)
            if different is not None:
                note_reconciliation(instance, run.run_id, compared=9, different=different)
            instance.report_run_failed(run)
        last_two = find_reconciliations(instance, "reconcile", most=2)
        assert [run.different for run in last_two] == [3, 2]
        of_all = find_reconciliations(instance, "reconcile", most=30)
        assert [run.different for run in of_all] == [3, 2, 1]
        assert find_reconciliations(instance, "acme_reconcile", most=30) == []
