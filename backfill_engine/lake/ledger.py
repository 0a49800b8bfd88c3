"""Which side tables there are, written down beside them: so the loss of one is noticed.

Side tables hold what nothing else knows: decisions of people, where incremental runs begin, rows
kept aside. One that is gone looks like one that never was. So whoever writes one enters it here, at
`<warehouse>/ledger/<name>.jsonl`, and whoever reads one opens it by `open_entered`.
"""

from dataclasses import dataclass

from deltalake import DeltaTable
from pydantic import TypeAdapter

from backfill_engine.errors import TableError
from backfill_engine.lake.delta_logs import has_log, open_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.whole_files import read_whole_file, write_whole_file
from backfill_engine.uris import join_uri


@dataclass(frozen=True)
class _Entry:
    """A side table as it was last written; neither is known where the file is damaged."""

    table_id: str = ""
    version: int = -1


_ENTRIES = TypeAdapter(_Entry)


def enter_table(warehouse: Warehouse, name: str) -> None:
    """Writes down how far a side table has come; call it after each commit, under its lock.

    Args:
        warehouse: where the table is, which must exist.
        name: its folder below the root.
    """
    table = open_log(join_uri(warehouse.root, name))
    entry = _Entry(str(table.metadata().id), table.version())
    write_whole_file(_locate(warehouse, name), [_ENTRIES.dump_json(entry)])


def open_entered(warehouse: Warehouse, name: str) -> DeltaTable | None:
    """Opens a side table; None where there never was one.

    Args:
        warehouse: where the table is.
        name: its folder below the root.

    Raises:
        SettingsError: if nothing can ever be at the warehouse's root.
        TableError: if the table can't be read, is gone, or is older than it was.
    """
    uri, place = join_uri(warehouse.root, name), _locate(warehouse, name)
    warehouse.check_root()
    table = open_log(uri) if has_log(uri) else None
    try:
        entry = _ENTRIES.validate_json(b"".join(read_whole_file(place)))
    except FileNotFoundError:
        entry = None
    except (OSError, ValueError):
        entry = _Entry()
    if entry is None or (table is not None and _has_reached(table, entry)):
        return table
    raise TableError(
        f"{uri} {'is gone' if table is None else 'is not the table that was written last'}: "
        f"restore it from a copy; or remove {place}, and what was written there is given up"
    )


def _has_reached(table: DeltaTable, entry: _Entry) -> bool:
    if not entry.table_id:  # The file is damaged; the next commit writes it anew.
        return True
    return entry.table_id == str(table.metadata().id) and table.version() >= entry.version


def _locate(warehouse: Warehouse, name: str) -> str:
    return join_uri(warehouse.root, "ledger", f"{name.replace('/', '.')}.jsonl")
