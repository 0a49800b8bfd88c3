"""What a question is about: tables by name, partitions by first and last key."""

from collections.abc import Sequence

from dagster import PartitionKeyRange, PartitionsDefinition

from backfill_assets.catalog import find_table, list_pipelines, list_tables
from backfill_assets.errors import PartitionRangeError
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.orchestration.partition_definitions import find_partitions_def
from backfill_assets.tables.declarations import Table


def select_tables(
    warehouse: Warehouse, keys: str | None, *, first: str, last: str
) -> tuple[Table, ...]:
    """Selects the tables of a comma-separated list of keys, or else those asked about.

    These are the tables that have the partitions, of the pipelines of which a table is there; of
    all pipelines, if none is.

    Raises:
        TableError: if one doesn't exist.
        PartitionRangeError: if none has the partitions.
    """
    if keys:
        return tuple(find_table(key.strip()) for key in keys.split(","))
    begun = {
        table.key
        for tables in list_pipelines().values()
        for table in tables
        if any(warehouse.exists(table) for table in tables)
    }
    found = tuple(
        table
        for table in list_tables()
        if (table.key in begun or not begun)
        and all(find_partitions_def(table).has_partition_key(key) for key in (first, last))
    )
    if not found:
        examples = {
            find_partitions_def(table).get_first_partition_key(): table.key
            for table in list_tables()
        }
        listed = ", ".join(f"{key} of {table}" for key, table in examples.items())
        raise PartitionRangeError(
            f"no table here has both partitions {first} and {last}: give keys such as {listed}"
        )
    return found


def find_keys_in_range(
    partitions_def: PartitionsDefinition, *, first: str, last: str
) -> Sequence[str]:
    """Finds the keys from `first` to `last`, both included.

    Raises:
        PartitionRangeError: if a key is unknown or the range is reversed.
    """
    known = all(partitions_def.has_partition_key(key) for key in (first, last))
    range_ = PartitionKeyRange(first, last)
    keys = partitions_def.get_partition_keys_in_range(range_) if known else ()
    if not keys:
        all_keys = partitions_def.get_partition_keys()
        raise PartitionRangeError(
            f"no partitions {first}...{last}: "
            f"give two keys of {all_keys[0]}...{all_keys[-1]}, ascending"
        )
    return keys
