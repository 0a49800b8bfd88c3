"""Tables partitioned by names, and by days and names: by ranges that are boxes, by Dagster."""

import csv
import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine import (
    Calendar,
    Column,
    CsvFiles,
    DatabaseTable,
    DeclarationError,
    InputWindow,
    Table,
    Upstream,
    build_defs,
    required,
    table,
    table_asset,
)
from backfill_engine.errors import PartitionRangeError
from backfill_engine.grains import DAYS, HOURS, WEEKS, Names, Pairs
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.selecting.selections import find_touched_partitions
from backfill_engine.proof.verification import verify_run
from backfill_engine.rules import Values
from backfill_engine_tests.browser import open_browser
from backfill_engine_tests.commands import PROJECT, Project
from backfill_engine_tests.pipeline.mapped_tables import MappedTables, build_mapped_tables
from backfill_engine_tests.pipeline.publishing import Lake
from backfill_engine_tests.servers import serve, wait_for

REGIONS = Names(("US", "EU"))
CELLS = Pairs(DAYS, REGIONS, labels=("day", "region"))
WEEK = Calendar(dt.date(2024, 1, 1), dt.date(2024, 1, 5))
FIELDS = (required("shop", "INT"), Column("amount", "INT"))
SALES = CsvFiles("sales/{day}/{region}.csv", fields=FIELDS)
SHOPS = CsvFiles(
    "shops/{partition}.csv", fields=(required("shop", "INT"), required("city", "STRING"))
)


@table("raw/sales", partition_by="cell", grain=CELLS, inputs={"sales": SALES})
def raw_sales(sales: DataFrame) -> DataFrame:
    """One row per sale."""
    return sales.select("cell", "shop", "amount")


@table("raw/shops", partition_by="region", grain=REGIONS, inputs={"shops": SHOPS})
def raw_shops(shops: DataFrame) -> DataFrame:
    """One row per shop."""
    return shops.select("region", "shop", "city")


@table(
    "staging/sales",
    partition_by="cell",
    grain=CELLS,
    inputs={"sales": raw_sales},
    columns=[Column("amount", "INT")],
    rules=[Values("amount", 0, 1000)],
)
def staging_sales(sales: DataFrame) -> DataFrame:
    """One row per shop, day and region."""
    return sales.groupBy("cell", "shop").agg(F.sum("amount").cast("int").alias("amount"))


@table("gold/days", partition_by="day", inputs={"sales": staging_sales})
def gold_days(sales: DataFrame) -> DataFrame:
    """One row per day: the sales of all regions."""
    day = F.to_date(F.substring_index("cell", "|", 1)).alias("day")
    return sales.groupBy(day).agg(F.sum("amount").alias("amount"))


RATIOS = Table(
    "gold",
    "ratios",
    "cell",
    (required("cell", "STRING"), Column("ratio", "DOUBLE")),
    grain=CELLS,
)


@table_asset(RATIOS, inputs=[Upstream(staging_sales.table), Upstream(gold_days.table)])
def gold_ratios(window: InputWindow) -> DataFrame:
    """One row per day and region: its part of the day's sales."""
    sales = window.read(staging_sales.table, column="cell").groupBy("cell").sum("amount")
    days = window.read(gold_days.table, column="day").withColumnRenamed("amount", "all")
    day = F.to_date(F.substring_index("cell", "|", 1))
    return (
        sales.withColumn("day", day)
        .join(days, "day")
        .select("cell", (F.col("sum(amount)") / F.col("all")).alias("ratio"))
    )


ASSETS = [raw_sales, raw_shops, staging_sales, gold_days, gold_ratios]


def land(root: Path, name: str, *rows: tuple[object, ...]) -> None:
    """Lands a file of sales or shops."""
    path = root / "landing" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        columns = ("shop", "amount" if name.startswith("sales") else "city")
        csv.writer(file).writerows([columns, *rows])


def land_sales(root: Path, amounts: Mapping[str, int]) -> None:
    """Lands one sale for each key."""
    for key, amount in amounts.items():
        land(root, f"sales/{key.replace('|', '/')}.csv", (7, amount))


def read_amounts(lake: MappedTables) -> dict[str, Any]:
    """Reads what staging holds, by partition."""
    return {row["cell"]: row["amount"] for row in lake.read_rows(staging_sales.table)}


@pytest.mark.spark
def test_boxes_of_days_and_regions_are_published_withheld_renewed_and_taken_back(
    spark: SparkSession, tmp_path: Path, instance: DagsterInstance
) -> None:
    lake = build_mapped_tables(tmp_path, ASSETS, instance, WEEK)
    amounts = {
        **{"2024-01-01|EU": 10, "2024-01-01|US": 20, "2024-01-02|EU": 11},
        **{"2024-01-02|US": 5000, "2024-01-03|EU": 12, "2024-01-03|US": 22},
    }
    land_sales(tmp_path, amounts)
    assert lake.find_requested(late_days=9000) == [("raw/sales", "2024-01-01|EU", "2024-01-03|US")]
    raw, staging, days = raw_sales.table, staging_sales.table, gold_days.table

    assert lake.run(raw, "2024-01-01|EU", "2024-01-02|EU"), "a box of one region"
    assert set(lake.read_log(raw).publishes) == {"2024-01-01|EU", "2024-01-02|EU"}
    assert lake.run(raw, "2024-01-01|EU", "2024-01-03|US")
    assert lake.read_log(raw).version == 2, "a commit a box, after the table's creation"
    assert not lake.run(staging, "2024-01-01|EU", "2024-01-03|US"), "a sale is too large"
    good = {key: amount for key, amount in amounts.items() if amount < 5000}
    assert read_amounts(lake) == good
    assert not lake.run(days, "2024-01-01", "2024-01-03")
    assert set(lake.read_log(days).publishes) == {"2024-01-01", "2024-01-03"}
    assert {row["day"].day: row["amount"] for row in lake.read_rows(days)} == {1: 30, 3: 34}
    assert not lake.run(RATIOS, "2024-01-01|EU", "2024-01-03|US")
    ratios = [row["ratio"] for row in lake.read_rows(RATIOS)]
    assert ratios == [10 / 30, 20 / 30, 12 / 34, 22 / 34], "but for the day that isn't whole"

    land_sales(tmp_path, {"2024-01-02|US": 21})
    assert lake.find_requested(late_days=9000) == [("raw/sales", "2024-01-02|US", "2024-01-02|US")]
    assert lake.run(raw, "2024-01-02|US")
    assert lake.find_requested(late_days=9000) == [
        ("staging/sales", "2024-01-02|US", "2024-01-02|US")
    ]
    assert lake.find_due(staging, "2024-01-01|EU", "2024-01-03|US") == ["2024-01-02|US"]
    assert lake.run(staging, "2024-01-02|US")
    assert read_amounts(lake) == {**good, "2024-01-02|US": 21}
    assert lake.find_due(days, "2024-01-01", "2024-01-03") == ["2024-01-02"]
    assert lake.run(days, "2024-01-02")

    log = lake.read_log(staging)
    run_id = log.publishes["2024-01-02|US"].record.run_id
    verified = verify_run([log], run_id)
    assert all(line.holds is not False for lines in verified.values() for line in lines)
    land_sales(tmp_path, {"2024-01-01|US": 500, "2024-01-02|US": 600})
    assert lake.run(raw, "2024-01-01|US", "2024-01-02|US")
    assert lake.run(staging, "2024-01-01|US", "2024-01-02|US")
    assert read_amounts(lake)["2024-01-02|US"] == 600
    newest = lake.read_log(staging).publishes["2024-01-01|US"].record.run_id
    Lake(spark, lake.catalog.warehouse).roll_back(
        lake.catalog.find_table(staging.key),
        build_partitions(staging, ["2024-01-01|US"]),
        before_run=newest,
        run_id="undo",
    )
    assert read_amounts(lake) == {**good, "2024-01-02|US": 600}, "one of the two is taken back"


@pytest.mark.spark
def test_a_new_name_changes_nothing_and_rows_of_one_that_went_stay(
    spark: SparkSession, tmp_path: Path, instance: DagsterInstance
) -> None:
    lake = build_mapped_tables(tmp_path, [raw_shops], instance, WEEK)
    for region in ("EU", "US"):
        land(tmp_path, f"shops/{region}.csv", (1, f"a city of the {region}"))
    assert lake.run(raw_shops.table, "EU", "US")
    log = lake.read_log(raw_shops.table)
    assert log.count_rows() == {"EU": 1, "US": 1}
    assert lake.find_due(raw_shops.table, "EU", "US") == []

    def declare(*names: str) -> MappedTables:
        shops = table(
            "raw/shops", partition_by="region", grain=Names(names), inputs={"shops": SHOPS}
        )
        return build_mapped_tables(tmp_path, [shops(raw_shops.compute.function)], instance, WEEK)  # type: ignore[attr-defined]

    larger = declare("AP", "EU", "US")
    assert larger.find_due(raw_shops.table, "AP", "US") == [], "none is stale"
    smaller = declare("AP", "US")
    land(tmp_path, "shops/AP.csv", (2, "Seoul"))
    assert smaller.run(raw_shops.table, "AP", "US")
    rows = {row["region"]: row["city"] for row in smaller.read_rows(raw_shops.table)}
    assert rows == {"AP": "Seoul", "EU": "a city of the EU", "US": "a city of the US"}
    assert smaller.read_log(raw_shops.table).count_rows() == {"AP": 1, "US": 1}


@pytest.mark.spark
def test_rows_are_merged_into_pairs_and_no_other_pair_of_the_day_is_touched(
    spark: SparkSession, tmp_path: Path, instance: DagsterInstance
) -> None:
    merge = table(
        "gold/merged",
        partition_by="cell",
        grain=CELLS,
        inputs={"sales": raw_sales},
        columns=(required("cell", "STRING"), required("shop", "INT")),
        natural_key=("cell", "shop"),
        write_mode="merge",
    )
    merged = merge(staging_sales.compute.function)  # type: ignore[attr-defined]
    lake = build_mapped_tables(tmp_path, [raw_sales, merged], instance, WEEK)
    land_sales(tmp_path, {"2024-01-01|EU": 10, "2024-01-01|US": 20})
    box = "2024-01-01|EU", "2024-01-01|US"
    assert lake.run(raw_sales.table, *box)
    assert lake.run(merged.table, *box)
    before = lake.read_log(merged.table).publishes["2024-01-01|US"]
    land(tmp_path, "sales/2024-01-01/EU.csv", (8, 11))
    assert lake.run(raw_sales.table, box[0])
    assert lake.run(merged.table, box[0])
    rows = {(row["cell"], row["shop"]): row["amount"] for row in lake.read_rows(merged.table)}
    assert rows == {(box[0], 7): 10, (box[0], 8): 11, (box[1], 7): 20}
    assert lake.read_log(merged.table).publishes["2024-01-01|US"] == before


DEFINITIONS = """
from backfill_engine import build_defs
from backfill_engine_tests.test_named_partitions import ASSETS, WEEK

defs = build_defs(ASSETS, calendar=WEEK)
"""


@pytest.mark.slow
def test_a_box_is_selected_by_days_and_regions_in_the_ui(tmp_path: Path) -> None:
    keys = [f"2024-01-0{day}|{region}" for day in (1, 2, 3) for region in ("EU", "US")]
    land_sales(tmp_path, dict.fromkeys(keys, 10))
    (tmp_path / "boxes.py").write_text(DEFINITIONS)
    workspace = tmp_path / "workspace.yaml"
    workspace.write_text("load_from:\n  - python_module: boxes\n")
    settings = (("PYTHONPATH", f"{PROJECT}:{tmp_path}"),)
    project = Project(tmp_path / "project", tmp_path / "landing", settings)
    log = read_log(Warehouse(str(project.warehouse)), raw_sales.table)
    with serve(project, workspace) as dagster, open_browser() as browser:
        browser.open(f"{dagster.address}/assets/raw/sales?view=partitions")
        browser.wait_for("//*[contains(., '8 Partitions Selected')]", seconds=120)
        browser.click("//button[contains(., 'Materialize')]", seconds=120)
        browser.wait_for("//*[contains(text(), 'Select a partition')]")
        days = "(//input[starts-with(@placeholder, 'ex: ')])[last()]"
        browser.fill(days, "[2024-01-02...2024-01-03]")
        browser.click("(//button[normalize-space(.)='All'])[last()]")
        browser.wait_for("//*[text()='4 partitions']")
        browser.click("//button[contains(., 'Launch backfill') and not(@disabled)]")
        wait_for(lambda: set(log.reread().publishes) == set(keys[2:]), seconds=400)


def test_names_and_pairs_that_can_be_no_partitions_are_refused() -> None:
    for names in ((), ("EU", "EU"), ("E|U",), ("EU ",), ("it's",)):
        with pytest.raises(ValueError, match=r"letters|names, each once"):
            Names(names)
    with pytest.raises(ValueError, match="pairs are of days"):
        Pairs(HOURS, REGIONS)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="that of the days comes first"):
        Pairs(DAYS, REGIONS, labels=("day", "borough"))
    with pytest.raises(DeclarationError, match="must be STRING"):
        Table("raw", "sales", "day", (required("day", "DATE"),), grain=CELLS)


def test_what_cant_read_or_bound_names_says_so(tmp_path: Path) -> None:
    database = DatabaseTable("sales", url="DB", fields=FIELDS, where="region")
    for source, cure in (
        (CsvFiles("sales/{partition:%Y}.csv", fields=FIELDS), "can't name a partition"),
        (CsvFiles("sales/{shop}.csv", fields=FIELDS), "nothing stands for 'shop'"),
        (CsvFiles("sales/{day}/{region}.csv", fields=FIELDS, where="shop"), "leave `where` out"),
        (database, "read it into a table by days"),
    ):
        declared = table("raw/sales", partition_by="cell", grain=CELLS, inputs={"sales": source})
        with pytest.raises(DeclarationError, match=cure):
            declared(lambda sales: sales)
    with pytest.raises(PartitionRangeError, match="give --from EU --to US"):
        find_touched_partitions(raw_shops.table, "2024-01-01", "2024-01-02")
    other = table("gold/other", partition_by="week", grain=WEEKS, inputs={"sales": raw_sales})
    with pytest.raises(DeclarationError, match="give Upstream a mapping"):
        build_defs([raw_sales, other(lambda sales: sales)], calendar=WEEK)
