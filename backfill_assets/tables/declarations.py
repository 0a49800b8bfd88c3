"""What is declared of a table: columns, types, partitions, natural key, rules. Pure data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from backfill_assets.tables.rules import Rule


@dataclass(frozen=True)
class Column:
    """One column: name, Spark SQL type, meaning (with unit), and whether it may be null."""

    name: str
    type: str
    comment: str
    nullable: bool = True


def required(name: str, type: str, comment: str) -> Column:
    """A column that is never null."""
    return Column(name, type, comment, nullable=False)


@dataclass(frozen=True)
class Table:
    """A Delta table at `<warehouse>/<layer>/<name>`.

    Attributes:
        layer: `raw`, `staging` or `features`.
        name: table name within the layer.
        partition_by: the column whose values decide the partition; one folder a value.
        columns: in the order in which they are stored.
        natural_key: columns that together identify a row; empty where rows may repeat.
        rules: what a partition must meet to be published.
        empty: whether a partition whose source became empty is published empty, or withheld.
    """

    layer: str
    name: str
    partition_by: str
    columns: tuple[Column, ...]
    natural_key: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    empty: Literal["publish", "withhold"] = "publish"
    column_names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = tuple(column.name for column in self.columns)
        object.__setattr__(self, "column_names", names)
        required_names = {column.name for column in self.columns if not column.nullable}
        for name in (self.partition_by, *self.natural_key):
            if name not in required_names:
                raise ValueError(f"{self.key}: `{name}` must be a declared, required column")

    @property
    def key(self) -> str:
        """`layer/name`, as Dagster prints the asset key."""
        return f"{self.layer}/{self.name}"


def build_ddl(columns: Sequence[Column], *, constraints: bool = True) -> str:
    """Column definitions as Spark SQL; with constraints also NOT NULL and comments."""
    return ", ".join(
        f"`{column.name}` {column.type}" + (_constraints(column) if constraints else "")
        for column in columns
    )


def _constraints(column: Column) -> str:
    comment = column.comment.replace("\\", "\\\\").replace("'", "\\'")
    return ("" if column.nullable else " NOT NULL") + f" COMMENT '{comment}'"
