"""What is needed to compute a table: its inputs, its function, and what it is reconciled with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame

from backfill_assets.lake.window import Window
from backfill_assets.tables.declarations import Column, Table

Compute: TypeAlias = Callable[[Window], DataFrame]
CountSource: TypeAlias = Callable[[Window], Mapping[str, int]]


@dataclass(frozen=True)
class Recipe:
    """How a table is made.

    Attributes:
        table: what is published.
        compute: the rows of a window's partitions; it may add audit columns.
        inputs: the tables that `compute` reads.
        landing: the dataset of the landing zone that `compute` reads.
        landing_fields: what a landed record may hold.
        count_source: records of the layer above that each partition must account for.
        code_version: hash of all that decides what `compute` returns.
    """

    table: Table
    compute: Compute
    inputs: tuple[Table, ...] = ()
    landing: str | None = None
    landing_fields: tuple[Column, ...] = ()
    count_source: CountSource | None = None
    code_version: str = ""
