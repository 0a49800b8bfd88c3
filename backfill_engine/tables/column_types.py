"""Column types in Spark SQL's words: which there are, and what they are made of.

By a parser of our own: sqlglot takes `INT NOT NULL`, `INT)` and `ARRAY<ARAY<INT>>` without a word,
and every command would wait a fifth of a second for it.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

NESTED = frozenset({"ARRAY", "STRUCT", "MAP"})
TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING"),
    *("BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "ARRAY", "STRUCT", "MAP"),
)
"""All that a column may have."""

BARE = frozenset({"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"})
"""What JSON writes without quotation marks. A DECIMAL keeps all of its digits only as a string."""

_OTHER_NAMES = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}
_MOST_DIGITS = 38
MOST_DIGITS_OF_LONG = 18
"""Most digits of a DECIMAL that is hashed as 8 bytes."""

_TOKEN = re.compile(r"\s*(`[^`]*`|\w+|\S)")


@dataclass(frozen=True)
class ColumnType:
    """A type; its text is how this project spells it.

    Attributes:
        kind: one of `TYPES`.
        digits: of a DECIMAL, all and those behind the point; of a STRING that is a CHAR(n) or
            VARCHAR(n), the least and the most characters.
        parts: types of an ARRAY's element, of a MAP's key and value, of a STRUCT's fields.
        names: of a STRUCT's fields.
    """

    kind: str
    digits: tuple[int, ...] = ()
    parts: tuple["ColumnType", ...] = ()
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind == "STRING" and self.digits:
            least, most = self.digits
            return f"{'CHAR' if least else 'VARCHAR'}({most})"
        if self.kind == "DECIMAL":
            return f"DECIMAL({self.digits[0]},{self.digits[1]})"
        if self.kind == "STRUCT":
            names = (name if name.isascii() else f"`{name}`" for name in self.names)
            fields = zip(names, self.parts, strict=True)
            return f"STRUCT<{', '.join(f'{name}: {part}' for name, part in fields)}>"
        return self.kind + (f"<{', '.join(map(str, self.parts))}>" if self.parts else "")

    @property
    def has_wide_decimal(self) -> bool:
        """Whether a DECIMAL of more digits than an integer of 64 bits has is in it."""
        is_wide = self.kind == "DECIMAL" and self.digits[0] > 18
        return is_wide or any(part.has_wide_decimal for part in self.parts)

    @property
    def of_values(self) -> str:
        """The type that values have in Spark, which knows CHAR and VARCHAR only of tables."""
        return self.kind if self.kind == "STRING" else str(self)


@cache
def parse_type(text: str) -> ColumnType:
    """Parses a type as Spark SQL has it, in upper or lower case.

    Raises:
        ValueError: if it is none, with the cure.
    """
    tokens = _TOKEN.findall(text)
    tokens.reverse()
    found = _read_type(tokens)
    if tokens:
        raise ValueError(
            f"`{tokens[-1]}` follows the type {found}: a type says nothing of nulls or comments"
        )
    return found


def _read_type(tokens: list[str]) -> ColumnType:
    word = tokens.pop() if tokens else ""
    kind = _OTHER_NAMES.get(word.upper(), word.upper())
    if kind in ("CHAR", "VARCHAR"):
        return ColumnType("STRING", digits=_read_lengths(tokens, kind))
    if kind not in TYPES:
        raise ValueError(_describe_unknown(word, kind))
    if kind == "DECIMAL":
        return ColumnType(kind, digits=_read_digits(tokens))
    if kind not in NESTED:
        return ColumnType(kind)
    names: list[str] = []
    parts: list[ColumnType] = []
    for _ in _read_list(tokens, kind):
        if kind == "STRUCT":
            names.append(_read_name(tokens))
        parts.append(_read_part(tokens))
    if kind != "STRUCT" and len(parts) != (1 if kind == "ARRAY" else 2):
        raise ValueError(f"{kind} isn't whole: write ARRAY<INT> or MAP<STRING, INT>")
    if kind == "MAP" and _holds_map(parts[0]):
        raise ValueError("the key of a MAP can't be or hold a MAP: make it a STRING, or an ARRAY")
    if len({name.lower() for name in names}) < len(names):
        raise ValueError(f"a STRUCT has a field twice: name each once in {', '.join(names)}")
    return ColumnType(kind, parts=tuple(parts), names=tuple(names))


def _describe_unknown(word: str, kind: str) -> str:
    if kind == "VARIANT":
        return (
            "VARIANT can't be read by delta-rs, the second reader of every table: keep its JSON as "
            "STRING, or declare a STRUCT or a MAP<STRING, STRING>"
        )
    (nearest, *_) = (*difflib.get_close_matches(kind, TYPES, 1), "")
    meant = f"did you mean {nearest}?" if nearest else f"there are {', '.join(TYPES)}"
    return f"`{word}` is no type: {meant}"


def _read_part(tokens: list[str]) -> ColumnType:
    part = _read_type(tokens)
    if part.kind == "STRING" and part.digits:
        raise ValueError(f"{part} can't be a part of another type: write STRING there")
    return part


def _read_lengths(tokens: list[str], kind: str) -> tuple[int, int]:
    found = re.match(r"\((\d+)\)", "".join(reversed(tokens[-3:])))
    if not found or not int(found[1]):
        raise ValueError(f"{kind} needs its number of characters: write {kind}(10)")
    del tokens[-3:]
    most = int(found[1])
    return most if kind == "CHAR" else 0, most


def _read_digits(tokens: list[str]) -> tuple[int, int]:
    found = re.match(r"\((\d+)(?:,(\d+))?\)", "".join(reversed(tokens[-5:])))
    if not found:
        # Spark takes DECIMAL for DECIMAL(10,0), which hardly anybody means.
        raise ValueError("DECIMAL needs its digits: write DECIMAL(10,2)")
    del tokens[-3 if found[2] is None else -5 :]
    precision, scale = int(found[1]), int(found[2] or 0)
    if not 1 <= precision <= _MOST_DIGITS or scale > precision:
        raise ValueError(
            f"there is no DECIMAL({precision},{scale}): it has 1 to {_MOST_DIGITS} digits, and no "
            "more than these behind the point"
        )
    return precision, scale


def _read_list(tokens: list[str], kind: str) -> Iterator[None]:
    """Goes through `<…, …>`; whoever iterates reads what stands between."""
    mark = tokens.pop() if tokens else ""
    if mark != "<":
        raise ValueError(f"{kind} needs what it holds: write ARRAY<INT>, or STRUCT<a: INT>")
    while mark != ">":
        yield
        mark = tokens.pop() if tokens else ""
        if mark not in (",", ">"):
            raise ValueError(f"{kind}<…> isn't closed: write , or > for `{mark}`")


def _read_name(tokens: list[str]) -> str:
    name = tokens.pop().strip("`") if tokens else ""
    if not name.isidentifier():
        raise ValueError(f"a field of a STRUCT can't be called `{name}`: write letters and digits")
    if tokens and tokens[-1] == ":":
        tokens.pop()
    return name


def _holds_map(type_: ColumnType) -> bool:
    return type_.kind == "MAP" or any(map(_holds_map, type_.parts))


_WIDER = ("TINYINT", "SMALLINT", "INT", "BIGINT"), ("FLOAT", "DOUBLE")


def is_widening(stored: str, declared: str) -> bool:
    """Tells whether a type takes each value of another, narrower one as it is.

    Its canonical form (`contents.checksums`) is the same, too: checksums stay what they are.

    Args:
        stored: the narrower type, as `ColumnType` spells it; or one that no column can have.
        declared: the wider one.
    """
    try:
        narrow, wide = parse_type(stored), parse_type(declared)
    except ValueError:
        return False
    if narrow.kind == wide.kind == "DECIMAL":
        (digits, scale), (more, same) = narrow.digits, wide.digits
        in_longs = {count <= MOST_DIGITS_OF_LONG for count in (digits, more)}
        return scale == same and digits < more and len(in_longs) == 1
    return any(
        narrow.kind in kinds and wide.kind in kinds[kinds.index(narrow.kind) + 1 :]
        for kinds in _WIDER
    )


def spell_stored_type(stored: Any) -> str:
    """Spells a type of delta-rs as declarations do; one that none can have, as Delta does."""
    try:
        return str(_build_type(stored))
    except ValueError:
        return str(stored)


def _build_type(stored: Any) -> ColumnType:
    match getattr(stored, "type", ""):
        case "array":
            return ColumnType("ARRAY", parts=(_build_type(stored.element_type),))
        case "map":
            parts = (_build_type(stored.key_type), _build_type(stored.value_type))
            return ColumnType("MAP", parts=parts)
        case "struct":
            return ColumnType(
                "STRUCT",
                parts=tuple(_build_type(field.type) for field in stored.fields),
                names=tuple(field.name for field in stored.fields),
            )
        case name:
            return parse_type(name)
