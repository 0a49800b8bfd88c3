"""Marks a line's strings and numbers, so that a reader of texts still sees what each value was.

Spark's reader turns any value into a text where a text is asked for: a number loses its digits, and
a text of digits looks like a number. On a marked line strings and numbers are texts: a string ends
with a mark, a number begins with one, and keeps all digits. Objects, arrays, true, false and null
stay as they are.
"""

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

MARK = "\x7f"
"""A character that no line needs to escape, and hardly any has."""

NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""A number, as JSON writes it."""

_LONE_SURROGATE = (
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def mark_line(line: SparkColumn) -> SparkColumn:
    """Marks all strings that are values, and all numbers, at any depth.

    What isn't JSON doesn't become JSON by that.
    """
    marked = F.regexp_replace(_part_quotes(line), rf'"([^"]*)"|({NUMBER})', f'"$1{MARK}$2"')
    return F.regexp_replace(marked, rf'{MARK}"(\s*:)', '"$1')


def mark_plain_line(line: SparkColumn) -> SparkColumn:
    """Marks the strings of a line without escapes and marks, where no blanks follow them.

    In such a line a quotation mark before a comma or a brace ends a string. If it begins one, the
    line isn't JSON any more.
    """
    return F.replace(
        F.replace(line, F.lit('",'), F.lit(f'{MARK}",')), F.lit('"}'), F.lit(f'{MARK}"}}')
    )


def has_lone_surrogate(line: SparkColumn) -> SparkColumn:
    """Builds a BOOLEAN: whether a character is half there, which no text can hold."""
    return _part_quotes(line).rlike(_LONE_SURROGATE)


def is_string(text: SparkColumn) -> SparkColumn:
    """Builds a BOOLEAN: whether a marked text was a string."""
    return F.endswith(text, F.lit(MARK))


def read_string(text: SparkColumn) -> SparkColumn:
    """Reads the letters of what was a string."""
    return F.left(text, F.length(text) - 1)


def read_token(text: SparkColumn) -> SparkColumn:
    """Reads what wasn't a string: a number's digits, or else its JSON, whatever is marked in it."""
    is_number = F.startswith(text, F.lit(MARK))
    return F.when(is_number, F.substring(text, 2, 2**31 - 1)).otherwise(text)


def remove_marks(text: SparkColumn) -> SparkColumn:
    """Removes all marks from the text of a value: what is left is its letters, or its JSON."""
    parted = F.regexp_replace(_part_quotes(text), rf'"{MARK}({NUMBER})"', "$1")
    unmarked = F.regexp_replace(parted, rf'{MARK}"(?!\s*:)', '"')
    json = F.replace(
        F.replace(unmarked, F.lit(r"\u0022"), F.lit(r"\"")), F.lit(r"\u005c"), F.lit("\\\\")
    )
    is_nested = F.startswith(text, F.lit("{")) | F.startswith(text, F.lit("["))
    return (
        F.when(is_string(text), read_string(text)).when(is_nested, json).otherwise(read_token(text))
    )


def _part_quotes(json: SparkColumn) -> SparkColumn:
    """Writes escaped backslashes and quotation marks otherwise; those left begin or end strings."""
    return F.replace(
        F.replace(json, F.lit("\\\\"), F.lit(r"\u005c")), F.lit(r"\""), F.lit(r"\u0022")
    )
