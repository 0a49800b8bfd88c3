"""Which kinds of values go together. Literals adapt; nothing else is cast."""

from backfill_assets.filters.literals import read_moment
from backfill_assets.filters.refusals import RefusedError
from backfill_assets.filters.terms import Constant, Kind, Term

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER"), "number"),
    **dict.fromkeys(("BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE"), "number"),
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC"), "number"),
    **dict.fromkeys(("STRING", "VARCHAR", "CHAR"), "string"),
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
}
# A string yields to a date, and a date to a timestamp.
_RANKS: dict[Kind, int] = {"timestamp": 0, "date": 1}


def find_kind(column_type: str) -> Kind:
    """The kind of a column, from its Spark SQL type."""
    return _KINDS.get(column_type.partition("(")[0].strip().upper(), "other")


def require_kind(term: Term, *kinds: Kind) -> Term:
    """The term, if it is of one of these kinds.

    Raises:
        RefusedError: it isn't.
    """
    if term.kind not in kinds:
        raise RefusedError(
            f"{term.label} is no {' or '.join(kind for kind in kinds if kind != 'null')}",
            "give one, types aren't cast",
        )
    return term


def align_kinds(*terms: Term) -> list[Term]:
    """The terms, with literals made the kind of what they are compared with.

    Raises:
        RefusedError: they can't be compared without a cast.
    """
    typed = [term for term in terms if term.kind != "null"]
    if not typed:
        return list(terms)
    firm = [term for term in typed if _find_text(term) is None]
    model = firm[0] if firm else min(typed, key=lambda term: _RANKS.get(term.kind, 2))
    return [_convert(term, model) for term in terms]


def _convert(term: Term, model: Term) -> Term:
    if model.kind == "other":
        raise RefusedError(f"{model.label} can't be compared", "only IS [NOT] NULL is for it")
    if term.kind in (model.kind, "null"):
        return term
    text = _find_text(term)
    if text is not None and model.kind == "timestamp":
        return read_moment(text, "timestamp")
    if text is not None and term.kind == "string" and model.kind == "date":
        return read_moment(text, "date")
    raise RefusedError(
        f"{term.label} beside {model.label} isn't allowed, one is a {term.kind}, the other a "
        f"{model.kind}",
        "compare like with like, types aren't cast",
    )


def _find_text(term: Term) -> str | None:
    """Of a string or DATE literal, what can still be read as another type."""
    if isinstance(term, Constant) and term.kind in ("string", "date"):
        return str(term.value)
    return None
