"""Stores events in batches, each in one transaction; Dagster's own storages take one an event.

An event of its own costs about 10 ms, most of it for connections and commits; in a batch, less than
one. Dagster's own code writes each of them here, too, so that the rows are the same (but for one
column of planned checks): only the connections that it asks for are those of the batch, and in
SQLite statements are compiled once, and rows of runs' files and evaluations stored together. Tags
are stored together everywhere.
"""

import inspect
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import MappingProxyType
from typing import Any, ClassVar

from dagster import AssetCheckEvaluation, AssetKey, EventLogEntry, serialize_value
from sqlalchemy import bindparam
from sqlalchemy.engine import Connection, CursorResult

from backfill_engine.orchestration.instance.dagster_internals import (
    AssetCheckExecutionsTable,
    CheckStatus,
    ConfigurableClassData,
    SqlEventLogStorage,
    SqlEventLogStorageTable,
    SqliteEventLogStorage,
)

_INSERT_EVENT = SqlEventLogStorageTable.insert()
_CHECKS = AssetCheckExecutionsTable.c
_EVALUATE_CHECK = AssetCheckExecutionsTable.update().where(
    _CHECKS.asset_key == bindparam("of_asset"),
    _CHECKS.check_name == bindparam("of_check"),
    _CHECKS.run_id == bindparam("of_run"),
    _CHECKS.partition == bindparam("of_partition"),
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
        row: of the event that is being stored.
        rows: of events, those that go into the file of their run; in SQLite it has its own.
        evaluations: with their ids, and what changes by them in the rows of planned checks.
    """

    def __init__(self) -> None:
        self.connections: dict[str, Connection] = {}
        self.newest: dict[tuple[AssetKey | None, str], tuple[EventLogEntry, int]] = {}
        self.tagged: list[tuple[EventLogEntry, int]] = []
        self.row: dict[str, Any] = {}
        self.rows: dict[Connection, list[dict[str, Any]]] = defaultdict(list)
        self.evaluations: list[tuple[EventLogEntry, int, dict[str, Any]]] = []

    def note(self, event: EventLogEntry, event_id: int) -> None:
        """Notes an event as its asset's last of this kind."""
        dagster_event = event.get_dagster_event()
        kind = dagster_event.asset_key, dagster_event.event_type_value
        self.newest.pop(kind, None)
        self.newest[kind] = event, event_id

    @contextmanager
    def open(self, connections: Mapping[str, Connection]) -> Iterator[None]:
        """Has these be the batch's connections."""
        self.connections.update(connections)
        try:
            yield
        finally:
            self.connections.clear()
            self.newest.clear()
            self.tagged.clear()
            self.rows.clear()
            self.evaluations.clear()


class EventRow:
    """An event's row: inserted by one statement for all, as SQLAlchemy takes long to compile it.

    Into the index at once, as its number there is asked for; into its run's file with the others.
    """

    def __init__(self, batch: OpenBatch, index: Connection) -> None:
        self._batch, self._index = batch, index

    def _execute_on_connection(self, connection: Connection, *_: Any) -> CursorResult[Any] | None:
        if connection is self._index:
            return connection.execute(_INSERT_EVENT, self._batch.row)
        self._batch.rows[connection].append(self._batch.row)
        return None


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
        with self._batch.open(connections):
            for event in events:
                super().store_event(event)
            self._store_rest(connections[index])
            if self._batch.tagged:
                stored, ids = zip(*self._batch.tagged, strict=True)
                super()._store_asset_event_tags(connections[index], stored, ids)
            for event, event_id in self._batch.newest.values():
                super()._store_asset_event(connections[index], event, event_id)

    def _store_rest(self, index: Connection) -> None:
        """Stores what waits for all events of the batch to be stored."""

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
            self._batch.note(event, event_id)
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
            "_event_to_row": ("self", "event"),
            "_update_asset_check_evaluation": ("self", "event", "event_id"),
            "index_connection": ("self",),
            "prepare_insert_event": ("self", "event"),
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

    def prepare_insert_event(self, event: EventLogEntry) -> Any:
        """Prepares the row of an event, for its run's file and for the index alike."""
        if not self._batch.connections:
            return super().prepare_insert_event(event)
        self._batch.row = self._event_to_row(event)
        return EventRow(self._batch, self._batch.connections[_INDEX])

    def _update_asset_check_evaluation(self, event: EventLogEntry, event_id: int | None) -> None:
        evaluation = event.get_dagster_event().event_specific_data
        assert isinstance(evaluation, AssetCheckEvaluation)
        if not self._batch.connections or evaluation.partition is None or event_id is None:
            super()._update_asset_check_evaluation(event, event_id)
            return
        about = evaluation.target_materialization_data
        status = CheckStatus.SUCCEEDED if evaluation.passed else CheckStatus.FAILED
        change = {
            "of_asset": evaluation.asset_key.to_string(),
            "of_check": evaluation.check_name,
            "of_run": event.run_id,
            "of_partition": evaluation.partition,
            "execution_status": status.value,
            "evaluation_event": self._batch.row["event"],
            "evaluation_event_timestamp": self._event_insert_timestamp(event),
            "evaluation_event_storage_id": event_id,
            "materialization_event_storage_id": about.storage_id if about else None,
        }
        self._batch.evaluations.append((event, event_id, change))

    def _store_rest(self, index: Connection) -> None:
        """Stores events in their runs' files, and evaluations on the rows of planned checks."""
        for connection, rows in self._batch.rows.items():
            connection.execute(_INSERT_EVENT, rows)
        evaluations = self._batch.evaluations
        if not evaluations:
            return
        changed = index.execute(_EVALUATE_CHECK, [change for _, _, change in evaluations])
        if changed.rowcount != len(evaluations):
            # Some weren't planned. Those that were are written once more, as they are.
            for event, event_id, _ in evaluations:
                super()._update_asset_check_evaluation(event, event_id)

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
