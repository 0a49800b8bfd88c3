"""Literals as Spark reads them, where sqlglot reads them otherwise or leaves them as text."""

import datetime as dt
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from backfill_assets.filters.grammar import MAX_PRECISION
from backfill_assets.filters.refusals import RefusedError, clip
from backfill_assets.filters.terms import Constant

_BIGINT = 2**63
# As Spark's own: a backslash before any other character but % and _ is dropped.
_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", flags=re.DOTALL
)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ESCAPES |= {"%": "\\%", "_": "\\_"}
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def read_strings(text: str, tokens: Sequence[Token]) -> list[Token]:
    """The tokens of a text, with strings as Spark reads them.

    Neighbours are one string, as 'it''s' is.

    Raises:
        RefusedError: a string holds what is no character.
    """
    read: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.STRING:
            read.append(token)
            continue
        raw = text[token.start : token.end + 1]
        value = _ESCAPE.sub(_unescape, raw[1:-1])
        check_characters(value, "escape it as \\U0001F600")
        if read and read[-1].token_type == TokenType.STRING:
            last = read.pop()
            doubled = last.end + 1 == token.start and text[last.end] == raw[0]
            value = last.text + (raw[0] if doubled else "") + value
        start = token.start
        read.append(Token(TokenType.STRING, value, token.line, token.col, start, token.end))
    return read


def check_characters(text: str, cure: str) -> None:
    """Checks that the text holds whole characters only.

    Raises:
        RefusedError: it holds half a surrogate pair, which Spark can't be given.
    """
    if re.search("[\ud800-\udfff]", text):
        raise RefusedError("half a character (a lone surrogate)", cure)


def _unescape(match: re.Match[str]) -> str:
    short, long, octal, other = match.groups()
    if other is not None:
        return _ESCAPES.get(other, other)
    code = int(octal, 8) if octal else int(short or long, 16)
    if code > 0x10FFFF:
        raise RefusedError(f"`{match[0]}` is no character", "end at \\U0010FFFF")
    return chr(code)


def read_string(text: str) -> Constant:
    """A string, its escapes already read."""
    return Constant("string", f"'{clip(text)}'", text)


def read_moment(text: str, kind: Literal["date", "timestamp"]) -> Constant:
    """A DATE or TIMESTAMP in ISO format; a timestamp without zone is UTC.

    Raises:
        RefusedError: it is none, or before the year 1 or after 9999.
    """
    match = _MOMENT.fullmatch(text)
    try:
        if match is None or (kind == "date" and match[1]):
            raise ValueError
        moment = dt.datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=dt.UTC)
        iso = moment.astimezone(dt.UTC).isoformat() if kind == "timestamp" else text
    except (ValueError, OverflowError) as error:
        form = "2013-01-31" + ("" if kind == "date" else " 23:59:59Z")
        raise RefusedError(f"'{clip(text)}' is no {kind}", f"write it as {form}") from error
    return Constant(kind, f"{kind.upper()}'{text}'", iso, cast_to=kind)


def read_number(text: str) -> Constant:
    """A number of the type that Spark gives the same digits: INT, BIGINT, DECIMAL or DOUBLE.

    Raises:
        RefusedError: it is none, or greater than its type holds.
    """
    if re.fullmatch(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?", text) is None:
        raise RefusedError(f"`{clip(text)}` is no number", "write it as 1, 1.5 or 1e3")
    if "e" in text.lower():
        number = float(text)
        if math.isinf(number):
            raise RefusedError(f"{clip(text)} is too large", "stay below 1.8e308")
        return Constant("number", clip(text), number)
    exact = Decimal(text)
    if "." not in text and -_BIGINT <= exact < _BIGINT:
        return Constant("number", clip(text), int(exact))
    _, digits, exponent = exact.as_tuple()
    scale = -int(exponent)
    precision = max(len(digits), scale)
    if precision > MAX_PRECISION:
        raise RefusedError(f"{clip(text)} has over {MAX_PRECISION} digits", "round it")
    # As text, since Spark Connect would make any Decimal one of 18 decimals.
    return Constant("number", clip(text), text, cast_to=f"decimal({precision},{scale})")


def read_integer(node: exp.Expr | None, *, at_most: int, function: str) -> Constant:
    """A whole number, as functions take it that want a literal.

    Raises:
        RefusedError: it is no literal, or beyond `at_most` on either side of zero.
    """
    negative = type(node) is exp.Neg
    bare = node.this if node is not None and negative else node
    digits = str(bare.this) if type(bare) is exp.Literal and not bare.is_string else ""
    if re.fullmatch("[0-9]{1,10}", digits) is None or int(digits) > at_most:
        raise RefusedError(
            f"{function} takes whole numbers, as literals, up to {at_most:,}", "write such a one"
        )
    return read_number(("-" if negative else "") + digits)
