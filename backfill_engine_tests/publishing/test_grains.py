"""Other grains than days, from JSON lines to a table and back, as days go."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_engine.contents.partition_contents import read_back
from backfill_engine.grains.dates import MONTHS, QUARTERS, WEEKS, Days
from backfill_engine.grains.grain import Grain
from backfill_engine.grains.timestamps import Minutes
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.tables.declarations import Table, required
from backfill_engine_tests.pipeline.publishing import Lake, land_json

FIELDS = (required("visitor", "INT", "Number of the visitor"),)


@dataclass(frozen=True)
class Case:
    """Partitions of a grain that touch: their keys, and the folders in which they land."""

    grain: Grain
    folders: dict[str, str]

    def build_recipe(self) -> Recipe:
        """A raw table of the grain, computed from what landed."""
        daily = self.grain.in_daily_folders
        by = required("landed", self.grain.column_types[0], "First value of the partition")
        table = Table(
            layer="raw",
            name="visits",
            partition_by="landed",
            grain=self.grain,
            folder_by="landing_date" if daily else None,
            columns=(
                by,
                *([required("landing_date", "DATE", "Its day")] if daily else []),
                *FIELDS,
                required("source_file", "STRING", "Landing file, below the landing root"),
            ),
        )
        return land_json(table, "visits", FIELDS)


CASES = [
    Case(
        MONTHS,
        {
            "2013-01-01": "year=2013/month=01",
            "2013-02-01": "year=2013/month=02",
            "2013-03-01": "year=2013/month=03",
        },
    ),
    Case(
        QUARTERS,
        {
            "2013-01-01": "year=2013/month=01",
            "2013-04-01": "year=2013/month=04",
            "2013-07-01": "year=2013/month=07",
        },
    ),
    *(
        Case(
            grain,
            {
                "2013-01-30": "year=2013/month=01/day=30",
                "2013-01-31": "year=2013/month=01/day=31",
                "2013-02-01": "year=2013/month=02/day=01",
            },
        )
        for grain in (Days("%Y-%m-%d"), Days("%Y%m%d", type="INT"))
    ),
    Case(
        WEEKS,
        {
            "2013-01-21": "year=2013/month=01/day=21",
            "2013-01-28": "year=2013/month=01/day=28",
            "2013-02-04": "year=2013/month=02/day=04",
        },
    ),
    Case(
        Minutes(15),
        {
            "2013-01-31-23:30": "year=2013/month=01/day=31/hour=23/minute=30",
            "2013-01-31-23:45": "year=2013/month=01/day=31/hour=23/minute=45",
            "2013-02-01-00:00": "year=2013/month=02/day=01/hour=00/minute=00",
        },
    ),
]


def land(root: Path, folder: str, visitors: range) -> None:
    path = root / "visits" / folder / "visits.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"visitor": number}) + "\n" for number in visitors))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.grain))
def test_range_and_a_partition_in_its_middle_are_published_exactly(
    case: Case, spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    recipe, landing = case.build_recipe(), tmp_path / "landing"
    table, keys = recipe.table, list(case.folders)
    lake = Lake(spark, warehouse, str(landing))
    partitions = build_partitions(table, keys)
    for rows, folder in enumerate(case.folders.values(), 1):
        land(landing, folder, range(rows))
        land(landing, f"{folder}/part=1", range(9))  # of no partition
    assert [result.key for result in lake.publish(recipe, partitions)] == keys
    assert read_log(warehouse, table).count_rows() == dict(zip(keys, (1, 2, 3), strict=True))
    before = read_back(read_log(warehouse, table), partitions)
    assert {key: found.rows for key, found in before.items()} == read_log(
        warehouse, table
    ).count_rows()

    land(landing, case.folders[keys[1]], range(10, 15))
    (result,) = lake.publish(recipe, partitions[1:2])
    assert not result.verdict.withheld
    after = read_back(read_log(warehouse, table), partitions)
    assert {key for key in keys if after[key] != before[key]} == {keys[1]}
    assert read_log(warehouse, table).count_rows() == dict(zip(keys, (1, 5, 3), strict=True))
    stored = warehouse.open(table).to_pyarrow_table().to_pylist()
    assert sorted((row["source_file"], row["landed"], row["visitor"]) for row in stored) == [
        (
            f"visits/{case.folders[partition.key]}/visits.json",
            case.grain.find_stored(partition.slice.start),
            number,
        )
        for partition, numbers in zip(partitions, (range(1), range(10, 15), range(3)), strict=True)
        for number in numbers
    ]
