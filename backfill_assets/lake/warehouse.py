"""Where the tables are, and how they are opened for reading the log."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from deltalake import DeltaTable

from backfill_assets.tables.declarations import Table
from backfill_assets.uris import absolute_uri, join_uri


@dataclass(frozen=True)
class Warehouse:
    """The root of all Delta tables.

    Attributes:
        root: an absolute path, or a URI that Spark and delta-rs both read.
        storage_options: credentials and endpoints for delta-rs; Spark has its own.
        retention_days: days for which old versions stay readable.
    """

    root: str
    storage_options: Mapping[str, str] = field(default_factory=dict)
    retention_days: int = 90

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", absolute_uri(self.root))

    def uri(self, table: Table) -> str:
        """Returns where the table is."""
        return join_uri(self.root, table.layer, table.name)

    def exists(self, table: Table) -> bool:
        """Tells whether the table has been created."""
        return DeltaTable.is_deltatable(self.uri(table), dict(self.storage_options))

    def open(self, table: Table, *, version: int | None = None) -> DeltaTable:
        """Opens the table's log with delta-rs: milliseconds, no JVM."""
        return DeltaTable(
            self.uri(table), version=version, storage_options=dict(self.storage_options)
        )
