"""Where the tables are, and how they are opened for reading the log."""

import re
from dataclasses import dataclass

from deltalake import DeltaTable

from backfill_engine.errors import SettingsError
from backfill_engine.filesystems import check_root, check_writable
from backfill_engine.lake.delta_logs import has_log, open_log
from backfill_engine.tables.declarations import Table
from backfill_engine.uris import absolute_uri, join_uri

_SETTING = "BACKFILL_WAREHOUSE"
# delta-rs unescapes a path once too often, and takes a backslash for a slash.
_MISREAD = re.compile(r"%[0-9A-Fa-f]{2}|[\\`\x00-\x1f]")


@dataclass(frozen=True)
class Warehouse:
    """The root of all Delta tables.

    Attributes:
        root: an absolute path, or a URI that Spark and delta-rs both read.
        retention_days: days for which old versions stay readable.
    """

    root: str
    retention_days: int = 90

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", absolute_uri(self.root))

    def uri(self, table: Table) -> str:
        """Returns where the table is."""
        if table.location is not None:
            return absolute_uri(table.location)
        return join_uri(self.root, table.layer, table.name)

    def exists(self, table: Table) -> bool:
        """Tells whether the table has been created.

        Raises:
            SettingsError: if nothing can ever be at the root.
            TableError: if that can't be told.
        """
        self.check_root()
        if table.location is not None:
            _check_place(self.uri(table), f"`location` of {table.key}")
        return has_log(self.uri(table))

    def open(self, table: Table, *, version: int | None = None) -> DeltaTable:
        """Opens the table's log with delta-rs: milliseconds, no JVM.

        Raises:
            TableError: if it can't be read.
            DeltaError: if it no longer has `version`.
        """
        return open_log(self.uri(table), version=version)

    def check_root(self) -> None:
        """Refuses a root at which no table can be: to delta-rs it looks like one without tables.

        Raises:
            SettingsError: naming the setting.
        """
        _check_place(self.root, _SETTING)

    def check_writable(self) -> None:
        """Refuses a root where nothing can be written, before anything starts that would.

        Raises:
            SettingsError: naming the setting.
        """
        check_writable(self.root, _SETTING)


def _check_place(uri: str, setting: str) -> None:
    strange = _MISREAD.search(uri)
    if strange:
        raise SettingsError(
            f"{uri}: delta-rs or Spark's SQL reads {strange[0]!r} as something else, and would "
            f"look into another folder: set {setting} to a place without it"
        )
    check_root(uri, setting)
