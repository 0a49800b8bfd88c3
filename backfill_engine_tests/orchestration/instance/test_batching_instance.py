"""Which homes store events in batches, and what is seen of a batch while it is kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster import AssetKey, AssetMaterialization, DagsterEventType, DagsterInstance
from dagster._core.storage.event_log import SqliteEventLogStorage
from sqlalchemy import Engine, event
from sqlalchemy.exc import IntegrityError

from backfill_engine.orchestration.instance.batching_instance import store_together
from backfill_engine.orchestration.instance.dagster_internals import InstanceRef
from backfill_engine.orchestration.instance.event_batches import BatchingSqliteEventLogStorage
from backfill_engine.orchestration.instance.recovered_runs import enter_materialization
from backfill_engine.orchestration.runs.claims import ClaimingInstance
from backfill_engine_tests.commands import PROJECT
from backfill_engine_tests.orchestration.instance.event_storages import DEFS, TAGS
from backfill_engine_tests.pipeline.requesting import get_run

KEY = AssetKey("upper")


@contextmanager
def open_home(home: Path, **parts: Any) -> Iterator[DagsterInstance]:
    """A home with the project's `dagster.yaml`, but for the parts that are given."""
    config = yaml.safe_load((PROJECT / "dagster.yaml").read_text()) | parts
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text(
        yaml.dump({name: part for name, part in config.items() if part})
    )
    with DagsterInstance.from_ref(InstanceRef.from_dir(str(home))) as instance:
        yield instance


@contextmanager
def count_commits() -> Iterator[list[int]]:
    """Of all databases."""
    commits = [0]

    def count(_: object) -> None:
        commits[0] += 1

    event.listen(Engine, "commit", count)
    try:
        yield commits
    finally:
        event.remove(Engine, "commit", count)


def create_run(instance: DagsterInstance) -> str:
    job = DEFS.resolve_implicit_global_asset_job_def()
    return instance.create_run_for_job(job, tags=TAGS).run_id


def find_materialized(instance: DagsterInstance) -> list[str]:
    return sorted(instance.get_materialized_partitions(KEY))


def enter(instance: DagsterInstance, run_id: str, *keys: str) -> None:
    for key in keys:
        enter_materialization(instance, run_id, AssetMaterialization(KEY, partition=key))


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    with open_home(tmp_path) as instance:
        yield instance


@pytest.fixture
def run_id(instance: DagsterInstance) -> str:
    return create_run(instance)


def test_the_projects_home_stores_what_is_planned_in_few_transactions(tmp_path: Path):
    with open_home(tmp_path / "plain", instance_class=None) as plain, count_commits() as of_plain:
        create_run(plain)
        assert type(plain.event_log_storage) is SqliteEventLogStorage
    with open_home(tmp_path / "home") as instance, count_commits() as commits:
        run_id = create_run(instance)
        assert isinstance(instance, ClaimingInstance)
        assert isinstance(instance.event_log_storage, BatchingSqliteEventLogStorage)
        assert len(instance.all_logs(run_id)) == 10
    # Of eight materializations in two files, and of two checks in three steps, against one in each
    # file; but for a commit or two that only one of the homes needs to begin with.
    assert of_plain[0] - commits[0] >= 8 * 2 + 2 * 3 - 2 - 2


def test_old_homes_open_and_go_back(tmp_path: Path):
    with open_home(tmp_path, instance_class=None) as plain:
        first = create_run(plain)
        enter(plain, first, "2013-01-01")
    with open_home(tmp_path) as instance, store_together(instance):
        enter(instance, first, "2013-01-02")
    with open_home(tmp_path, instance_class=None) as plain:
        assert find_materialized(plain) == ["2013-01-01", "2013-01-02"]
        assert len(plain.all_logs(first)) == 12


@pytest.mark.parametrize("sqlite", [True, False], ids=["configured", "moved"])
def test_a_storage_of_ones_own_choice_stays(tmp_path: Path, *, sqlite: bool):
    place = {"base_dir": str(tmp_path / "elsewhere")}
    storage = ("dagster._core.storage.event_log", "SqliteEventLogStorage", place)
    configured = {"storage": {"sqlite": place}}
    moved = {"event_log_storage": dict(zip(("module", "class", "config"), storage, strict=True))}
    with open_home(tmp_path / "home", **(configured if sqlite else moved)) as instance:
        run_id = create_run(instance)
        with store_together(instance):
            enter(instance, run_id, "2013-01-01")
            assert find_materialized(instance) == ["2013-01-01"]
        assert type(instance.event_log_storage) is SqliteEventLogStorage


def test_the_other_storages_can_be_chosen_apart(tmp_path: Path):
    runs = str(tmp_path / "runs")
    chosen = {
        "module": "dagster._core.storage.runs",
        "class": "SqliteRunStorage",
        "config": {"base_dir": runs},
    }
    with open_home(tmp_path / "home", run_storage=chosen) as instance:
        create_run(instance)
        assert isinstance(instance.event_log_storage, BatchingSqliteEventLogStorage)
    assert (tmp_path / "runs" / "runs.db").exists()


def test_nothing_is_seen_before_the_end(instance: DagsterInstance, run_id: str):
    with store_together(instance):
        enter(instance, run_id, "2013-01-01", "2013-01-02")
        with store_together(instance):  # one of a caller's caller
            enter(instance, run_id, "2013-01-03")
        assert find_materialized(instance) == []
    assert find_materialized(instance) == ["2013-01-01", "2013-01-02", "2013-01-03"]
    enter(instance, run_id, "2013-01-04")
    assert len(find_materialized(instance)) == 4


def test_what_was_logged_before_an_error_is_stored(instance: DagsterInstance, run_id: str):
    with pytest.raises(LookupError), store_together(instance):
        enter(instance, run_id, "2013-01-01")
        raise LookupError
    assert find_materialized(instance) == ["2013-01-01"]


def test_what_is_of_the_run_itself_waits_for_nothing(instance: DagsterInstance, run_id: str):
    """Dagster may drop a step's generator in the midst of a batch, and say that the run failed."""

    def begin_batch() -> Iterator[None]:
        with store_together(instance):
            enter(instance, run_id, "2013-01-01")
            yield

    dropped = begin_batch()
    next(dropped)
    instance.report_run_failed(get_run(instance, run_id))
    assert get_run(instance, run_id).is_failure
    assert find_materialized(instance) == ["2013-01-01"]
    del dropped


def test_what_is_of_another_run_begins_a_batch(instance: DagsterInstance, run_id: str):
    with store_together(instance):
        enter(instance, run_id, "2013-01-01")
        enter(instance, create_run(instance), "2013-01-02")
        assert find_materialized(instance) == ["2013-01-01"]
    assert find_materialized(instance) == ["2013-01-01", "2013-01-02"]


def test_if_a_batch_cant_be_stored_its_events_are_stored_one_by_one(
    instance: DagsterInstance, run_id: str, capsys: pytest.CaptureFixture[str]
):
    # Of a plan that a run has already, Dagster's storage takes no second one.
    plan, *_ = instance.all_logs(run_id, DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED)
    with pytest.raises(IntegrityError), store_together(instance):
        enter(instance, run_id, "2013-01-01", "2013-01-02")
        instance.handle_new_event(plan)
    events = instance.all_logs(run_id, DagsterEventType.ASSET_MATERIALIZATION)
    assert [event.get_dagster_event().partition for event in events] == find_materialized(instance)
    assert len(events) == 2
    assert "Falling back" in capsys.readouterr().err
