"""Enters into a Dagster instance what a run did, if the run itself no longer can.

Events are entered under the run's own id, and so is the run, if the instance never saw it. Dagster
shows a partition as failed where a failed run had planned to materialize it.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dagster import (
    AssetCheckEvaluation,
    AssetKey,
    AssetMaterialization,
    DagsterEvent,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    RunRecord,
    RunsFilter,
)

from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.dagster_internals import (
    AssetMaterializationPlannedData,
    StepMaterializationData,
)
from backfill_engine.orchestration.instance.materializations import find_latest_materializations
from backfill_engine.proof.certificates import Certificate, list_documents, read_readable

RECOVERED_TAG = "backfill_assets/recovered"
"""Tag of a run that the instance knows from tables and certificates alone."""

RECOVERED_JOB = "__ASSET_JOB"
"""The job of such a run: that of Dagster for runs of assets."""


def enter_runs(instance: DagsterInstance, warehouse: Warehouse, run_ids: Iterable[str]) -> None:
    """Enters the runs that the instance doesn't know, each as its certificates say that it ended.

    It succeeded if there are any, and all of its partitions were published.
    """
    unknown = [run_id for run_id in dict.fromkeys(run_ids) if not instance.has_run(run_id)]
    documents = list_documents(warehouse) if unknown else []
    for run_id in unknown:
        of_run = (document for document in documents if document.subject[0] == run_id)
        _enter_run(instance, run_id, list(read_readable(of_run)))


def _enter_run(instance: DagsterInstance, run_id: str, certificates: Sequence[Certificate]) -> None:
    succeeded = certificates and not any(
        row.is_held_back for certificate in certificates for row in certificate.partitions
    )
    instance.add_run(
        DagsterRun(
            RECOVERED_JOB,
            run_id=run_id,
            run_config=dict(certificates[0].run_config) if certificates else {},
            status=DagsterRunStatus.SUCCESS if succeeded else DagsterRunStatus.FAILURE,
            tags={RECOVERED_TAG: "true"},
        )
    )


def enter_plan(instance: DagsterInstance, run_id: str, asset_key: AssetKey, partition: str) -> None:
    """Enters that the run was to materialize a partition, so that it shows as failed."""
    planned = AssetMaterializationPlannedData(asset_key, partition)
    _enter(instance, run_id, DagsterEventType.ASSET_MATERIALIZATION_PLANNED, planned)


def enter_materialization(
    instance: DagsterInstance, run_id: str, materialization: AssetMaterialization
) -> None:
    """Enters that the run materialized a partition."""
    data = StepMaterializationData(materialization)
    _enter(instance, run_id, DagsterEventType.ASSET_MATERIALIZATION, data)


def enter_again(instance: DagsterInstance, asset_key: AssetKey, keys: Collection[str]) -> None:
    """Enters the last materialization of partitions once more, under the run that it is of.

    So they show as published though a later run planned them, did nothing and failed. What never
    was materialized is left as it is.
    """
    with store_together(instance):
        for record in find_latest_materializations(instance, asset_key, keys).values():
            if record.asset_materialization is not None:
                enter_materialization(instance, record.run_id, record.asset_materialization)


def enter_evaluation(
    instance: DagsterInstance, run_id: str, evaluation: AssetCheckEvaluation
) -> None:
    """Enters what the run found by a check; in place of an earlier evaluation of the same run."""
    _enter(instance, run_id, DagsterEventType.ASSET_CHECK_EVALUATION, evaluation)


def _enter(
    instance: DagsterInstance,
    run_id: str,
    event_type: DagsterEventType,
    data: AssetMaterializationPlannedData | StepMaterializationData | AssetCheckEvaluation,
) -> None:
    event = DagsterEvent(
        event_type_value=event_type.value,
        job_name=RECOVERED_JOB,
        message="entered by a recovery",
        event_specific_data=data,
    )
    instance.report_dagster_event(event, run_id)


COMPARED_TAG = "backfill_assets/compared"
"""Tag of a run that reconciles: how many partitions it compared."""

DIFFERENT_TAG = "backfill_assets/different"
"""Likewise: how many of them differ."""


@dataclass(frozen=True)
class Reconciliation:
    """One that came to its end.

    Attributes:
        ended_at: when, UTC.
        run_id: the run.
        compared: partitions.
        different: of these, the ones that don't agree with their source.
    """

    ended_at: dt.datetime
    run_id: str
    compared: int
    different: int


def note_reconciliation(
    instance: DagsterInstance, run_id: str, *, compared: int, different: int
) -> None:
    """Tags a run with what it found."""
    tags = {COMPARED_TAG: str(compared), DIFFERENT_TAG: str(different)}
    instance.add_run_tags(run_id, tags)


def enter_reconciliation(
    instance: DagsterInstance,
    job_name: str,
    tags: Mapping[str, str],
    *,
    compared: int,
    different: int,
) -> None:
    """Enters what a person compared in a shell, as a run of the job that does the same."""
    status = DagsterRunStatus.FAILURE if different else DagsterRunStatus.SUCCESS
    run = DagsterRun(job_name, status=status, tags=tags)
    instance.add_run(run)
    note_reconciliation(instance, run.run_id, compared=compared, different=different)


def find_reconciliations(
    instance: DagsterInstance, job_name: str, *, most: int
) -> list[Reconciliation]:
    """Finds the last ones of a job that ended, newest first."""
    found: list[Reconciliation] = []
    cursor: str | None = None
    while len(found) < most:
        records = instance.get_run_records(RunsFilter(job_name=job_name), most, cursor=cursor)
        found += [
            Reconciliation(
                _find_end(record),
                record.dagster_run.run_id,
                int(record.dagster_run.tags[COMPARED_TAG]),
                int(record.dagster_run.tags[DIFFERENT_TAG]),
            )
            for record in records
            # Those that failed before they had compared anything have no tag.
            if record.dagster_run.is_finished and DIFFERENT_TAG in record.dagster_run.tags
        ]
        if len(records) < most:
            break
        cursor = records[-1].dagster_run.run_id
    return found[:most]


def _find_end(record: RunRecord) -> dt.datetime:
    """Finds when a run ended; one that was entered later has no times of its own."""
    if record.end_time is None:
        return record.create_timestamp
    return dt.datetime.fromtimestamp(record.end_time, tz=dt.UTC)
