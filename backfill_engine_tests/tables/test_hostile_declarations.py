"""What can't be as it is declared is refused when it is made, in one line that says the cure."""

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
from backfill_engine.table_assets import TableAsset, Upstream, serve_versions, table_asset
from backfill_engine.tables.column_types import TYPES, parse_type
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine.tables.protected import Protected

DAY = required("day", "DATE", "Day")
ID = required("id", "BIGINT", "Number")
NOTE = Column("note", "STRING", "Note")
READINGS = Table("raw", "readings", "day", (DAY, ID, NOTE))
BUCKETED = Table("raw", "things", "id", (DAY, ID, NOTE), grain=Buckets(10, 100))


def declare(**changes: Any) -> Callable[[], Table]:
    return lambda: replace(READINGS, **changes)


def declare_column(name: str, type_: str) -> Callable[[], Table]:
    return declare(columns=(DAY, ID, Column(name, type_, "Whatever")))


def land_parquet(keys: Any, fields: Any) -> Callable[[], ParquetLanding]:
    return lambda: ParquetLanding("things", keys, "SPACE", fields)


TYPE_CASES = {
    "ARAY<INT>": "`ARAY` is no type: did you mean ARRAY?",
    "ARRAY<ARAY<INT>>": "`ARAY` is no type: did you mean ARRAY?",
    "INTT": "`INTT` is no type: did you mean INT?",
    "": f"`` is no type: there are {', '.join(TYPES)}",
    "VARCHAR(10)": "`VARCHAR` is no type: there are BOOLEAN, ",
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

CASES: dict[str, tuple[Callable[[], object], str]] = {
    "layer": (
        declare(layer="my layer"),
        "my layer/readings: a layer can't be called `my layer`: write letters, digits and _",
    ),
    "layer of what is no table": (
        declare(layer="landing"),
        "landing/readings: the layer `landing` is taken by assets that are no tables: give it",
    ),
    "table name": (
        declare(name="my readings"),
        "raw/my readings: a table can't be called `my readings`: write letters, digits and _",
    ),
    "table name of a path": (declare(name="a/b"), "raw/a/b: a table can't be called `a/b`: write"),
    "column name": (
        declare_column("odd name", "INT"),
        "raw/readings: a column can't be called `odd name`: write letters, digits and _",
    ),
    "column name with a dot": (declare_column("a.b", "INT"), "raw/readings: a column can't be ca"),
    "column without a name": (declare_column("", "INT"), "raw/readings: a column can't be called"),
    "column of the audit": (
        declare_column("_kept", "INT"),
        "raw/readings: the audit has a column `_kept` of its own: give it another name",
    ),
    "column twice": (
        declare(columns=(DAY, ID, NOTE, NOTE)),
        "raw/readings: the column `note` is declared twice",
    ),
    "column twice but for case": (
        declare_column("Id", "INT"),
        "raw/readings: the column `Id` is declared twice (Spark doesn't tell upper from lower",
    ),
    "protected without a reason": (
        declare(protected=(Protected(reason=" "),)),
        "raw/readings: Protected(reason=' ', first=None, last=None) needs a reason",
    ),
    "protected by another grain": (
        declare(protected=(Protected(last="2013-01", reason="audited"),)),
        "raw/readings: no partition can be called `2013-01`, which Protected(reason='audited', ",
    ),
    "protected backwards": (
        declare(protected=(Protected(first="2013-01-02", last="2013-01-01", reason="audited"),)),
        "raw/readings: Protected(reason='audited', first='2013-01-02', last='2013-01-01') is "
        "reversed: exchange first and last",
    ),
    "empty": (
        declare(empty="drop"),
        "raw/readings: `empty` can't be `drop`: choose of publish, evidenced, withhold",
    ),
    "grain as text": (
        declare(grain="days"),
        "raw/readings: 'days' is no grain: give one of `backfill_engine.grains`, such as DAYS or B",
    ),
    "grain as a class": (declare(grain=Buckets), "raw/readings: <class 'backfill_engine.grains.bu"),
    "partition column that isn't declared": (
        declare(partition_by="month"),
        "raw/readings: `month` must be a declared, required column",
    ),
    "partition column that may be null": (
        declare(partition_by="note"),
        "raw/readings: `note` must be a declared, required column",
    ),
    "partition column of another type": (
        declare(partition_by="id"),
        "raw/readings: `id` must be DATE, to be partitioned by days",
    ),
    "folder column of days": (
        declare(folder_by="day"),
        "raw/readings: `folder_by` is the DATE column of a table with several partitions a day",
    ),
    "key that isn't declared": (
        declare(natural_key=("idd",)),
        "raw/readings: `idd` must be a declared, required column",
    ),
    "key that may be null": (
        declare(natural_key=("note",)),
        "raw/readings: `note` must be a declared, required column",
    ),
    "key as text": (
        declare(natural_key="id"),
        'raw/readings: `natural_key` is a tuple of names: write ("id",)',
    ),
    "key with a column twice": (
        declare(natural_key=("id", "id")),
        "raw/readings: `natural_key` has a column twice: name each once in id, id",
    ),
    "key of a map": (
        declare(columns=(DAY, required("m", "MAP<INT, INT>", "M")), natural_key=("m",)),
        "raw/readings: `m` is MAP<INT, INT>, which tells no rows apart: make a natural key of col",
    ),
    "rule about no column": (
        declare(rules=(Nulls("notes"),)),
        "raw/readings: the rule Nulls is about a column `notes`, which isn't declared: choose of "
        "day, id, note",
    ),
    "rule about text": (
        declare(rules=(Values("note", 0, 1),)),
        "raw/readings: the rule Values is about `note`, which is STRING: give it a column",
    ),
    "drift of a day": (
        declare(rules=(Drift("day", (1, 2)),)),
        "raw/readings: the rule Drift is about `day`, which is DATE: give it a column of TINYINT",
    ),
    "total of no column": (
        declare(rules=(Reconciled(total_of="records"),)),
        "raw/readings: the rule Reconciled is about a column `records`, which isn't declared",
    ),
    "total of floats": (
        declare(columns=(DAY, Column("f", "DOUBLE", "F")), rules=(Reconciled(total_of="f"),)),
        "raw/readings: the rule Reconciled is about `f`, which is DOUBLE: give it a column",
    ),
    "rule twice": (
        declare(rules=(Nulls("note"), Nulls("note"))),
        "raw/readings: the rule Nulls(column='note', at_most=1.0, spike=None, blocking=True) is th",
    ),
    "rule as a class": (
        declare(rules=(Reconciled,)),
        "raw/readings: <class 'backfill_engine.rules.count_rules.Reconciled'> is no rule: make one",
    ),
    "landed type": (
        lambda: JsonLanding("readings", (Column("a", "ARAY<INT>", "A"),)),
        "landing `readings`: column `a`: `ARAY` is no type: did you mean ARRAY?",
    ),
    "landed field twice": (
        lambda: JsonLanding("readings", (NOTE, NOTE)),
        "landing `readings`: the column `note` is declared twice",
    ),
    "landed kind without a key": (
        land_parquet((("a", "id"),), (("b", (ID,)),)),
        "landing `things`: `fields` are of `b` files, and `keys` names no such kind: choose of a",
    ),
    "landed key that isn't declared": (
        land_parquet((("a", "id"),), (("a", (NOTE,)),)),
        "landing `things`, a: the key `id` must be a declared column of integers",
    ),
    "reads itself": (
        lambda: table_asset(READINGS, inputs=[Upstream(READINGS)]),
        "raw/readings reads itself: take it out of its `inputs`",
    ),
    "reads twice": (
        lambda: table_asset(READINGS, inputs=2 * [Upstream(BUCKETED)]),
        "raw/readings reads raw/things twice: name it once in `inputs`",
    ),
    "rows for, by another type": (
        lambda: table_asset(READINGS, inputs=[Upstream(BUCKETED, rows_for="id")]),
        "raw/readings finds its rows of raw/things by `id`, which is BIGINT there, and `day` is",
    ),
    "rows for, by no column": (
        lambda: table_asset(READINGS, inputs=[Upstream(BUCKETED, rows_for="nothing")]),
        "raw/readings finds its rows of raw/things by `nothing`, which is no column there, and",
    ),
    "guards, by what lands": (
        lambda: table_asset(
            READINGS,
            inputs=[Upstream(BUCKETED, guards=True)],
            landing=JsonLanding("readings", (NOTE,)),
        ),
        "raw/readings guards raw/things and reads the landing zone, which may change meanwhile",
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
CASES |= {
    f"type {type_}": (declare_column("value", type_), f"raw/readings: column `value`: {message}")
    for type_, message in TYPE_CASES.items()
}


def assert_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(BackfillError, match=f"^{re.escape(message)}") as refused:
        make()
    assert isinstance(refused.value, DeclarationError)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_when_it_is_made(case: str) -> None:
    assert_refused(*CASES[case])


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
        "features/readings reads raw/readings, which no asset publishes: write one with "
        "@table_asset, or declare an ExternalDelta",
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
        [declare_asset(HOURLY), declare_asset(DAILY, Upstream(HOURLY))],
        "features/readings is partitioned by days and reads raw/hours, by hours, by the same key: "
        "give Upstream a mapping, such as map_offsets(), or both tables one grain",
    ),
    "buckets by time": (
        [declare_asset(BUCKETED), declare_asset(DAILY, Upstream(BUCKETED, map_offsets()))],
        "features/readings is partitioned by days and reads raw/things, by buckets of 10, by its "
        "time: give both a grain of time, or both buckets",
    ),
    "two landings of one name": (
        [replace(declare_asset(table), landing=JsonLanding("a")) for table in (READINGS, DAILY)],
        "raw/readings and features/readings both read the landing zone, and what they read would "
        "be one asset, landing/readings: give one of them another name",
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
        "features/readings begins with staging/readings, and not all that it reads does: leave "
        "`begins_with` out",
    ),
    "history that is left out": (
        [OLD, declare_asset(DAILY, Upstream(READINGS))],
        "all that features/readings reads begins with the history of raw/readings, and it doesn't: "
        "declare `begins_with`",
    ),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_assets_that_do_not_fit_together_are_refused(case: str) -> None:
    assets, message = TOGETHER[case]
    assert_refused(lambda: check_together(assets), message)


VERSIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "the same twice": (
        declare(layer="serving", versions=(DAILY, DAILY)),
        "serving/readings serves features/readings twice: name it once",
    ),
    "another key": (
        declare(layer="serving", natural_key=("id",), versions=(DAILY,)),
        "serving/readings can't serve features/readings, whose natural_key is (), not ('id',)",
    ),
    "another column": (
        declare(layer="serving", versions=(replace(DAILY, columns=(DAY, ID)),)),
        "serving/readings can't serve features/readings, whose column_names is ('day', 'id'), not "
        "('day', 'id', 'note')",
    ),
    "another type": (
        declare(
            layer="serving",
            versions=(replace(DAILY, columns=(DAY, ID, Column("note", "INT", "Note"))),),
        ),
        "serving/readings can't serve features/readings, where `note` is INT: give both tables",
    ),
    "no version at all": (lambda: serve_versions(READINGS), "raw/readings serves nothing: declare"),
}


@pytest.mark.parametrize("case", VERSIONS)
def test_versions_that_consumers_would_notice_are_refused(case: str) -> None:
    make, message = VERSIONS[case]
    assert_refused(make, message)


def test_assets_that_fit_together_are_taken() -> None:
    both = [OLD, declare_asset(STAGED, Upstream(READINGS))]
    check_together(both)
    daily = declare_asset(DAILY, Upstream(HOURLY, map_offsets()))
    check_together([declare_asset(HOURLY), daily])
    assert DAILY.grain is DAYS
