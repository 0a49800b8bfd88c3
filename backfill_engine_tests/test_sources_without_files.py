"""A database and functions as sources: published, and their changes seen by plan and sensors."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa
from dagster import AssetKey, DagsterInstance
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from backfill_engine import (
    Calendar,
    Column,
    DatabaseTable,
    FunctionSource,
    InputWindow,
    Partition,
    Table,
    build_landed_rows,
    required,
    table_asset,
)
from backfill_engine.extras.landing import Budget, observe_landing_zone
from backfill_engine.orchestration.planning.plans import Only
from backfill_engine_tests.pipeline.mapped_tables import MappedTables, define_tables

DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")
DAY = required("day", "DATE", "Day.")
ORDERS = Table(
    "raw",
    "orders",
    "day",
    (DAY, required("id", "INT", "Number."), Column("note", "STRING", "Note.")),
)
RATES = Table("raw", "rates", "day", (DAY, required("rate", "DOUBLE", "Dollars for a euro.")))


@dataclass(frozen=True)
class Shop(MappedTables):
    """Orders in a database, and rates that functions read; a table of each."""

    rates: dict[str, float]

    def write(self, statement: str) -> None:
        """Changes orders."""
        with sa.create_engine(f"sqlite:///{self.root}/shop.db").begin() as connection:
            connection.exec_driver_sql(statement)

    def find_stale(self, table: Table) -> list[str]:
        """The days that a plan of what is stale or failed would run."""
        return self.find_due(table, DAYS[0], DAYS[-1], Only.STALE, Only.FAILED)

    def find_ranges(self, table: Table) -> list[tuple[str, str]]:
        """The ranges of a table that the sensor would run."""
        return [(first, last) for name, first, last in self.find_requested() if name == table.key]

    def observe(self, table: Table) -> list[tuple[str, str]]:
        """Observes what is there; returns what changed, by day."""
        now, recipe = dt.datetime.now(tz=dt.UTC), self.catalog.recipes[table.key]
        look = observe_landing_zone(
            self.instance, recipe, DAYS, {}, Budget(), landing_root="", now=now
        )
        key = AssetKey(["landing", table.name])
        found: list[tuple[str, str]] = []
        for day in look.observed:
            (record,) = self.instance.fetch_observations(key, limit=1).records
            observation = record.asset_observation
            assert observation is not None
            found.append((day, str(observation.metadata["change"].value)))
        return found


@pytest.fixture
def shop(tmp_path: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("SHOP_DB", f"sqlite:///{tmp_path}/shop.db?timeout=5")
    rates = {DAYS[0]: 1.1, DAYS[1]: 1.2}
    fields = ORDERS.columns[1:]

    @table_asset(ORDERS, landing=DatabaseTable("orders", url="SHOP_DB", fields=fields, where="on"))
    def raw_orders(window: InputWindow) -> DataFrame:
        """One row per order."""
        return build_landed_rows(window.read_landing(), window.table, fields)

    def read_rates(spark: SparkSession, partitions: Sequence[Partition]) -> DataFrame:
        rows = [(part.slice.start, rates[part.key]) for part in partitions if part.key in rates]
        return spark.createDataFrame(rows, "day date, rate double")

    def look_at_rates(partitions: Sequence[Partition]) -> Mapping[str, str]:
        return {day: f"rate {rate}" for day, rate in rates.items()}

    source = FunctionSource("ecb", read=read_rates, fingerprint=look_at_rates)

    @table_asset(RATES, landing=source)
    def raw_rates(window: InputWindow) -> DataFrame:
        """One row per day."""
        return window.read_landing().select("day", "rate").where("rate < 100")

    calendar = Calendar(dt.date(2024, 1, 1), dt.date(2024, 1, 4))
    defs = define_tables(tmp_path, [raw_orders, raw_rates], calendar)
    found = Shop(tmp_path, defs, instance, rates)
    found.write("CREATE TABLE orders (id int, note text, 'on' date)")
    found.write(
        "INSERT INTO orders VALUES (1, 'a', '2024-01-01'), (2, 'b', '2024-01-01'),"
        "(3, 'c', '2024-01-02')"
    )
    return found


@pytest.mark.spark
def test_changes_of_a_database_make_stale_their_days_alone(spark: SparkSession, shop: Shop) -> None:
    assert not shop.run(
        ORDERS, DAYS[0], DAYS[-1]
    )  # The third day never came: it alone is withheld.
    log = shop.read_log(ORDERS)
    assert {key: publish.rows for key, publish in log.publishes.items()} == {DAYS[0]: 2, DAYS[1]: 1}
    record = log.publishes[DAYS[0]].record
    assert record.consumed.landed[DAYS[0]].files == 0
    assert "partitions" in str(record.input_versions["landing/orders"])
    assert shop.find_stale(ORDERS) == []
    assert shop.find_ranges(ORDERS) == []
    shop.write("UPDATE orders SET note = 'x' WHERE id = 3")
    assert shop.find_ranges(ORDERS) == [(DAYS[1], DAYS[1])]
    assert shop.find_stale(ORDERS) == [DAYS[1]]
    shop.write("DELETE FROM orders WHERE id = 1")
    assert shop.find_ranges(ORDERS) == [(DAYS[0], DAYS[1])]
    assert shop.run(ORDERS, *DAYS[:2])
    assert shop.find_ranges(ORDERS) == []
    shop.write("INSERT INTO orders VALUES (7, 'g', '2024-01-03')")
    assert shop.find_ranges(ORDERS) == [(DAYS[2], DAYS[2])]
    # An order without a day is counted and named; one whose number is none is rejected.
    shop.write("INSERT INTO orders VALUES (8, 'h', null), ('many', 'i', '2024-01-03')")
    shop.run(ORDERS, DAYS[2])
    events = shop.instance.get_records_for_run  # All that Dagster keeps of the runs.
    texts = [
        str(record.event_log_entry)
        for run in shop.instance.get_runs()
        for record in events(run.run_id).records
    ]
    assert any("1 rows of orders without a `on`" in text for text in texts)
    (rejected,) = (
        DeltaTable(shop.root / "warehouse/quarantine/raw_orders").to_pyarrow_table().to_pylist()
    )
    assert rejected["reason"] == "`id` is not INT: many"
    kept = [path.read_bytes() for path in shop.root.rglob("warehouse/**/*") if path.is_file()]
    assert not any("timeout=5" in text for text in texts)
    assert not any(b"timeout=5" in content for content in kept)


@pytest.mark.spark
def test_changes_that_functions_tell_make_stale_their_days_alone(
    spark: SparkSession, shop: Shop
) -> None:
    assert not shop.run(RATES, DAYS[0], DAYS[-1])
    assert set(shop.read_log(RATES).publishes) == {*DAYS[:2]}
    assert shop.find_ranges(RATES) == []
    shop.rates[DAYS[1]] = 1.3
    assert shop.find_ranges(RATES) == [(DAYS[1], DAYS[1])]
    assert shop.find_stale(RATES) == [DAYS[1]]
    assert shop.run(RATES, DAYS[1])
    assert shop.find_ranges(RATES) == []
    del shop.rates[DAYS[0]]
    assert shop.find_ranges(RATES) == [(DAYS[0], DAYS[0])]
    assert not shop.run(RATES, DAYS[0])  # What was there and is gone is for a person to look at.
    shop.rates[DAYS[2]] = 110.0
    assert not shop.run(RATES, DAYS[2])
    (run,) = shop.instance.get_runs(limit=1)
    texts = [
        str(record.event_log_entry)
        for record in shop.instance.get_records_for_run(run.run_id).records
    ]
    assert any(
        "rows + duplicates dropped + rejects (0) - records of the source (1)" in text
        for text in texts
    )


def test_what_changed_is_observed_and_shown(shop: Shop) -> None:
    assert shop.observe(ORDERS)[0] == (DAYS[0], "seen for the first time")
    shop.write("UPDATE orders SET note = 'x' WHERE id = 3")
    assert shop.observe(ORDERS) == [(DAYS[1], "1 rewritten (orders)")]
    shop.write("DELETE FROM orders WHERE id = 3")
    assert shop.observe(ORDERS) == [(DAYS[1], "1 gone (orders)")]
    assert [day for day, _ in shop.observe(RATES)] == [*DAYS[:2]]
    assert shop.observe(RATES) == []
    graph = shop.defs.resolve_asset_graph()
    node = graph.get(AssetKey(["landing", "orders"]))
    assert (node.kinds, node.metadata["dagster/uri"]) == ({"sql"}, "SHOP_DB")
    assert graph.get(AssetKey(["landing", "rates"])).kinds == {"python"}
