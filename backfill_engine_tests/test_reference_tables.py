"""Tables without partitions: somebody's dimension, one of our own, and what reads them whole."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from dagster import DagsterInstance
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from backfill_engine import (
    Calendar,
    Column,
    DeclarationError,
    ExternalDelta,
    InputWindow,
    Table,
    Upstream,
    required,
    table_asset,
)
from backfill_engine.contents.partition_contents import read_back
from backfill_engine.errors import PartitionRangeError, TableError
from backfill_engine.extras.comparison.contents import read_contents
from backfill_engine.extras.comparison.golden import read_golden
from backfill_engine.grains import HOURS, WHOLE
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.side_tables import read_kept_aside
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.planning.plans import Only
from backfill_engine.orchestration.selecting.selections import find_touched_partitions
from backfill_engine.proof.certificates import find_certificates
from backfill_engine.proof.verification import verify_run
from backfill_engine_tests.pipeline.mapped_tables import MappedTables, define_tables
from backfill_engine_tests.pipeline.publishing import Lake as PublishersLake

DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")
ZONES = (required("zone", "INT", "Zone."), required("borough", "STRING", "Borough."))
TRIPS = (required("day", "DATE", "Day."), required("zone", "INT", "Zone."))
BY_BOROUGH = (
    required("day", "DATE", "Day."),
    required("borough", "STRING", "Borough."),
    required("trips", "BIGINT", "Trips."),
)

WHOLE_RANGE = ("whole", "whole")


@dataclass(frozen=True)
class City(MappedTables):
    """Somebody's trips and zones, and tables of ours that read them."""

    def write_zones(self, *boroughs: str) -> None:
        """Writes all of their zones, by their program."""
        rows = pa.table({"zone": pa.array(range(len(boroughs)), pa.int32()), "borough": boroughs})
        write_deltalake(self.root / "zones", rows, mode="overwrite")

    def write_trips(self) -> None:
        """Writes a trip in each of two zones a day, by their program."""
        days = [dt.date.fromisoformat(day) for day in DAYS for _ in range(2)]
        rows = pa.table({"day": days, "zone": pa.array([0, 1] * len(DAYS), pa.int32())})
        write_deltalake(self.root / "trips", rows, partition_by=["day"])

    def find_stale(self) -> dict[str, Sequence[tuple[str, str]]]:
        """Finds what a plan of what is stale would run, by table."""
        ranges = {
            table: WHOLE_RANGE if table.grain == WHOLE else (DAYS[0], DAYS[-1])
            for table in self.catalog.tables
        }
        plan = self.plan(ranges, Only.STALE)
        return {table.table: table.ranges for table in plan.tables if table.ranges}


@pytest.fixture
def city(tmp_path: Path, instance: DagsterInstance) -> City:
    theirs = ExternalDelta("theirs", "zones", columns=ZONES, location=str(tmp_path / "zones"))
    trips = ExternalDelta("theirs", "trips", "day", TRIPS, location=str(tmp_path / "trips"))
    zones = Table("ref", "zones", columns=ZONES, natural_key=("zone",))
    gold = Table("gold", "boroughs", "day", BY_BOROUGH)
    total = Table("gold", "total", columns=BY_BOROUGH[1:])

    @table_asset(zones, inputs=[Upstream(theirs)])
    def ref_zones(window: InputWindow) -> DataFrame:
        """One row per zone."""
        return window.read_whole(theirs)

    @table_asset(gold, inputs=[Upstream(trips), Upstream(zones)])
    def gold_boroughs(window: InputWindow) -> DataFrame:
        """One row per day and borough."""
        joined = window.read(trips, column="day").join(window.read_whole(zones), "zone")
        return joined.groupBy("day", "borough").count().withColumnRenamed("count", "trips")

    @table_asset(total, inputs=[Upstream(gold)])
    def gold_total(window: InputWindow) -> DataFrame:
        """One row per borough."""
        trips = window.read_whole(gold).groupBy("borough").sum("trips")
        return trips.toDF("borough", "trips")

    calendar = Calendar(dt.date(2024, 1, 1), dt.date(2024, 1, 4))
    defs = define_tables(tmp_path, [ref_zones, gold_boroughs, gold_total], calendar)
    return City(tmp_path, defs, instance)


@pytest.mark.only_spark
@pytest.mark.spark
def test_a_dimensions_change_makes_stale_all_that_read_it_and_a_rewrite_of_its_files_nothing(
    spark: SparkSession, city: City
) -> None:
    city.write_zones("Bronx", "Queens")
    city.write_trips()
    assert city.find_requested() == [("ref/zones", *WHOLE_RANGE)], "the others wait for it"
    assert city.run("ref/zones", *WHOLE_RANGE)
    assert city.run("gold/boroughs", DAYS[0], DAYS[-1])
    assert city.run("gold/total", *WHOLE_RANGE)
    assert city.find_stale() == {}

    published = city.read_log("gold/boroughs").publishes[DAYS[1]]
    zones = city.read_log("ref/zones")
    assert published.record.input_versions == {"ref/zones": zones.version, "theirs/trips": 0}
    assert published.consumed.upstream["ref/zones"] == {"whole": zones.checksums["whole"]}
    (certificate,) = (
        certificate
        for certificate in find_certificates(city.catalog.warehouse, published.record.run_id)
        if certificate.asset_key == "gold/boroughs"
    )
    assert certificate.input_versions == published.record.input_versions

    DeltaTable(city.root / "zones").optimize.compact()
    spark.sql(f"OPTIMIZE delta.`{city.root / 'zones'}`")
    assert (city.find_stale(), city.find_requested()) == ({}, [])
    city.write_zones("Bronx", "Brooklyn")
    assert city.find_stale() == {"ref/zones": [WHOLE_RANGE]}
    assert city.find_requested() == [("ref/zones", *WHOLE_RANGE)]
    assert city.run("ref/zones", *WHOLE_RANGE)
    assert city.find_stale() == {"gold/boroughs": [(DAYS[0], DAYS[-1])]}
    assert city.find_requested() == [("gold/boroughs", DAYS[0], DAYS[-1])]
    assert city.run("gold/boroughs", DAYS[0], DAYS[-1])
    assert city.find_stale() == {"gold/total": [WHOLE_RANGE]}
    assert city.run("gold/total", *WHOLE_RANGE)
    total = spark.read.format("delta").load(city.read_log("gold/total").uri)
    assert sorted(map(tuple, total.collect())) == [("Bronx", 3), ("Brooklyn", 3)]

    city.write_zones("Bronx", "Brooklyn")
    assert city.find_stale() == {"ref/zones": [WHOLE_RANGE]}
    assert city.run("ref/zones", *WHOLE_RANGE)
    assert city.find_stale() == {}, "its rows are the same"


@pytest.mark.spark
def test_a_table_without_partitions_is_audited_withheld_kept_and_rolled_back(
    spark: SparkSession, city: City
) -> None:
    city.write_zones("Bronx", "Queens", "Brooklyn")
    assert city.run("ref/zones", *WHOLE_RANGE)
    first = city.read_log("ref/zones")
    assert first.open_snapshot().metadata().partition_columns == []
    city.write_zones("Bronx")
    assert not city.run("ref/zones", *WHOLE_RANGE), "over half of its rows would vanish"
    after = city.read_log("ref/zones")
    assert after.publishes["whole"].version == first.version
    partitions = build_partitions(after.table, ["whole"])
    (kept,) = read_kept_aside(after.warehouse, after.table, partitions, most=9)
    assert [row["borough"] for row in kept.rows] == ["Bronx"]
    city.write_zones("Bronx", "Queens", "Staten Island", "Manhattan")
    assert city.run("ref/zones", *WHOLE_RANGE)
    second = city.read_log("ref/zones")
    assert second.count_rows() == {"whole": 4}
    verified = verify_run([second], second.publishes["whole"].record.run_id)
    assert all(line.holds is not False for lines in verified.values() for line in lines)

    publishers = PublishersLake(spark, city.catalog.warehouse)
    newest = second.publishes["whole"].record.run_id
    publishers.roll_back(second.table, partitions, before_run=newest, run_id="undo")
    restored = city.read_log("ref/zones")
    assert restored.checksums == first.checksums
    assert restored.count_rows() == {"whole": 3}

    spark.sql(f"DELETE FROM delta.`{restored.uri}` WHERE zone = 0")
    assert list(city.read_log("ref/zones").foreign_changes) == ["whole"]


def test_it_is_declared_without_a_column_that_says_the_partition() -> None:
    zones = Table("ref", "zones", columns=ZONES)
    assert zones.grain == WHOLE
    assert [partition.key for partition in build_partitions(zones, ["whole"])] == ["whole"]
    with pytest.raises(DeclarationError, match="partitioned by hours: name the column"):
        Table("ref", "zones", columns=ZONES, grain=HOURS)
    with pytest.raises(DeclarationError, match="has no partitions: leave `partition_by`"):
        Table("ref", "zones", "zone", ZONES, grain=WHOLE)
    with pytest.raises(DeclarationError, match="name its `columns`"):
        Table("ref", "zones")
    with pytest.raises(DeclarationError, match="leave `rows_for` out"):
        table_asset(Table("gold", "days", "day", TRIPS), inputs=[Upstream(zones, rows_for="zone")])
    with pytest.raises(PartitionRangeError, match="give --from whole --to whole"):
        find_touched_partitions(zones, "2024-01-01", "2024-01-02")


def test_its_rows_are_read_and_compared_whatever_its_first_column_holds(tmp_path: Path) -> None:
    columns = (Column("borough", "STRING", "Borough."), required("zone", "INT", "Zone."))
    table = Table("ref", "zones", columns=columns, natural_key=("zone",))
    rows = pa.table({"borough": ["Bronx", None], "zone": pa.array([1, 2], pa.int32())})
    log = read_log(Warehouse(str(tmp_path)), table)
    write_deltalake(log.uri, rows)
    log, partitions = log.reread(), build_partitions(table, ["whole"])
    assert read_back(log, partitions)["whole"].rows == 2
    golden = tmp_path / "golden.csv"
    golden.write_text("zone,borough\n1,Bronx\n2,Queens\n")
    expected = read_golden(golden, table, partitions, keys=["zone"])
    assert expected.row_counts.tolist() == [2]
    differing = expected.row_hashes[:, None] == read_contents(log, partitions).row_hashes
    assert differing.sum() == 1, "one of the two is the same"


def test_a_column_that_their_dimension_lacks_is_named(city: City) -> None:
    write_deltalake(city.root / "zones", pa.table({"zone": pa.array([1], pa.int32())}))
    (zones,) = (table for table in city.catalog.external if table.grain == WHOLE)
    with pytest.raises(TableError, match="has no column `borough`"):
        read_log(city.catalog.warehouse, zones).require()


@pytest.mark.parametrize("folders", [None, ["borough"]])
def test_their_dimension_may_have_folders_of_its_own(folders: list[str] | None, city: City) -> None:
    rows = pa.table({"zone": pa.array([1, 2], pa.int32()), "borough": ["Bronx", "Queens"]})
    write_deltalake(city.root / "zones", rows, partition_by=folders)
    (zones,) = (table for table in city.catalog.external if table.grain == WHOLE)
    log = read_log(city.catalog.warehouse, zones)
    assert log.count_rows() == {"whole": 2}
    before = log.checksums
    DeltaTable(log.uri).delete("zone = 1")
    assert log.reread().checksums != before
