"""How filters are read and combined: without Spark, whatever their texts."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backfill_engine.errors import FilterError
from backfill_engine.filters.row_filters import combine_filters, parse_filter
from backfill_engine_tests.filters.things import TABLE


def test_needs_neither_spark_nor_dagster() -> None:
    code = "import sys, backfill_engine.filters.row_filters; "
    code += "sys.exit(bool({'pyspark', 'dagster'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_combined_filter_of_one_text_is_that_text_and_of_none_is_none() -> None:
    assert combine_filters(TABLE, None, "", " ok ") == parse_filter("ok", TABLE)
    assert combine_filters(TABLE, None, "", " ") is None
    assert combine_filters(TABLE) is None


@pytest.mark.parametrize("text", ["ok) or (ok", "ok -- ", "ok) or (true) --", "ok or 'a"])
def test_combined_texts_cannot_reach_into_each_other(text: str) -> None:
    with pytest.raises(FilterError):
        combine_filters(TABLE, "id = 1", text)
    with pytest.raises(FilterError):
        combine_filters(TABLE, text, "id = 1")


def test_filters_are_equal_if_their_texts_are() -> None:
    assert parse_filter(" id = 1", TABLE) == parse_filter("id = 1 ", TABLE)
    assert parse_filter("id = 1", TABLE) != parse_filter("id  = 1", TABLE)


def build_texts() -> st.SearchStrategy[str]:
    """Allowed conditions, of every kind of part, nested a little."""
    numbers = st.recursive(
        st.one_of(
            st.sampled_from(["id", "amount", "`PRICE`", "year(day)", "length(name)", "-id"]),
            st.integers(-(2**70), 2**70).map(str),
            st.decimals(-1000, 1000, places=3).map(lambda number: f"{number:f}"),
        ),
        lambda part: st.one_of(
            st.tuples(part, st.sampled_from("+-*/%"), part).map(
                lambda operation: f"({' '.join(operation)})"
            ),
            part.map(lambda operand: f"abs({operand})"),
            part.map(lambda operand: f"round({operand}, 1)"),
            part.map(lambda operand: f"coalesce({operand}, NULL, 1)"),
        ),
        max_leaves=4,
    )
    quoted = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8).map(
        lambda text: "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    )
    strings = st.one_of(quoted, st.sampled_from(["name", "lower(Name)", "substring(name, -2, 1)"]))
    days = st.one_of(
        st.just("day"), st.dates().map(lambda day: f"DATE'{day}'"), st.dates().map("'{}'".format)
    )
    signs = st.sampled_from(["=", "<=>", "<>", "!=", "<", "<=", ">", ">="])
    atoms = st.one_of(
        st.sampled_from(["ok", "TRUE", "name IS NULL", "tags IS NOT NULL", "at < '2024-01-01'"]),
        st.tuples(numbers, signs, numbers).map(" ".join),
        st.tuples(strings, signs, strings).map(" ".join),
        st.tuples(st.just("day"), signs, days).map(" ".join),
        st.lists(quoted, min_size=1, max_size=3).map(lambda all: f"name IN ({', '.join(all)})"),
        numbers.map(lambda number: f"{number} NOT BETWEEN 1 AND id"),
    )
    return st.recursive(
        atoms,
        lambda part: st.one_of(
            st.tuples(part, st.sampled_from([" AND ", " OR "]), part).map("".join),
            part.map(lambda condition: f"NOT ({condition})"),
        ),
        max_leaves=5,
    )


@given(first=build_texts(), second=build_texts())
def test_allowed_texts_are_read_alone_and_combined(first: str, second: str) -> None:
    combined = combine_filters(TABLE, first, second)
    assert combined is not None
    parts = [parse_filter(text, TABLE) for text in (first, second)]
    assert combined.text == f"({parts[0].text}) AND ({parts[1].text})"
    assert [side.this for side in (combined.expression.this, combined.expression.expression)] == [
        part.expression for part in parts
    ]


FRAGMENTS = r"""
    ( ) , . ; ' " ` \ = < > ! <=> + - * / % -- /* */ [ ] { } : :: ? @ $ # | & ^ ~ -> =>
    id day name ok at and or not is null in between like date timestamp interval
    select from where case when then end cast as exists distinct over array map struct
    year( round( coalesce( trim( 1 .5 1e 1e9 0x 1L 'a' r'a' DATE'2024-01-01'
"""
fragments = st.sampled_from(FRAGMENTS.split())


@given(text=st.one_of(st.text(), st.lists(fragments).map(" ".join)))
@settings(max_examples=500)
def test_garbage_is_refused_or_read_and_raises_nothing_else(text: str) -> None:
    try:
        read = parse_filter(text, TABLE)
    except FilterError as refusal:
        assert len(str(refusal).splitlines()) == 1
    else:
        assert read.text == text.strip()
