"""Names and numbers as Spark SQL text."""


def quote_name(column: str) -> str:
    """The column's name, whatever characters it has."""
    return "`" + column.replace("`", "``") + "`"


def write_number(number: float) -> str:
    """An integer as such, a float as the same DOUBLE: written plainly it would be a DECIMAL."""
    return f"double('{number}')" if isinstance(number, float) else str(number)
