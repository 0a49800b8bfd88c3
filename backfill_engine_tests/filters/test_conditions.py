"""That a filter means what Spark takes its text for."""

import random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine.filters.grammar import MAX_DEPTH, MAX_PARENTHESES
from backfill_engine.filters.row_filters import build_condition, combine_filters, parse_filter
from backfill_engine.tables.declarations import build_ddl
from backfill_engine_tests.filters.things import ROWS, TABLE

# Each selects some rows of `things` and not others, so that a filter misread shows.
ACCEPTED = [
    "id = 1",
    "ID == 1",
    "`Id` <=> 1",
    "name <=> null",
    "not name <=> 'a'",
    "`ODD-name` > 1",
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
    "name is not null",
    "not name is null",
    "tags is null",
    "(amount is null) = ok",
    "id = 1 is null or id = 2",
    "not ok",
    "ok = true",
    "ok <=> null or not ok and id > 3",
    "coalesce(ok, false)",
    "(id = 1 or id = 2) and ok",
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
    "(id - 1) * 2 = 4",
    "id / 2 = 1.5",
    "id % 2 = 1 and -id % 2 = -1",
    "amount = .5",
    "amount > 1e0",
    "price = 1.10",
    "price * 1.5 > 2.",
    "price + 2.2 = 3.3",
    "price < 99999999999999999999 and id > -9223372036854775808 and id < 3000000000",
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
    rows = spark.createDataFrame(ROWS, build_ddl(TABLE.columns, constraints=False))
    # Of an Arrow table Spark keeps the rows in its plan, and then computes without running jobs.
    return spark.createDataFrame(rows.toArrow())


@pytest.mark.only_spark
def test_judges_every_row_as_spark_does_for_the_same_text(things: DataFrame) -> None:
    texts = [*ACCEPTED, *build_chains(40)]
    rows = things.select(
        *[build_condition(parse_filter(text, TABLE), TABLE) for text in texts],
        *[F.expr(text) for text in texts],
    ).collect()
    columns = list(zip(*rows, strict=True))
    judgements = zip(texts, columns[: len(texts)], columns[len(texts) :], strict=True)
    differing = {text: (ours, sparks) for text, ours, sparks in judgements if ours != sparks}
    assert differing == {}
    # A row is selected and another not, or misreading could go unseen.
    selections = zip(ACCEPTED, columns, strict=False)
    assert [text for text, ours in selections if not any(ours) or all(ours)] == []


def test_rows_for_which_it_is_null_are_not_selected(things: DataFrame) -> None:
    selected = things.where(build_condition(parse_filter("not ok", TABLE), TABLE))
    assert [row.id for row in selected.collect()] == [2, 4, 9]


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
