"""Whose runs are touched in an instance that others share: those of this project, and all of them.

Nothing here starts Spark: a run ends before, as its tables have no place.
"""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetKey,
    DagsterInstance,
    DagsterRunStatus,
    Definitions,
    JobDefinition,
    RunsFilter,
    asset,
    job,
    op,
)

from backfill_engine.errors import HistoryError
from backfill_engine.orchestration.backfills.backfills import find_whole_id, list_backfills
from backfill_engine.orchestration.instance.dagster_internals import (
    BACKFILL_TAG,
)
from backfill_engine.orchestration.instance.materializations import PartitionStatusCache
from backfill_engine.orchestration.instance.own_runs import is_ours
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.orchestration.instance.processes import identify_own_process
from backfill_engine.orchestration.instance.recovered_runs import enter_plan
from backfill_engine.orchestration.runs.chains import find_failed_chains, find_partitions_at_work
from backfill_engine.orchestration.runs.claims import (
    CREATOR_TAG,
    PROCESS_TAG,
    fail_dead_runs,
)
from backfill_engine.orchestration.runs.run_tags import (
    RANGE_END_TAG,
    RANGE_START_TAG,
)
from backfill_engine.resources import build_lakehouse
from backfill_engine_tests.pipeline.requesting import (
    add_backfill,
    get_backfill,
    get_run,
    identify_dead_process,
)
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS, defs

RAW, DAY = AssetKey(["raw", "flights"]), "2013-01-05"
OF_A_DAY = {RANGE_START_TAG: DAY, RANGE_END_TAG: DAY}
NEW_VERSION = {"table": "serving/carrier_delays", "version": "carrier_delays_v2"}
CONFIGS: dict[str, dict[str, Any]] = {
    "migrate_columns": {"migrate_table": {"table": RAW.to_user_string()}},
    "promote": {"promote_version": NEW_VERSION},
    "reconcile": {"compare_with_source": {"first": DAY, "last": DAY}},
    "rehearse": {"rehearse_partitions": {"ranges": {RAW.to_user_string(): [[DAY, DAY]]}}},
    "retire": {"retire_version": NEW_VERSION},
    "rollback_partitions": {
        "restore_partitions": {"table": RAW.to_user_string(), "first": DAY, "last": DAY}
    },
}
JOBS = [each.name for each in defs.get_repository_def().get_all_jobs()]
STARTED = DagsterRunStatus.STARTED


@asset(key=RAW, partitions_def=find_partitions_def(RAW_FLIGHTS))
def of_others() -> None:
    """Of another code location, by a key that a table of ours has."""


@op
def tidy_up() -> None:
    """Of another code location."""


@job
def maintain() -> None:
    """Of another code location, by a name that a job of ours has."""
    tidy_up()


OTHERS = [maintain, Definitions([of_others]).resolve_implicit_global_asset_job_def()]


@pytest.mark.parametrize("name", JOBS)
def test_each_job_of_the_project_claims_its_run_before_and_while_it_works(
    instance: DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("BACKFILL_WAREHOUSE", str(tmp_path / "file" / "tables"))
    lakehouse = build_lakehouse(CATALOG.settings).model_dump()
    chosen = defs.resolve_job_def(name)
    assert all(is_ours(node.tags) for node in chosen.all_node_defs)
    range_def = chosen.partitions_def
    first = range_def.get_first_partition_key() if range_def else None
    result = chosen.execute_in_process(
        instance=instance,
        run_config={
            "ops": {key: {"config": each} for key, each in CONFIGS.get(name, {}).items()},
            "resources": {"lakehouse": {"config": lakehouse}},
        },
        tags={RANGE_START_TAG: first, RANGE_END_TAG: first} if first else {},
        asset_selection=[RAW] if name.startswith("__") else None,
        raise_on_error=False,
    )
    run = get_run(instance, result.run_id)
    assert run.tags[PROCESS_TAG] == run.tags[CREATOR_TAG] == identify_own_process()


@pytest.mark.parametrize("others", OTHERS, ids=lambda others: others.name)
def test_a_run_of_others_stays_as_it_is_and_is_nobodys_here(
    instance: DagsterInstance, others: JobDefinition
) -> None:
    tags = {BACKFILL_TAG: "abcdefgh", **OF_A_DAY}
    run = instance.create_run_for_job(others, tags=tags, status=STARTED)
    assert run.tags == tags, "it is neither named nor put behind others"
    enter_plan(instance, run.run_id, RAW, DAY)
    later = dt.datetime.now(tz=dt.UTC) + dt.timedelta(hours=5)
    assert fail_dead_runs(instance, now=later, silent_seconds=600) == {}
    assert list(find_partitions_at_work(instance, defs.resolve_asset_graph())) == []
    statuses = PartitionStatusCache(instance).find(RAW, [DAY], find_partitions_def(RAW_FLIGHTS))
    assert statuses == {DAY: None}, "who reads it waits for nobody"
    instance.report_run_failed(run)
    assert find_failed_chains(instance, later - dt.timedelta(days=1)) == {}


def test_a_run_of_ours_that_nobody_works_on_is_still_found_among_others(
    instance: DagsterInstance,
) -> None:
    own_job = defs.resolve_implicit_global_asset_job_def()
    run = instance.create_run_for_job(own_job, tags=OF_A_DAY, asset_selection={RAW}, status=STARTED)
    instance.create_run_for_job(maintain, tags={}, status=STARTED)
    assert is_ours(run.tags)
    instance.add_run_tags(run.run_id, {PROCESS_TAG: identify_dead_process()})
    now = dt.datetime.now(tz=dt.UTC)
    assert [*fail_dead_runs(instance, now=now, silent_seconds=600)] == [run.run_id]
    (failed,) = instance.get_runs(RunsFilter(statuses=[DagsterRunStatus.FAILURE]))
    assert failed.run_id == run.run_id


def test_a_backfill_of_others_gets_no_title_is_not_listed_and_not_found(
    instance: DagsterInstance,
) -> None:
    add_backfill(instance, "ofourown", RAW, days=[DAY])
    add_backfill(instance, "ofothers", AssetKey(["theirs", "flights"]), days=[DAY], title="theirs")
    run = instance.create_run_for_job(maintain, tags={})
    assert [found.id for found in list_backfills(CATALOG, instance, limit=1)] == ["ofourown"]
    assert get_backfill(instance, "ofothers").tags == {}
    assert find_whole_id(CATALOG, instance, "ofourown") == "ofourown"
    for wanted in ("ofothers", run.run_id, run.run_id[:8]):
        with pytest.raises(HistoryError, match="is of another code location"):
            find_whole_id(CATALOG, instance, wanted)
