"""Whatever a source or a person calls a column, the engine's own columns don't collide with it.

And no table gets a column before the rows that have it are built, audited and published.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from backfill_engine.audit_columns import AUDIT_COLUMNS, ENGINE_PREFIX
from backfill_engine.contents.partition_contents import read_back
from backfill_engine.errors import DeclarationError
from backfill_engine.lake.side_tables import build_quarantine_table, build_withheld_table
from backfill_engine.lake.stored_declarations import find_new_fields
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.write_modes.options import WriteOptions
from backfill_engine.rules.column_rules import Nulls
from backfill_engine.rules.count_rules import Rejects
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.sources.json_landing import JsonLanding
from backfill_engine.table_assets import table_asset
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine_tests.pipeline.publishing import Lake, land_json
from backfill_engine_tests.shared_fixtures import build_days

NAMES = (
    *("value", "line", "reason", "run_id", "partition_key", "withheld_on", "rejected_on", "fault"),
    *("row_reason", "count", "rows", "rejects", "number", "partition", "key", "name", "old", "new"),
    *("mark", "word", "year", "month", "hour", "minute", "_path", "_row", "_read", "_keys", "_key"),
    *("_fields", "_objects", "_colons", "_is_plain", "_has_all", "_text_of_id", "_line_ends_here"),
    *("_partition_number", "_number", "_replaced", "_broken", "_source_file", "_corrupt", "end"),
    *("_records_with_other_fields", "_metadata", "latest", "select", "order", "true", "_1", "_0"),
    *("standing", "moved", "at", "kept", "corrupt", "checksum", "upper", "struct", "_c0", "_id"),
)
"""What the engine calls columns, frames and aliases, or did, and some of SQL's own words."""

NEVER = (*AUDIT_COLUMNS, f"{ENGINE_PREFIX}line", f"{ENGINE_PREFIX}number", ENGINE_PREFIX)
OF_LANDING = ("day", "source_file")
UNSTORABLE = ("a b", "a.b", "a`b", "a;b", "a\x1fb", "", "ä")
CASES = (str.lower, str.upper, str.title)
DECLARED = [CASES[at % 3](name) for at, name in enumerate(NAMES) if at % 2]
NEW = [CASES[at % 3](name) for at, name in enumerate(NAMES) if not at % 2]
DAYS = build_days("2013-01-01", 2)


def declare(*columns: Column, names: Sequence[str] = DECLARED) -> Table:
    return Table(
        layer="raw",
        name="names",
        partition_by="day",
        columns=(
            required("day", "DATE", "Day on which it landed"),
            required("id", "INT", "Number"),
            *(Column(name, "STRING", f"The {name}") for name in names),
            required("source_file", "STRING", "Landing file"),
            *columns,
        ),
        natural_key=("id",),
        rules=(Rejects(at_most=0.5), *(Nulls(name) for name in names)),
        max_new_fields=200,
    )


def build_recipe(table: Table) -> Recipe:
    fields = tuple(column for column in table.columns if column.name not in OF_LANDING)
    return land_json(table, "names", fields)


def land(lake: Lake, at: int, *records: Mapping[str, Any] | str) -> None:
    path = Path(lake.landing_root) / f"names/year=2013/month=01/day=0{at + 1}/names.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (record if isinstance(record, str) else json.dumps(record) for record in records)
    path.write_text("\n".join(lines))


def build_record(number: int, names: Sequence[str]) -> dict[str, Any]:
    return {"id": number, **{name: f"{name} of {number}" for name in names}}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, Warehouse(str(tmp_path / "warehouse")), str(tmp_path / "landing"))


@pytest.mark.parametrize("name", [case(name) for name in NEVER for case in CASES])
def test_a_name_of_the_engine_is_refused_and_no_new_field_gets_it(name: str) -> None:
    with pytest.raises(DeclarationError, match=f"the audit has a column `{name}` of its own: give"):
        declare(Column(name, "STRING", "Mine"))
    assert find_new_fields(declare(), (), [name, "mine"]) == ["mine"]


@pytest.mark.parametrize("name", ["value", "VALUE", "source_file", "Reason", "run_id", "line"])
def test_a_partition_column_that_landing_or_quarantine_has_is_refused(name: str) -> None:
    columns = (required(name, "DATE", "Day"), Column("note", "STRING", "Note"))
    with pytest.raises(DeclarationError, match=f"a column `{name}` of its own beside the partit"):
        Table("raw", "names", name, columns)


@pytest.mark.parametrize("name", ["day", "DAY", "source_file", "Source_File"])
def test_a_field_that_says_where_records_landed_is_refused(name: str) -> None:
    fields = (Column(name, "STRING", "Mine"),)
    with pytest.raises(DeclarationError, match=f"`{name}` is a column that tells where a record"):
        table_asset(declare(), landing=JsonLanding("names", fields))


@pytest.mark.slow
@pytest.mark.by_hand
def test_any_other_name_is_kept_declared_or_new_published_or_withheld(lake: Lake) -> None:
    recipe, table = build_recipe(declare()), declare()
    odd = dict.fromkeys((*NEVER, *map(str.upper, NEVER), *OF_LANDING, *UNSTORABLE, "DAY"), "odd")
    first = {**build_record(1, DECLARED), **build_record(1, NEW), **odd}
    land(lake, 0, first, build_record(2, DECLARED), "{")
    bad = {**build_record(3, DECLARED), "only_withheld": 1}
    land(lake, 1, bad, "{", "{")
    published, withheld = lake.publish(recipe, DAYS)
    assert (published.version is None, withheld.version is None) == (False, True), published
    log = read_log(lake.warehouse, table)
    assert set(log.extra_fields) == set(NEW)
    rows = log.open_snapshot().to_pyarrow_table().to_pylist()
    published_row = next(row for row in rows if row["id"] == 1)
    assert {name: published_row[name] for name in (*DECLARED, *NEW)} == {
        name: f"{name} of 1" for name in (*DECLARED, *NEW)
    }
    quarantined = lake.warehouse.open(build_quarantine_table(table)).to_pyarrow_table()
    assert quarantined.num_rows == 3
    aside = lake.warehouse.open(build_withheld_table(table)).to_pyarrow_table().to_pylist()
    assert [row["partition_key"] for row in aside] == [DAYS[1].key]
    assert {f"{name} of 3" for name in DECLARED} <= set(aside[0].values())
    # Once more, by the way that reads what is published too.
    land(lake, 1, {**build_record(3, DECLARED), **build_record(3, NEW)})
    merge = WriteOptions(write_mode="merge")
    assert [result.version for result in lake.publish(recipe, DAYS, options=merge)] != [None, None]
    log = read_log(lake.warehouse, table)
    found = read_back(log, DAYS)
    assert {key: contents.checksum for key, contents in found.items()} == {
        key: publish.checksum for key, publish in log.publishes.items()
    }


def test_no_column_is_added_before_its_rows_are_published(lake: Lake) -> None:
    table = declare(names=())
    land(lake, 0, {"id": 1})
    land(lake, 1, {"id": 1, "gate": "B"}, "{", "{")
    recipe = build_recipe(table)
    lake.publish(recipe, DAYS[:1])
    stored = read_log(lake.warehouse, table)

    def fail(window: InputWindow) -> DataFrame:
        if window.extra_fields:
            raise RuntimeError("no frame")
        return recipe.compute(window)

    land(lake, 0, {"id": 1, "seat": "A", "weight": 3})
    with pytest.raises(RuntimeError):
        lake.publish(replace(recipe, compute=fail), DAYS[:1], run_id="failing")
    declared = build_recipe(declare(Column("weight", "INT", "Weight"), names=()))
    (withheld,) = lake.publish(declared, DAYS[1:], run_id="withholding")
    assert withheld.version is None
    assert read_log(lake.warehouse, table).version == stored.version
    lake.publish(declared, DAYS[:1], run_id="good")
    assert read_log(lake.warehouse, table).extra_fields == ("weight", "seat")
