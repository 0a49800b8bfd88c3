"""Writes names, numbers and texts as Spark SQL, and tells which of its types are numbers."""

INTEGERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
NUMBERS = INTEGERS | {"FLOAT", "DOUBLE", "DECIMAL"}


def quote_name(column: str) -> str:
    """Quotes the column's name, which may have any characters."""
    return "`" + column.replace("`", "``") + "`"


def write_number(number: float) -> str:
    """Writes an integer as it is and a float as a DOUBLE, for plain digits would be a DECIMAL."""
    return f"double('{number}')" if isinstance(number, float) else str(number)


def write_text(text: str) -> str:
    """Writes a text between quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
