"""From sqlglot's tree to Spark's columns: what a tree may hold, and values of which kinds.

A part of the tree that is known becomes a term, which can build a column; any other is refused.
What the tree doesn't tell any more is up to `grammar`, and so is what strings hold.
"""

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from backfill_engine.errors import FilterError
from backfill_engine.filters.grammar import ALLOWED, MAX_DEPTH, clip
from backfill_engine.tables.declarations import Table

_MAX_PRECISION = 38  # Digits of a DECIMAL, and decimals to which `round` rounds.
# Types of a kind are compared without a cast that could surprise. NULL is "null", the rest "other".
_KINDS = {
    "number": "(TINY|SMALL|BIG)?INT|FLOAT|DOUBLE|DECIMAL",
    "string": "STRING",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
_MOMENTS = {"date": _DATE, "timestamp": f"{_DATE}({_TIME})?"}
# sqlglot takes DATE'…' and TIMESTAMP'…' for casts; true casts are refused by their tokens.
_CASTS = {exp.DType.DATE: "date", exp.DType.TIMESTAMPTZ: "timestamp"}
_LOGIC = (exp.And, exp.Or, exp.Not)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Abs)
# These bind loosely, and not everywhere as in Spark: in anything but logic they need parentheses.
_LOOSE = (*_LOGIC, *_COMPARISONS, exp.Is, exp.In, exp.Between, exp.Like)
# What Spark calls them, where sqlglot's word isn't Spark's.
_SIGNS = ("=", "=", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/", "%", "negative", "abs")
_NAMES: dict[type[exp.Expr], str]
_NAMES = {**dict(zip((*_COMPARISONS, *_ARITHMETIC), _SIGNS, strict=True)), exp.Is: "isnull"}
# All that is known: for each operand, by sqlglot's name for it, the kinds that it may be of; and
# the kind of the result. "alike" are any that go together; a number limits a whole literal.
_RULES: dict[type[exp.Expr], tuple[dict[str, str | int], str]] = {
    **dict.fromkeys(_LOGIC, ({"this": "boolean null", "expression": "boolean null"}, "boolean")),
    **dict.fromkeys(_COMPARISONS, ({"this": "alike", "expression": "alike"}, "boolean")),
    **dict.fromkeys(_ARITHMETIC, ({"this": "number", "expression": "number"}, "number")),
    exp.Is: ({"this": "any", "expression": "null"}, "boolean"),
    exp.In: ({"this": "alike", "expressions": "alike"}, "boolean"),
    exp.Between: ({"this": "alike", "low": "alike", "high": "alike"}, "boolean"),
    exp.Like: ({"this": "string", "expression": "string"}, "boolean"),
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Trim), ({"this": "string"}, "string")),
    exp.Length: ({"this": "string"}, "number"),
    **dict.fromkeys((exp.Year, exp.Month, exp.Day), ({"this": "date timestamp"}, "number")),
    exp.Hour: ({"this": "timestamp"}, "number"),
    exp.Coalesce: ({"this": "alike", "expressions": "alike"}, "alike"),
    exp.Substring: ({"this": "string", "start": 2**31 - 1, "length": 2**31 - 1}, "string"),
    exp.Round: ({"this": "number", "decimals": _MAX_PRECISION}, "number"),
}
# What else sqlglot may note of them. Only `negate`, of NOT LIKE, matters.
_NOTES = {"typed", "safe", "negate"}


@dataclass(frozen=True)
class Term:
    """A part of a condition that is known.

    Attributes:
        node: what sqlglot read.
        kind: of its values.
        build: makes it a column, given the module `pyspark.sql.functions`.
        text: of a string or DATE literal, what can still be read as another kind.
    """

    node: exp.Expr
    kind: str
    build: Callable[[Any], Any]
    text: str | None = None

    @property
    def label(self) -> str:
        """What messages call it."""
        return clip(self.node.sql("spark", identify=True))


def read_condition(expression: exp.Expr, table: Table) -> Term:
    """Reads the condition in what sqlglot read, if all of it is allowed.

    Raises:
        FilterError: some of it isn't, or it is no condition.
        RecursionError: it is nested deeper than is allowed.
    """
    term = _read(expression, table, 1)
    if term.kind != "boolean":
        raise FilterError(f"{term.label} is no condition: compare it with something")
    return term


def _read(node: exp.Expr | None, table: Table, depth: int) -> Term:
    if depth > MAX_DEPTH:
        raise RecursionError
    while isinstance(node, (exp.Paren, exp.TsOrDsToDate)):  # The latter it adds in year(…).
        node = node.this
    if node is None:
        raise FilterError("a value is missing: write it")
    if type(node) is exp.Column:
        return _read_column(node, table)
    return _read_literal(node) or _read_operation(node, table, depth)


def _read_column(node: exp.Expr, table: Table) -> Term:
    cure = "its columns are " + ", ".join(table.column_names)
    if type(node.this) is not exp.Identifier or node.args.get("table"):
        raise FilterError(f"a qualified name, or a field of a column: {cure}")
    columns = {column.name.lower(): column for column in table.columns}
    column = columns.get(node.name.lower())
    if column is None:
        raise FilterError(f"`{clip(node.name)}` is no column of {table.key}: {cure}")
    quoted = "`" + column.name.replace("`", "``") + "`"
    declared = column.parsed_type.kind
    kinds = (kind for kind, types in _KINDS.items() if re.fullmatch(types, declared))
    return Term(node, next(kinds, "other"), lambda functions: functions.col(quoted))


def _read_literal(node: exp.Expr) -> Term | None:
    match node.key:
        case "literal" if node.is_string:
            return _make_constant(node, "string", node.name)
        case "literal":
            return _read_number(node, node.name)
        case "neg" if node.this.key == "literal" and not node.this.is_string:
            # Spark reads the sign as part of the literal, which matters for the least BIGINT.
            return _read_number(node, f"-{node.name}")
        case "boolean":
            return _make_constant(node, "boolean", node.to_py())
        case "null":
            return _make_constant(node, "null", None)
        case "cast" if node.this.is_string and node.args["to"].this in _CASTS:
            return _read_moment(node, node.name, _CASTS[node.args["to"].this])
    return None


def _read_number(node: exp.Expr, text: str) -> Term:
    """Reads a number as the type that Spark gives it: INT, BIGINT, DECIMAL or DOUBLE."""
    if "e" in text.lower():
        if abs(float(text)) == float("inf"):
            raise FilterError(f"{clip(text)} is too large: stay below 1.8e308")
        return _make_constant(node, "number", float(text))
    exact = Decimal(text)
    if "." not in text and -(2**63) <= exact < 2**63:
        return _make_constant(node, "number", int(exact))
    _, digits, exponent = exact.as_tuple()
    precision = max(len(digits), -int(exponent))
    if precision > _MAX_PRECISION:
        raise FilterError(f"{clip(text)} has over {_MAX_PRECISION} digits: round it")
    return _make_constant(node, "number", text, cast_to=f"decimal({precision},{-int(exponent)})")


def _read_moment(node: exp.Expr, text: str, kind: str) -> Term:
    """Reads a DATE or TIMESTAMP in ISO format; a timestamp without zone is UTC."""
    try:
        moment = dt.datetime.fromisoformat(text if re.fullmatch(_MOMENTS[kind], text) else "")
        moment = moment.replace(tzinfo=moment.tzinfo or dt.UTC).astimezone(dt.UTC)
    except (ValueError, OverflowError) as error:
        form = "2013-01-31" + ("" if kind == "date" else " 23:59:59Z")
        raise FilterError(f"'{clip(text)}' is no {kind}: write it as {form}") from error
    value = moment.date() if kind == "date" else moment
    return _make_constant(node, kind, value.isoformat(), cast_to=kind)


def _make_constant(node: exp.Expr, kind: str, value: Any, *, cast_to: str = "") -> Term:
    # What Python can't tell as Spark does, is cast from text: Spark Connect would make any Decimal
    # one of 18 decimals, and Python and Java disagree on dates before 1582.
    def build(functions: Any) -> Any:
        literal = functions.lit(value)
        return literal.cast(cast_to) if cast_to else literal

    return Term(node, kind, build, value if kind in ("string", "date") else None)


def _read_operation(node: exp.Expr, table: Table, depth: int) -> Term:
    operator, name = type(node), node.key.upper()
    if operator not in _RULES:
        raise FilterError(f"{name} isn't allowed: {ALLOWED}")
    kinds, result = _RULES[operator]
    if surplus := {key for key, value in node.args.items() if value} - kinds.keys() - _NOTES:
        raise FilterError(f"{name} with {min(surplus)} isn't allowed: {ALLOWED}")
    if operator is exp.Is and type(node.expression) is not exp.Null:
        raise FilterError("IS with something else than [NOT] NULL: compare with = or <=>")
    if operator is exp.In and not (node.expressions and all(map(_read_literal, node.expressions))):
        raise FilterError("IN without a list of literals: write IN (1, 2)")
    is_chain = isinstance(node, exp.Connector)  # It may be longer than Python's stack is deep.
    parts = node.flatten(unnest=False) if is_chain else node.iter_expressions()
    operands = [_read_operand(part, kinds[str(part.arg_key)], table, depth + 1) for part in parts]
    if "alike" in kinds.values():
        operands = _align_kinds(operands)
    if result == "alike":
        result = next((operand.kind for operand in operands if operand.kind != "null"), "null")
    if operator is exp.Is:
        operands.pop()
    is_negated = operator is exp.NEQ or node.args.get("negate")  # Spark has no function for <>.

    def build(functions: Any) -> Any:
        columns = [operand.build(functions) for operand in operands]
        column = _call(functions, _NAMES.get(operator, node.key), columns)
        return ~column if is_negated else column

    return Term(node, result, build)


def _read_operand(node: exp.Expr, kinds: str | int, table: Table, depth: int) -> Term:
    if isinstance(kinds, int):
        if not _read_literal(node) or not node.is_int or abs(node.to_py()) > kinds:
            raise FilterError(f"no literal up to {kinds:,}: substring and round take whole numbers")
        kinds = "number"
    if isinstance(node, _LOOSE) and not isinstance(node.parent, (exp.Func, *_LOGIC)):
        raise FilterError(f"{node.key.upper()} inside another operator: put it in parentheses")
    term = _read(node, table, depth)
    if kinds not in ("any", "alike") and term.kind not in kinds.split():
        wanted = kinds.removesuffix(" null").replace(" ", " or ")
        raise FilterError(f"{term.label} is no {wanted}: give one, types aren't cast")
    return term


def _align_kinds(terms: list[Term]) -> list[Term]:
    """Makes literals among the terms the kind of what they are compared with."""
    typed = [term for term in terms if term.kind != "null"]
    # A string yields to a DATE, and both to whatever can't be read otherwise.
    model = max(typed, key=lambda term: (term.text is None, term.kind == "date"), default=None)
    return [_convert(term, model) for term in terms] if model else terms


def _convert(term: Term, model: Term) -> Term:
    if model.kind == "other":
        raise FilterError(f"{model.label} can't be compared: only IS [NOT] NULL is for it")
    if term.kind in (model.kind, "null"):
        return term
    if term.text is not None and model.kind in _MOMENTS:
        return _read_moment(term.node, term.text, model.kind)
    problem = f"{term.label} beside {model.label}: one is a {term.kind}, the other a {model.kind}"
    raise FilterError(f"{problem}, and types aren't cast")


def _call(functions: Any, name: str, columns: list[Any]) -> Any:
    if len(columns) > 2 and name in ("and", "or"):  # A deep tree would overflow Spark's stack.
        middle = len(columns) // 2
        halves = columns[:middle], columns[middle:]
        columns = [half[0] if len(half) == 1 else _call(functions, name, half) for half in halves]
    return functions.call_function(f"`{name}`", *columns)
