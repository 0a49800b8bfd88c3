"""The code of `docs/databases.md` declares sources that answer."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from backfill_engine import Column, DatabaseTable, FunctionSource, Partition
from backfill_engine.grains.dates import DAYS
from backfill_engine_tests.pages import read_page
from backfill_engine_tests.shared_fixtures import build_days
from backfill_engine_tests.sources.landed_tables import build_landed_table

TABLE = build_landed_table(DAYS, by="day")
CODE = "\n".join(re.findall(r"```python\n(.*?)```", read_page("databases.md"), re.DOTALL))


@pytest.fixture
def names() -> dict[str, Any]:
    """What the page's code defines, with a bank that knows one day."""
    found: dict[str, Any] = {
        "DatabaseTable": DatabaseTable,
        "FunctionSource": FunctionSource,
        "ORDER_FIELDS": (Column("id", "INT", "Number."),),
        **{"DataFrame": DataFrame, "SparkSession": SparkSession, "Partition": Partition},
        **{"Mapping": Mapping, "Sequence": Sequence},
        "ask_bank": {"2024-01-02": [1.1, 1.2]}.__getitem__,
        "ask_version": {"2024-01-02": "7"}.get,
    }
    exec(CODE.replace("DatabaseTable(", "ORDERS = DatabaseTable(", 1), found)
    return found


def test_its_sources_are_as_it_says(names: dict[str, Any]) -> None:
    assert names["ORDERS"].locate("/zone") == "SHOP_DB"
    listing = names["ECB_RATES"].list_files("", TABLE, build_days("2024-01-01", 3))
    assert [day.key for day in listing.missing] == ["2024-01-01", "2024-01-03"]
    assert listing.list_evidence() == {"2024-01-02": "7"}


def test_its_rows_are_read(names: dict[str, Any], spark: SparkSession) -> None:
    listing = names["ECB_RATES"].list_files("", TABLE, build_days("2024-01-02"))
    rows = listing.read(spark).collect()
    assert [(str(row["day"]), row["rate"]) for row in rows] == [
        ("2024-01-02", 1.1),
        ("2024-01-02", 1.2),
    ]
