"""Columns of every type, landed and computed: from files to commits, read back, compared, undone.

And what the same table is answered with when its declaration changes.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from backfill_engine.contents.partition_contents import read_back
from backfill_engine.errors import TableError
from backfill_engine.extras.comparison.diffs import diff_table
from backfill_engine.extras.comparison.golden import compare_with_golden
from backfill_engine.lake.stored_declarations import check_readable, check_stored
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import describe_failures
from backfill_engine.publishing.write_modes.options import WriteOptions
from backfill_engine.rules.column_rules import Nulls, Values
from backfill_engine.rules.count_rules import Rejects
from backfill_engine.rules.drift import Drift
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine.transforms.landed_rows import build_landed_rows
from backfill_engine_tests.pipeline.publishing import Lake, land_json
from backfill_engine_tests.shared_fixtures import build_days

pytestmark = pytest.mark.only_spark  # A DECIMAL of 38 digits.

VALUES: dict[str, tuple[str, Any]] = {
    "tiny": ("TINYINT", -128),
    "small": ("SMALLINT", 32767),
    "flag": ("BOOLEAN", False),
    "single": ("FLOAT", 0.1),
    "price": ("DECIMAL(10,2)", 1.25),
    "huge": ("DECIMAL(38,18)", "12345678901234567890.5"),
    "local": ("TIMESTAMP_NTZ", "2013-03-10T02:30:00"),
    "day_of": ("DATE", "2013-01-01"),
    "bytes": ("BINARY", "AP8="),
    "größe": ("VARCHAR(3)", "ü🙂3"),
    "国": ("CHAR(2)", "日本"),
    "tags": ("ARRAY<STRING>", []),
    "lines": (
        "ARRAY<STRUCT<sku: STRING, fees: MAP<STRING, DECIMAL(8,3)>>>",
        [{"sku": "a", "fees": {"x": 0.125, "y": None}}, {"fees": {}}, None],
    ),
    "counts": ("MAP<INT, BIGINT>", {"2": 1, "1": 9223372036854775807}),
}
"""By column: its type, and what lands in it."""

FIELDS = (
    required("id", "INT", "Number"),
    *(Column(name, type_, f"The {name}") for name, (type_, _) in VALUES.items()),
)
RAW = Table(
    layer="raw",
    name="carts",
    partition_by="day",
    columns=(
        required("day", "DATE", "Day on which it landed"),
        *FIELDS,
        required("source_file", "STRING", "Landing file"),
    ),
    natural_key=("day", "id"),
    rules=(Values("price", 0, 1000), Drift("price", (1, 10)), Nulls("tags"), Rejects(at_most=0.5)),
)
LANDED = land_json(RAW, "carts", FIELDS)
TOTALS = Table(
    layer="features",
    name="cart_totals",
    partition_by="day",
    columns=(
        required("day", "DATE", "Day"),
        required("price", "DECIMAL(10,2)", "Part of the key"),
        Column("total", "DECIMAL(20,2)", "Sum of the prices"),
        Column("tags", "MAP<STRING, ARRAY<INT>>", "Carts by tag"),
        Column("last", "STRUCT<at: TIMESTAMP_NTZ, bytes: BINARY>", "Of the last cart"),
    ),
    natural_key=("day", "price"),
    row_filter="price > 0.5 AND total IS NOT NULL",
)
COMPUTED = Recipe(
    table=TOTALS,
    compute=lambda window: (
        window.read(RAW, column="day")
        .where("price IS NOT NULL")
        .groupBy("day", "price")
        .agg(
            F.sum("price").alias("total"),
            F.expr("map('all', array_sort(collect_list(id)))").alias("tags"),
            F.expr("named_struct('at', max(local), 'bytes', max(bytes))").alias("last"),
        )
    ),
    inputs=(RAW,),
)
DAYS = build_days("2013-01-01", 2)
CARTS: list[dict[str, Any]] = [
    {"id": 1, **{name: landed for name, (_, landed) in VALUES.items()}},
    {"id": 2, "price": 0.5, "tags": [None, ""], "lines": [], "counts": {}},
    {"id": 3, "price": 1.25, "tags": ["ü"], "bytes": ""},
    {"id": 4},
]


def land(root: Path, day: str, carts: Sequence[dict]) -> None:
    path = root / "carts" / f"year=2013/month=01/day={day[-2:]}" / "carts.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, carts)))


@dataclass(frozen=True)
class Shop:
    """Two days of carts, and their totals; the second day in two versions."""

    lake: Lake

    def log(self, table: Table) -> TableLog:
        """The log of one of the tables as it is now."""
        return read_log(self.lake.warehouse, table)


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    root = tmp_path_factory.mktemp("shop")
    lake = Lake(spark, Warehouse(str(root / "warehouse")), str(root / "landing"))
    for day in DAYS:
        land(root / "landing", day.key, CARTS)
    first = lake.publish(LANDED, DAYS, run_id="first-run")
    lake.publish(COMPUTED, DAYS, run_id="first-run")
    changed = [{**CARTS[0], "lines": None}, CARTS[1], {**CARTS[2], "price": "2.255"}, CARTS[3]]
    land(root / "landing", DAYS[1].key, changed)
    second = lake.publish(LANDED, DAYS[1:], run_id="second-run")
    assert [result.measures.rejects for result in (*first, *second)] == [0, 0, 1]
    return Shop(lake)


def test_an_independent_reader_finds_what_was_audited(shop: Shop) -> None:
    for table in (RAW, TOTALS):
        log = shop.log(table)
        found = read_back(log, DAYS)
        assert {key: contents.checksum for key, contents in found.items()} == {
            key: publish.checksum for key, publish in log.publishes.items()
        }
    assert shop.log(TOTALS).count_rows() == {day.key: 1 for day in DAYS}, "0.5 is filtered out"


def test_values_are_stored_as_they_landed(shop: Shop) -> None:
    rows = shop.log(RAW).open_snapshot().to_pyarrow_table().to_pylist()
    row = next(row for row in rows if row["id"] == 1 and row["day"] == DAYS[0].slice.start)
    assert str(row["huge"]) == "12345678901234567890.500000000000000000"
    assert (row["tiny"], row["bytes"], row["tags"]) == (-128, b"\0\xff", [])
    assert row["local"].isoformat() == "2013-03-10T02:30:00"
    assert str(row["lines"][0]["fees"]) == "[('x', Decimal('0.125')), ('y', None)]"
    assert row["lines"][1:] == [{"sku": None, "fees": []}, None]
    assert sorted(row["counts"]) == [(1, 2**63 - 1), (2, 1)]


def test_a_diff_counts_the_rows_that_changed(shop: Shop) -> None:
    found = diff_table(shop.log(RAW), DAYS, before="second-run")
    assert found.partitions[DAYS[0].key].equal
    changed = found.partitions[DAYS[1].key]
    assert (changed.changed, changed.removed, changed.added) == (1, 1, 0)
    assert changed.null_shares["lines"] == (0.5, 2 / 3)


def test_a_golden_of_every_type_is_compared(shop: Shop, tmp_path: Path) -> None:
    golden = tmp_path / "golden.parquet"
    log = shop.log(RAW)
    rows = log.as_of(log.version - 1).open_snapshot().to_pyarrow_table()
    pq.write_table(rows, golden)
    report = compare_with_golden(log, DAYS, golden, keys=("id",))
    assert (report.mismatches, report.not_compared) == (2, ())
    same = compare_with_golden(log.as_of(log.version - 1), DAYS, golden, keys=("id",))
    assert same.mismatches == 0


def test_merge_keeps_rows_with_every_type(shop: Shop) -> None:
    before = read_back(shop.log(TOTALS), DAYS)
    shop.lake.publish(COMPUTED, DAYS[:1], run_id="merge", options=WriteOptions(write_mode="merge"))
    assert read_back(shop.log(TOTALS), DAYS) == before


def test_a_rollback_brings_back_every_type(shop: Shop) -> None:
    log = shop.log(RAW)
    contents = [read_back(state, DAYS[1:]) for state in (log.as_of(log.version - 1), log)]
    for held, run_id in ((contents[0], "back"), (contents[1], "forth")):
        undo = shop.log(RAW).publishes[DAYS[1].key].record.run_id
        shop.lake.roll_back(RAW, DAYS[1:], before_run=undo, run_id=run_id)
        assert read_back(shop.log(RAW), DAYS[1:]) == held


def declare(*columns: Column, **changes) -> Table:
    """The raw table with some columns declared otherwise, by name, and others at its end."""
    other = {column.name: column for column in columns}
    kept = tuple(other.pop(column.name, column) for column in RAW.columns)
    return replace(RAW, columns=(*kept, *other.values()), **changes)


WHOLE = "declare it as it is stored, or declare a table of another name and fill that; nothing was"
DIFFERING = {
    "another type": (
        declare(Column("tiny", "DOUBLE", "Tiny")),
        f"has `tiny` as TINYINT, and DOUBLE is declared: {WHOLE}",
    ),
    "a wider type": (
        declare(Column("tiny", "INT", "Tiny")),
        "has `tiny` as TINYINT, and INT is declared: run `backfill-assets migrate "
        f"{RAW.key}`; nothing was written",
    ),
    "another type inside": (
        declare(Column("counts", "MAP<INT, INT>", "Counts")),
        f"has `counts` as MAP<INT, BIGINT>, and MAP<INT, INT> is declared: {WHOLE}",
    ),
    "required and new": (
        declare(required("new", "INT", "New")),
        "lacks `new`, which is declared as required, and what it holds has none: declare it with "
        "Column(…), and it is added; nothing was written",
    ),
    "not required any more": (
        declare(Column("source_file", "STRING", "Landing file")),
        "has `source_file` as required, and it is declared as one that may be null: declare it "
        'with required("source_file", …); nothing was written',
    ),
    "gone": (
        replace(RAW, columns=tuple(column for column in RAW.columns if column.name != "tiny")),
        "has a column `tiny`, which isn't declared: declare it again as "
        'Column("tiny", "TINYINT", …); nothing was written',
    ),
    "another partition column": (
        declare(required("day_of", "DATE", "Day"), partition_by="day_of"),
        f"has folders by day, and day_of is declared: {WHOLE}",
    ),
}


@pytest.mark.parametrize("case", DIFFERING)
def test_a_table_that_is_not_as_declared_is_refused_in_a_line(shop: Shop, case: str) -> None:
    table, message = DIFFERING[case]
    with pytest.raises(TableError) as refused:
        check_stored(shop.log(table), evolves=True)
    assert str(refused.value).startswith(f"raw/carts at {shop.log(table).uri} {message}")


def test_an_input_without_a_declared_column_is_refused(shop: Shop) -> None:
    table = declare(Column("new", "INT", "New"))
    with pytest.raises(TableError, match="lacks `new`, which is declared: materialize any parti"):
        check_readable(shop.log(table))
    check_readable(shop.log(RAW))


@pytest.mark.parametrize(
    ("total", "message"),
    [
        ("sum(price)", "`price` is computed as DECIMAL(20,2), and DECIMAL(10,2) is declared: cast"),
        (None, "`price` is declared and not computed: select it in the compute function; nothing"),
    ],
)
def test_what_is_not_computed_as_declared_is_refused_before_it_is_computed(
    shop: Shop, total: str | None, message: str
) -> None:
    table = replace(TOTALS, name="other_totals", row_filter="", natural_key=())
    table = replace(table, columns=table.columns[:2])
    totals = [F.expr(total).alias("price")] if total else [F.count("*").alias("carts")]
    recipe = replace(
        COMPUTED,
        table=table,
        compute=lambda window: window.read(RAW, column="day").groupBy("day").agg(*totals),
    )
    with pytest.raises(TableError, match=f"^{re.escape(f'features/other_totals: {message}')}"):
        shop.lake.publish(recipe, DAYS)


def test_a_new_column_is_added_and_the_order_does_not_matter(shop: Shop) -> None:
    """The last test of the module: it changes the table."""
    new = Column("new", "ARRAY<DECIMAL(5,1)>", "New")
    table = replace(RAW, columns=(new, *reversed(RAW.columns)))
    check_stored(shop.log(table), evolves=True)
    fields = (*FIELDS, new)
    recipe = replace(
        LANDED,
        table=table,
        compute=lambda window: build_landed_rows(window.read_landing(), table, fields),
    )
    shop.lake.publish(recipe, DAYS[:1], run_id="third-run")
    log = shop.log(table)
    assert log.open_snapshot().schema().fields[-1].name == "new"
    found = read_back(log, DAYS[:1])
    assert found[DAYS[0].key].checksum == log.publishes[DAYS[0].key].checksum
    assert read_back(shop.log(RAW), DAYS[:1])[DAYS[0].key].rows == len(CARTS)


def test_a_text_that_does_not_fit_is_rejected_or_withholds(lake: Lake, tmp_path: Path) -> None:
    code, country = required("code", "VARCHAR(3)"), required("größe", "CHAR(2)")
    day, file = required("day", "DATE"), required("source_file", "STRING")
    texts = Table("raw", "texts", "day", (day, code, country, file), rules=(Rejects(at_most=0.9),))
    good = {"code": "ab", "größe": "DE"}
    landed = [good, {**good, "code": "abcd"}, {**good, "größe": "D"}, {**good, "größe": "DEU"}]
    path = tmp_path / "landing/texts/year=2013/month=01/day=01/texts.json"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(map(json.dumps, landed)))
    (result,) = lake.publish(land_json(texts, "texts", (code, country)), DAYS[:1])
    assert (result.measures.rows, result.measures.rejects, result.version is None) == (1, 3, False)
    schema = {field.name: field.metadata for field in open_fields(lake, texts)}
    assert {*schema["code"].values(), *schema["größe"].values()} == {"varchar(3)", "char(2)"}

    def compute(suffix: str) -> Recipe:
        table = Table("gold", "texts", "day", (day, code))
        read = F.concat("code", F.lit(suffix)).alias("code")
        return Recipe(
            table, lambda window: window.read(texts, column="day").select("day", read), (texts,)
        )

    (result,) = lake.publish(compute("cd"), DAYS[:1])
    assert result.version is None
    assert describe_failures(result.verdict) == (
        "partition_is_valid: texts_fit = 1 (0 rows whose text doesn't fit in one of code)"
    )
    (result,) = lake.publish(compute("c"), DAYS[:1])
    assert result.version is not None
    shorter = replace(texts, columns=(day, required("code", "VARCHAR(2)"), country, file))
    longer = replace(texts, columns=(day, required("code", "STRING"), country, file))
    with pytest.raises(TableError, match=r"has `code` as VARCHAR\(3\), and VARCHAR\(2\) is declar"):
        check_stored(replace(read_log(lake.warehouse, texts), table=shorter))
    check_stored(replace(read_log(lake.warehouse, texts), table=longer))


def open_fields(lake: Lake, table: Table) -> Sequence[Any]:
    return read_log(lake.warehouse, table).open_snapshot().schema().fields


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, Warehouse(str(tmp_path / "warehouse")), str(tmp_path / "landing"))
