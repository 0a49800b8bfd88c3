"""The sensor with its cursor over a pipeline of the tests, as the daemon works with it."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest
from dagster import (
    DagsterInstance,
    RunRequest,
    SensorDefinition,
    SensorResult,
    build_schedule_context,
    build_sensor_context,
)
from dagster._core.definitions.schedule_definition import ScheduleExecutionData
from dagster._core.definitions.sensor_definition import SensorExecutionData

from backfill_engine.jobs import build_range_jobs
from backfill_engine.orchestration.runs.run_tags import (
    INCREMENTAL_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    REASON_TAG,
)
from backfill_engine.sensors import build_process_due_partitions
from backfill_engine_tests.pipeline.running import Pipeline
from backfill_engine_tests.project import (
    CARRIER_DELAYS_V2,
    CATALOG,
    SERVED_CARRIER_DELAYS,
    TRAINING_EXAMPLES,
    defs,
)

BESIDE_ONE_A_LAYER = (CARRIER_DELAYS_V2.key, SERVED_CARRIER_DELAYS.key, TRAINING_EXAMPLES.key)
"""Of flights; `assets/test_serving.py` has what the sensor requests of these."""


@dataclass
class Sensor:
    """The sensor with its cursor, as the daemon keeps it, and the run keys that it has used.

    Attributes:
        ignored: tables that it doesn't look at, so that a test has one table a layer.
    """

    pipeline: Pipeline
    cursor: str | None = None
    used: set[str] = field(default_factory=set)
    skipped: str = ""
    ignored: Collection[str] = BESIDE_ONE_A_LAYER

    def look(self, *, forgets: bool = False) -> list[RunRequest]:
        """What a tick requests; with `forgets`, Dagster dies before it stores the cursor."""
        looked_at = {
            key: recipe for key, recipe in CATALOG.recipes.items() if key not in self.ignored
        }
        sensor = build_process_due_partitions(
            replace(CATALOG, recipes=looked_at), build_range_jobs(CATALOG)
        )
        with build_sensor_context(
            instance=self.pipeline.instance,
            cursor=self.cursor,
            repository_def=defs.get_repository_def(),
        ) as context:
            result = sensor(context)
        assert isinstance(result, SensorResult)
        if not forgets:
            self.cursor = result.cursor
        reason = result.skip_reason
        self.skipped = getattr(reason, "skip_message", None) or str(reason or "")
        found = [
            request for request in result.run_requests or [] if request.run_key not in self.used
        ]
        self.used |= {request.run_key for request in found if request.run_key}
        return found

    def tick(self) -> list[tuple[str, str, str, str]]:
        """Runs what it requests; returns table, first and last key, and the reason of each."""
        requested = self.look()
        for request in requested:
            table, first, last, _ = describe(request)
            self.pipeline.run(table, first=first, last=last, tags={INCREMENTAL_TAG: "true"})
        return [describe(request) for request in requested]

    def settle(self) -> list[tuple[str, str, str, str]]:
        """Ticks until nothing is requested."""
        done: list[tuple[str, str, str, str]] = []
        while requested := self.tick():
            done += requested
            assert len(done) < 50, done
        return done


def evaluate_sensor(
    sensor: SensorDefinition, instance: DagsterInstance, cursor: str | None = None
) -> SensorExecutionData:
    """One tick of a sensor, in a code location, unlike the runs of tests."""
    with build_sensor_context(
        instance=instance,
        repository_def=defs.get_repository_def(),
        repository_name="__repository__",
        cursor=cursor,
    ) as context:
        return sensor.evaluate_tick(context)


def evaluate_rolling(name: str, instance: DagsterInstance, at: datetime) -> ScheduleExecutionData:
    """One tick of the schedule that runs the last days of some tables again."""
    return evaluate_schedule(f"rolling_reprocess_{name}", instance, at)


def evaluate_schedule(name: str, instance: DagsterInstance, at: datetime) -> ScheduleExecutionData:
    """One tick of a schedule."""
    schedule = defs.get_repository_def().get_schedule_def(name)
    with build_schedule_context(
        instance, scheduled_execution_time=at, repository_def=defs.get_repository_def()
    ) as context:
        return schedule.evaluate_tick(context)


def describe(request: RunRequest) -> tuple[str, str, str, str]:
    assert request.asset_selection
    (key,) = request.asset_selection
    tags = request.tags
    return key.to_user_string(), tags[RANGE_START_TAG], tags[RANGE_END_TAG], tags[REASON_TAG]


def watch(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Sensor:
    """With the environment that it reads."""
    monkeypatch.setenv("BACKFILL_LANDING", str(pipeline.zone.root))
    monkeypatch.setenv("BACKFILL_WAREHOUSE", pipeline.warehouse.root)
    return Sensor(pipeline)
