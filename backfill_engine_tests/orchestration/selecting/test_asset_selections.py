"""Tables by Dagster's asset selection language, beside lists of names. No Spark."""

import pytest

from backfill_engine.errors import PartitionRangeError, SettingsError, TableError
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.selecting.selections import (
    find_named,
    find_table_ranges,
    is_list_of_names,
    select_tables,
)
from backfill_engine_tests.project import CATALOG, defs

DAYS = {"first": "2013-01-01", "last": "2013-01-03"}


def load_graph() -> AssetGraph:
    return defs.get_repository_def().asset_graph


def select(warehouse: Warehouse, text: str, **ends: str) -> list[str]:
    found = select_tables(CATALOG, warehouse, text, load_graph=load_graph, **ends)
    return [table.key for table in found]


def test_a_list_of_names_needs_no_graph(warehouse: Warehouse) -> None:
    def refuse() -> AssetGraph:
        raise AssertionError("the definitions take seconds to import")

    found = select_tables(
        CATALOG, warehouse, "staging/flights, raw/flights", load_graph=refuse, **DAYS
    )
    assert [table.key for table in found] == ["staging/flights", "raw/flights"]


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("group:raw", ["raw/flights"]),  # weather has hours, orders have buckets
        ('key:"raw/*"', ["raw/flights"]),
        ('key:"*"', ["raw/flights", "staging/flights", "staging/weather", "features/", "serving/"]),
        ("staging/flights+", ["staging/flights", "features/", "serving/"]),
        ("+features/carrier_delays", ["staging/flights", "features/carrier_delays"]),
        ('key:"landing/flights"+ and group:raw', ["raw/flights"]),
        (
            "not group:raw and not group:features",
            ["staging/flights", "staging/weather", "serving/"],
        ),
        ('raw/flights,key:"staging/weather"', ["raw/flights", "staging/weather"]),
    ],
)
def test_the_language_selects_tables_that_have_the_partitions(
    warehouse: Warehouse, text: str, tables: list[str]
) -> None:
    found = select(warehouse, text, **DAYS)
    layers = [key if key in tables else f"{key.split('/')[0]}/" for key in found]
    assert sorted(set(layers)) == sorted(tables)


def test_without_a_range_tables_of_every_grain_are_selected_each_with_all_it_has(
    warehouse: Warehouse,
) -> None:
    found = select_tables(CATALOG, warehouse, "group:raw", load_graph=load_graph)
    assert {table.key for table in found} == {"raw/flights", "raw/weather", "raw/orders"}
    ranges = find_table_ranges(found, first=None, last=None)
    assert {table.key: ends for table, ends in ranges.items()} == {
        "raw/flights": ("2013-01-01", "2014-01-01"),
        "raw/weather": ("2013-01-01-00:00", "2014-01-01-23:00"),
        "raw/orders": ("0000000", "9900000"),
    }


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("group:none", SettingsError, "group:none selects no table: there are raw/flights"),
        ("((", SettingsError, "--select ((: Invalid selection string: ((: give tables, or"),
        ("raw/nope+", SettingsError, "['raw/nope'] were selected: give tables, or a selection"),
        ('raw/flights,key:"landing/flights"', SettingsError, "landing/flights is no table"),
        ("group:ops", SettingsError, "group:ops selects no table"),
        ("raw/nope", TableError, "no table raw/nope: there are"),
        ("group:raw and key:raw/orders*", PartitionRangeError, "no table of these tables has both"),
    ],
)
def test_what_selects_nothing_or_cannot_be_read_is_one_error(
    warehouse: Warehouse, text: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        select(warehouse, text, **DAYS)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_table_that_is_named_stays_though_it_lacks_the_partitions(warehouse: Warehouse) -> None:
    assert "raw/weather" in select(warehouse, 'group:staging,key:"raw/weather"', **DAYS)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('key:"raw/flights" or key:raw/weather', {"raw/flights", "raw/weather"}),
        ("raw/flights, group:staging", {"raw/flights"}),
        ('raw/flights+,1+key:"staging/flights",key:"raw/*"', set()),
    ],
)
def test_named_is_what_is_written_out_and_no_end_of_a_traversal(text: str, named: set[str]) -> None:
    assert find_named(text) == named


def test_names_and_selections_are_told_apart() -> None:
    assert is_list_of_names("raw/flights, staging/flights,nope")
    assert not any(map(is_list_of_names, ["raw/flights+", "not raw/flights", "group:raw", "*"]))
