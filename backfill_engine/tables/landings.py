"""What lands, and how: declarations of the landing zone. Pure data."""

from dataclasses import dataclass
from typing import TypeAlias

from backfill_engine.errors import DeclarationError
from backfill_engine.rules.sql import INTEGERS
from backfill_engine.tables.columns import Column, check_columns

EMPTY_MARKER = "_EMPTY"
"""Name of the file that says that a partition is meant to have no records."""


@dataclass(frozen=True)
class JsonLanding:
    """JSON lines in a folder for each partition, by the time at which the records landed.

    At `<root>/<dataset>/year=YYYY/month=MM[/day=DD[/hour=HH[/minute=MM]]]/*.json[.gz]`, as deep as
    the grain of the table that is computed from them.

    Attributes:
        dataset: its folder below the root.
        fields: what a record may hold.
        empty_marker: name of the file that says that a partition is meant to have no records. In an
            object store, which has no empty folders, nothing else does.

    Raises:
        DeclarationError: when it is made, if it can't be as it is declared.
    """

    dataset: str
    fields: tuple[Column, ...] = ()
    empty_marker: str = EMPTY_MARKER

    def __post_init__(self) -> None:
        check_columns(f"landing `{self.dataset}`", self.fields)


@dataclass(frozen=True)
class ParquetLanding:
    """Parquet files with an integer key, in whatever files the source cut them.

    At `<root>/<dataset>/<name>/*.parquet`; their footers say which keys a file holds.

    Attributes:
        dataset: its folder below the root.
        keys: name of each kind of file, and its key column, which decides the bucket.
        space_setting: the environment variable that sets the key space, for messages.
        fields: by name of a kind of file, the columns that it has, the key included. A file that
            lacks one, or has it as another type, holds its partitions back. Others aren't read.

    Raises:
        DeclarationError: when it is made, if it can't be as it is declared.
    """

    dataset: str
    keys: tuple[tuple[str, str], ...]
    space_setting: str
    fields: tuple[tuple[str, tuple[Column, ...]], ...] = ()

    def __post_init__(self) -> None:
        keys, owner = dict(self.keys), f"landing `{self.dataset}`"
        for kind, columns in self.fields:
            if kind not in keys:
                raise DeclarationError(
                    f"{owner}: `fields` are of `{kind}` files, and `keys` names no such kind: "
                    f"choose of {', '.join(keys)}"
                )
            check_columns(f"{owner}, {kind}", columns)
            if keys[kind] not in {c.name for c in columns if c.type in INTEGERS}:
                raise DeclarationError(
                    f"{owner}, {kind}: the key `{keys[kind]}` must be a declared column of integers"
                )


Landing: TypeAlias = JsonLanding | ParquetLanding
