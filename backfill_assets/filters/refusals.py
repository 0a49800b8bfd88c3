"""Why a filter is refused, in words that fit a line."""

from sqlglot.errors import ParseError, SqlglotError

from backfill_assets.filters.grammar import ALLOWED, MAX_DEPTH, MAX_PARENTHESES


class RefusedError(Exception):
    """A part of a filter isn't allowed; `parse_filter` turns it into a `FilterError`.

    Args:
        problem: what is wrong.
        cure: what to write instead; without, all that is allowed.
    """

    def __init__(self, problem: str, cure: str = ALLOWED) -> None:
        super().__init__(f"{problem}: {cure}")


def describe_refusal(error: Exception) -> str:
    """Problem and cure in one line, of a `RefusedError`, `SqlglotError` or `RecursionError`."""
    if isinstance(error, RecursionError):
        return (
            f"nested too deeply: at most {MAX_DEPTH} levels are allowed, "
            f"and {MAX_PARENTHESES} of parentheses"
        )
    if isinstance(error, ParseError) and error.errors:
        where = error.errors[0]
        place = f"line {where.get('line')}, column {where.get('col')}"
        return f"no expression that can be read, see {place}: correct it there, or before"
    if isinstance(error, SqlglotError):
        return "no expression that can be read: close every quote"
    return " ".join(str(error).split())


def clip(text: str, length: int = 40) -> str:
    """As much of the text as a message has room for."""
    return text if len(text) <= length else text[: length - 1] + "…"
