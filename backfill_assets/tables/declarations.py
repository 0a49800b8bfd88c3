"""What is declared of a table: columns, types, partitions, natural key, rules. Pure data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from backfill_assets.grains.days import DAYS
from backfill_assets.grains.grain import Grain
from backfill_assets.rules.declared_fields import DeclaredFields
from backfill_assets.rules.emptied import Emptied
from backfill_assets.rules.landed_files import LandedFiles
from backfill_assets.rules.required_columns import RequiredColumns
from backfill_assets.rules.rule import Rule
from backfill_assets.rules.shrink import Shrink
from backfill_assets.rules.unique_keys import UniqueKeys


@dataclass(frozen=True)
class Column:
    """One column: name, Spark SQL type, meaning (with unit), and whether it may be null."""

    name: str
    type: str
    comment: str
    nullable: bool = True


def required(name: str, type: str, comment: str) -> Column:
    """Declares a column that is never null."""
    return Column(name, type, comment, nullable=False)


@dataclass(frozen=True)
class Table:
    """A Delta table at `<warehouse>/<layer>/<name>`.

    Attributes:
        layer: `raw`, `staging` or `features`.
        name: table name within the layer.
        partition_by: the column whose values decide the partition.
        columns: in the order in which they are stored.
        grain: which of these values make one partition.
        folder_by: a DATE column, the day of `partition_by`, with a folder a day; whatever computes
            the rows need not set it. None for a folder for each value of `partition_by`.
        natural_key: columns that together identify a row; empty where rows may repeat.
        rules: what a partition must meet to be published, beside what `all_rules` adds.
        empty: whether a partition whose source became empty is published empty (`publish`), or
            withheld, or published where something says that it is meant: `rules.emptied`.
        max_new_fields: most columns that it takes on for fields that no schema declares; a record
            with more such fields is rejected.
        write_mode: how runs write that aren't told otherwise: the name of a mode in
            `publishing.write_modes`; one that the table can't honour is refused at assembly.
        row_filter: SQL over the columns: only rows for which it is true belong to the table; empty
            means all. `filters.row_filters` says what it may hold.
    """

    layer: str
    name: str
    partition_by: str
    columns: tuple[Column, ...]
    grain: Grain = DAYS
    folder_by: str | None = None
    natural_key: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    empty: Literal["publish", "evidenced", "withhold"] = "evidenced"
    max_new_fields: int = 50
    write_mode: str = "overwrite"
    row_filter: str = ""
    column_names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = tuple(column.name for column in self.columns)
        object.__setattr__(self, "column_names", names)
        required_names = {column.name for column in self.columns if not column.nullable}
        for name in (self.partition_by, self.folder_column, *self.natural_key):
            if name not in required_names:
                raise ValueError(f"{self.key}: `{name}` must be a declared, required column")
        types = {column.name: column.type for column in self.columns}
        if types[self.partition_by] not in self.grain.column_types:
            raise ValueError(
                f"{self.key}: `{self.partition_by}` must be {self.grain.column_types[0]}, "
                f"to be partitioned by {self.grain}"
            )
        daily = self.grain.in_daily_folders
        if daily != (self.folder_by is not None) or (daily and types[self.folder_column] != "DATE"):
            raise ValueError(
                f"{self.key}: `folder_by` is the DATE column of a table with several partitions a "
                f"day, and of no other; this one is partitioned by {self.grain}"
            )

    @property
    def folder_column(self) -> str:
        """The column of which each value is a folder."""
        return self.folder_by or self.partition_by

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """Lists the rules that follow from the declaration itself, then those that it names.

        A rule `Shrink` of its own takes the place of the one that every table has.
        """
        required_names = tuple(column.name for column in self.columns if not column.nullable)
        of_source = Emptied(empty=self.empty), LandedFiles()
        of_columns = RequiredColumns(required_names), UniqueKeys(self.natural_key)
        shrinks = any(isinstance(rule, Shrink) for rule in self.rules)
        shrink = () if shrinks else (Shrink(),)
        return (*of_source, *shrink, *of_columns, DeclaredFields(self.max_new_fields), *self.rules)

    @property
    def key(self) -> str:
        """`layer/name`, as Dagster prints the asset key."""
        return f"{self.layer}/{self.name}"


def build_ddl(columns: Sequence[Column], *, constraints: bool = True) -> str:
    """Builds column definitions as Spark SQL; with constraints also NOT NULL and comments."""
    return ", ".join(
        f"`{column.name}` {column.type}" + (_constraints(column) if constraints else "")
        for column in columns
    )


def _constraints(column: Column) -> str:
    comment = column.comment.replace("\\", "\\\\").replace("'", "\\'")
    return ("" if column.nullable else " NOT NULL") + f" COMMENT '{comment}'"
