"""Stores events in batches, each in one transaction: those planned with a run, those of a step.

Dagster's own storages take one transaction an event, about 10 ms, most of it for connections and
commits; in a batch an event takes one or two. Dagster's own code writes each of them here, too, so
that the rows are the same (but for one column of planned checks): only the connections that it asks
for are those of the batch. Tags are stored together.

Dagster can batch for storages that take batches; the open-source ones don't, and it is turned on by
an environment variable of Dagster Cloud. Here the instance knows it of its storage, so that it
holds for commands, the daemon and the webserver alike.
"""

import inspect
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import yaml
from dagster import (
    AssetKey,
    DagsterEventType,
    DagsterInstance,
    EventLogEntry,
    serialize_value,
)
from sqlalchemy.engine import Connection

from backfill_engine.orchestration.instance.dagster_internals import (
    COMPOSITE_STORAGE,
    AssetCheckExecutionsTable,
    CheckStatus,
    ConfigurableClassData,
    DagsterEventBatchMetadata,
    InstanceRef,
    SqlEventLogStorage,
    SqliteEventLogStorage,
)

_INDEX = "index of all runs"
"""By which a batch knows the connection to it."""

LARGEST_BATCH = 500
"""Events; while they are stored, other processes wait if they want to store theirs."""


class OpenBatch(threading.local):
    """The batch that a thread is storing, if any.

    Attributes:
        connections: with a transaction each, by the name of their database.
        newest: of each asset and kind of event, the last one stored and its id, in their order.
        tagged: events of assets, with their ids: what may have tags.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets what was stored, before a batch and after it."""
        self.connections: Mapping[str, Connection] = {}
        self.newest: dict[tuple[AssetKey | None, str], tuple[EventLogEntry, int]] = {}
        self.tagged: list[tuple[EventLogEntry, int]] = []


class StoresBatches(SqlEventLogStorage):
    """A storage of events that stores a batch of them, of any kinds, in one transaction.

    It comes before the storage that it extends, and leans on names that are private in Dagster.
    Where a Dagster has others, the instance stores events one by one, see `BatchingInstance`.

    Attributes:
        leans_on: these names, each with its parameters, beside those that all such storages need.
    """

    leans_on: ClassVar[Mapping[str, tuple[str, ...]]]
    _all_lean_on: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {
            "_event_insert_timestamp": ("self", "event"),
            "_store_asset_check_evaluation_planned": ("self", "event", "event_id"),
            "_store_asset_event": ("self", "conn", "event", "event_id"),
            "_store_asset_event_tags": ("self", "conn", "events", "event_ids"),
        }
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        self._batch = OpenBatch()
        self._tables: set[str] = set()
        super().__init__(*args, **options)

    @classmethod
    def find_changed_names(cls) -> list[str]:
        """Finds which of these names Dagster doesn't have as they are expected."""
        (extended,) = (base for base in cls.__bases__ if base is not StoresBatches)
        return [
            name
            for name, parameters in {**cls._all_lean_on, **cls.leans_on}.items()
            if not hasattr(extended, name)
            or tuple(inspect.signature(getattr(extended, name)).parameters) != parameters
        ]

    def _store_in_batch(
        self, events: Sequence[EventLogEntry], connections: Mapping[str, Connection], index: str
    ) -> None:
        """Stores events as if one by one, in their order, through connections by their name."""
        self._batch.connections = connections
        try:
            for event in events:
                super().store_event(event)
            if self._batch.tagged:
                stored, ids = zip(*self._batch.tagged, strict=True)
                super()._store_asset_event_tags(connections[index], stored, ids)
            for event, event_id in self._batch.newest.values():
                super()._store_asset_event(connections[index], event, event_id)
        finally:
            self._batch.reset()

    def _store_asset_event_tags(
        self, conn: Connection, events: Sequence[EventLogEntry], event_ids: Sequence[int]
    ) -> None:
        if self._batch.connections:
            self._batch.tagged += zip(events, event_ids, strict=True)
        else:
            super()._store_asset_event_tags(conn, events, event_ids)

    def _store_asset_event(self, conn: Connection, event: EventLogEntry, event_id: int) -> None:
        # An asset's row has its last event alone: writing it once a batch comes to the same.
        if self._batch.connections:
            dagster_event = event.get_dagster_event()
            kind = dagster_event.asset_key, dagster_event.event_type_value
            self._batch.newest.pop(kind, None)  # in the order of the last ones
            self._batch.newest[kind] = event, event_id
        else:
            super()._store_asset_event(conn, event, event_id)

    def _store_asset_check_evaluation_planned(
        self, event: EventLogEntry, event_id: int | None
    ) -> None:
        # A row for each partition, as Dagster has it, but without naming all of them in each: of a
        # thousand buckets and four checks that was 47 MB. Nothing reads it there; the event has it.
        dagster_event = event.get_dagster_event()
        planned = dagster_event.asset_check_planned_data
        subset = planned.partitions_subset
        short = type(planned)(asset_key=planned.asset_key, check_name=planned.check_name)
        row = {
            "asset_key": planned.asset_key.to_string(),
            "check_name": planned.check_name,
            "run_id": event.run_id,
            "execution_status": CheckStatus.PLANNED.value,
            "evaluation_event": serialize_value(
                event._replace(dagster_event=dagster_event._replace(event_specific_data=short))
            ),
            "evaluation_event_timestamp": self._event_insert_timestamp(event),
            "evaluation_event_storage_id": event_id,
        }
        rows = [
            {**row, "partition": key} for key in (subset.get_partition_keys() if subset else [None])
        ]
        with self.index_connection() as connection:
            connection.execute(AssetCheckExecutionsTable.insert(), rows)

    def has_table(self, table_name: str) -> bool:
        """Tells whether there is a table; looks, which isn't cheap, until there is."""
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables


class BatchingSqliteEventLogStorage(StoresBatches, SqliteEventLogStorage):
    """Dagster's default storage of events, in the same files, that stores a batch at once.

    A run's events are in a file of its own, and those of assets and checks in the index as well.
    The index is committed first: it says what is materialized. A process killed between the two
    commits leaves the run's own page without the batch.
    """

    leans_on = MappingProxyType(
        {
            "_connect": ("self", "shard"),
            "index_connection": ("self",),
        }
    )

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None):
        super().__init__(base_dir, inst_data)
        # A batch holds connections to two files at once, which Dagster never does.
        self._db_lock = threading.RLock()

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Any
    ) -> "BatchingSqliteEventLogStorage":
        """Builds it by the configuration of the storage that it extends."""
        return cls(inst_data=inst_data, **config_value)

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """Stores events as if one by one, in their order, all or none of them."""
        shards = dict.fromkeys(event.run_id for event in events)
        connect = super()._connect
        with ExitStack() as transactions:
            connections = {shard: transactions.enter_context(connect(shard)) for shard in shards}
            connections[_INDEX] = transactions.enter_context(super().index_connection())
            self._store_in_batch(events, connections, _INDEX)

    def index_connection(self) -> AbstractContextManager[Connection]:
        """Connects to the index."""
        if self._batch.connections:
            return nullcontext(self._batch.connections[_INDEX])
        return super().index_connection()

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        if shard in self._batch.connections:
            yield self._batch.connections[shard]
        else:
            with super()._connect(shard) as connection:
                yield connection


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
