"""The way in: reads a filter's text against a table, and joins filters. Needs no Spark.

The text never reaches Spark. sqlglot reads it, and `filters.conditions` rebuilds what it read, part
by part; a part that isn't known is refused. sqlglot forgives more than Spark does and reads a few
things differently (chained comparisons, surplus arguments, escapes in strings), so the tokens are
looked at as well: what is accepted means here what it means to Spark.
"""

from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from backfill_assets.errors import FilterError
from backfill_assets.filters.grammar import MAX_LENGTH
from backfill_assets.filters.literals import check_characters, read_strings
from backfill_assets.filters.reading import read_condition
from backfill_assets.filters.refusals import RefusedError, clip, describe_refusal
from backfill_assets.filters.tokens import check_tokens
from backfill_assets.tables.declarations import Table

_SPARK = Dialect.get_or_raise("spark")


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
        expression = _parse_expression(text, table)
        read_condition(expression, table)
    except (RefusedError, SqlglotError, RecursionError) as error:
        shown = " ".join(clip(text, 60).split())
        raise FilterError(f"row filter [{shown}]: {describe_refusal(error)}") from error
    return RowFilter(text, expression)


def combine_filters(table: Table, *texts: str | None) -> RowFilter | None:
    """The filter of the rows that meet all the texts; None if all are blank.

    Each is read on its own before they are joined, so none can reach into another.

    Raises:
        FilterError: as by `parse_filter`, of a text or of all together.
    """
    filters = [parse_filter(text, table) for text in texts if text and text.strip()]
    if len(filters) < 2:
        return filters[0] if filters else None
    return parse_filter(" AND ".join(f"({one.text})" for one in filters), table)


def _parse_expression(text: str, table: Table) -> exp.Expr:
    if len(text) > MAX_LENGTH:
        raise RefusedError(f"longer than {MAX_LENGTH:,} characters", "shorten it")
    check_characters(text, "write whole ones")
    tokens = _SPARK.tokenize(text)
    check_tokens(text, tokens, table)
    expressions = _SPARK.parser().parse(read_strings(text, tokens), text)
    if len(expressions) != 1 or expressions[0] is None:
        raise RefusedError("not exactly one expression")
    return expressions[0]
