"""A Dagster instance that stores events in batches: those planned with a run, those of a step.

Dagster can do so for storages that take batches; the open-source ones don't, and it is turned on by
an environment variable of Dagster Cloud. Here the instance knows it of its storage, so that it
holds for commands, the daemon and the webserver alike.
"""

import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import yaml
from dagster import DagsterEventType, DagsterInstance, EventLogEntry

from backfill_engine.orchestration.instance.dagster_internals import (
    COMPOSITE_STORAGE,
    ConfigurableClassData,
    DagsterEventBatchMetadata,
    InstanceRef,
)
from backfill_engine.orchestration.instance.event_batches import (
    LARGEST_BATCH,
    BatchingSqliteEventLogStorage,
    StoresBatches,
)

_KEPT = {
    DagsterEventType.ASSET_CHECK_EVALUATION,
    DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED,
    DagsterEventType.ASSET_MATERIALIZATION,
    DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
    DagsterEventType.ASSET_OBSERVATION,
}


class _OpenBatch(threading.local):
    """The events that a thread keeps for a batch, while it is keeping them."""

    def __init__(self) -> None:
        self.keeps = False
        self.events: list[EventLogEntry] = []


def _is_kept(event: EventLogEntry) -> bool:
    """Tells whether an event may wait.

    Not one of a step or run: where Dagster drops a generator that has begun a batch, as it does
    when it is told to stop, nothing says when that ends.
    """
    return event.is_dagster_event and event.dagster_event_type in _KEPT


class BatchingInstance(DagsterInstance):
    """An instance whose storage of events, where nothing else is configured, takes batches."""

    def __init__(self, *args: Any, **parts: Any) -> None:
        super().__init__(*args, **parts)
        self._open = _OpenBatch()

    @classmethod
    def config_schema(cls) -> Mapping[str, Any]:
        """It takes no configuration."""
        return {}

    @staticmethod
    def config_defaults(base_dir: str) -> Mapping[str, ConfigurableClassData | None]:
        """Returns Dagster's own, but for the storage of events, which is in the same files."""
        defaults = dict(InstanceRef.config_defaults(base_dir))
        plain = defaults["event_log_storage"]
        assert plain is not None
        batching = BatchingSqliteEventLogStorage
        defaults["event_log_storage"] = ConfigurableClassData(
            batching.__module__, batching.__name__, plain.config_yaml
        )
        parts = {
            name: part._asdict()
            for name in ("run_storage", "event_log_storage", "schedule_storage")
            if (part := defaults[name])
        }
        defaults["storage"] = ConfigurableClassData(*COMPOSITE_STORAGE, yaml.dump(parts))
        return defaults

    @cached_property
    def stores_batches(self) -> bool:
        """Whether its storage of events takes a batch in one transaction."""
        storage = self.event_log_storage
        return isinstance(storage, StoresBatches) and not storage.find_changed_names()

    def _get_event_batch_size(self) -> int:
        """Says from how many events on Dagster stores a batch before it has ended; 0 for none."""
        return LARGEST_BATCH if self.stores_batches else super()._get_event_batch_size()

    def handle_new_event(
        self, event: EventLogEntry, *, batch_metadata: DagsterEventBatchMetadata | None = None
    ) -> None:
        """Stores an event, as Dagster does, or keeps it for the batch that its thread has begun."""
        if not self._open.keeps or batch_metadata is not None or not _is_kept(event):
            self._store()
            super().handle_new_event(event, batch_metadata=batch_metadata)
            return
        events = self._open.events
        # Of one run, as runs may have a file each, of which a process can open so many.
        if events and events[-1].run_id != event.run_id:
            self._store()
        self._open.events.append(event)
        if len(self._open.events) == LARGEST_BATCH:
            self._store()

    def _store(self) -> None:
        if not (events := self._open.events):
            return
        self._open.events = []
        batch_id = str(uuid.uuid4())
        for left, event in zip(range(len(events) - 1, -1, -1), events, strict=True):
            of_batch = DagsterEventBatchMetadata(batch_id, is_end=left == 0)
            super().handle_new_event(event, batch_metadata=of_batch)

    @contextmanager
    def store_together(self) -> Iterator[None]:
        """Stores what the thread logs meanwhile in batches, also if it ends with an exception."""
        if self._open.keeps:
            yield
            return
        self._open.keeps = True
        try:
            yield
        finally:
            self._open.keeps = False
            self._store()


@contextmanager
def store_together(instance: DagsterInstance) -> Iterator[None]:
    """Stores what the thread logs of assets meanwhile in batches, if the instance can.

    Nobody sees these events before a batch is full, or something else is logged, or the context has
    ended.
    """
    if isinstance(instance, BatchingInstance) and instance.stores_batches:
        with instance.store_together():
            yield
    else:
        yield
