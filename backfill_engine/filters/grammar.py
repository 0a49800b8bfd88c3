"""From text to sqlglot's tree: what a filter may hold, as far as its tokens tell.

sqlglot forgives more than Spark does (comments, surplus arguments, missing ones), and what it
forgives can't be seen in its tree; and it reads strings otherwise. What the tree may hold is up to
`conditions`.
"""

import itertools
import re
from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from backfill_engine.errors import FilterError
from backfill_engine.tables.declarations import Table

MAX_LENGTH = 10_000
"""Characters of a filter."""

MAX_DEPTH = 50
"""Levels of operators and functions; a chain of ANDs or of ORs is one level."""

MAX_PARENTHESES = 20
"""Levels of parentheses. sqlglot takes some twenty stack frames for each."""

_FUNCTIONS = "abs lower upper trim length year month day hour coalesce substring round"
# How many arguments they take, if not one.
_COUNTS = {"coalesce": range(1, MAX_LENGTH), "substring": (3,), "round": (1, 2)}
ALLOWED = (
    "use columns, literals, AND OR NOT, = <=> <> != < <= > >=, IS [NOT] NULL, [NOT] IN (literals), "
    "[NOT] BETWEEN, [NOT] LIKE, + - * / %, parentheses, and the functions " + _FUNCTIONS
)
"""All of it, for those whose filter holds something else."""

_SPARK = Dialect.get_or_raise("spark")
# Tokens by sqlglot's names of their types, but for marks, and the names of functions.
_MARKS = {"L_PAREN": "(", "R_PAREN": ")", "COMMA": ",", "SEMICOLON": ";"}
_OPERATORS = "EQ NULLSAFE_EQ NEQ LT LTE GT GTE AND OR NOT IN BETWEEN LIKE PLUS DASH STAR SLASH MOD"
_VALUES = "VAR IDENTIFIER STRING NUMBER TRUE FALSE NULL DATE TIMESTAMPTZ"
_BEFORE_PARENTHESIS = {*_OPERATORS.split(), "(", ",", *_FUNCTIONS.split()}
_ALLOWED_TOKENS = {*_BEFORE_PARENTHESIS, *_VALUES.split(), ")", "IS", "DOT"}
# Sequences of tokens that sqlglot reads and Spark doesn't, or of which only literals are supported.
_REFUSED = {
    r"[(,] ,|, \)": "a comma with nothing beside it: remove the comma",
    rf"(\)|\b({_VALUES.replace(' ', '|')})) NOT NULL": "NOT NULL without IS: write IS NOT NULL",
    r"\bLIKE (?!STRING)": "LIKE without a literal pattern: write LIKE 'a%'",
}
_NUMBER = r"[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?"
_PATTERN = r"(?s:[^\\]|\\[\\%_])*"
_CALL = re.compile(r"(?:([a-z]+) )?\(([^()]*)\)")
# As Spark's own: a backslash before any other character but % and _ is dropped.
_ESCAPE = re.compile(r"\\(?:([01][0-7]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPES = dict(zip("0bnrtZ%_", ["\0", *"\b\n\r\t\x1a", r"\%", r"\_"], strict=True))


def parse_expression(text: str, table: Table) -> exp.Expr:
    """Parses by sqlglot, if a condition on the table may have such tokens in such an order.

    Raises:
        FilterError: it may not.
        SqlglotError: it is no expression.
        RecursionError: parentheses are nested deeper than is allowed.
    """
    if len(text) > MAX_LENGTH:
        raise FilterError(f"longer than {MAX_LENGTH:,} characters: shorten it")
    tokens = _SPARK.tokenize(text)
    # Whatever is in no token is a comment, or something else that sqlglot skips.
    ends = [0, *(token.end + 1 for token in tokens)]
    starts = [*(token.start for token in tokens), len(text)]
    if any(text[end:start].strip() for end, start in zip(ends, starts, strict=True)):
        raise FilterError("a comment: leave it out")
    if not tokens:
        raise FilterError("empty: write a condition, or leave the filter out")
    tokens = _read_strings(text, tokens)
    _check_order(" ".join(_check_tokens(tokens, table)))
    expressions = _SPARK.parser().parse(tokens, text)
    if len(expressions) != 1 or expressions[0] is None:
        raise FilterError("not exactly one expression: write one")
    return expressions[0]


def clip(text: str) -> str:
    """Clips the text to what a message has room for."""
    return text if len(text) <= 40 else text[:39] + "…"


def _read_strings(text: str, tokens: Sequence[Token]) -> list[Token]:
    """Reads strings among the tokens as Spark does: neighbours are one, as 'it''s' is."""
    read: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.STRING:
            quote = text[token.start]
            token.text = _ESCAPE.sub(_unescape, text[token.start + 1 : token.end])
            if re.search("[\ud800-\udfff]", token.text):
                raise FilterError("no character, or half a character: escape it as \\U0001F600")
            if read and read[-1].token_type == TokenType.STRING:
                before = read.pop()
                doubled = text[before.end : token.start] == quote
                token.text = before.text + quote * doubled + token.text
        read.append(token)
    return read


def _unescape(match: re.Match[str]) -> str:
    octal, short, long, other = match.groups()
    if other is not None:
        return _ESCAPES.get(other, other)
    code = int(octal, 8) if octal else int(short or long, 16)
    return chr(code) if code <= 0x10FFFF else "\ud800"  # Which no string may hold.


def _check_tokens(tokens: Sequence[Token], table: Table) -> Iterator[str]:
    """Yields what stands for each token: a mark, the name of a function, or a type."""
    names = {name.lower() for name in table.column_names}
    for token, after in itertools.zip_longest(tokens, tokens[1:]):
        word, kind = token.text.lower(), token.token_type.name
        is_called = after is not None and after.token_type == TokenType.L_PAREN
        kind = word if is_called and kind == "VAR" else _MARKS.get(kind, kind)
        if is_called and kind not in _BEFORE_PARENTHESIS:
            raise FilterError(f"function `{clip(token.text)}` isn't allowed: {ALLOWED}")
        if kind == ";":
            raise FilterError("more than one expression (`;`): write exactly one")
        if kind == "NOT" and word == "!":
            raise FilterError("`!` isn't allowed: write NOT")
        if kind not in _ALLOWED_TOKENS and word not in names:
            raise FilterError(f"`{clip(token.text)}` isn't allowed: {ALLOWED}")
        if kind == "NUMBER" and not re.fullmatch(_NUMBER, word):
            raise FilterError(f"`{clip(word)}` is no number: write it as 1, 1.5 or 1e3")
        if kind == "LIKE" and after is not None and not re.fullmatch(_PATTERN, after.text):
            raise FilterError(r"a stray backslash in a LIKE pattern: write \%, \_ or \\\\")
        yield kind


def _check_order(shape: str) -> None:
    for sequence, problem in _REFUSED.items():
        if re.search(sequence, shape):
            raise FilterError(problem)
    # Parentheses from the innermost outwards: sqlglot drops arguments that it doesn't expect.
    for _ in range(MAX_PARENTHESES):
        shape = _CALL.sub(_check_call, shape)
    if _CALL.search(shape) or shape.count("(") > MAX_PARENTHESES:
        raise RecursionError
    # sqlglot insists on closing all others, but not those of `trim` and `substring`.
    if unclosed := re.search(r"([a-z]+) \(", shape):
        raise FilterError(f"{unclosed[1]}( isn't closed: close it")


def _check_call(match: re.Match[str]) -> str:
    """Checks parentheses and the function before them.

    Returns what stands for them: a value.
    """
    function, arguments = match.groups()
    count, counts = arguments.count(",") + 1, _COUNTS.get(function, (1,))
    if function and count not in counts:
        wanted = " or ".join(map(str, counts))
        raise FilterError(f"{function} of {count} arguments: it takes {wanted}")
    return "VAR"
