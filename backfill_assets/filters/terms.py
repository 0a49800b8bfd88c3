"""The parts of a condition that was checked: a tree of constants, columns and operations."""

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

Kind = Literal["number", "string", "boolean", "date", "timestamp", "null", "other"]
"""Types that Spark compares with each other without a cast that could surprise."""


@dataclass(frozen=True)
class Term:
    """A part of a condition.

    Attributes:
        kind: of its values.
        label: what messages call it.
    """

    kind: Kind
    label: str


@dataclass(frozen=True)
class Constant(Term):
    """A literal, TRUE, FALSE or NULL.

    Attributes:
        value: as Python has it; of dates and timestamps as ISO text, since Python and Java disagree
            on dates before 1582.
        cast_to: Spark's type, where it isn't that of the value.
    """

    value: str | int | float | bool | None
    cast_to: str | None = None


@dataclass(frozen=True)
class ColumnReference(Term):
    """A column of the table, by the name that it is declared with."""

    name: str


@dataclass(frozen=True)
class Operation(Term):
    """An operator or a function, applied.

    Attributes:
        operator: sqlglot's class of it.
        operands: in the order of Spark's arguments; ANDs and ORs have two or more.
    """

    operator: type[exp.Expr]
    operands: tuple[Term, ...]
