"""What the last reconciliations found is read from their runs, whatever else went wrong since."""

import datetime as dt

import pytest
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.utils import make_new_run_id

from backfill_engine.orchestration.instance.recovered_runs import (
    enter_reconciliation,
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


@pytest.mark.parametrize("different", [0, 2])
def test_what_a_person_compared_in_a_shell_counts_as_well(different: int) -> None:
    with DagsterInstance.ephemeral() as instance:
        tags = {"backfill_assets/launched_by": "ann"}
        enter_reconciliation(instance, "reconcile", tags, compared=9, different=different)
        (found,) = find_reconciliations(instance, "reconcile", most=1)
        run = instance.get_run_by_id(found.run_id)
    assert (found.compared, found.different) == (9, different)
    assert dt.datetime.now(tz=dt.UTC) - found.ended_at < dt.timedelta(minutes=1)
    assert run is not None
    assert run.is_success is not bool(different)
    assert tags.items() <= run.tags.items()
