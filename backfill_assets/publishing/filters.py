"""Row filters: a condition in Spark SQL, read against a table and rebuilt from allowed parts.

The text never reaches Spark. sqlglot reads it, and what it read is rebuilt as PySpark columns, part
by part; a part that isn't known here is refused. sqlglot forgives more than Spark does and reads a
few things differently (chained comparisons, surplus arguments, escapes in strings), so the tokens
are looked at as well: what is accepted means here what it means to Spark.
"""

import dataclasses
import datetime as dt
import functools
import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

import pyspark.sql
from pyspark.sql import functions as F
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import Token, TokenType

from backfill_assets.errors import FilterError
from backfill_assets.tables.declarations import Column, Table

MAX_LENGTH = 10_000
"""Characters of a filter."""

MAX_DEPTH = 50
"""Levels of parentheses, and of operators; a chain of ANDs or of ORs is one level."""

_MAX_PRECISION = 38
_INT, _BIGINT = 2**31, 2**63
_ALLOWED = (
    "use columns, literals, AND OR NOT, = <=> <> != < <= > >=, IS [NOT] NULL, [NOT] IN (literals), "
    "[NOT] BETWEEN, [NOT] LIKE, + - * / %, parentheses, and the functions "
)

_Kind = Literal["number", "string", "boolean", "date", "timestamp", "null", "other"]
_KINDS: dict[str, _Kind] = {
    **dict.fromkeys(("TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER"), "number"),
    **dict.fromkeys(("BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE"), "number"),
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC"), "number"),
    **dict.fromkeys(("STRING", "VARCHAR", "CHAR"), "string"),
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
}


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
        expression = _read_expression(text, table)
        _read_condition(expression, table)
    except (_RefusedError, SqlglotError, RecursionError) as error:
        shown = " ".join(_clip(text, 60).split())
        raise FilterError(f"row filter [{shown}]: {_describe(error)}") from error
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


def build_condition(row_filter: RowFilter, table: Table) -> pyspark.sql.Column:
    """The filter as a column: true, false, or null where nulls leave it open, as in SQL.

    The caller treats null as not matching; `where` does, but the negation of null is null again.
    Needs a session, of either kind. Parts of a timestamp (`hour(at)`) are those in the session's
    time zone. Dividing by zero and overflows fail when Spark computes them, if it is in ANSI mode.

    Args:
        row_filter: read against the same table.
        table: the table whose rows are filtered.
    """
    return _read_condition(row_filter.expression, table).build()


class _RefusedError(Exception):
    def __init__(self, problem: str, cure: str | None = None) -> None:
        super().__init__(f"{problem}: {cure or _ALLOWED + ' '.join(_ARITIES)}")


def _describe(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"nested too deeply: at most {MAX_DEPTH} levels are allowed"
    if isinstance(error, ParseError) and error.errors:
        where = error.errors[0]
        place = f"line {where.get('line')}, column {where.get('col')}"
        return f"no expression that can be read, see {place}: correct it there, or before"
    if isinstance(error, SqlglotError):
        return "no expression that can be read: close every quote"
    return " ".join(str(error).split())


def _clip(text: str, length: int = 40) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


# --- Tokens: what sqlglot forgives or forgets.

_ARITIES: dict[str, tuple[int, float]] = {
    **dict.fromkeys(("abs", "lower", "upper", "trim", "length"), (1, 1)),
    **dict.fromkeys(("year", "month", "day", "hour"), (1, 1)),
    "coalesce": (1, math.inf),
    "substring": (3, 3),
    "round": (1, 2),
}
_COMPARISONS = {
    TokenType.EQ,
    TokenType.NULLSAFE_EQ,
    TokenType.NEQ,
    TokenType.LT,
    TokenType.LTE,
    TokenType.GT,
    TokenType.GTE,
}
# After these, an open parenthesis isn't that of a function.
_BEFORE_PARENTHESIS = {
    *_COMPARISONS,
    TokenType.AND,
    TokenType.OR,
    TokenType.NOT,
    TokenType.IN,
    TokenType.BETWEEN,
    TokenType.LIKE,
    TokenType.PLUS,
    TokenType.DASH,
    TokenType.STAR,
    TokenType.SLASH,
    TokenType.MOD,
    TokenType.L_PAREN,
    TokenType.COMMA,
}
_TOKENS = {
    *_BEFORE_PARENTHESIS,
    TokenType.IS,
    TokenType.R_PAREN,
    TokenType.DOT,
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.STRING,
    TokenType.NUMBER,
    TokenType.TRUE,
    TokenType.FALSE,
    TokenType.NULL,
    TokenType.DATE,
    TokenType.TIMESTAMPTZ,
}
_SPARK = Dialect.get_or_raise("spark")


def _read_expression(text: str, table: Table) -> exp.Expr:
    if len(text) > MAX_LENGTH:
        raise _RefusedError(f"longer than {MAX_LENGTH:,} characters", "shorten it")
    if re.search("[\ud800-\udfff]", text):
        raise _RefusedError("half a character (a lone surrogate)", "write whole ones")
    tokens = _SPARK.tokenize(text)
    _check_gaps(text, tokens)
    if not tokens:
        raise _RefusedError("empty", "write a condition, or leave the filter out")
    _check_tokens(tokens, {name.lower() for name in table.column_names})
    _check_parentheses(tokens)
    expressions = _SPARK.parser().parse(_read_strings(text, tokens), text)
    if len(expressions) != 1 or expressions[0] is None:
        raise _RefusedError("not exactly one expression")
    return expressions[0]


def _check_gaps(text: str, tokens: Sequence[Token]) -> None:
    # Whatever is in no token is a comment, or something else that sqlglot skips.
    end = 0
    for token in tokens:
        if text[end : token.start].strip():
            break
        end = max(end, token.end + 1)
    if text[end:].strip():
        raise _RefusedError("a comment", "leave it out")


def _check_tokens(tokens: Sequence[Token], names: set[str]) -> None:
    for before, token, after in zip(
        (None, *tokens[:-1]), tokens, (*tokens[1:], None), strict=True
    ):
        kind, shown = token.token_type, _clip(token.text)
        if kind == TokenType.SEMICOLON:
            raise _RefusedError("more than one expression (`;`)", "write exactly one")
        if (kind not in _TOKENS and token.text.lower() not in names) or token.text == "!":
            raise _RefusedError(f"`{shown}` isn't allowed")
        if after and after.token_type == TokenType.L_PAREN and kind not in _BEFORE_PARENTHESIS:
            if kind != TokenType.VAR or token.text.lower() not in _ARITIES:
                raise _RefusedError(f"function `{shown}` isn't allowed")
        neighbours = {one.token_type for one in (before,) if one}, after and after.token_type
        if kind == TokenType.COMMA and (
            neighbours[0] & {TokenType.COMMA, TokenType.L_PAREN}
            or neighbours[1] == TokenType.R_PAREN
        ):
            raise _RefusedError("nothing where a value is due, beside a comma", "remove the comma")


def _check_parentheses(tokens: Sequence[Token]) -> None:
    # Before sqlglot recurses into them; it also drops arguments that it doesn't expect.
    opened: list[tuple[str, int]] = []
    for before, token in zip((None, *tokens[:-1]), tokens, strict=True):
        if token.token_type == TokenType.L_PAREN:
            called = before is not None and before.token_type == TokenType.VAR
            opened.append((before.text.lower() if before and called else "", 1))
        elif token.token_type == TokenType.COMMA and opened:
            opened[-1] = (opened[-1][0], opened[-1][1] + 1)
        elif token.token_type == TokenType.R_PAREN and opened:
            name, arguments = opened.pop()
            fewest, most = _ARITIES.get(name, (0, math.inf))
            if not fewest <= arguments <= most:
                wanted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
                raise _RefusedError(f"{name} of {arguments} arguments", f"it takes {wanted}")
        if len(opened) > MAX_DEPTH:
            raise RecursionError


# As Spark's own: a backslash before any other character but % and _ is dropped.
_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", flags=re.DOTALL
)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ESCAPES |= {"%": "\\%", "_": "\\_"}


def _read_strings(text: str, tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with strings as Spark reads them; neighbours are one string, as 'it''s' is."""
    read: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.STRING:
            read.append(token)
            continue
        raw, last = text[token.start : token.end + 1], read[-1] if read else None
        value = _ESCAPE.sub(_unescape, raw[1:-1])
        if re.search("[\ud800-\udfff]", value):
            raise _RefusedError("half a character (a lone surrogate)", "escape it as \\U0001F600")
        if last is not None and last.token_type == TokenType.STRING:
            read.pop()
            doubled = last.end + 1 == token.start and text[last.end] == raw[0]
            value = last.text + (raw[0] if doubled else "") + value
        start = token.start
        read.append(Token(TokenType.STRING, value, token.line, token.col, start, token.end))
    return read


def _unescape(match: re.Match[str]) -> str:
    short, long, octal, other = match.groups()
    if other is not None:
        return _ESCAPES.get(other, other)
    code = int(octal, 8) if octal else int(short or long, 16)
    if code > 0x10FFFF:
        raise _RefusedError(f"`{match[0]}` is no character", "end at \\U0010FFFF")
    return chr(code)


# --- Expressions: the allowed ones, typed. Reading checks; building is left for later, because
# columns can't be made without a session.


@dataclass(frozen=True)
class _Value:
    kind: _Kind
    label: str
    build: Callable[[], pyspark.sql.Column]
    # Of a string and of a DATE literal: what can still be read as another type.
    text: str | None = None


_OPERATORS: dict[type[exp.Expr], Callable[..., pyspark.sql.Column]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.NullSafeEQ: lambda left, right: left.eqNullSafe(right),
}
_ARITHMETIC: dict[type[exp.Expr], Callable[..., pyspark.sql.Column]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
    exp.Mod: operator.mod,
}
_DAYS: tuple[_Kind, ...] = ("date", "timestamp")
# Of one argument: its kinds, the kind of the result, and Spark's function.
_FUNCTIONS: dict[
    type[exp.Expr],
    tuple[tuple[_Kind, ...], _Kind, Callable[[pyspark.sql.Column], pyspark.sql.Column]],
] = {
    exp.Abs: (("number",), "number", F.abs),
    exp.Lower: (("string",), "string", F.lower),
    exp.Upper: (("string",), "string", F.upper),
    exp.Trim: (("string",), "string", F.trim),
    exp.Length: (("string",), "number", F.length),
    exp.Year: (_DAYS, "number", F.year),
    exp.Month: (_DAYS, "number", F.month),
    exp.Day: (_DAYS, "number", F.day),
    exp.Hour: (("timestamp",), "number", F.hour),
}
_JUNCTIONS: dict[type[exp.Expr], Callable[..., pyspark.sql.Column]] = {
    exp.And: operator.and_,
    exp.Or: operator.or_,
}
# These bind loosely, and not everywhere the same in sqlglot as in Spark: as operands of anything
# but AND, OR and NOT they need parentheses.
_LOOSE = (*_JUNCTIONS, *_OPERATORS, exp.Not, exp.Is, exp.In, exp.Between, exp.Like)
_ARGUMENTS: dict[type[exp.Expr], set[str]] = {
    exp.Div: {"this", "expression", "typed", "safe"},
    exp.Between: {"this", "low", "high"},
    exp.In: {"this", "expressions"},
    exp.Like: {"this", "expression", "negate"},
    exp.Coalesce: {"this", "expressions"},
    exp.Substring: {"this", "start", "length"},
    exp.Round: {"this", "decimals"},
}


def _read_condition(expression: exp.Expr, table: Table) -> _Value:
    value = _Reader(table).read(expression, 1)
    if value.kind != "boolean":
        raise _RefusedError(f"{value.label} is no condition", "compare it with something")
    return value


@dataclass(frozen=True)
class _Reader:
    table: Table

    def read(self, node: exp.Expr | None, depth: int) -> _Value:
        if depth > MAX_DEPTH:
            raise RecursionError
        while type(node) is exp.Paren:
            node = node.this
        kind = type(node)
        if node is None:
            raise _RefusedError("a value is missing")
        if kind in _JUNCTIONS:
            return self._read_junction(node, depth)
        if kind in _FUNCTIONS:
            return self._read_function(node, depth)
        read = _READERS.get(kind)
        if read is None:
            raise _RefusedError(f"{kind.key.upper()} isn't allowed")
        allowed = _ARGUMENTS.get(kind, {"this", "expression"})
        if surplus := [name for name, given in node.args.items() if given and name not in allowed]:
            raise _RefusedError(f"{kind.key.upper()} with {surplus[0]} isn't allowed")
        return read(self, node, depth)

    def _read_operand(self, node: exp.Expr | None, depth: int) -> _Value:
        if isinstance(node, _LOOSE):
            raise _RefusedError(
                f"{type(node).key.upper()} inside a comparison, or another operator",
                "put it in parentheses",
            )
        return self.read(node, depth + 1)

    def _read_junction(self, node: exp.Expr, depth: int) -> _Value:
        kind = type(node)
        parts = [
            _require(self.read(part, depth + 1), "boolean", "null") for part in _flatten(node)
        ]
        return _Value("boolean", kind.key.upper(), lambda: _fold(_JUNCTIONS[kind], parts))

    def _read_not(self, node: exp.Expr, depth: int) -> _Value:
        part = _require(self.read(node.this, depth + 1), "boolean", "null")
        return _Value("boolean", "NOT", lambda: ~part.build())

    def _read_comparison(self, node: exp.Expr, depth: int) -> _Value:
        compare = _OPERATORS[type(node)]
        left, right = _align(
            self._read_operand(node.this, depth), self._read_operand(node.expression, depth)
        )
        return _Value("boolean", "comparison", lambda: compare(left.build(), right.build()))

    def _read_arithmetic(self, node: exp.Expr, depth: int) -> _Value:
        compute = _ARITHMETIC[type(node)]
        left = _require(self._read_operand(node.this, depth), "number")
        right = _require(self._read_operand(node.expression, depth), "number")
        return _Value("number", "arithmetic", lambda: compute(left.build(), right.build()))

    def _read_negative(self, node: exp.Expr, depth: int) -> _Value:
        if type(node.this) is exp.Literal and not node.this.is_string:
            # Spark reads the sign as part of the literal, which matters for the least BIGINT.
            return _read_number("-" + str(node.this.this))
        part = _require(self._read_operand(node.this, depth), "number")
        return _Value("number", f"-{part.label}", lambda: -part.build())

    def _read_is(self, node: exp.Expr, depth: int) -> _Value:
        part = self._read_operand(node.this, depth)
        if type(node.expression) is not exp.Null:
            raise _RefusedError("IS with something else than [NOT] NULL", "compare with = or <=>")
        return _Value("boolean", "IS NULL", lambda: part.build().isNull())

    def _read_in(self, node: exp.Expr, depth: int) -> _Value:
        part = self._read_operand(node.this, depth)
        if not node.expressions:
            raise _RefusedError("IN without a list of literals", "write IN (1, 2)")
        items = [self._read_literal(item, depth) for item in node.expressions]
        first, *others = _align(part, *items)
        return _Value(
            "boolean", "IN", lambda: first.build().isin(*[item.build() for item in others])
        )

    def _read_literal(self, node: exp.Expr, depth: int) -> _Value:
        bare = node.this if type(node) is exp.Neg else node
        if type(bare) not in (exp.Literal, exp.Boolean, exp.Null, exp.Cast):
            raise _RefusedError("IN with something else than literals", "list literals only")
        return self.read(node, depth + 1)

    def _read_between(self, node: exp.Expr, depth: int) -> _Value:
        part, low, high = _align(
            *(self._read_operand(node.args[name], depth) for name in ("this", "low", "high"))
        )
        return _Value(
            "boolean", "BETWEEN", lambda: part.build().between(low.build(), high.build())
        )

    def _read_like(self, node: exp.Expr, depth: int) -> _Value:
        part = _require(self._read_operand(node.this, depth), "string")
        pattern = node.expression
        if type(pattern) is not exp.Literal or not pattern.is_string:
            raise _RefusedError("LIKE without a literal pattern", "write LIKE 'a%'")
        text = str(pattern.this)
        if re.fullmatch(r"(?:[^\\]|\\[\\%_])*", text, flags=re.DOTALL) is None:
            raise _RefusedError(
                "a stray backslash in a LIKE pattern",
                r"only \%, \_ and a doubled backslash are escapes, and strings halve backslashes",
            )
        negate = bool(node.args.get("negate"))
        return _Value(
            "boolean",
            "LIKE",
            lambda: ~part.build().like(text) if negate else part.build().like(text),
        )

    def _read_function(self, node: exp.Expr, depth: int) -> _Value:
        kind = type(node)
        kinds, result, call = _FUNCTIONS[kind]
        if any(given for name, given in node.args.items() if name != "this"):
            raise _RefusedError(f"{kind.key} of more than a value")
        argument = node.this
        if type(argument) is exp.TsOrDsToDate:
            argument = argument.this
        part = _require(self.read(argument, depth + 1), *kinds)
        return _Value(result, f"{kind.key}(…)", lambda: call(part.build()))

    def _read_coalesce(self, node: exp.Expr, depth: int) -> _Value:
        parts = _align(*(self.read(part, depth + 1) for part in (node.this, *node.expressions)))
        kind = next((part.kind for part in parts if part.kind != "null"), "null")
        return _Value(kind, "coalesce(…)", lambda: F.coalesce(*[part.build() for part in parts]))

    def _read_substring(self, node: exp.Expr, depth: int) -> _Value:
        part = _require(self.read(node.this, depth + 1), "string")
        start, length = (
            _read_integer(node.args[name], at_most=_INT - 1, label="substring")
            for name in ("start", "length")
        )
        return _Value(
            "string", "substring(…)", lambda: F.substring(part.build(), start, length)
        )

    def _read_round(self, node: exp.Expr, depth: int) -> _Value:
        part = _require(self.read(node.this, depth + 1), "number")
        decimals = node.args.get("decimals")
        scale = _read_integer(decimals, at_most=_MAX_PRECISION, label="round") if decimals else 0
        return _Value("number", "round(…)", lambda: F.round(part.build(), scale))

    def _read_column(self, node: exp.Expr, _: int) -> _Value:
        if type(node.this) is not exp.Identifier:
            raise _RefusedError("something else than a plain column", self._columns())
        wanted = str(node.this.this)
        column = _find_column(self.table, wanted)
        if column is None:
            raise _RefusedError(
                f"`{_clip(wanted)}` is no column of {self.table.key}", self._columns()
            )
        kind = _KINDS.get(column.type.partition("(")[0].strip().upper(), "other")
        quoted = "`" + column.name.replace("`", "``") + "`"
        return _Value(kind, f"`{column.name}` ({column.type})", lambda: F.col(quoted))

    def _columns(self) -> str:
        return "its columns are " + ", ".join(self.table.column_names)

    def _read_constant(self, node: exp.Expr, _: int) -> _Value:
        if type(node) is exp.Literal:
            text = str(node.this)
            return _string(text) if node.is_string else _read_number(text)
        if type(node) is exp.Boolean:
            truth = bool(node.this)
            return _Value("boolean", str(truth).upper(), lambda: F.lit(truth))
        return _Value("null", "NULL", lambda: F.lit(None))

    def _read_typed(self, node: exp.Expr, _: int) -> _Value:
        # DATE'…' and TIMESTAMP'…' come as casts; true ones are refused by their tokens.
        kinds: dict[object, Literal["date", "timestamp"]] = {
            exp.DType.DATE: "date",
            exp.DType.TIMESTAMPTZ: "timestamp",
        }
        kind = kinds.get(node.args["to"].this)
        if kind is None or type(node.this) is not exp.Literal or not node.this.is_string:
            raise _RefusedError("CAST isn't allowed")
        return _read_moment(str(node.this.this), kind)


_READERS: dict[type[exp.Expr], Callable[[_Reader, exp.Expr, int], _Value]] = {
    **dict.fromkeys(_OPERATORS, _Reader._read_comparison),
    **dict.fromkeys(_ARITHMETIC, _Reader._read_arithmetic),
    **dict.fromkeys((exp.Literal, exp.Boolean, exp.Null), _Reader._read_constant),
}
