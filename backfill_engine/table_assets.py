"""Declares what an asset is made of: its table, the tables it reads, the function that computes.

A `TableTranslator` says how its table shows in Dagster.

Nothing is built here and no environment is read: `assembly` finds what modules declare, and
`asset_definitions` makes Dagster's assets of it.
"""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dagster import AllPartitionMapping, AssetKey, IdentityPartitionMapping, PartitionMapping

from backfill_engine.audit_columns import LANDED_FILE
from backfill_engine.contents.rows import find_column
from backfill_engine.errors import DeclarationError
from backfill_engine.grains.overlaps import holds_whole
from backfill_engine.grains.whole import WHOLE
from backfill_engine.orchestration.due.readiness import Required
from backfill_engine.publishing.recipes import Compute, CountSource, Recipe
from backfill_engine.publishing.serving import count_served, read_served
from backfill_engine.sources.historical_loads import HistoricalLoad, check_flows
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.sources.source import Source
from backfill_engine.tables.declarations import Table

SAME_KEY = IdentityPartitionMapping()


def is_same_key(mapping: PartitionMapping) -> bool:
    """Tells whether a mapping gives the same key: mappings of all kinds may equal each other."""
    return isinstance(mapping, IdentityPartitionMapping)


@dataclass(frozen=True)
class Upstream:
    """A table that an asset reads.

    Attributes:
        table: the table, as declared.
        mapping: the partitions that a partition needs of it; None for those that hold any of its
            values: of the same grain the one of the same key, of a month its days. A table without
            partitions is read whole, and reads all that others hold.
        required: which of these must be published before it may go; without the others it is
            provisional.
        rows_for: column of `table` whose value says which partition a row is for, where rows that
            come late may be in any partition of `table`, beyond the mapping; None where the
            mapping gives all that is read.
        guards: whether a partition of `table` is withheld over which the asset couldn't be built.
    """

    table: Table
    mapping: PartitionMapping | None = None
    required: Required = Required.ALL
    rows_for: str | None = None
    guards: bool = False


@dataclass(frozen=True)
class TableAsset:
    """A table that an asset publishes, and how it is computed.

    Attributes:
        table: as declared; the catalog's table of this key gives the asset its key, group,
            partitions, columns and rules.
        compute: the rows of a window's partitions; its docstring is the asset's description.
        inputs: the tables that it reads.
        landing: what it reads of the landing zone.
        history: what it reads there of days before that; an installation says which is active.
        count_source: records of the layer above that each partition must account for.
        files: what else decides the rows, such as SQL that `compute` reads.
    """

    table: Table
    compute: Compute
    inputs: tuple[Upstream, ...]
    landing: Source | None
    count_source: CountSource | None
    files: tuple[Path, ...] = ()
    # No part of the code version: it changes no row of the feed.
    history: tuple[HistoricalLoad, ...] = ()


def table_asset(
    table: Table,
    *,
    inputs: Sequence[Upstream] = (),
    landing: Source | None = None,
    history: Sequence[HistoricalLoad] = (),
    count_source: CountSource | None = None,
    files: Sequence[Path | str] = (),
) -> Callable[[Compute], TableAsset]:
    """Decorates a function that computes partitions of `table` from a window of pinned inputs.

    Args:
        table: what the asset publishes, as declared.
        inputs: the tables that the function reads.
        landing: what the function reads of the landing zone.
        history: historical loads that fill the days before; the function gets their records as
            lines of the landing's fields.
        count_source: records of the layer above that each partition must account for; left out, of
            what landed all, and of a single input those of the same partition, or of all that lie
            in it.
        files: that the function reads besides, such as SQL, so that their contents are part of the
            code version; relative ones are beside the module of the function.

    Raises:
        DeclarationError: if the table couldn't be computed from these.
    """
    if not table.is_published:
        raise DeclarationError(f"{table.key} is written by somebody else: publish another table")
    _check_inputs(table, [upstream.table for upstream in inputs])
    inputs = [_read_whole(table, upstream) for upstream in inputs]
    for upstream in inputs:
        _check_upstream(table, upstream, landing)
    if landing is not None:
        _check_landing(table, landing)
    flows = _fill_in(table, landing, history)
    count = count_source or _count_whole_source(table, inputs, landing)
    return lambda compute: TableAsset(
        table, compute, tuple(inputs), landing, count, _find_files(table, compute, files), flows
    )


def serve_versions(table: Table) -> TableAsset:
    """Declares the asset that publishes a served table: one of its versions, as it is there.

    Raises:
        DeclarationError: if the table declares no versions.
    """
    if not table.versions:
        raise DeclarationError(f"{table.key} serves nothing: declare the tables in its `versions`")
    inputs = tuple(map(Upstream, table.versions))
    return table_asset(table, inputs=inputs, count_source=count_served)(read_served)


def _check_inputs(table: Table, inputs: Sequence[Table]) -> None:
    keys = [read.key for read in inputs]
    if table.key in keys:
        raise DeclarationError(f"{table.key} reads itself: take it out of its `inputs`")
    if repeated := [key for at, key in enumerate(keys) if key in keys[:at]]:
        raise DeclarationError(f"{table.key} reads {repeated[0]} twice: name it once in `inputs`")


def _read_whole(table: Table, upstream: Upstream) -> Upstream:
    """Maps all partitions where either table has none: no key of theirs is the same."""
    is_open = upstream.mapping is None or is_same_key(upstream.mapping)
    if is_open and (table.grain == WHOLE) != (upstream.table.grain == WHOLE):
        return replace(upstream, mapping=AllPartitionMapping())
    return upstream


def _check_upstream(table: Table, upstream: Upstream, landing: Source | None) -> None:
    read, rows_for = upstream.table, upstream.rows_for
    if rows_for is not None and WHOLE in (table.grain, read.grain):
        raise DeclarationError(
            f"{table.key} finds its rows of {read.key} by `{rows_for}`, and one of them has no "
            "partitions: leave `rows_for` out, all of it is read"
        )
    types = {column.name: column.type for column in read.columns}
    by = find_column(table, table.partition_by) if table.partition_by else None
    if rows_for is not None and by is not None and types.get(rows_for) != by.type:
        raise DeclarationError(
            f"{table.key} finds its rows of {read.key} by `{rows_for}`, which is "
            f"{types.get(rows_for, 'no column')} there, and `{by.name}` is {by.type}: "
            "name a column of the same type"
        )
    if upstream.guards and landing is not None:
        raise DeclarationError(
            f"{table.key} guards {read.key} and reads the landing zone, which may change "
            "meanwhile: read what landed into a table of its own"
        )


def _check_landing(table: Table, landing: Source) -> None:
    if table.grain == WHOLE:
        raise DeclarationError(
            f"{table.key} has no partitions, and what lands is read by partition: read another "
            "table, or give it `partition_by`"
        )
    landing.refuse_table(table)
    # What lands has columns beside the record.
    taken = {name.lower() for name in (LANDED_FILE, table.partition_by, table.folder_column)}
    for field in landing.columns:
        if field.name.lower() in taken:
            raise DeclarationError(
                f"{table.key}: `{field.name}` is a column that tells where a record landed, and no "
                f"field of landing `{landing.dataset}`: give the column another name"
            )


def _fill_in(
    table: Table, landing: Source | None, history: Sequence[HistoricalLoad]
) -> tuple[HistoricalLoad, ...]:
    """Gives historical loads the feed's fields; refuses those that don't fit it, or each other."""
    if history and not (landing and landing.reads_lines and landing.record_fields):
        raise DeclarationError(
            f"{table.key}, historical load `{history[0].name}`: only a table that reads JSON lines "
            "with declared fields has a history: give it a JsonLanding with `fields`, or a Source "
            "with `reads_lines` and `record_fields`"
        )
    fields = landing.record_fields if landing else ()
    flows = tuple(flow.fit_feed(table, fields) for flow in history)
    check_flows(table.key, flows)
    return flows


def _find_files(table: Table, compute: Compute, files: Sequence[Path | str]) -> tuple[Path, ...]:
    if isinstance(files, str):
        raise DeclarationError(f'{table.key}: `files` is a tuple of paths: write ("{files}",)')
    if not files:
        return ()
    folder = Path(sys.modules[compute.__module__].__file__ or "").parent
    found = tuple(folder / file for file in files)
    for file in found:
        if not file.is_file():
            raise DeclarationError(
                f"{table.key}: its `files` name {file}, which is no file: write its path from "
                f"{folder} on, or take it out"
            )
    return found


def _count_whole_source(
    table: Table, inputs: Sequence[Upstream], landing: Source | None
) -> CountSource | None:
    if landing is not None:
        return InputWindow.count_landing
    if len(inputs) == 1 and _reads_whole(table, inputs[0]):
        source = inputs[0].table
        return lambda window: window.count_input(source)
    return None


def _reads_whole(table: Table, upstream: Upstream) -> bool:
    """Tells whether each partition of an input is read by a single one, as days are by months."""
    if upstream.mapping is None:
        grain, read = table.grain, upstream.table.grain
        return grain == read or holds_whole(grain, read)
    return is_same_key(upstream.mapping)


class TableTranslator:
    """Says how tables show in Dagster; a subclass changes what should be otherwise.

    Where the table lies is not its matter: that is `<warehouse>/<layer>/<name>`, or the table's
    `location`.
    """

    def get_asset_key(self, table: Table) -> AssetKey:
        """Returns the key of the table's asset, by which commands know the table, too."""
        return AssetKey([table.layer, table.name])

    def get_group_name(self, table: Table) -> str:
        """Returns the group of the table's asset."""
        return table.layer

    def get_owners(self, table: Table) -> Sequence[str]:
        """Returns the owners of the table's asset: `team:name`, or addresses."""
        return table.owners

    def get_description(self, recipe: Recipe) -> str | None:
        """Returns the description of the table's asset."""
        return inspect.getdoc(recipe.compute)
