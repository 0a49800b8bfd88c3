"""Inputs with a mapping that doesn't go by values: what it gives is read, and is the evidence."""

import datetime as dt
from pathlib import Path

import pytest
from dagster import (
    AllPartitionMapping,
    DagsterInstance,
    LastPartitionMapping,
    PartitionMapping,
    SpecificPartitionsPartitionMapping,
    StaticPartitionMapping,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine import (
    Calendar,
    DeclarationError,
    ExternalDelta,
    InputWindow,
    Table,
    TableAsset,
    Upstream,
    required,
    table,
    table_asset,
)
from backfill_engine.assembly import build_catalog
from backfill_engine.extras.comparison.reconciliation import Reconciler
from backfill_engine.grains import DAYS, Buckets
from backfill_engine.grains.grain import Grain
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.rules import Reconciled
from backfill_engine_tests.pipeline.mapped_tables import build_mapped_tables, write_theirs

CALENDAR = Calendar(dt.date(2024, 1, 1), dt.date(2024, 1, 4))
FIRST, SECOND, THIRD = "2024-01-01", "2024-01-02", "2024-01-03"
DAY, LITRES, READINGS = (
    required("day", "DATE"),
    required("litres", "BIGINT"),
    required("readings", "BIGINT"),
)
TOTALS = (DAY, LITRES, READINGS)
OF_ALL = Table("gold", "of_all", "day", TOTALS, rules=(Reconciled(total_of="readings"),))
OF_LAST = Table("gold", "of_last", "day", TOTALS, rules=(Reconciled(total_of="readings"),))


def declare_totals(theirs: ExternalDelta) -> list[TableAsset]:
    """Of each day the litres of all days, and those of the last day."""

    def sum_litres(window: InputWindow) -> DataFrame:
        """One row per day."""
        rows = window.read(theirs, column="day")
        litres = rows.agg(F.sum("litres").alias("litres"), F.count("*").alias("readings"))
        return window.list_partitions().crossJoin(litres)

    totals = [
        table_asset(
            of,
            inputs=[Upstream(theirs, mapping)],
            count_source=lambda window: window.count_input(theirs),
        )(sum_litres)
        for of, mapping in ((OF_ALL, AllPartitionMapping()), (OF_LAST, LastPartitionMapping()))
    ]

    @table(
        "gold/shares",
        partition_by="on",
        inputs={"totals": totals[0], "newest": Upstream(theirs, LastPartitionMapping())},
    )
    def shares(totals: DataFrame, newest: DataFrame) -> DataFrame:
        of_newest = newest.select(F.col("litres").alias("newest"))
        return totals.crossJoin(of_newest).select("on", F.expr("newest / litres").alias("share"))

    return [*totals, shares]


@pytest.mark.spark
def test_all_partitions_are_read_and_the_last_one(
    spark: SparkSession, tmp_path: Path, instance: DagsterInstance
) -> None:
    location = tmp_path / "theirs"
    theirs = ExternalDelta("theirs", "days", "day", (DAY, LITRES), location=str(location))
    assets = declare_totals(theirs)
    tables = build_mapped_tables(tmp_path, assets, instance, CALENDAR)

    def land(day: str, litres: int) -> None:
        write_theirs(location, "day", {"day": [dt.date.fromisoformat(day)], "litres": [litres]})

    land(FIRST, 1)
    land(SECOND, 2)
    assert not tables.run(OF_ALL, FIRST), "one of all never came"
    assert not tables.run(OF_LAST, FIRST), "the last never came"
    land(THIRD, 5)
    for of, litres, read in ((OF_ALL, 8, [FIRST, SECOND, THIRD]), (OF_LAST, 5, [THIRD])):
        assert tables.run(of, FIRST, THIRD)
        assert {row["litres"] for row in tables.read_rows(of)} == {litres}
        upstream = tables.read_log(of).publishes[FIRST].consumed.upstream[theirs.key]
        assert list(upstream) == read
    assert tables.run(assets[2].table, FIRST, THIRD)
    assert [row["share"] for row in tables.read_rows(assets[2].table)] == [5 / 8] * 3

    land(FIRST, 11)
    assert tables.find_due(OF_ALL, FIRST, THIRD) == [FIRST, SECOND, THIRD]
    assert tables.find_due(OF_LAST, FIRST, THIRD) == []
    land(THIRD, 7)
    assert tables.find_due(OF_LAST, FIRST, THIRD) == [FIRST, SECOND, THIRD]
    assert tables.run(OF_LAST, SECOND)
    assert [row["litres"] for row in tables.read_rows(OF_LAST)] == [5, 7, 5]
    reconciler = Reconciler(spark, tables.catalog.warehouse, str(tmp_path), 4, 2**30)
    recipe = tables.catalog.recipes[OF_LAST.key]
    found = list(reconciler.reconcile(recipe, build_partitions(recipe.table, [FIRST, SECOND])))
    assert [bool(day.mismatch) for day in found] == [True, False]


BUCKETS = Buckets(10, 20)
ZERO, TEN = BUCKETS.list_keys()


def declare(grain: Grain, name: str) -> Table:
    return Table("raw", name, "of", (required("of", grain.column_types[0]),), grain=grain)


def map_keys(grain: Grain, read: Grain, mapping: PartitionMapping, *keys: str) -> object:
    """What partitions read of an input with a mapping, as the catalog has it."""
    source = declare(read, "source")
    assets = [
        table_asset(source)(lambda window: window.spark.range(0)),
        table_asset(declare(grain, "of"), inputs=[Upstream(source, mapping)])(
            lambda window: window.read(source, column="of")
        ),
    ]
    catalog, _ = build_catalog(assets, calendar=CALENDAR)
    return catalog.recipes["raw/of"].map_inputs(keys)[source.key]


def test_mapping_gives_what_is_read() -> None:
    assert map_keys(DAYS, DAYS, AllPartitionMapping(), FIRST) is None, "all rows"
    assert map_keys(BUCKETS, DAYS, LastPartitionMapping(), ZERO, TEN) == {
        ZERO: [THIRD],
        TEN: [THIRD],
    }
    chosen = SpecificPartitionsPartitionMapping([THIRD, FIRST])
    assert map_keys(DAYS, DAYS, chosen, SECOND) == {SECOND: [FIRST, THIRD]}
    listed = StaticPartitionMapping({ZERO: [TEN]})
    assert map_keys(BUCKETS, BUCKETS, listed, ZERO, TEN) == {ZERO: [], TEN: [ZERO]}


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (SpecificPartitionsPartitionMapping(["20240101"]), "there is no partition 20240101"),
        (StaticPartitionMapping({FIRST: [SECOND]}), "must be a StaticPartitionsDefinition"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_mapping_that_can_not_be_followed_is_refused(
    mapping: PartitionMapping, message: str
) -> None:
    with pytest.raises(DeclarationError, match=f"raw/of can't read raw/source by its .*{message}"):
        map_keys(DAYS, DAYS, mapping)
