"""The catalog: declared tables, with what the installation chose."""

from collections.abc import Iterator

import pytest

from backfill_assets.catalog import find_table, list_pipelines, list_tables
from backfill_assets.errors import TableError
from backfill_assets.grains.buckets import Buckets
from backfill_assets.orchestration.instance.partition_definitions import find_partitions_def
from backfill_assets.settings import read_settings
from backfill_assets.tables import orders
from backfill_assets.tables.flights import RAW_FLIGHTS

ORDERS = (orders.RAW_ORDERS, orders.STAGING_ORDERS, orders.CUSTOMER_ORDERS)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Buckets]:
    """The buckets of an installation that chose others than the declared ones."""
    monkeypatch.setenv("BACKFILL_ORDER_KEY_STEP", "120000")
    monkeypatch.setenv("BACKFILL_ORDER_KEY_SPACE", "250000")
    list_pipelines.cache_clear()
    list_tables.cache_clear()
    yield Buckets(120_000, 250_000)
    list_pipelines.cache_clear()
    list_tables.cache_clear()


def test_an_installation_that_chooses_nothing_has_the_tables_as_declared() -> None:
    assert read_settings().build_order_buckets() == orders.ORDER_BUCKETS
    assert list_pipelines()["orders"] == ORDERS
    assert find_table("raw/flights") is RAW_FLIGHTS


def test_the_chosen_buckets_are_those_of_all_orders_tables_and_of_no_other(chosen: Buckets) -> None:
    tables = list_pipelines()["orders"]
    assert [table.key for table in tables] == [table.key for table in ORDERS]
    assert {table.grain for table in tables} == {chosen}
    assert [table.columns for table in tables] == [table.columns for table in ORDERS]
    assert {table for table in list_tables() if table.grain == chosen} == set(tables)
    assert find_table("raw/flights") is RAW_FLIGHTS
    partitions_def = find_partitions_def(find_table("staging/orders"))
    assert partitions_def.get_partition_keys() == ["0000000", "0120000", "0240000"]


def test_unknown_table_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(TableError, match="no table raw/birds: there are raw/flights, raw/orders"):
        find_table("raw/birds")
