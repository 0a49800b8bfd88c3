"""What sqlglot's tree of a condition may hold, and of which kinds."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from backfill_assets.filters.grammar import MAX_DEPTH, MAX_PRECISION
from backfill_assets.filters.kinds import align_kinds, find_kind, require_kind
from backfill_assets.filters.literals import read_integer, read_moment, read_number, read_string
from backfill_assets.filters.refusals import RefusedError, clip
from backfill_assets.filters.terms import ColumnReference, Constant, Kind, Operation, Term
from backfill_assets.tables.declarations import Table

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
# These bind loosely, and not everywhere the same in sqlglot as in Spark: as operands of anything
# but AND, OR and NOT they need parentheses.
_LOOSE = (exp.And, exp.Or, *_COMPARISONS, exp.Not, exp.Is, exp.In, exp.Between, exp.Like)
# Of one argument: its kinds, and the kind of the result.
_FUNCTIONS: dict[type[exp.Expr], tuple[tuple[Kind, ...], Kind]] = {
    exp.Abs: (("number",), "number"),
    exp.Lower: (("string",), "string"),
    exp.Upper: (("string",), "string"),
    exp.Trim: (("string",), "string"),
    exp.Length: (("string",), "number"),
    exp.Year: (("date", "timestamp"), "number"),
    exp.Month: (("date", "timestamp"), "number"),
    exp.Day: (("date", "timestamp"), "number"),
    exp.Hour: (("timestamp",), "number"),
}
# The arguments that sqlglot may have found; of all others one operand, or one on each side.
_ARGUMENTS: dict[type[exp.Expr], set[str]] = {
    **{function: {"this"} for function in _FUNCTIONS},
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
_MAX_INT = 2**31 - 1


def read_condition(expression: exp.Expr, table: Table) -> Term:
    """The condition that sqlglot read, if all of it is allowed.

    Raises:
        RefusedError: some of it isn't, or it is no condition.
        RecursionError: it is nested deeper than is allowed.
    """
    term = _Reader(table).read(expression, 1)
    if term.kind != "boolean":
        raise RefusedError(f"{term.label} is no condition", "compare it with something")
    return term


@dataclass(frozen=True)
class _Reader:
    table: Table

    def read(self, node: exp.Expr | None, depth: int) -> Term:
        if depth > MAX_DEPTH:
            raise RecursionError
        while type(node) is exp.Paren:
            node = node.this
        if node is None:
            raise RefusedError("a value is missing")
        operator = type(node)
        read = _READERS.get(operator)
        if read is None:
            raise RefusedError(f"{operator.key.upper()} isn't allowed")
        allowed = _ARGUMENTS.get(operator, {"this", "expression"})
        if surplus := [name for name, given in node.args.items() if given and name not in allowed]:
            raise RefusedError(f"{operator.key.upper()} with {surplus[0]} isn't allowed")
        return read(self, node, depth)

    def _read_operand(self, node: exp.Expr | None, depth: int) -> Term:
        if isinstance(node, _LOOSE):
            raise RefusedError(
                f"{type(node).key.upper()} inside a comparison, or another operator",
                "put it in parentheses",
            )
        return self.read(node, depth + 1)

    def _read_junction(self, node: exp.Expr, depth: int) -> Term:
        operands = (
            require_kind(self.read(part, depth + 1), "boolean", "null") for part in _flatten(node)
        )
        return Operation("boolean", type(node).key.upper(), type(node), tuple(operands))

    def _read_not(self, node: exp.Expr, depth: int) -> Term:
        operand = require_kind(self.read(node.this, depth + 1), "boolean", "null")
        return Operation("boolean", "NOT", exp.Not, (operand,))

    def _read_comparison(self, node: exp.Expr, depth: int) -> Term:
        left = self._read_operand(node.this, depth)
        right = self._read_operand(node.expression, depth)
        return Operation("boolean", "comparison", type(node), tuple(align_kinds(left, right)))

    def _read_arithmetic(self, node: exp.Expr, depth: int) -> Term:
        left = require_kind(self._read_operand(node.this, depth), "number")
        right = require_kind(self._read_operand(node.expression, depth), "number")
        return Operation("number", "arithmetic", type(node), (left, right))

    def _read_negative(self, node: exp.Expr, depth: int) -> Term:
        if type(node.this) is exp.Literal and not node.this.is_string:
            # Spark reads the sign as part of the literal, which matters for the least BIGINT.
            return read_number("-" + str(node.this.this))
        operand = require_kind(self._read_operand(node.this, depth), "number")
        return Operation("number", f"-{operand.label}", exp.Neg, (operand,))

    def _read_is(self, node: exp.Expr, depth: int) -> Term:
        operand = self._read_operand(node.this, depth)
        if type(node.expression) is not exp.Null:
            raise RefusedError("IS with something else than [NOT] NULL", "compare with = or <=>")
        return Operation("boolean", "IS NULL", exp.Is, (operand,))

    def _read_in(self, node: exp.Expr, depth: int) -> Term:
        operand = self._read_operand(node.this, depth)
        if not node.expressions:
            raise RefusedError("IN without a list of literals", "write IN (1, 2)")
        items = [self._read_item(item, depth) for item in node.expressions]
        return Operation("boolean", "IN", exp.In, tuple(align_kinds(operand, *items)))

    def _read_item(self, node: exp.Expr, depth: int) -> Term:
        bare = node.this if type(node) is exp.Neg else node
        if type(bare) not in (exp.Literal, exp.Boolean, exp.Null, exp.Cast):
            raise RefusedError("IN with something else than literals", "list literals only")
        return self.read(node, depth + 1)

    def _read_between(self, node: exp.Expr, depth: int) -> Term:
        operands = (
            self._read_operand(node.args.get(name), depth) for name in ("this", "low", "high")
        )
        return Operation("boolean", "BETWEEN", exp.Between, tuple(align_kinds(*operands)))

    def _read_like(self, node: exp.Expr, depth: int) -> Term:
        operand = require_kind(self._read_operand(node.this, depth), "string")
        pattern = node.expression
        if type(pattern) is not exp.Literal or not pattern.is_string:
            raise RefusedError("LIKE without a literal pattern", "write LIKE 'a%'")
        text = str(pattern.this)
        if re.fullmatch(r"(?:[^\\]|\\[\\%_])*", text, flags=re.DOTALL) is None:
            raise RefusedError(
                "a stray backslash in a LIKE pattern",
                r"only \%, \_ and a doubled backslash are escapes, and strings halve backslashes",
            )
        like = Operation("boolean", "LIKE", exp.Like, (operand, read_string(text)))
        return Operation("boolean", "LIKE", exp.Not, (like,)) if node.args.get("negate") else like

    def _read_function(self, node: exp.Expr, depth: int) -> Term:
        kinds, result = _FUNCTIONS[type(node)]
        argument = node.this
        if type(argument) is exp.TsOrDsToDate:
            argument = argument.this
        operand = require_kind(self.read(argument, depth + 1), *kinds)
        return Operation(result, f"{type(node).key}(…)", type(node), (operand,))

    def _read_coalesce(self, node: exp.Expr, depth: int) -> Term:
        parts = (self.read(part, depth + 1) for part in (node.this, *node.expressions))
        operands = align_kinds(*parts)
        kinds: list[Kind] = [operand.kind for operand in operands if operand.kind != "null"]
        kind = kinds[0] if kinds else "null"
        return Operation(kind, "coalesce(…)", exp.Coalesce, tuple(operands))

    def _read_substring(self, node: exp.Expr, depth: int) -> Term:
        operand = require_kind(self.read(node.this, depth + 1), "string")
        start, length = (
            read_integer(node.args.get(name), at_most=_MAX_INT, function="substring")
            for name in ("start", "length")
        )
        return Operation("string", "substring(…)", exp.Substring, (operand, start, length))

    def _read_round(self, node: exp.Expr, depth: int) -> Term:
        operands = [require_kind(self.read(node.this, depth + 1), "number")]
        if decimals := node.args.get("decimals"):
            operands.append(read_integer(decimals, at_most=MAX_PRECISION, function="round"))
        return Operation("number", "round(…)", exp.Round, tuple(operands))

    def _read_column(self, node: exp.Expr, _: int) -> Term:
        cure = "its columns are " + ", ".join(self.table.column_names)
        if type(node.this) is not exp.Identifier or node.args.get("table"):
            raise RefusedError("a qualified name, or a field of a column", cure)
        wanted = str(node.this.this)
        for column in self.table.columns:
            if column.name.lower() == wanted.lower():
                label = f"`{column.name}` ({column.type})"
                return ColumnReference(find_kind(column.type), label, column.name)
        raise RefusedError(f"`{clip(wanted)}` is no column of {self.table.key}", cure)

    def _read_constant(self, node: exp.Expr, _: int) -> Term:
        if type(node) is exp.Literal:
            text = str(node.this)
            return read_string(text) if node.is_string else read_number(text)
        if type(node) is exp.Boolean:
            return Constant("boolean", str(bool(node.this)).upper(), bool(node.this))
        return Constant("null", "NULL", None)

    def _read_typed(self, node: exp.Expr, _: int) -> Term:
        # DATE'…' and TIMESTAMP'…' come as casts; true ones are refused by their tokens.
        kinds: dict[object, Literal["date", "timestamp"]] = {
            exp.DType.DATE: "date",
            exp.DType.TIMESTAMPTZ: "timestamp",
        }
        kind = kinds.get(node.args["to"].this)
        if kind is None or type(node.this) is not exp.Literal or not node.this.is_string:
            raise RefusedError("CAST isn't allowed")
        return read_moment(str(node.this.this), kind)


_READERS: dict[type[exp.Expr], Callable[[_Reader, exp.Expr, int], Term]] = {
    **dict.fromkeys((exp.And, exp.Or), _Reader._read_junction),
    **dict.fromkeys(_COMPARISONS, _Reader._read_comparison),
    **dict.fromkeys(_ARITHMETIC, _Reader._read_arithmetic),
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
