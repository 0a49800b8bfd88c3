"""The buckets of orders are those that the environment says."""

import pytest

from backfill_assets.tables.order_buckets import OrderSettings
from backfill_assets.tables.orders import (
    CUSTOMER_ORDERS,
    ORDER_BUCKETS,
    RAW_ORDERS,
    STAGING_ORDERS,
)
from backfill_engine.errors import SettingsError
from backfill_engine.grains.buckets import Buckets
from backfill_engine.settings import read_environment


def test_all_orders_tables_have_the_same_buckets() -> None:
    assert {table.grain for table in (RAW_ORDERS, STAGING_ORDERS, CUSTOMER_ORDERS)} == {
        ORDER_BUCKETS
    }


def test_the_environment_chooses_the_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKFILL_ORDER_KEY_STEP", "120000")
    monkeypatch.setenv("BACKFILL_ORDER_KEY_SPACE", "250000")
    buckets = read_environment(OrderSettings).build_buckets()
    assert buckets == Buckets(120_000, 250_000)
    assert buckets.list_keys() == ["0000000", "0120000", "0240000"]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            "1",
            "BACKFILL_ORDER_KEY_STEP and BACKFILL_ORDER_KEY_SPACE: a step of 1 over a key space of "
            "10000000 makes 10,000,000 partitions: choose a step of 100 or more",
        ),
        ("0", "BACKFILL_ORDER_KEY_STEP: Input should be greater than or equal"),
    ],
)
def test_unusable_buckets_are_reported_with_their_variables(
    monkeypatch: pytest.MonkeyPatch, step: str, message: str
) -> None:
    monkeypatch.setenv("BACKFILL_ORDER_KEY_STEP", step)
    with pytest.raises(SettingsError, match=message):
        read_environment(OrderSettings)
