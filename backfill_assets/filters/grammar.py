"""What a filter may hold, and how much of it."""

import math

MAX_LENGTH = 10_000
"""Characters of a filter."""

MAX_DEPTH = 50
"""Levels of operators and functions; a chain of ANDs or of ORs is one level."""

MAX_PARENTHESES = 20
"""Levels of parentheses. sqlglot takes some twenty stack frames for each."""

MAX_PRECISION = 38
"""Digits of a DECIMAL, and decimals to which `round` rounds."""

ARGUMENT_COUNTS: dict[str, tuple[int, float]] = {
    **dict.fromkeys(("abs", "lower", "upper", "trim", "length"), (1, 1)),
    **dict.fromkeys(("year", "month", "day", "hour"), (1, 1)),
    "coalesce": (1, math.inf),
    "substring": (3, 3),
    "round": (1, 2),
}
"""The functions, each with the fewest and the most arguments that it takes."""

ALLOWED = (
    "use columns, literals, AND OR NOT, = <=> <> != < <= > >=, IS [NOT] NULL, [NOT] IN (literals), "
    "[NOT] BETWEEN, [NOT] LIKE, + - * / %, parentheses, and the functions "
    + " ".join(ARGUMENT_COUNTS)
)
"""All of it, for those whose filter holds something else."""
