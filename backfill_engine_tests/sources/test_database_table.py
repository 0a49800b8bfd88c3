"""Rows of PostgreSQL and SQLite: asked for by one query, read by partition, none of them lost."""

import datetime as dt
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pyspark.sql import SparkSession
from sqlalchemy import event

from backfill_engine import CsvFiles, DatabaseTable, DeclarationError, HistoricalLoad
from backfill_engine.errors import LandingError, LandingNotFoundError
from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.dates import DAYS, MONTHS, Days
from backfill_engine.grains.grain import Grain
from backfill_engine.grains.timestamps import HOURS
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.publishing.reached_code import compute_code_version
from backfill_engine.sources import database_table
from backfill_engine.sources.database_table import DatabaseListing, _write_field
from backfill_engine.sources.history import History
from backfill_engine.tables.columns import Column
from backfill_engine_tests.postgres import Postgres, serve_postgres
from backfill_engine_tests.shared_fixtures import build_days
from backfill_engine_tests.sources.landed_tables import build_landed_table

FIELDS = (
    Column("id", "BIGINT", "Number."),
    Column("note", "STRING", "Note."),
    Column("paid", "DECIMAL(10,2)", "Euros."),
)
KEYS = ("2024-01-01", "2024-01-02", "2024-01-03")


@dataclass(frozen=True)
class Shop:
    """A database of orders, of a kind."""

    url: str

    def run(self, *statements: str) -> None:
        """Runs statements."""
        engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        with engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def list_rows(
        self, grain: Grain[Any] = DAYS, keys: Sequence[str] = KEYS, **declared: Any
    ) -> DatabaseListing:
        """Lists orders by partition."""
        table = build_landed_table(grain, by="at")
        defaults = {"url": self.url, "fields": FIELDS, "where": "placed"}
        source = DatabaseTable("orders", **{**defaults, **declared})
        return source.list_files("", table, build_partitions(table, keys))

    def find_changed(self, before: DatabaseListing) -> list[str]:
        """The keys of what isn't as it was."""
        source, table = before.source, before.table
        now = source.list_files("", table, before.partitions).describe_files()
        return [key for key, found in before.describe_files().items() if found != now[key]]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A server of this module's own."""
    with serve_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    """Orders of two days, two of the first; and of a third day none."""
    if request.param == "sqlite":
        found = Shop(f"sqlite:///{tmp_path}/shop.db")
    else:
        found = Shop(request.getfixturevalue("postgres").create_database())
    found.run(
        "CREATE TABLE orders (id bigint, note text, paid numeric(10,2), placed timestamp, "
        "changed timestamp)",
        "INSERT INTO orders VALUES "
        "(1, 'a', 1.50, '2024-01-01 00:00:00', '2024-01-05 00:00:00'),"
        "(2, null, 2.25, '2024-01-01 23:59:59', '2024-01-06 00:00:00'),"
        "(3, 'c;\"''é', null, '2024-01-02 10:15:00', '2024-01-05 00:00:00')",
    )
    return found


CHANGES = [
    ("UPDATE orders SET note = 'b', changed = '2024-02-01 00:00:00' WHERE id = 3", [KEYS[1]]),
    ("DELETE FROM orders WHERE id = 1", [KEYS[0]]),
    (
        "INSERT INTO orders VALUES (4, 'd', 1, '2024-01-03 00:00:00', '2024-01-01 00:00:00')",
        [KEYS[2]],
    ),
    ("UPDATE orders SET placed = '2024-01-02 00:00:00' WHERE id = 2", list(KEYS[:2])),
    ("INSERT INTO orders VALUES (5, 'e', 1, '2024-03-01 00:00:00', '2024-01-01 00:00:00')", []),
]


@pytest.mark.parametrize("updated_at", ["", "changed"])
@pytest.mark.parametrize(("statement", "changed"), CHANGES)
def test_each_change_is_a_change_of_its_days_alone(
    shop: Shop, statement: str, changed: list[str], updated_at: str
) -> None:
    before = shop.list_rows(updated_at=updated_at)
    assert shop.find_changed(before) == []
    before.check_unchanged()
    shop.run(statement)
    assert shop.find_changed(before) == changed
    if changed:
        with pytest.raises(LandingError, match=f"rows of {changed[0]}.* changed while they were"):
            before.check_unchanged()


def test_each_value_counts_in_a_hash(shop: Shop) -> None:
    for statement in (
        "UPDATE orders SET note = '' WHERE id = 2",
        "UPDATE orders SET paid = 2.26 WHERE id = 2",
        "UPDATE orders SET id = 20 WHERE id = 2",
        "UPDATE orders SET placed = '2024-01-01 23:59:58' WHERE id = 20",
    ):
        before = shop.list_rows()
        shop.run(statement)
        assert shop.find_changed(before) == [KEYS[0]], statement
    before = shop.list_rows()
    shop.run("UPDATE orders SET changed = null")  # It isn't read.
    assert shop.find_changed(before) == []


def test_what_is_there_is_asked_by_one_query(shop: Shop) -> None:
    asked: list[str] = []

    def note(*arguments: Any) -> None:
        asked.append(arguments[2])

    event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        listing = shop.list_rows(keys=(*KEYS, "2024-03-05"))
    finally:
        event.remove(sa.Engine, "before_cursor_execute", note)
    assert [text for text in asked if not text.startswith("SET")] == asked[-1:]
    assert listing.count_records() == {KEYS[0]: 2, KEYS[1]: 1}
    assert [part.key for part in listing.missing] == [KEYS[2], "2024-03-05"]
    assert listing.restrict(listing.partitions[:1]).count_known() == 2
    assert listing.describe_landed()[KEYS[2]].why_never_landed == (
        "orders has no row of it: add its rows there"
    )


def test_rows_that_say_no_partition_are_counted(shop: Shop) -> None:
    assert shop.list_rows().describe_landed()[KEYS[0]].not_read == ()
    shop.run("INSERT INTO orders VALUES (6, 'f', 1, null, null), (7, 'g', 1, null, null)")
    described = shop.list_rows().describe_landed()
    assert {found.not_read for found in described.values()} == {
        ("2 rows of orders without a `placed`",)
    }


def test_what_is_no_day_is_counted_where_a_database_takes_anything(tmp_path: Path) -> None:
    shop = Shop(f"sqlite:///{tmp_path}/shop.db")
    shop.run(
        "CREATE TABLE orders (id bigint, note text, paid numeric(10,2), placed timestamp)",
        "INSERT INTO orders VALUES (1, 'a', 1, '2024-01-01x'), (2, 'b', 1, 'soon'),"
        "(3, 'c', 1, '2024-01-02T01:00:00+02:00'), (4, 'd', 1, 7.5), (5, 'e', 1, '2024-01-02')",
    )
    listing = shop.list_rows()
    assert listing.count_records() == {KEYS[0]: 1, KEYS[1]: 1}
    assert listing.not_read == ("2 rows of orders without a `placed`",)
    by_id = shop.list_rows(Buckets(10, 100), ["0000000"], where="id")
    assert by_id.count_records() == {"0000000": 5}
    shop.run("UPDATE orders SET id = 'x' WHERE id = 1")
    by_id = shop.list_rows(Buckets(10, 100), ["0000000"], where="id")
    assert (by_id.count_records(), by_id.not_read) == (
        {"0000000": 4},
        ("1 rows of orders without a `id`",),
    )


def test_partitions_are_of_any_grain(shop: Shop) -> None:
    by_hour = shop.list_rows(HOURS, ["2024-01-01-00:00", "2024-01-01-23:00", "2024-01-02-09:00"])
    assert by_hour.count_records() == {"2024-01-01-00:00": 1, "2024-01-01-23:00": 1}
    by_month = shop.list_rows(MONTHS, ["2023-12-01", "2024-01-01"])
    assert by_month.count_records() == {"2024-01-01": 3}
    by_id = shop.list_rows(Buckets(2, 100), ["0000000", "0000002"], where="id")
    assert by_id.count_records() == {"0000000": 1, "0000002": 2}


def test_times_are_those_of_utc(postgres: Postgres) -> None:
    shop = Shop(postgres.create_database())
    name = shop.url.rpartition("/")[2]
    shop.run(
        f"ALTER DATABASE {name} SET timezone = 'America/New_York'",
        "CREATE TABLE orders (id bigint, note text, paid numeric, placed timestamptz)",
        "INSERT INTO orders VALUES (1, 'a', 1, '2024-01-02 01:00:00+02')",
    )
    assert shop.list_rows().count_records() == {KEYS[0]: 1}
    by_hour = shop.list_rows(HOURS, ["2024-01-01-23:00", "2024-01-02-01:00"])
    assert by_hour.count_records() == {"2024-01-01-23:00": 1}


def test_files_may_have_the_days_before(shop: Shop, tmp_path: Path) -> None:
    table, files = build_landed_table(DAYS, by="at"), CsvFiles("old/{partition}.csv", fields=FIELDS)
    load = HistoricalLoad("old", files, dt.date(2023, 1, 1), dt.date(2024, 1, 1))
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "2023-12-31.csv").write_text("id,note,paid\n0,z,1\n")
    feed = shop.list_rows().source
    history = History(feed, (load.fit_feed(table, FIELDS),), dt.date(2024, 1, 1))
    listing = history.list_files(str(tmp_path), table, build_days("2023-12-31", 2))
    described = listing.describe_files()
    assert [found.files for found in described.values()] == [1, 0]
    listing.check_unchanged()
    shop.run("DELETE FROM orders WHERE id = 1")
    with pytest.raises(LandingError, match="rows of 2024-01-01 changed while they were"):
        listing.check_unchanged()


def test_a_query_stands_for_a_table(shop: Shop) -> None:
    query = "SELECT id, note, paid, placed FROM orders WHERE id % 2 = 1 AND '1:2' <> ':x';"
    assert shop.list_rows(query=query).count_records() == {KEYS[0]: 1, KEYS[1]: 1}


def test_what_a_database_refuses_is_said_without_its_secrets(
    shop: Shop, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LandingError, match=r"orders can't be read from its database \(.*wages"):
        shop.list_rows(query="SELECT * FROM wages")
    secret = "s3cr%3At"
    for url in (
        f"postgresql://me:{secret}@127.0.0.1:1/shop",
        f"postgresql://dagster:{secret}@127.0.0.1:{postgres.port}/not_there",
        f"nosuch://me:{secret}@host/shop",
        f"sqlite:////not/there?{secret}",
    ):
        monkeypatch.setenv("SHOP_DB", url)
        with pytest.raises(LandingError, match="orders can't be read from its database") as caught:
            shop.list_rows(url="SHOP_DB")
        assert secret not in str(caught.value)
        assert "s3cr:t" not in str(caught.value)
        assert caught.value.__suppress_context__
        source = replace(shop.list_rows().source, url=url)
        assert "s3cr" not in f"{source!r} {source.locate('/zone')}"
    url = postgres.create_database().replace("dagster@", f"dagster:{secret}@")
    with pytest.raises(LandingError, match=r'type integer: "\*\*\*"\): correct its declaration'):
        shop.list_rows(url=url, query="SELECT 's3cr:t'::int AS id")
    monkeypatch.delenv("SHOP_DB")
    with pytest.raises(LandingNotFoundError, match="the environment variable SHOP_DB isn't set"):
        shop.list_rows(url="SHOP_DB")


def test_another_place_is_no_other_code_and_another_query_is() -> None:
    table = build_landed_table(DAYS, by="at")
    source = DatabaseTable("orders", url="SHOP_DB", fields=FIELDS, where="placed")

    def find_version(source: DatabaseTable) -> str:
        return compute_code_version(build_landed_table, table, source)

    assert source.locate("/zone") == "SHOP_DB"
    elsewhere = replace(source, url="postgresql://me:pw@host:5433/shop", split_by="id")
    assert elsewhere.locate("/zone") == "postgresql://host:5433/shop"
    assert find_version(elsewhere) == find_version(source)
    assert find_version(replace(source, query="SELECT 1")) != find_version(source)


def test_it_needs_fields_and_a_column_that_says_the_partition() -> None:
    with pytest.raises(DeclarationError, match="database table `orders`: `where` is empty"):
        DatabaseTable("orders", url="SHOP_DB", fields=FIELDS, where="")
    with pytest.raises(DeclarationError, match="database table `orders`: `fields` is empty"):
        DatabaseTable("orders", url="SHOP_DB", fields=(), where="placed")


def test_an_integer_that_writes_days_is_refused_and_one_of_buckets_is_not() -> None:
    fields = (*FIELDS, Column("placed", "INT", "As 20240131."))
    source = DatabaseTable("orders", url="SHOP_DB", fields=fields, where="placed")
    for grain in (DAYS, Days("%Y%m%d", "INT"), HOURS):
        with pytest.raises(DeclarationError, match=r"is `placed`, which is INT and says no part"):
            source.refuse_table(build_landed_table(grain))
    source.refuse_table(build_landed_table(Buckets(step=1000, space=20_000)))


@pytest.mark.parametrize(
    ("value", "type_", "written"),
    [
        (None, "STRING", None),
        (1, "BOOLEAN", True),
        (1, "INT", 1),
        (7, "STRING", "7"),
        (True, "STRING", "true"),
        (float("nan"), "DOUBLE", "nan"),
        ([1, None], "STRING", "[1, null]"),
        ({"a": b"x"}, "STRUCT<a: BINARY>", {"a": "eA=="}),
        (dt.date(2024, 1, 31), "DATE", "2024-01-31"),
        (dt.datetime.fromisoformat("2024-01-31T10:00"), "TIMESTAMP_NTZ", "2024-01-31T10:00:00"),
        (
            dt.datetime(2024, 1, 31, 10, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            "TIMESTAMP",
            "2024-01-31T08:00:00Z",
        ),
        (memoryview(b"x"), "BINARY", "eA=="),
    ],
)
def test_values_are_written_as_they_would_land(value: object, type_: str, written: object) -> None:
    found = _write_field(value, type_)
    assert (found, type(found)) == (written, type(written))


def read(listing: DatabaseListing, spark: SparkSession) -> list[tuple[Any, ...]]:
    """Reads rows: what says their partition, their fields, and their source."""
    return sorted(
        (row["at"], *json.loads(row["value"]).values(), row["source_file"])
        for row in listing.read(spark).collect()
    )


def test_rows_of_the_partitions_are_read_as_lines(
    spark: SparkSession, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = ["1.50", "2.25"] if "postgresql" in shop.url else [1.5, 2.25]
    days = [dt.date(2024, 1, day) for day in (1, 1, 2)]
    rows = [
        (days[0], 1, "a", paid[0], "orders"),
        (days[1], 2, None, paid[1], "orders"),
        (days[2], 3, "c;\"'é", None, "orders"),
    ]
    monkeypatch.setenv("SHOP_DB", shop.url)
    listing = shop.list_rows(url="SHOP_DB")
    assert read(listing, spark) == rows
    assert listing.count(spark) == {KEYS[0]: 2, KEYS[1]: 1, KEYS[2]: 0}
    assert read(listing.restrict(listing.partitions[1:]), spark) == rows[2:]
    by_hour = shop.list_rows(HOURS, ["2024-01-01-23:00", "2024-01-02-10:00"])
    assert [(str(row[0]), row[1]) for row in read(by_hour, spark)] == [
        ("2024-01-01 23:59:59", 2),
        ("2024-01-02 10:15:00", 3),
    ]


def test_a_large_partition_is_read_in_parts(
    spark: SparkSession, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_table, "_ROWS_OF_A_READ", 2)
    shop.run(
        "INSERT INTO orders (id, placed) VALUES (5, '2024-01-01'), (9, '2024-01-01'),"
        "(null, '2024-01-01')",
    )
    listing = shop.list_rows(split_by="id", fields=FIELDS[:1])
    (first, *_) = listing.partitions
    parts = [
        (part.first, part.end) for part in listing.source.plan_reads(first, listing.found[KEYS[0]])
    ]
    assert parts == [(None, 4), (4, 7), (7, None)]
    lines = listing.read(spark).where(f"at = '{KEYS[0]}'").collect()
    ids = [json.loads(row["value"])["id"] for row in lines]
    assert sorted(ids, key=str) == [1, 2, 5, 9, None]


def test_what_fails_in_a_task_is_said_as_here(spark: SparkSession, shop: Shop) -> None:
    listing = shop.list_rows()
    shop.run("DROP TABLE orders")
    with pytest.raises(Exception, match="LandingError") as caught:
        listing.read(spark).collect()
    with pytest.raises(LandingError, match=re.escape("orders can't be read from its database")):
        listing.find_broken(str(caught.value))
