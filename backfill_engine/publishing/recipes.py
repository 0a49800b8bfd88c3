"""What is needed to compute a table: its inputs, its function, and what it is reconciled with."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import TypeAlias

from pyspark.sql import DataFrame

from backfill_engine.sources.history import History
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.sources.source import Source
from backfill_engine.tables.declarations import Table

Compute: TypeAlias = Callable[[InputWindow], DataFrame]
CountSource: TypeAlias = Callable[[InputWindow], Mapping[str, int]]
MapKeys: TypeAlias = Callable[[Collection[str]], Mapping[str, Sequence[str]]]
"""Finds the partitions of an input that a mapping gives for each of a table's."""


@dataclass(frozen=True)
class Recipe:
    """How a table is made.

    Attributes:
        table: what is published.
        compute: the rows of a window's partitions; it may add audit columns.
        inputs: the tables that `compute` reads.
        landing: what `compute` reads of the landing zone.
        history: the same with the historical loads of the days before; None where none is active.
        count_source: records of the layer above that each partition must account for.
        code_version: hash of all that decides what `compute` returns.
        serves: of a served table, the version that is read, once that is chosen.
        guards: keys of those inputs of which nothing is published that it couldn't be built over.
        mapped: by table key, which partitions are read of inputs whose mapping doesn't go by values
            of partitions; None where all are.
    """

    table: Table
    compute: Compute
    inputs: tuple[Table, ...] = ()
    landing: Source | None = None
    history: History | None = None
    count_source: CountSource | None = None
    code_version: str = ""
    serves: str = ""
    guards: frozenset[str] = frozenset()
    mapped: Mapping[str, MapKeys | None] = field(default_factory=dict, compare=False)

    def map_inputs(self, keys: Collection[str]) -> dict[str, Mapping[str, Sequence[str]] | None]:
        """Finds what partitions read of the inputs in `mapped`."""
        return {name: find and find(keys) for name, find in self.mapped.items()}

    @property
    def unread(self) -> frozenset[str]:
        """The versions, by table key, that are not served and so not read."""
        versions = (version.key for version in self.table.versions)
        return frozenset(key for key in versions if self.serves not in ("", key))

    @property
    def reads_undeclared(self) -> bool:
        """Whether `compute` may read what no source and no input declares, by `window.spark`."""
        code = getattr(self.compute, "__code__", None)
        return code is not None and "spark" in _list_names(code)

    @property
    def source(self) -> Source | History | None:
        """What is read of the landing zone, with the history before it."""
        return self.history or self.landing

    @property
    def source_fields(self) -> tuple[str, ...]:
        """Fields that the landed records should have; empty where none are parsed."""
        declared = self.landing.record_fields if self.landing is not None else ()
        return tuple(field.name for field in declared)


def _list_names(code: CodeType) -> Iterator[str]:
    """Lists the names that code uses, with those of the functions in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _list_names(constant)
