"""Filters as PySpark columns."""

import functools
import itertools
import operator
from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from sqlglot import exp

from backfill_assets.filters.reading import read_condition
from backfill_assets.filters.row_filters import RowFilter
from backfill_assets.filters.terms import ColumnReference, Constant, Operation, Term
from backfill_assets.tables.declarations import Table


def build_condition(row_filter: RowFilter, table: Table) -> Column:
    """The filter as a column: true, false, or null where nulls leave it open, as in SQL.

    The caller treats null as not matching; `where` does, but the negation of null is null again.
    Needs a session, of either kind. Parts of a timestamp (`hour(at)`) are those in the session's
    time zone. Dividing by zero and overflows fail when Spark computes them, if it is in ANSI mode.

    Args:
        row_filter: read against the same table.
        table: the table whose rows are filtered.
    """
    return _build_column(read_condition(row_filter.expression, table))


def _build_column(term: Term) -> Column:
    match term:
        case Constant():
            constant = F.lit(term.value)
            return constant.cast(term.cast_to) if term.cast_to else constant
        case ColumnReference():
            return F.col("`" + term.name.replace("`", "``") + "`")
        case Operation():
            return _OPERATORS[term.operator](*map(_build_column, term.operands))
    raise TypeError(term)


def _join_pairs(join: Callable[..., Column], *columns: Column) -> Column:
    """Joins neighbours, then their results, and so on: a deep tree would overflow Spark's stack."""
    joined = list(columns)
    while len(joined) > 1:
        pairs = itertools.zip_longest(joined[::2], joined[1::2])
        joined = [left if right is None else join(left, right) for left, right in pairs]
    return joined[0]


_OPERATORS: dict[type[exp.Expr], Callable[..., Column]] = {
    exp.And: functools.partial(_join_pairs, operator.and_),
    exp.Or: functools.partial(_join_pairs, operator.or_),
    exp.Not: lambda value: ~value,
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.NullSafeEQ: lambda left, right: left.eqNullSafe(right),
    exp.Is: lambda value: value.isNull(),
    exp.In: lambda value, *items: value.isin(*items),
    exp.Between: lambda value, low, high: value.between(low, high),
    exp.Like: F.like,
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
    exp.Mod: operator.mod,
    exp.Neg: lambda value: -value,
    exp.Abs: F.abs,
    exp.Lower: F.lower,
    exp.Upper: F.upper,
    exp.Trim: F.trim,
    exp.Length: F.length,
    exp.Year: F.year,
    exp.Month: F.month,
    exp.Day: F.day,
    exp.Hour: F.hour,
    exp.Coalesce: F.coalesce,
    exp.Substring: F.substring,
    exp.Round: F.round,
}
