"""What a filter may say, that it means what Spark takes it for, and that nothing else gets in."""

import datetime as dt
import random
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_assets.errors import FilterError
from backfill_assets.publishing.filters import (
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_PARENTHESES,
    build_condition,
    combine_filters,
    parse_filter,
)
from backfill_assets.tables.declarations import Column, Table, build_ddl, required

TABLE = Table(
    layer="raw",
    name="things",
    partition_by="day",
    columns=(
        required("day", "DATE", "Day"),
        required("id", "BIGINT", "Number"),
        Column("name", "STRING", "Name"),
        Column("amount", "DOUBLE", "Amount"),
        Column("price", "DECIMAL(10,2)", "Price"),
        Column("ok", "BOOLEAN", "Whether it is"),
        Column("at", "TIMESTAMP", "Instant"),
        Column("tags", "ARRAY<STRING>", "Tags"),
        Column("odd.name", "INT", "A name that needs quotes"),
    ),
)

REFUSED = {
    "": "empty",
    " \n\t ": "empty",
    "-- only a comment": "a comment",
    "id = 1 -- comment": "a comment",
    "id = 1 /* comment */": "a comment",
    "/*+ BROADCAST(things) */ id = 1": "a comment",
    "1=1; drop table x": "more than one expression",
    "id = 1;": "more than one expression",
    "select 1": "`select`",
    "id = 1 union select 1": "`union`",
    "exists(select 1)": "function `exists`",
    "id = (select 1)": "`select`",
    "id in (select 1)": "`select`",
    "java_method('a', 'b')": "function `java_method`",
    "`abs`(id) = 1": "function `abs`",
    "substr(name, 1, 2) = 'a'": "function `substr`",
    "count(*) > 1": "function `count`",
    "sum(id) > 1": "function `sum`",
    "day = current_date()": "function `current_date`",
    "day = current_date": "`current_date`",
    "year(day) over () = 1": "function `over`",
    "cast(id as int) = 1": "function `cast`",
    "id::int = 1": "`::`",
    "day = '2024-01-01'::date": "`::`",
    "day = date('2024-01-01')": "function `date`",
    "case when ok then 1 else 2 end = 1": "`case`",
    "exists(tags, x -> x = 'a')": "function `exists`",
    "tags[0] = 'a'": r"`\[`",
    "id = ?": r"`\?`",
    "id = :x": "`:`",
    "id = ${x}": r"`\$`",
    "id = {{x}}": "`{`",
    "id = @x": "`@`",
    "*": "STAR",
    "abs(*) = 1": "STAR",
    "t.id = 1": "a qualified name",
    "day.id = 1": "a qualified name",
    "nope = 1": "`nope` is no column of raw/things: its columns are day, id, name",
    "name = nope": "`nope` is no column",
    "name = \n'a": "close every quote",
    "`id = 1": "close every quote",
    "((id = 1)": "line 1, column 9",
    "id = 1)": "line 1, column 7",
    "id =": "no expression that can be read",
    "id = 1 and": "no expression that can be read",
    "id = 1 name": "ALIAS",
    "(id, id) = (1, 2)": "TUPLE",
    "(" * 4_900 + "ok" + ")" * 4_900: "nested too deeply",
    "(" * 5_000 + "ok" + ")" * 5_000: "longer than 10,000",
    "not " * 2_400 + "ok": "nested too deeply",
    "- " * 4_000 + "id = 1": "nested too deeply",
    "(" * (MAX_PARENTHESES + 1) + "ok" + ")" * (MAX_PARENTHESES + 1): "nested too deeply",
    "not " * MAX_DEPTH + "ok": "nested too deeply",
    "ok and " * (MAX_LENGTH // 7) + "ok  and ok": "longer than 10,000",
    # No conditions.
    "id": "no condition",
    "5": "no condition",
    "'true'": "no condition",
    "null": "no condition",
    "id + 1": "no condition",
    "lower(name)": "no condition",
    "coalesce(id, 1)": "no condition",
    "not id": "no boolean",
    "ok and id": "no boolean",
    # Types that Spark would cast, or fail on.
    "name = 5": "5 beside `name`",
    "name in ('a', 5)": "5 beside `name`",
    "coalesce(name, 5) = 'a'": "5 beside `name`",
    "id = '5'": "'5' beside `id`",
    "id between 1 and '5'": "'5' beside `id`",
    "id = true": "TRUE beside `id`",
    "ok = 1": "1 beside `ok`",
    "day = 'yesterday'": "'yesterday' is no date",
    "day = '2024-02-30'": "'2024-02-30' is no date",
    "day = '2024-1-1'": "'2024-1-1' is no date",
    "day = '2024-01-01 10:00:00'": "is no date",
    "day = DATE'2024-13-01'": "is no date",
    "at < TIMESTAMP'2024-01-01 25:00:00'": "is no timestamp",
    "at < 'noon'": "'noon' is no timestamp",
    "at < '0001-01-01 00:00:00+01:00'": "is no timestamp",
    "at = TIMESTAMP_NTZ'2024-01-01'": "`TIMESTAMP_NTZ`",
    "day = at": "beside `day`",
    "day = TIMESTAMP'2024-01-01 00:00:00'": "beside `day`",
    "day = 20240101": "20240101 beside `day`",
    "day + 1 = day": "no number",
    "name like 5": "literal pattern",
    "id like '5%'": "no string",
    "tags = tags": "only IS",
    "hour(day) = 1": "no timestamp",
    "year('2024-01-01') = 2024": "no date",
    "abs(name) = 1": "no number",
    # What sqlglot reads, but reads differently from Spark, or Spark doesn't.
    "id = 1 = ok": "EQ inside",
    "ok = id < 2": "LT inside",
    "id is null is null": "IS inside",
    "id between 1 and id = 2": "BETWEEN inside",
    "id not null": "NOT NULL without IS",
    "id isnull": "`isnull`",
    "id is not distinct from 1": "`distinct`",
    "ok is true": "IS with something else",
    "ok in ()": "without a list",
    "id in 1": "IN with field",
    "id in (id)": "literals",
    "id in ((1))": "literals",
    "id in (1,)": "a comma",
    "year(day, id) = 2024": "year of 2 arguments",
    "lower(name, name) = 'a'": "lower of 2 arguments",
    "year() = 1": "missing",
    "substring(name, 1) = 'a'": "substring of 2 arguments",
    "substring(name, id, 1) = 'a'": "whole numbers",
    "round(amount, 2000000000) = 1": "whole numbers",
    "round(amount, 1, 1) = 1": "round of 3 arguments",
    "trim(both 'x' from name) = 'a'": "`both`|`from`",
    "id between symmetric 1 and 2": "symmetric",
    "!ok": "write NOT",
    "ok && ok": "`&&`",
    "name || 'a' = 'b'": r"`\|\|`",
    "id div 2 = 1": "`div`",
    "id & 1 = 1": "`&`",
    "id = 1L": "`::`",
    "id = 0x1F": "`1F`",
    "id = 1e": "no number",
    "id = 1e999": "too large",
    "id = " + "9" * 39: "over 38 digits",
    "id = " + "9" * 9_000: "over 38 digits",
    "name ilike 'a'": "`ilike`",
    "name rlike 'a'": "`rlike`",
    "name like any ('a', 'b')": "`any`",
    "name like 'a!%' escape '!'": "`escape`",
    r"name like 'a\\b'": "stray backslash",
    r"name like 'a\\'": "stray backslash",
    r"name = '\uD83D'": "half a character",
    "name = '\ud83d'": "half a character",
    r"name = '\UFFFFFFFF'": "no character",
    "name = r'a'": "`a`",
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.items(), ids=[ascii(t)[:40] for t in REFUSED])
def test_refused_in_one_line_that_names_the_problem(text: str, problem: str) -> None:
    with pytest.raises(FilterError, match=problem) as refusal:
        parse_filter(text, TABLE)
    assert len(str(refusal.value).splitlines()) == 1
    assert len(str(refusal.value)) < 600


def test_refusals_of_a_name_list_what_is_allowed() -> None:
    with pytest.raises(FilterError, match=r"IS \[NOT\] NULL.*functions abs .* substring"):
        parse_filter("java_method('a')", TABLE)


# Each selects some rows of `things` and not others, so that a filter misread shows.
ACCEPTED = [
    "id = 1",
    "ID == 1",
    "`Id` <=> 1",
    "name <=> null",
    "not name <=> 'a'",
    "`odd.name` > 1",
    "`ODD.name` > 1",
    "id != 1",
    "1 <> id",
    "id < 3",
    "id <= 3",
    "id > 3",
    "id >= 3",
    "id > -1 and not (id in (2, 4))",
    "- id < - 3",
    "-(id) < -3",
    "id in (1)",
    "id not in (1, -2, 3.0)",
    "name in ('a', 'b%', null)",
    "day in ('2024-01-01', DATE'2024-02-29')",
    "id between 2 and 4",
    "id not between 2 and 4",
    "day between '2024-01-01' and '2024-02-29'",
    "name is null",
    "name is not null",
    "not name is null",
    "tags is null",
    "(amount is null) = ok",
    "id = 1 is null or id = 2",
    "ok",
    "not ok",
    "ok = true",
    "ok <=> null or not ok and id > 3",
    "coalesce(ok, false)",
    "id = 1 or id = 2 and ok",
    "(id = 1 or id = 2) and ok",
    "not ok and id = 2 or id = 5",
    "not (ok or id > 4)",
    "name like 'a%'",
    "name not like 'a%'",
    r"name like 'b\%'",
    r"name like '%\\\\%'",
    "name like '_'",
    "name = 'it''s'",
    r"name = 'it\'s'",
    'name = "it\'s"',
    "name = 'it' '\\'s'",
    r"name = 'back\\slash'",
    r"name = '\u0061'",
    r"name = '\141'",
    r"name = '\q\277\%\_\0\Z\b\a\n'",
    r"name = '\U0001F600é'",
    "name = '😀é'",
    "id + 1 = 3",
    "id - 1 * 2 = 3",
    "(id - 1) * 2 = 4",
    "id / 2 = 1.5",
    "id % 2 = 1 and -id % 2 = -1",
    "id - 1 - 1 = 1",
    "amount > 1",
    "amount = .5",
    "amount > 1e0",
    "price = 1.10",
    "price * 1.5 > 2.",
    "price + 2.2 = 3.3",
    "price < 99999999999999999999 and id > -9223372036854775808 and id < 3000000000",
    "day = DATE'2024-01-01'",
    "day = date '2024-01-01'",
    "day > '2024-01-01'",
    "day > DATE'0001-01-01'",
    "DATE'1500-03-01' >= day",
    "at = TIMESTAMP'2024-01-01 10:00:00.123456'",
    "at > '2024-01-01 10:00:00'",
    "at >= '2024-02-29'",
    "at >= DATE'2024-02-29'",
    "at < TIMESTAMP'2024-01-01T12:00:00.5+01:30'",
    "at >= TIMESTAMP'0001-01-01 00:00:00Z'",
    "year(day) = 2024 and month(day) = 1 and day(day) = 1",
    "year(at) = 2024 and hour(at) = 10",
    "abs(amount) > 1",
    "lower(name) = 'a' and upper(name) = 'A'",
    "trim(name) = 'a'",
    "length(name) > 3",
    "coalesce(name, 'none') = 'none'",
    "coalesce(null, amount, 0) = 0",
    "substring(name, 1, 2) = 'it' or substring(name, -1, 1) = '%'",
    "round(amount) = 3",
    "round(amount, 1) = 2.5",
    "round(price, -1) = 0",
    "null or id = 1",
    "not (id = 2 and null)",
    " or ".join(f"id = {number}" for number in range(0, 1_400, 2)),
    "not " * (MAX_DEPTH - 1) + "ok",
    "(" * MAX_PARENTHESES + "ok" + ")" * MAX_PARENTHESES,
]
AT = dt.datetime(2024, 1, 1, 10, 0, 0, 123456, tzinfo=dt.UTC)
ROWS = [
    (dt.date(2024, 1, 1), 1, "a", 0.5, Decimal("1.10"), True, AT, ["x"], 1),
    (dt.date(2024, 2, 29), 2, "it's", -2.5, None, False, AT + dt.timedelta(days=90), None, None),
    (dt.date(1500, 3, 1), 3, r"back\slash", 2.45, Decimal("20.00"), None, None, [], 2),
    (dt.date(2024, 1, 2), 4, None, None, Decimal("-3.50"), False, AT, ["y"], 3),
    (dt.date(1, 1, 1), 5, "b%", 0.0, Decimal("5.00"), True, AT - dt.timedelta(hours=2), None, 0),
    (dt.date(2025, 1, 1), 6, "\U0001f600é", 1e3, Decimal("0.01"), True, None, None, 0),
    (dt.date(2025, 1, 1), 7, " a ", 3.4, None, None, None, None, 0),
    (dt.date(2025, 1, 1), 2**62, "q\u00027" + "7\\%\\_\0\x1a\ba\n", -9.0, None, None, None, [], 0),
    (dt.date(2025, 1, 1), 8, "q277\\%\\_\0\x1a\ba\n", -9.0, None, None, None, [], 0),
    (dt.date(2025, 1, 1), 9, "bx", 0.0, Decimal("2.00"), False, None, None, 0),
]


ATOMS = ["id = 1", "ok", "name is null", "amount > 1", "day < '2024-01-02'", "id in (2, 4, 6)"]


def build_chains(count: int) -> list[str]:
    """Operators without parentheses: only their precedence says which belongs to which."""
    source = random.Random(20130101)
    chains = []
    for _ in range(count):
        logic = source.choice(ATOMS)
        sums = "id % 1000"
        for _ in range(source.randint(1, 4)):
            word = source.choice(["AND", "OR", "AND NOT", "OR NOT"])
            logic += f" {word} {source.choice(ATOMS)}"
            sums += f" {source.choice('+-*/%')} {source.choice(['- 2', '3', '0.5', '-7'])}"
        chains += [source.choice(["", "NOT "]) + logic, f"{sums} > id % 10"]
    return chains


@pytest.fixture(scope="module")
def things(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, build_ddl(TABLE.columns, constraints=False))


def test_judges_every_row_as_spark_does_for_the_same_text(things: DataFrame) -> None:
    texts = [*ACCEPTED, *build_chains(40)]
    built = [build_condition(parse_filter(text, TABLE), TABLE) for text in texts]
    differing, telling_nothing = {}, []
    pairs = list(zip(texts, built, strict=True))
    # All at once would be more than Spark compiles in one piece.
    for batch in (pairs[start : start + 30] for start in range(0, len(pairs), 30)):
        rows = things.select(
            *[condition.alias(f"ours_{n}") for n, (_, condition) in enumerate(batch)],
            *[F.expr(text).alias(f"sparks_{n}") for n, (text, _) in enumerate(batch)],
        ).collect()
        for n, (text, _) in enumerate(batch):
            ours, sparks = ([row[f"{whose}_{n}"] for row in rows] for whose in ("ours", "sparks"))
            if ours != sparks:
                differing[text] = (ours, sparks)
            # A row selected and another not, or misreading could go unseen.
            if text in ACCEPTED and (not any(sparks) or all(sparks)):
                telling_nothing.append(text)
    assert differing == {}
    assert telling_nothing == []


def test_selects_the_rows_that_spark_selects(things: DataFrame) -> None:
    for text in ("ok or id > 6", "not ok", "name like '_%' and coalesce(price, 0) < 2"):
        selected = things.where(build_condition(parse_filter(text, TABLE), TABLE))
        assert selected.collect() == things.where(text).collect() != []


def test_timestamps_without_zone_are_utc_whatever_the_session_says(
    spark: SparkSession, things: DataFrame
) -> None:
    condition = build_condition(parse_filter("at = '2024-01-01 10:00:00.123456'", TABLE), TABLE)
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        selected = things.where(condition).select("id").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert sorted(row.id for row in selected) == [1, 4]


def test_combined_filter_keeps_an_or_within_its_own_text(things: DataFrame) -> None:
    combined = combine_filters(TABLE, "id = 1 or id = 2", None, " ", "ok or id = 4\n")
    assert combined is not None
    assert combined.text == "(id = 1 or id = 2) AND (ok or id = 4)"
    selected = things.where(build_condition(combined, TABLE)).select("id").collect()
    assert [row.id for row in selected] == [1]


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
            st.tuples(part, st.sampled_from("+-*/%"), part).map(lambda one: f"({' '.join(one)})"),
            part.map(lambda one: f"abs({one})"),
            part.map(lambda one: f"round({one}, 1)"),
            part.map(lambda one: f"coalesce({one}, NULL, 1)"),
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
            part.map(lambda one: f"NOT ({one})"),
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
