"""Stores batches of events in PostgreSQL; `deploy/dagster.yaml` names it.

Apart from the rest, as it wants the extra `postgres`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from dagster import EventLogEntry
from dagster_postgres import PostgresEventLogStorage
from dagster_postgres.utils import get_token_provider_from_config, pg_url_from_config
from sqlalchemy import func, select
from sqlalchemy.engine import Connection

from backfill_engine.orchestration.instance.dagster_internals import ConfigurableClassData
from backfill_engine.orchestration.instance.event_batches import StoresBatches

_TURN = int.from_bytes(b"backfill")
"""The advisory lock of who stores events."""
_DATABASE = "all runs"


class BatchingPostgresEventLogStorage(StoresBatches, PostgresEventLogStorage):
    """Dagster's storage of events in PostgreSQL, in the same tables, that stores a batch at once.

    Who reads events by their number, as sensors and backfills do, would miss one that is committed
    after a higher number. So writers take turns, for the length of a batch at most.
    """

    leans_on = MappingProxyType({"_connect": ("self",)})

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> "BatchingPostgresEventLogStorage":
        """Builds it by the configuration of the storage that it extends."""
        return cls(
            inst_data=inst_data,
            postgres_url=pg_url_from_config(config_value),
            should_autocreate_tables=config_value.get("should_autocreate_tables", True),
            token_provider=get_token_provider_from_config(config_value),
        )

    def store_event(self, event: EventLogEntry) -> None:
        """Stores an event; wholly or not at all, as a batch."""
        self.store_event_batch([event])

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """Stores events as if one by one, in their order, all or none of them."""
        with super()._connect() as connection:
            transaction = connection.execution_options(isolation_level="READ COMMITTED")
            with transaction.begin():
                transaction.execute(select(func.pg_advisory_xact_lock(_TURN)))
                self._store_in_batch(events, {_DATABASE: transaction}, _DATABASE)

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        if self._batch.connections:
            yield self._batch.connections[_DATABASE]
        else:
            with super()._connect() as connection:
                yield connection
