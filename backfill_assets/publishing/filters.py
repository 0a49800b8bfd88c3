"""Row filters: a condition in Spark SQL, read against a table and rebuilt from allowed parts.

The text never reaches Spark. sqlglot reads it, and what it read is rebuilt as PySpark columns, part
by part; a part that isn't known here is refused. sqlglot forgives more than Spark does and reads a
few things differently (chained comparisons, surplus arguments, escapes in strings), so the tokens
are looked at as well: what is accepted means here what it means to Spark.
"""

import datetime as dt
import itertools
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

import pyspark.sql
from pyspark.sql import functions as F
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from backfill_assets.errors import FilterError
from backfill_assets.tables.declarations import Column, Table

MAX_LENGTH = 10_000
"""Characters of a filter."""

MAX_DEPTH = 50
"""Levels of operators and functions; a chain of ANDs or of ORs is one level."""

MAX_PARENTHESES = 20
"""Levels of parentheses. sqlglot takes some twenty stack frames for each."""

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
# Of what an open parenthesis may follow, all but a function's name.
_JOINING = "EQ NULLSAFE_EQ NEQ LT LTE GT GTE AND OR NOT IN BETWEEN LIKE PLUS DASH STAR SLASH MOD"
_BEFORE_PARENTHESIS = {TokenType[name] for name in f"{_JOINING} L_PAREN COMMA".split()}
_VALUES = "VAR IDENTIFIER STRING NUMBER TRUE FALSE NULL DATE TIMESTAMPTZ R_PAREN"
_ENDS_VALUE = {TokenType[name] for name in _VALUES.split()}
_TOKENS = _BEFORE_PARENTHESIS | _ENDS_VALUE | {TokenType.IS, TokenType.DOT}
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
    if any(token.token_type == TokenType.SEMICOLON for token in tokens):
        raise _RefusedError("more than one expression (`;`)", "write exactly one")
    for token, after in itertools.pairwise(tokens):
        _check_pair(token, token.token_type, after.token_type)
    for token, then, last in zip(tokens, tokens[1:], tokens[2:], strict=False):
        kinds = (then.token_type, last.token_type)
        if token.token_type in _ENDS_VALUE and kinds == (TokenType.NOT, TokenType.NULL):
            raise _RefusedError("NOT NULL without IS", "write IS NOT NULL")
    for token in tokens:
        if token.token_type == TokenType.NOT and token.text == "!":
            raise _RefusedError("`!` isn't allowed", "write NOT")
        if token.token_type not in _TOKENS and token.text.lower() not in names:
            raise _RefusedError(f"`{_clip(token.text)}` isn't allowed")


def _check_pair(token: Token, kind: TokenType, after: TokenType) -> None:
    comma = TokenType.COMMA
    if after == TokenType.L_PAREN and kind not in _BEFORE_PARENTHESIS:
        if kind != TokenType.VAR or token.text.lower() not in _ARITIES:
            raise _RefusedError(f"function `{_clip(token.text)}` isn't allowed")
    elif (kind, after) in ((TokenType.L_PAREN, comma), (comma, comma), (comma, TokenType.R_PAREN)):
        raise _RefusedError("a comma with nothing beside it", "remove the comma")


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
        if len(opened) > MAX_PARENTHESES:
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


_COMPARE: dict[type[exp.Expr], Callable[..., pyspark.sql.Column]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.NullSafeEQ: lambda left, right: left.eqNullSafe(right),
}
_COMPUTE: dict[type[exp.Expr], Callable[..., pyspark.sql.Column]] = {
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
_LOOSE = (*_JUNCTIONS, *_COMPARE, exp.Not, exp.Is, exp.In, exp.Between, exp.Like)
_ARGUMENTS: dict[type[exp.Expr], set[str]] = {
    exp.Div: {"this", "expression", "typed", "safe"},
    exp.Between: {"this", "low", "high"},
    exp.In: {"this", "expressions"},
    exp.Like: {"this", "expression", "negate"},
    exp.Coalesce: {"this", "expressions"},
    exp.Substring: {"this", "start", "length"},
    exp.Round: {"this", "decimals"},
    exp.Literal: {"this", "is_string"},
    exp.Cast: {"this", "to"},
    exp.Column: {"this", "table", "db", "catalog"},
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
        if node is None:
            raise _RefusedError("a value is missing")
        kind = type(node)
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
        parts = [_require(self.read(part, depth + 1), "boolean", "null") for part in _flatten(node)]
        return _Value(
            "boolean",
            kind.key.upper(),
            lambda: _fold(_JUNCTIONS[kind], [part.build() for part in parts]),
        )

    def _read_not(self, node: exp.Expr, depth: int) -> _Value:
        part = _require(self.read(node.this, depth + 1), "boolean", "null")
        return _Value("boolean", "NOT", lambda: ~part.build())

    def _read_comparison(self, node: exp.Expr, depth: int) -> _Value:
        compare = _COMPARE[type(node)]
        left, right = _align(
            self._read_operand(node.this, depth), self._read_operand(node.expression, depth)
        )
        return _Value("boolean", "comparison", lambda: compare(left.build(), right.build()))

    def _read_arithmetic(self, node: exp.Expr, depth: int) -> _Value:
        compute = _COMPUTE[type(node)]
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
        return _Value("boolean", "BETWEEN", lambda: part.build().between(low.build(), high.build()))

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
        argument = node.this
        if type(argument) is exp.TsOrDsToDate:
            argument = argument.this
        part = _require(self.read(argument, depth + 1), *kinds)
        return _Value(result, f"{kind.key}(…)", lambda: call(part.build()))

    def _read_coalesce(self, node: exp.Expr, depth: int) -> _Value:
        parts = _align(*(self.read(part, depth + 1) for part in (node.this, *node.expressions)))
        kinds: list[_Kind] = [part.kind for part in parts if part.kind != "null"]
        kind = kinds[0] if kinds else "null"
        return _Value(kind, "coalesce(…)", lambda: F.coalesce(*[part.build() for part in parts]))

    def _read_substring(self, node: exp.Expr, depth: int) -> _Value:
        part = _require(self.read(node.this, depth + 1), "string")
        start, length = (
            _read_integer(node.args[name], at_most=_INT - 1, label="substring")
            for name in ("start", "length")
        )
        return _Value("string", "substring(…)", lambda: F.substring(part.build(), start, length))

    def _read_round(self, node: exp.Expr, depth: int) -> _Value:
        part = _require(self.read(node.this, depth + 1), "number")
        decimals = node.args.get("decimals")
        scale = _read_integer(decimals, at_most=_MAX_PRECISION, label="round") if decimals else 0
        return _Value("number", "round(…)", lambda: F.round(part.build(), scale))

    def _read_column(self, node: exp.Expr, _: int) -> _Value:
        if type(node.this) is not exp.Identifier or node.args.get("table"):
            raise _RefusedError("a qualified name, or a field of a column", self._columns())
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
            return _read_text(text) if node.is_string else _read_number(text)
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
    **dict.fromkeys(_JUNCTIONS, _Reader._read_junction),
    **dict.fromkeys(_COMPARE, _Reader._read_comparison),
    **dict.fromkeys(_COMPUTE, _Reader._read_arithmetic),
    **dict.fromkeys(_FUNCTIONS, _Reader._read_function),
    **dict.fromkeys((exp.Literal, exp.Boolean, exp.Null), _Reader._read_constant),
    exp.Not: _Reader._read_not,
    exp.Neg: _Reader._read_negative,
    exp.Is: _Reader._read_is,
    exp.In: _Reader._read_in,
    exp.Between: _Reader._read_between,
    exp.Like: _Reader._read_like,
    exp.Coalesce: _Reader._read_coalesce,
    exp.Substring: _Reader._read_substring,
    exp.Round: _Reader._read_round,
    exp.Column: _Reader._read_column,
    exp.Cast: _Reader._read_typed,
}


def _find_column(table: Table, name: str) -> Column | None:
    for column in table.columns:
        if column.name.lower() == name.lower():
            return column
    return None


def _flatten(junction: exp.Expr) -> list[exp.Expr]:
    """The parts of a chain of ANDs or ORs, which may be longer than Python's stack is deep."""
    parts: list[exp.Expr] = []
    waiting = [junction]
    while waiting:
        node = waiting.pop()
        if type(node) is type(junction):
            waiting += (node.expression, node.this)
        else:
            parts.append(node)
    return parts


def _fold(
    join: Callable[..., pyspark.sql.Column], columns: list[pyspark.sql.Column]
) -> pyspark.sql.Column:
    """Joins neighbours, then their results, and so on: a deep tree would overflow Spark's stack."""
    while len(columns) > 1:
        paired = itertools.zip_longest(columns[::2], columns[1::2])
        columns = [left if right is None else join(left, right) for left, right in paired]
    return columns[0]


def _require(value: _Value, *kinds: _Kind) -> _Value:
    if value.kind not in kinds:
        raise _RefusedError(
            f"{value.label} is no {' or '.join(kind for kind in kinds if kind != 'null')}",
            "give one, types aren't cast",
        )
    return value


def _align(*values: _Value) -> list[_Value]:
    """Makes literals the type of what they are compared with; nothing else is cast."""
    firm = [value for value in values if value.text is None and value.kind != "null"]
    # Literals among themselves: a string yields to a date, and a date to a timestamp.
    ranks: dict[_Kind, int] = {"timestamp": 0, "date": 1}
    loose = sorted(
        (value for value in values if value.kind != "null"), key=lambda one: ranks.get(one.kind, 2)
    )
    model = next(iter(firm or loose), None)
    return [value if model is None else _convert(value, model) for value in values]


def _convert(value: _Value, model: _Value) -> _Value:
    if model.kind == "other":
        raise _RefusedError(f"{model.label} can't be compared", "only IS [NOT] NULL is for it")
    if value.kind in (model.kind, "null"):
        return value
    if value.text is not None and model.kind == "timestamp":
        return _read_moment(value.text, "timestamp")
    if value.text is not None and value.kind == "string" and model.kind == "date":
        return _read_moment(value.text, "date")
    raise _RefusedError(
        f"{value.label} beside {model.label} isn't allowed, one is a {value.kind}, the other a "
        f"{model.kind}",
        "compare like with like, types aren't cast",
    )


_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


def _read_moment(text: str, kind: Literal["date", "timestamp"]) -> _Value:
    """A DATE or TIMESTAMP literal; a timestamp without zone is UTC."""
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
        raise _RefusedError(f"'{_clip(text)}' is no {kind}", f"write it as {form}") from error
    # As text with its zone, since Python and Java disagree on dates before 1582.
    return _Value(
        kind,
        f"{kind.upper()}'{text}'",
        lambda: F.lit(iso).cast(kind),
        text if kind == "date" else None,
    )


def _read_text(text: str) -> _Value:
    return _Value("string", f"'{_clip(text)}'", lambda: F.lit(text), text)


def _read_number(text: str) -> _Value:
    """A number of the type that Spark gives the same digits: INT, BIGINT, DECIMAL or DOUBLE."""
    if re.fullmatch(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?", text) is None:
        raise _RefusedError(f"`{_clip(text)}` is no number", "write it as 1, 1.5 or 1e3")
    if "e" in text.lower():
        number = float(text)
        if math.isinf(number):
            raise _RefusedError(f"{_clip(text)} is too large", "stay below 1.8e308")
        return _Value("number", _clip(text), lambda: F.lit(number))
    exact = Decimal(text)
    if "." not in text and -_BIGINT <= exact < _BIGINT:
        return _Value("number", _clip(text), lambda: F.lit(int(exact)))
    _, digits, exponent = exact.as_tuple()
    scale = -int(exponent)
    precision = max(len(digits), scale)
    if precision > _MAX_PRECISION:
        raise _RefusedError(f"{_clip(text)} has over {_MAX_PRECISION} digits", "round it")
    # Spark Connect would make any decimal one of 18 decimals.
    return _Value("number", _clip(text), lambda: F.lit(text).cast(f"decimal({precision},{scale})"))


def _read_integer(node: exp.Expr | None, *, at_most: int, label: str) -> int:
    negative = type(node) is exp.Neg
    bare = node.this if node is not None and negative else node
    digits = str(bare.this) if type(bare) is exp.Literal and not bare.is_string else ""
    if re.fullmatch("[0-9]{1,10}", digits) is None or int(digits) > at_most:
        raise _RefusedError(
            f"{label} takes whole numbers, as literals, up to {at_most:,}", "write such a one"
        )
    return -int(digits) if negative else int(digits)
