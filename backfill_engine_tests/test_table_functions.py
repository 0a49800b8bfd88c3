"""Tables declared by functions of frames: what is derived, inferred, counted, and refused."""

import datetime as dt
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster import AssetKey, DagsterInstance
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine import (
    Calendar,
    Column,
    DeclarationError,
    ParquetFiles,
    Table,
    TableAsset,
    build_defs,
    required,
    sql_table,
    table,
    window,
)
from backfill_engine.grains import MONTHS
from backfill_engine.rules import RowCount
from backfill_engine_tests.pipeline.mapped_tables import MappedTables, build_mapped_tables

JANUARY = Calendar(dt.date(2024, 1, 1), dt.date(2024, 2, 1))
FILES = ParquetFiles(
    "trips/{partition:%Y-%m}.parquet",
    fields=(required("at", "TIMESTAMP_NTZ"), required("zone", "INT"), Column("fare", "DOUBLE")),
    where="at",
)


@table("staging/trips", partition_by="day", inputs={"trips": FILES}, rules=[RowCount()])
def staging_trips(trips: DataFrame) -> DataFrame:
    """One row per trip."""
    return trips.select("day", "zone", "fare")


@table("features/weeks", partition_by="until", inputs={"trips": window(staging_trips, days=7)})
def weeks(trips: DataFrame) -> DataFrame:
    """One row per day: its trips of seven days."""
    return trips.groupBy("until").agg(F.count("*").alias("trips"), F.sum("fare").alias("fares"))


zones = sql_table(
    "features/zones",
    partition_by="day",
    inputs={"trips": staging_trips},
    sql="""
    WITH paid AS (SELECT * FROM trips WHERE trips.fare > 1) -- not those for {nothing}
    SELECT day, zone, max(fare) AS most FROM paid GROUP BY day, zone
    """,
)


@dataclass(frozen=True)
class Lake:
    """A landing zone, and tables in a lake of their own."""

    root: Path
    instance: DagsterInstance

    def land(self, **columns: list[Any]) -> None:
        """Lands the file of January."""
        path = self.root / "landing/trips/2024-01.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path)

    def define(self, *assets: TableAsset) -> MappedTables:
        """Defines assets that read and write there."""
        return build_mapped_tables(self.root, assets, self.instance, JANUARY)

    def run(
        self, *assets: TableAsset, first: str, last: str, beside: Sequence[TableAsset] = ()
    ) -> dict[str, list[str]]:
        """Publishes a range of tables; returns the days that each has of it, by key."""
        tables = [asset.table for asset in assets]
        self.define(*assets, *beside).run(tables[0], first, last, *tables[1:])
        return {
            table.key: sorted(
                self.instance.get_materialized_partitions(AssetKey.from_user_string(table.key))
            )
            for table in tables
        }

    def read(self, key: str) -> list[dict[str, Any]]:
        """Reads a table by delta-rs, sorted."""
        rows = DeltaTable(str(self.root / "warehouse" / key)).to_pyarrow_table().to_pylist()
        return sorted(rows, key=str)


@pytest.fixture
def lake(tmp_path: Path, instance: DagsterInstance) -> Lake:
    return Lake(tmp_path, instance)


def at(day: int) -> dt.datetime:
    return dt.datetime(2024, 1, day, 10, 30)  # noqa: DTZ001


@pytest.mark.spark
def test_a_monthly_file_becomes_days_and_windows_of_days(spark: SparkSession, lake: Lake) -> None:
    lake.land(
        at=[at(1), at(1), at(2), at(8), dt.datetime(2002, 5, 5), None, at(2)],  # noqa: DTZ001
        zone=[1, 2, 1, 1, 9, 9, 1.5],
        fare=[1.0, 2.0, None, 8.0, 9.0, 9.0, 1.0],
        more=["a"] * 7,
    )
    days = [f"2024-01-{day:02}" for day in range(1, 9)]
    found = lake.run(staging_trips, first=days[0], last=days[-1])
    # The file has no trip of the third to the seventh, and two trips of no day of its month, which
    # are rejected on its first.
    assert found["staging/trips"] == [days[0], days[1], days[7]]
    found = lake.run(weeks, zones, first=days[0], last=days[1], beside=[staging_trips])
    assert found == {"features/weeks": days[:2], "features/zones": days[:2]}
    january = dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 1, 8)
    assert lake.read("staging/trips") == [
        {"day": january[0], "zone": 1, "fare": 1.0},
        {"day": january[0], "zone": 2, "fare": 2.0},
        {"day": january[1], "zone": 1, "fare": None},
        {"day": january[2], "zone": 1, "fare": 8.0},
    ]
    rejects = lake.read("quarantine/staging_trips")
    assert [(reject["day"], reject["reason"]) for reject in rejects] == [
        (january[0], "says no partition that its file holds"),
        (january[0], "says no partition that its file holds"),
        (january[1], "`zone` is not INT: 1.5"),
    ]
    assert {reject["source_file"] for reject in rejects} == {"trips/2024-01.parquet"}
    assert json.loads(rejects[2]["line"])["zone"] == 1.5
    assert lake.read("features/weeks") == [
        {"until": january[0], "trips": 2, "fares": 3.0},
        {"until": january[1], "trips": 3, "fares": 3.0},
    ]
    assert lake.read("features/zones") == [{"day": january[0], "zone": 2, "most": 2.0}]


@pytest.mark.spark
def test_inferred_columns_stay_as_they_are_stored(spark: SparkSession, lake: Lake) -> None:
    lake.land(at=[at(1), at(2), at(3)], zone=[1, 2, 3], fare=[1.0, 2.0, 3.0])

    def declare(**computed: Any) -> TableAsset:
        @table("staging/trips", partition_by="day", inputs={"trips": replace(FILES, fields=())})
        def trips(trips: DataFrame) -> DataFrame:
            return trips.selectExpr("day", *(f"{sql} AS {name}" for name, sql in computed.items()))

        return trips

    first = declare(fare="fare", zone="zone")  # of files whose columns aren't declared either
    assert lake.run(first, first="2024-01-01", last="2024-01-01")["staging/trips"] == ["2024-01-01"]
    more = declare(zone="zone", twice="fare * 2", fare="fare")
    assert len(lake.run(more, first="2024-01-02", last="2024-01-02")["staging/trips"]) == 2
    other = declare(zone="string(zone)", twice="fare", fare="fare")
    fewer = declare(zone="zone")
    for changed in (other, fewer):
        assert len(lake.run(changed, first="2024-01-03", last="2024-01-03")["staging/trips"]) == 2
    assert lake.read("staging/trips") == [
        {"day": dt.date(2024, 1, 1), "fare": 1.0, "zone": 1, "twice": None},
        {"day": dt.date(2024, 1, 2), "fare": 2.0, "zone": 2, "twice": 4.0},
    ]


def declare(**changes: Any) -> Callable[[Callable[..., DataFrame]], TableAsset]:
    return table("a/b", **{"partition_by": "day", "inputs": {"trips": FILES}, **changes})


DAILY = Table("a", "c", "day", (required("day", "DATE"),))


def compute(trips: DataFrame) -> DataFrame:
    """Trips as they are."""
    return trips


def test_what_is_declared_is_found_from_the_function_and_its_inputs() -> None:
    asset = declare(rules=[RowCount()], natural_key=("zone",), columns=[required("zone", "INT")])(
        compute
    )
    assert asset.table.column_names == ("day", "zone")
    assert asset.table.rules == (RowCount(),)
    assert asset.landing == FILES
    assert asset.compute.__doc__ == "Trips as they are."
    of_window = table("c/d", partition_by="until", inputs={"trips": window(asset, days=7)})(compute)
    (upstream,) = of_window.inputs
    assert upstream.table == asset.table
    assert upstream.mapping.start_offset == -6  # type: ignore[attr-defined]
    assert of_window.count_source is not None


def test_the_code_version_has_the_function_and_its_windows() -> None:
    def find_version(days: int, function: Callable[..., DataFrame] = compute) -> str:
        source = declare()(compute)
        asset = table("c/d", partition_by="until", inputs={"trips": window(source, days=days)})
        defs = build_defs([source, asset(function)], calendar=JANUARY)
        return str(defs.resolve_asset_graph().get(AssetKey(["c", "d"])).code_version)

    assert find_version(7) == find_version(7)
    assert len({find_version(7), find_version(6), find_version(7, lambda trips: trips)}) == 3


@pytest.mark.parametrize(
    ("changes", "cure"),
    [
        ({"inputs": {"a": FILES, "b": FILES}}, "read each into a table of its own"),
        ({"natural_key": ("zone",)}, "`zone` must be a declared, required column"),
        ({"versions": (Table("a", "c", "day", (required("day", "DATE"),)),)}, "declare them"),
        ({"inputs": {"trips": window(DAILY, days=2)}}, "call its own partition column otherwise"),
        ({"partition_by": "at"}, "`at` is a column that tells where a record landed"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], cure: str) -> None:
    with pytest.raises(DeclarationError, match=cure):
        declare(**changes)(compute)


def test_a_window_is_of_days() -> None:
    months = Table("a", "c", "month", (required("month", "DATE"),), grain=MONTHS)
    for read, days in ((months, 2), (declare()(compute), 0)):
        with pytest.raises(DeclarationError, match="give one day or more of a table by days"):
            window(read, days=days)


@pytest.mark.parametrize(
    ("sql", "cure"),
    [
        ("DELETE FROM trips", "its SQL is no SELECT that can be read"),
        ("SELECT day FROM", "its SQL is no SELECT that can be read"),
        ("SELECT day FROM trips; SELECT 1", "its SQL is no SELECT that can be read"),
        ("SELECT day FROM trips JOIN lake.zones", "reads lake.zones, which `inputs` lacks"),
        ("SELECT day FROM zones", "reads zones, which `inputs` lacks: name it there"),
        ("WITH trips AS (SELECT 1 AS day) SELECT day FROM trips", "doesn't read the input trips"),
        ("SELECT zone FROM trips", "its SQL has no column day: select it"),
    ],
)
def test_sql_that_does_not_fit_is_refused(sql: str, cure: str) -> None:
    with pytest.raises(DeclarationError, match=cure):
        sql_table("a/b", partition_by="day", inputs={"trips": DAILY}, sql=sql)


def test_sql_of_a_file_counts_without_comments_and_layout(tmp_path: Path) -> None:
    def find_version(sql: str) -> str:
        (tmp_path / "days.sql").write_text(sql)
        days = sql_table(
            "c/d", partition_by="day", inputs={"trips": staging_trips}, sql=tmp_path / "days.sql"
        )
        defs = build_defs([staging_trips, days], calendar=JANUARY)
        return str(defs.resolve_asset_graph().get(AssetKey(["c", "d"])).code_version)

    plain = find_version("SELECT DISTINCT day FROM trips")
    assert find_version("SELECT DISTINCT\n  day -- each\nFROM trips") == plain
    assert find_version("SELECT day FROM trips") != plain
