"""The way in: reads a filter's text against a table, joins filters, and builds their columns.

The text never reaches Spark. sqlglot reads it, and `conditions` rebuilds what it read, part by
part; a part that isn't known is refused. sqlglot forgives more than Spark does and reads a few
things differently (chained comparisons, surplus arguments, escapes in strings), so `grammar` looks
at the tokens as well: what is accepted means here what it means to Spark.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from backfill_engine.errors import FilterError
from backfill_engine.filters.conditions import read_condition
from backfill_engine.filters.grammar import MAX_DEPTH, MAX_PARENTHESES, parse_expression
from backfill_engine.tables.declarations import Table

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class RowFilter:
    """A condition on the rows of a table, known to be readable and allowed.

    Attributes:
        text: as it was given, without surrounding blanks; two filters are equal if their texts are.
        expression: what sqlglot read.
    """

    text: str
    expression: exp.Expr = field(compare=False, repr=False)


def parse_filter(text: str, table: Table) -> RowFilter:
    """Reads a condition; needs no Spark session.

    Args:
        text: one boolean expression in Spark SQL over columns of the table. A string that is
            compared with a DATE or TIMESTAMP must be one, in ISO format. Timestamps without zone
            are UTC.
        table: declares the columns; their names match regardless of case.

    Raises:
        FilterError: in one line, what is unreadable or not allowed, and what is.
    """
    text = text.strip()
    try:
        expression = parse_expression(text, table)
        read_condition(expression, table)
    except (FilterError, SqlglotError, RecursionError) as error:
        shown = " ".join(text[:60].split())
        raise FilterError(f"row filter [{shown}]: {_describe(error)}") from error
    return RowFilter(text, expression)


def combine_filters(table: Table, *texts: str | None) -> RowFilter | None:
    """Combines texts to the filter of the rows that meet them all; None if all are blank.

    Each is read on its own before they are joined, so none can reach into another.

    Raises:
        FilterError: as by `parse_filter`, of a text or of all together.
    """
    filters = [parse_filter(text, table) for text in texts if text and text.strip()]
    if len(filters) < 2:
        return filters[0] if filters else None
    return parse_filter(" AND ".join(f"({part.text})" for part in filters), table)


def build_condition(row_filter: RowFilter, table: Table) -> "Column":
    """Builds the filter as a column: true, false, or null.

    It is null where nulls leave it open, as in SQL. The caller treats null as not matching; `where`
    does, but the negation of null is null again. Needs a session, of either kind. Parts of a
    timestamp (`hour(at)`) are those in the session's time zone. Dividing by zero and overflows fail
    when Spark computes them, if it is in ANSI mode.

    Args:
        row_filter: read against the same table.
        table: the table whose rows are filtered.
    """
    from pyspark.sql import functions

    return read_condition(row_filter.expression, table).build(functions)


def _describe(error: Exception) -> str:
    match error:
        case RecursionError():
            return (
                f"nested too deeply: at most {MAX_DEPTH} levels, {MAX_PARENTHESES} of parentheses"
            )
        case ParseError(errors=[{"line": line, "col": column}, *_]):
            return (
                f"no expression that can be read: correct line {line}, column {column}, or before"
            )
        case SqlglotError():
            return "no expression that can be read: close every quote"
    return " ".join(str(error).split())
