"""What can't be as it is declared is refused when it is made, in one line that says the cure."""

import functools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from backfill_assets.tables.flights_history import FLIGHTS_HISTORY
from backfill_engine.assembly import check_together
from backfill_engine.errors import BackfillError, DeclarationError
from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.dates import DAYS
from backfill_engine.grains.timestamps import HOURS
from backfill_engine.orchestration.instance.partition_definitions import map_offsets
from backfill_engine.rules.column_rules import Nulls, Values
from backfill_engine.rules.count_rules import Reconciled
from backfill_engine.rules.drift import Drift
from backfill_engine.sources.json_landing import JsonLanding
from backfill_engine.sources.parquet_landing import ParquetLanding
from backfill_engine.table_assets import SAME_KEY, TableAsset, Upstream, serve_versions, table_asset
from backfill_engine.tables.column_types import TYPES, parse_type
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine.tables.protected import Protected

DAY = required("day", "DATE", "Day")
ID = required("id", "BIGINT", "Number")
NOTE = Column("note", "STRING", "Note")
READINGS = Table("raw", "readings", "day", (DAY, ID, NOTE))
TOTAL = Reconciled(total_of="records")
BUCKETED = Table("raw", "things", "id", (DAY, ID, NOTE), grain=Buckets(10, 100))


def add_column(name: str, type_: str) -> dict[str, Any]:
    return {"columns": (DAY, ID, Column(name, type_, "Whatever"))}


def add_rule(rule: object) -> dict[str, Any]:
    return {"rules": (rule,)}


def protect(**ends: str) -> dict[str, Any]:
    return {"protected": (Protected(**ends),)}


def land_parquet(keys: Any, fields: Any) -> Callable[[], ParquetLanding]:
    return lambda: ParquetLanding("things", keys, "SPACE", fields)


TYPE_CASES = {
    "ARAY<INT>": "`ARAY` is no type: did you mean ARRAY?",
    "ARRAY<ARAY<INT>>": "`ARAY` is no type: did you mean ARRAY?",
    "INTT": "`INTT` is no type: did you mean INT?",
    "": f"`` is no type: there are {', '.join(TYPES)}",
    "VARCHAR": "VARCHAR needs its number of characters: write VARCHAR(10)",
    "CHAR(0)": "CHAR needs its number of characters: write CHAR(10)",
    "VARCHAR(2,1)": "VARCHAR needs its number of characters: write VARCHAR(10)",
    "ARRAY<VARCHAR(2)>": "VARCHAR(2) can't be a part of another type: write STRING there",
    "VARIANT": "VARIANT can't be read by delta-rs, the second reader of every table: keep its JSON",
    "INTERVAL DAY": "`INTERVAL` is no type: there are BOOLEAN, ",
    "ARRAY": "ARRAY needs what it holds: write ARRAY<INT>, or STRUCT<a: INT>",
    "ARRAY<INT": "ARRAY<…> isn't closed: write , or > for ``",
    "ARRAY<INT, INT>": "ARRAY isn't whole: write ARRAY<INT> or MAP<STRING, INT>",
    "MAP<STRING>": "MAP isn't whole: write ARRAY<INT> or MAP<STRING, INT>",
    "MAP<MAP<INT, INT>, INT>": "the key of a MAP can't be or hold a MAP: make it a STRING, or an",
    "STRUCT<a: INT, A: INT>": "a STRUCT has a field twice: name each once in a, A",
    "STRUCT<a: INT NOT NULL>": "STRUCT<…> isn't closed: write , or > for `NOT`",
    "STRUCT<1: INT>": "a field of a STRUCT can't be called `1`: write letters and digits",
    "INT NOT NULL": "`NOT` follows the type INT: a type says nothing of nulls or comments",
    "DECIMAL": "DECIMAL needs its digits: write DECIMAL(10,2)",
    "DECIMAL(39,2)": "there is no DECIMAL(39,2): it has 1 to 38 digits, and no more",
    "DECIMAL(5,6)": "there is no DECIMAL(5,6): it has 1 to 38 digits, and no more",
}


TABLES: dict[str, tuple[dict[str, Any], str]] = {
    "layer": ({"layer": "my layer"}, "a layer can't be called `my layer`: write letters, digits"),
    "layer of no tables": ({"layer": "landing"}, "the layer `landing` is taken by assets that are"),
    "table name": ({"name": "my table"}, "a table can't be called `my table`: write letters, dig"),
    "table name of a path": ({"name": "a/b"}, "a table can't be called `a/b`: write"),
    "column name": (add_column("odd name", "INT"), "a column can't be called `odd name`: Delta wo"),
    "column name with a dot": (add_column("a.b", "INT"), "a column can't be called"),
    "column without a name": (add_column("", "INT"), "a column can't be called"),
    "column of the audit": (
        add_column("_kept", "INT"),
        "the audit has a column `_kept` of its own",
    ),
    "column twice": (add_column("id", "INT"), "the column `id` is declared twice"),
    "column twice but for case": (add_column("Id", "INT"), "the column `Id` is declared twice (Sp"),
    "protected without a reason": (protect(reason=" "), "first=None, last=None) needs a reason"),
    "protected by another grain": (
        protect(last="2013-01", reason="audited"),
        "no partition can be called `2013-01`, which Protected(reason='audited', ",
    ),
    "protected backwards": (
        protect(first="2013-01-02", last="2013-01-01", reason="audited"),
        "last='2013-01-01') is reversed: exchange first and last",
    ),
    "empty": ({"empty": "drop"}, "`empty` can't be `drop`: choose of publish, evidenced, withhold"),
    "grain as text": ({"grain": "days"}, "'days' is no grain: give one of `backfill_engine.grain"),
    "grain as a class": ({"grain": Buckets}, "<class 'backfill_engine.grains.bu"),
    "key as text": ({"natural_key": "id"}, '`natural_key` is a tuple of names: write ("id",)'),
    "key with a column twice": (
        {"natural_key": ("id", "id")},
        "has a column twice: name each once",
    ),
    "key of a map": (
        {"columns": (DAY, required("m", "MAP<INT, INT>", "M")), "natural_key": ("m",)},
        "`m` is MAP<INT, INT>, which tells no rows apart: make a natural key of col",
    ),
    "rule about no column": (
        add_rule(Nulls("notes")),
        "Nulls is about a column `notes`, which isn",
    ),
    "rule about text": (add_rule(Values("note", 0, 1)), "about `note`, which is STRING: give it a"),
    "drift of a day": (add_rule(Drift("day", (1, 2))), "about `day`, which is DATE: give it a col"),
    "total of no column": (add_rule(TOTAL), "about a column `records`, which isn't declared"),
    "total of floats": (
        add_column("records", "DOUBLE") | add_rule(TOTAL),
        "the rule Reconciled is about `records`, which is DOUBLE: give it a column",
    ),
    "rule twice": (
        {"rules": 2 * (Nulls("note"),)},
        "the rule Nulls(column='note', at_most=1.0, sp",
    ),
    "rule as a class": (add_rule(Reconciled), "<class 'backfill_engine.rules.count_rules.Reconc"),
    **{
        f"type {type_}": (add_column("value", type_), f"column `value`: {message}")
        for type_, message in TYPE_CASES.items()
    },
}

LANDINGS: dict[str, tuple[Callable[[], object], str]] = {
    "landed type": (
        lambda: JsonLanding("readings", (Column("a", "ARAY<INT>", "A"),)),
        "landing `readings`: column `a`: `ARAY` is no type: did you mean ARRAY?",
    ),
    "landed field twice": (
        lambda: JsonLanding("a", (NOTE, NOTE)),
        "landing `a`: the column `note`",
    ),
    "landed kind without a key": (
        land_parquet((("a", "id"),), (("b", (ID,)),)),
        "landing `things`: `fields` are of `b` files, and `keys` names no such kind: choose of a",
    ),
    "landed key that isn't declared": (
        land_parquet((("a", "id"),), (("a", (NOTE,)),)),
        "landing `things`, a: the key `id` must be a declared column of integers",
    ),
    "JSON by key": (
        lambda: table_asset(BUCKETED, landing=JsonLanding("things")),
        "raw/things: JSON lands in folders of a time, and the table is partitioned by buckets of 1",
    ),
    "Parquet by time": (
        lambda: table_asset(READINGS, landing=ParquetLanding("a", (("a", "id"),), "SPACE")),
        "raw/readings: Parquet lands by an integer key, and the table is partitioned by days: give",
    ),
}
INPUTS = {
    "itself": ([Upstream(READINGS)], "reads itself: take it out of its `inputs`"),
    "twice": (2 * [Upstream(BUCKETED)], "reads raw/things twice: name it once in `inputs`"),
    "another type": (
        [Upstream(BUCKETED, rows_for="id")],
        "by `id`, which is BIGINT there, and `day`",
    ),
    "no column": ([Upstream(BUCKETED, rows_for="none")], "by `none`, which is no column there"),
    "guards": ([Upstream(BUCKETED, guards=True)], "guards raw/things and reads the landing zone"),
}


def assert_refused(make: Callable[[], object], beginning: str, part: str = "") -> None:
    with pytest.raises(BackfillError, match=f"^{re.escape(beginning)}") as refused:
        make()
    assert isinstance(refused.value, DeclarationError)
    assert part in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("changes", "message"), TABLES.values(), ids=TABLES)
def test_a_table_is_refused_when_it_is_made(changes: dict[str, Any], message: str) -> None:
    key = f"{changes.get('layer', 'raw')}/{changes.get('name', 'readings')}"
    assert_refused(functools.partial(replace, READINGS, **changes), f"{key}: ", message)


@pytest.mark.parametrize(("make", "message"), LANDINGS.values(), ids=LANDINGS)
def test_a_landing_is_refused_when_it_is_made(make: Callable[[], object], message: str) -> None:
    assert_refused(make, message)


@pytest.mark.parametrize(("inputs", "message"), INPUTS.values(), ids=INPUTS)
def test_what_an_asset_cannot_read_is_refused(inputs: list[Upstream], message: str) -> None:
    landing = JsonLanding("readings", (NOTE,)) if inputs[0].guards else None
    make = functools.partial(table_asset, READINGS, inputs=inputs, landing=landing)
    assert_refused(make, "raw/readings ", message)


@pytest.mark.parametrize(
    ("written", "spelled"),
    [
        ("int", "INT"),
        ("Long", "BIGINT"),
        ("NUMERIC(5)", "DECIMAL(5,0)"),
        ("decimal( 10 , 2 )", "DECIMAL(10,2)"),
        ("timestamp_ltz", "TIMESTAMP"),
        ("array<struct<a:int,`größe` string>>", "ARRAY<STRUCT<a: INT, `größe`: STRING>>"),
        ("MAP<STRING,MAP<DATE,BINARY>>", "MAP<STRING, MAP<DATE, BINARY>>"),
    ],
)
def test_types_have_one_spelling(written: str, spelled: str) -> None:
    assert Column("a", written, "A").type == spelled
    assert str(parse_type(spelled)) == spelled


def declare_asset(table: Table, *inputs: Upstream) -> TableAsset:
    return TableAsset(table, lambda _: pytest.fail("is never computed"), inputs, None, None)


HOURLY = Table(
    "raw", "hours", "at", (DAY, required("at", "TIMESTAMP", "At")), grain=HOURS, folder_by="day"
)
DAILY = replace(READINGS, layer="features")
OLD = replace(declare_asset(READINGS), history=FLIGHTS_HISTORY)
STAGED = replace(READINGS, layer="staging", begins_with=READINGS)
TOGETHER: dict[str, tuple[list[TableAsset], str]] = {
    "an upstream without an asset": (
        [declare_asset(DAILY, Upstream(READINGS))],
        "features/readings reads raw/readings, which no asset publishes: write one with @table_as",
    ),
    "tables in a circle": (
        [declare_asset(READINGS, Upstream(DAILY)), declare_asset(DAILY, Upstream(READINGS))],
        "tables read each other, raw/readings → features/readings → raw/readings: break the circle",
    ),
    "two assets of a table": (
        2 * [declare_asset(READINGS)],
        "raw/readings is published by 2 assets: leave it to one of them",
    ),
    "hours by the same key": (
        [declare_asset(HOURLY), declare_asset(DAILY, Upstream(HOURLY, SAME_KEY))],
        "features/readings is partitioned by days and reads raw/hours, by hours, by the same key: ",
    ),
    "buckets by time": (
        [declare_asset(BUCKETED), declare_asset(DAILY, Upstream(BUCKETED, map_offsets()))],
        "features/readings is partitioned by days and reads raw/things, by buckets of 10, by its t",
    ),
    "two landings of one name": (
        [replace(declare_asset(table), landing=JsonLanding("a")) for table in (READINGS, DAILY)],
        "raw/readings and features/readings both read the landing zone, and what they read would b",
    ),
    "one of several inputs begins later": (
        [
            OLD,
            declare_asset(STAGED, Upstream(READINGS)),
            declare_asset(HOURLY),
            declare_asset(
                replace(DAILY, begins_with=STAGED),
                Upstream(STAGED),
                Upstream(HOURLY, map_offsets()),
            ),
        ],
        "features/readings begins with staging/readings, and not all that it reads does: leave",
    ),
    "history that is left out": (
        [OLD, declare_asset(DAILY, Upstream(READINGS))],
        "all that features/readings reads begins with the history of raw/readings, and it doesn't",
    ),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_assets_that_do_not_fit_together_are_refused(case: str) -> None:
    assets, message = TOGETHER[case]
    assert_refused(functools.partial(check_together, assets), message)


NUMBERED = (DAY, ID, Column("note", "INT", "Note"))
VERSIONS: dict[str, tuple[dict[str, Any], str]] = {
    "the same twice": (
        {"versions": (DAILY, DAILY)},
        "serves features/readings twice: name it once",
    ),
    "another key": (
        {"natural_key": ("id",), "versions": (DAILY,)},
        "can't serve features/readings, whose natural_key is (), not ('id',)",
    ),
    "another column": (
        {"versions": (replace(DAILY, columns=(DAY, ID)),)},
        "can't serve features/readings, whose column_names is ('day', 'id'), not ('day', 'id', 'no",
    ),
    "another type": (
        {"versions": (replace(DAILY, columns=NUMBERED),)},
        "can't serve features/readings, where `note` is INT: give both tables",
    ),
}


@pytest.mark.parametrize(("changes", "message"), VERSIONS.values(), ids=VERSIONS)
def test_versions_that_consumers_would_notice_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    make = functools.partial(replace, READINGS, layer="serving", **changes)
    assert_refused(make, f"serving/readings {message}")


def test_a_table_without_versions_serves_nothing() -> None:
    assert_refused(lambda: serve_versions(READINGS), "raw/readings serves nothing: declare")


def test_assets_that_fit_together_are_taken() -> None:
    both = [OLD, declare_asset(STAGED, Upstream(READINGS))]
    check_together(both)
    daily = declare_asset(DAILY, Upstream(HOURLY, map_offsets()))
    check_together([declare_asset(HOURLY), daily])
    assert DAILY.grain is DAYS
