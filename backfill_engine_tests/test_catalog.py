"""The catalog: what a project declares, as one value."""

import datetime as dt
from dataclasses import replace

import pytest
from dagster import AssetKey

from backfill_engine.assembly import build_catalog
from backfill_engine.errors import DeclarationError, TableError
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.table_assets import TableAsset, TableTranslator, Upstream, table_asset
from backfill_engine.tables.declarations import Calendar, Column, Table, required
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS

COLUMNS = (required("day", "DATE", "Day."), Column("note", "STRING", "Note."))
BRONZE = Table("bronze", "notes", "day", COLUMNS)
GOLD = Table("gold", "notes", "day", COLUMNS, begin=dt.date(2024, 1, 3), end=dt.date(2024, 1, 5))
JANUARY = Calendar(dt.date(2024, 1, 1), dt.date(2024, 2, 1))


def declare(table: Table, *inputs: Table) -> TableAsset:
    return table_asset(table, inputs=[Upstream(read) for read in inputs])(
        lambda window: window.read(table, column="day")
    )


def test_tables_are_those_that_were_declared_with_their_days() -> None:
    catalog, _ = build_catalog([declare(GOLD, BRONZE), declare(BRONZE)], calendar=JANUARY)
    assert [table.key for table in catalog.tables] == ["bronze/notes", "gold/notes"]
    assert catalog.tables == (BRONZE, GOLD)
    bronze, gold = map(find_partitions_def, catalog.tables)
    assert (bronze.get_first_partition_key(), len(bronze.get_partition_keys())) == (
        "2024-01-01",
        31,
    )
    assert gold.get_partition_keys() == ["2024-01-03", "2024-01-04"]


def test_two_catalogs_know_nothing_of_each_other() -> None:
    later = Calendar(dt.date(2025, 1, 1), dt.date(2025, 1, 3))
    own, _ = build_catalog([declare(BRONZE)], calendar=JANUARY)
    foreign, _ = build_catalog([declare(BRONZE)], calendar=later, name_prefix="their_")
    keys = [
        find_partitions_def(catalog.find_table("bronze/notes")).get_first_partition_key()
        for catalog in (own, foreign)
    ]
    assert keys == ["2024-01-01", "2025-01-01"]
    assert (own.prefix("watch"), foreign.prefix("watch")) == ("watch", "their_watch")
    with pytest.raises(TableError, match="no table raw/flights: there are bronze/notes"):
        own.find_table(RAW_FLIGHTS.key)


def test_a_table_that_is_of_no_catalog_has_no_partitions() -> None:
    with pytest.raises(DeclarationError, match="bronze/notes has no calendar: take the table from"):
        find_partitions_def(BRONZE)


def test_days_that_end_before_they_begin_are_refused() -> None:
    with pytest.raises(DeclarationError, match="begin 2024-01-05 must be before end 2024-01-05"):
        build_catalog([declare(replace(GOLD, begin=GOLD.end))])


def test_unknown_table_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(TableError, match="no table raw/birds: there are raw/flights, raw/orders"):
        CATALOG.find_table("raw/birds")


class Renaming(TableTranslator):
    """Puts a path before the key of every asset."""

    def __init__(self, *path: str) -> None:
        self.path = path

    def get_asset_key(self, table: Table) -> AssetKey:
        """Puts the path before it."""
        return AssetKey([*self.path, table.layer, table.name])


def test_a_translator_names_a_table_wherever_it_is_named() -> None:
    catalog, _ = build_catalog([declare(GOLD, BRONZE), declare(BRONZE)], translator=Renaming("a"))
    assert [table.key for table in catalog.tables] == ["a/bronze/notes", "a/gold/notes"]
    recipe = catalog.recipes["a/gold/notes"]
    assert [read.key for read in recipe.inputs] == ["a/bronze/notes"]
    as_declared, _ = build_catalog([declare(GOLD, BRONZE), declare(BRONZE)])
    assert recipe.code_version == as_declared.recipes["gold/notes"].code_version
    assert catalog.warehouse.uri(recipe.table) == as_declared.warehouse.uri(GOLD)


def test_a_name_that_no_file_or_op_could_have_is_refused() -> None:
    with pytest.raises(DeclarationError, match="bronze/notes: its asset can't be called my lake/b"):
        build_catalog([declare(BRONZE)], translator=Renaming("my lake"))


def test_two_tables_at_one_place_are_refused() -> None:
    bronze, gold = (replace(table, location="s3://acme/notes") for table in (BRONZE, GOLD))
    with pytest.raises(DeclarationError, match="bronze/notes and gold/notes both lie at s3://acme"):
        build_catalog([declare(bronze), declare(gold)])


def test_a_place_that_depends_on_who_works_where_is_refused() -> None:
    with pytest.raises(DeclarationError, match="its `location` data/notes depends on who works"):
        replace(BRONZE, location="data/notes")
