"""What is checked on the tokens, before sqlglot makes a tree of them.

sqlglot forgives more than Spark does (comments, surplus arguments, missing ones), and what it
forgives can't be seen in its tree.
"""

import itertools
import math
from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from backfill_assets.filters.grammar import ARGUMENT_COUNTS, MAX_PARENTHESES
from backfill_assets.filters.refusals import RefusedError, clip
from backfill_assets.tables.declarations import Table

# Of what an open parenthesis may follow, all but a function's name.
_JOINING = "EQ NULLSAFE_EQ NEQ LT LTE GT GTE AND OR NOT IN BETWEEN LIKE PLUS DASH STAR SLASH MOD"
_BEFORE_PARENTHESIS = {TokenType[name] for name in f"{_JOINING} L_PAREN COMMA".split()}
_VALUES = "VAR IDENTIFIER STRING NUMBER TRUE FALSE NULL DATE TIMESTAMPTZ R_PAREN"
_ENDS_VALUE = {TokenType[name] for name in _VALUES.split()}
_ALLOWED_TYPES = _BEFORE_PARENTHESIS | _ENDS_VALUE | {TokenType.IS, TokenType.DOT}
_NO_ARGUMENT = {
    (TokenType.L_PAREN, TokenType.COMMA),
    (TokenType.COMMA, TokenType.COMMA),
    (TokenType.COMMA, TokenType.R_PAREN),
}


def check_tokens(text: str, tokens: Sequence[Token], table: Table) -> None:
    """Checks that a condition on the table may consist of these tokens, in this order.

    Raises:
        RefusedError: it may not.
        RecursionError: parentheses are nested deeper than is allowed.
    """
    _check_gaps(text, tokens)
    if not tokens:
        raise RefusedError("empty", "write a condition, or leave the filter out")
    names = {name.lower() for name in table.column_names}
    for token, after, second in itertools.zip_longest(tokens, tokens[1:], tokens[2:]):
        types = tuple(one.token_type if one else None for one in (token, after, second))
        _check_neighbours(token, types)
        _check_token(token, names)
    _check_parentheses(tokens)


def _check_gaps(text: str, tokens: Sequence[Token]) -> None:
    # Whatever is in no token is a comment, or something else that sqlglot skips.
    end = 0
    for token in tokens:
        if text[end : token.start].strip():
            break
        end = max(end, token.end + 1)
    if text[end:].strip():
        raise RefusedError("a comment", "leave it out")


def _check_neighbours(token: Token, types: tuple[TokenType | None, ...]) -> None:
    """Checks a token against the types of itself and of the two after it."""
    own, after, _ = types
    if after == TokenType.L_PAREN and own not in _BEFORE_PARENTHESIS:
        if own != TokenType.VAR or token.text.lower() not in ARGUMENT_COUNTS:
            raise RefusedError(f"function `{clip(token.text)}` isn't allowed")
    elif (own, after) in _NO_ARGUMENT:
        raise RefusedError("a comma with nothing beside it", "remove the comma")
    elif own in _ENDS_VALUE and types[1:] == (TokenType.NOT, TokenType.NULL):
        raise RefusedError("NOT NULL without IS", "write IS NOT NULL")


def _check_token(token: Token, names: set[str]) -> None:
    if token.token_type == TokenType.SEMICOLON:
        raise RefusedError("more than one expression (`;`)", "write exactly one")
    if token.token_type == TokenType.NOT and token.text == "!":
        raise RefusedError("`!` isn't allowed", "write NOT")
    if token.token_type not in _ALLOWED_TYPES and token.text.lower() not in names:
        raise RefusedError(f"`{clip(token.text)}` isn't allowed")


def _check_parentheses(tokens: Sequence[Token]) -> None:
    # Before sqlglot recurses into them; it also drops arguments that it doesn't expect.
    opened: list[tuple[str, int]] = []
    for before, token in zip((None, *tokens[:-1]), tokens, strict=True):
        if token.token_type == TokenType.L_PAREN:
            function = before.text if before and before.token_type == TokenType.VAR else ""
            opened.append((function.lower(), 1))
        elif token.token_type == TokenType.COMMA and opened:
            opened[-1] = (opened[-1][0], opened[-1][1] + 1)
        elif token.token_type == TokenType.R_PAREN and opened:
            _check_argument_count(*opened.pop())
        if len(opened) > MAX_PARENTHESES:
            raise RecursionError
    # sqlglot insists on closing all others, but not those of `trim` and `substring`.
    if unclosed := [name for name, _ in opened if name]:
        raise RefusedError(f"{unclosed[-1]}( isn't closed", "close it")


def _check_argument_count(function: str, count: int) -> None:
    fewest, most = ARGUMENT_COUNTS.get(function, (0, math.inf))
    if not fewest <= count <= most:
        wanted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        raise RefusedError(f"{function} of {count} arguments", f"it takes {wanted}")
