"""Columns: what is declared of one, and what all columns of a table or of a landing must meet."""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from backfill_engine.audit_columns import ENGINE_PREFIX, is_reserved
from backfill_engine.errors import DeclarationError
from backfill_engine.tables.column_types import ColumnType, parse_type

# What Delta can't store in a name but by column mapping, and what would part one in Spark's eyes.
_NO_NAME = re.compile(r"[\s,;{}()=.`\x00-\x1f]")


@dataclass(frozen=True)
class Column:
    """One column: name, Spark SQL type, meaning (with unit), and whether it may be null.

    The type is kept as `ColumnType` spells it. One that there isn't stays as it was written: who
    holds the column refuses it, and can say of which table it is.

    A value of another JSON type than the declared one makes a landed record a reject. Of a
    `lenient` field a value is converted where nothing is lost: the text of a number, of a boolean
    and of a day (as its midnight), 5.0 as the integer 5, and whatever lands in a STRING as its JSON
    text.

    `formerly` are names that the column had before: `backfill-assets migrate` renames it, and older
    versions of the table are read by them.
    """

    name: str
    type: str
    comment: str = ""
    nullable: bool = True
    lenient: bool = False
    # No part of the code version, which is made of what prints: it changes no row.
    formerly: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        with suppress(ValueError):
            object.__setattr__(self, "type", str(self.parsed_type))

    @property
    def parsed_type(self) -> ColumnType:
        """The type, taken apart; raises ValueError if it is none."""
        return parse_type(self.type)

    def find_stored_name(self, stored: Collection[str]) -> str | None:
        """Finds under which of its names a table has it; None if under none."""
        return next((name for name in (self.name, *self.formerly) if name in stored), None)


def required(
    name: str,
    type: str,
    comment: str = "",
    *,
    lenient: bool = False,
    formerly: tuple[str, ...] = (),
) -> Column:
    """Declares a column that is never null."""
    return Column(name, type, comment, nullable=False, lenient=lenient, formerly=formerly)


def check_columns(owner: str, columns: Sequence[Column]) -> None:
    """Refuses columns that Spark or Delta couldn't have.

    Args:
        owner: the table, or the landing, that declares them; for the message.
        columns: all of it.

    Raises:
        DeclarationError: if a name can't be one or is there twice, or a type is none.
    """
    taken: set[str] = set()
    for column in columns:
        if not column.name or _NO_NAME.search(column.name):
            near = _NO_NAME.sub("_", column.name) or "value"
            raise DeclarationError(
                f"{owner}: a column can't be called `{column.name}`: Delta would store it under "
                f"another name, by which delta-rs reads nulls: call it `{near}`"
            )
        if is_reserved(column.name):
            raise DeclarationError(
                f"{owner}: the audit has a column `{column.name}` of its own: give it another name"
                f" (one that doesn't begin with {ENGINE_PREFIX})"
            )
        if column.name.lower() in taken:
            raise DeclarationError(
                f"{owner}: the column `{column.name}` is declared twice (Spark doesn't tell upper "
                "from lower case): rename or remove one"
            )
        taken.add(column.name.lower())
        try:
            _ = column.parsed_type
        except ValueError as error:
            raise DeclarationError(f"{owner}: column `{column.name}`: {error}") from error
    for column in columns:
        if isinstance(column.formerly, str):
            raise DeclarationError(
                f'{owner}: `formerly` is a tuple of names: write ("{column.formerly}",)'
            )
        if again := [name for name in column.formerly if name.lower() in taken]:
            raise DeclarationError(
                f"{owner}: `{column.name}` was called `{again[0]}` before, and there is a column "
                "of that name: older versions couldn't be read; give that another name"
            )
        taken.update(name.lower() for name in column.formerly)


def build_ddl(columns: Sequence[Column], *, constraints: bool = True) -> str:
    """Builds column definitions as Spark SQL; with constraints also NOT NULL and comments."""
    return ", ".join(
        f"`{column.name}` {column.type}{_constraints(column)}"
        if constraints
        else f"`{column.name}` {column.parsed_type.of_values}"
        for column in columns
    )


def _constraints(column: Column) -> str:
    comment = column.comment.replace("\\", "\\\\").replace("'", "\\'")
    clause = f" COMMENT '{comment}'" if comment else ""
    return ("" if column.nullable else " NOT NULL") + clause
