"""Tables that somebody else writes, as inputs: pinned, and their changes found by their logs."""

import datetime as dt
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import DagsterInstance
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from backfill_engine import (
    Calendar,
    DeclarationError,
    ExternalDelta,
    InputWindow,
    Table,
    Upstream,
    required,
    table_asset,
)
from backfill_engine.errors import TableError
from backfill_engine.lake import commit_files
from backfill_engine.lake.commit_files import read_commit_infos
from backfill_engine.lake.reader import check_catalog_location
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.orchestration.planning.plans import Only
from backfill_engine_tests.pipeline.mapped_tables import MappedTables, define_tables

COLUMNS = (required("day", "DATE", "Day."), required("litres", "BIGINT", "Litres."))
DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")
GOLD = Table("gold", "days", "day", COLUMNS)


@dataclass(frozen=True)
class Lake(MappedTables):
    """Somebody's table of three days, and a table of ours that reads it."""

    def write(self, days: Sequence[str], litres: int) -> None:
        """Replaces days of their table, by their program."""
        rows = {"day": [dt.date.fromisoformat(day) for day in days], "litres": [litres] * len(days)}
        write_deltalake(
            self.root / "theirs",
            pa.table(rows),
            mode="overwrite",
            partition_by=["day"],
            predicate=f"day in ({', '.join(map(repr, days))})" if self.is_there() else None,
        )

    def write_rows(self, *litres: int, feed: str = "false") -> None:
        """Writes a row of each value for each day, in two commits: there is much to join."""
        for _ in range(2):
            write_deltalake(
                self.root / "theirs",
                days_of(*litres),
                mode="append",
                partition_by=["day"],
                configuration={"delta.enableChangeDataFeed": feed},
            )

    def is_there(self) -> bool:
        """Tells whether their table is there."""
        return DeltaTable.is_deltatable(str(self.root / "theirs"))

    def find_stale(self) -> list[str]:
        """The days that a plan of what is stale or failed would run."""
        return self.find_due(GOLD, DAYS[0], DAYS[-1], Only.STALE, Only.FAILED)


@pytest.fixture
def lake(tmp_path: Path, instance: DagsterInstance) -> Lake:
    return define_lake(tmp_path, instance)


def define_lake(tmp_path: Path, instance: DagsterInstance, **options: Any) -> Lake:
    """Defines somebody's table, as declared with these options, and ours."""
    location = str(tmp_path / "theirs")
    theirs = ExternalDelta("theirs", "meters", "day", COLUMNS, location=location, **options)

    @table_asset(GOLD, inputs=[Upstream(theirs)])
    def gold_days(window: InputWindow) -> DataFrame:
        """One row per day."""
        return window.read(theirs, column="day").select("day", "litres")

    calendar = Calendar(dt.date(2024, 1, 1), dt.date(2024, 1, 4))
    return Lake(tmp_path, define_tables(tmp_path, [gold_days], calendar), instance)


@pytest.mark.spark
def test_what_their_program_changes_makes_stale_what_reads_it_and_nothing_else(
    spark: SparkSession, lake: Lake
) -> None:
    lake.write(DAYS[:2], 1)
    assert not lake.run(GOLD, DAYS[0], DAYS[-1])  # The third day never came: it alone is withheld.
    log = lake.read_log(GOLD)
    assert set(log.publishes) == {*DAYS[:2]}
    assert log.publishes[DAYS[0]].record.input_versions == {"theirs/meters": 0}
    lake.write(DAYS[2:], 1)
    assert lake.find_stale() == [DAYS[2]]
    assert lake.run(GOLD, DAYS[2])
    assert lake.find_stale() == []
    lake.write([DAYS[1]], 2)
    assert lake.find_stale() == [DAYS[1]]
    assert lake.find_requested() == [(GOLD.key, DAYS[1], DAYS[1])]
    assert lake.run(GOLD, DAYS[1])
    DeltaTable(lake.root / "theirs").optimize.compact()
    assert lake.find_stale() == []


@pytest.mark.only_spark
@pytest.mark.spark
def test_a_table_that_the_catalog_moved_is_read_only_once_its_location_is_declared(
    spark: SparkSession, lake: Lake, tmp_path: Path, instance: DagsterInstance
) -> None:
    lake.write(DAYS, 1)
    named = define_lake(tmp_path, instance, catalog_name="moved.meters")
    spark.sql("CREATE SCHEMA moved")
    try:
        assert not named.run(GOLD, DAYS[0]), "the catalog doesn't know it"
        spark.sql(f"CREATE TABLE moved.meters USING delta LOCATION '{tmp_path}/theirs'")
        assert named.run(GOLD, DAYS[0])
        spark.sql("DROP TABLE moved.meters")
        shutil.copytree(tmp_path / "theirs", tmp_path / "elsewhere")
        spark.sql(f"CREATE TABLE moved.meters USING delta LOCATION '{tmp_path}/elsewhere'")
        assert not named.run(GOLD, DAYS[1])
        (theirs,) = named.catalog.external
        log = read_log(named.catalog.warehouse, theirs)
        with pytest.raises(TableError, match=r"moved.meters is at .*elsewhere now, and .*theirs"):
            check_catalog_location(spark, log)
    finally:
        spark.sql("DROP SCHEMA moved CASCADE")
    assert set(named.read_log(GOLD).publishes) == {DAYS[0]}


DELTA = "delta.`{uri}`"
DAY = f"DATE'{DAYS[1]}'"
_ROWS = f"(SELECT {DAY} AS day, 7L AS litres)"
SPARK_PROGRAMS = {
    f"DELETE FROM {DELTA} WHERE day = {DAY} AND litres = 1": [DAYS[1]],
    f"UPDATE {DELTA} SET litres = 5 WHERE day = {DAY}": [DAYS[1]],
    f"INSERT INTO {DELTA} {_ROWS}": [DAYS[1]],
    f"INSERT INTO {DELTA} REPLACE WHERE day = {DAY} {_ROWS}": [DAYS[1]],
    f"MERGE INTO {DELTA} AS old USING {_ROWS} AS new ON old.day = new.day "
    "WHEN MATCHED THEN UPDATE SET *": [DAYS[1]],
    f"MERGE INTO {DELTA} AS old USING {_ROWS} AS new ON old.day = new.day "
    "WHEN NOT MATCHED BY SOURCE AND old.litres = 2 THEN DELETE": [DAYS[0], DAYS[2]],
    f"INSERT OVERWRITE {DELTA} SELECT DATE'{DAYS[0]}', 9L": [*DAYS],
    f"OPTIMIZE {DELTA}": [],
    f"REORG TABLE {DELTA} APPLY (PURGE)": [],
    f"VACUUM {DELTA}": [],
    f"ALTER TABLE {DELTA} ADD COLUMNS (gas BIGINT)": [],
    f"RESTORE {DELTA} TO VERSION AS OF 1": [*DAYS],
}
"""Statements, one after the other, and the days whose data each changes."""


@pytest.mark.only_spark
@pytest.mark.spark
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_days_that_sparks_statements_change_and_no_others_count_as_changed(
    vectors: str, spark: SparkSession, lake: Lake
) -> None:
    lake.write_rows(1, 2)
    (theirs,) = lake.catalog.external
    log = read_log(lake.catalog.warehouse, theirs)
    spark.sql(
        f"ALTER TABLE delta.`{log.uri}` SET TBLPROPERTIES ("
        f"delta.enableDeletionVectors = {vectors}, delta.enableChangeDataFeed = true)"
    )
    deleted = 0
    for statement, changed in SPARK_PROGRAMS.items():
        before = log.reread()
        spark.sql(statement.format(uri=log.uri))
        log = before.reread()
        assert find_differing(before, log) == changed, statement
        newest = Path(log.uri) / "_delta_log" / f"{log.version:020}.json"
        deleted += '"deletionVector"' in newest.read_text()
        counted = spark.sql(f"SELECT day, count(*) FROM delta.`{log.uri}` GROUP BY day").collect()
        assert log.count_rows() == {str(day): rows for day, rows in counted}, statement
    assert bool(deleted) is (vectors == "true")


RUST_PROGRAMS: dict[str, tuple[Callable[[DeltaTable], object], list[str]]] = {
    "delete": (lambda table: table.delete(f"day = '{DAYS[1]}' AND litres = 1"), [DAYS[1]]),
    "update": (
        lambda table: table.update({"litres": "5"}, predicate=f"day = '{DAYS[1]}'"),
        [DAYS[1]],
    ),
    "append": (lambda table: write_deltalake(table, days_of(3)[1:2], mode="append"), [DAYS[1]]),
    "overwrite": (lambda table: write_deltalake(table, days_of(3), mode="overwrite"), [*DAYS]),
    "merge": (
        lambda table: (
            table.merge(days_of(7)[1:2], "old.day = new.day", "new", "old")
            .when_matched_update_all()
            .execute()
        ),
        [DAYS[1]],
    ),
    "compact": (lambda table: table.optimize.compact(), []),
    "z-order": (lambda table: table.optimize.z_order(["litres"]), []),
    "vacuum": (lambda table: table.vacuum(dry_run=False), []),
}


@pytest.mark.parametrize("feed", ["true", "false"])
@pytest.mark.parametrize("program", RUST_PROGRAMS)
def test_days_that_delta_rs_changes_and_no_others_count_as_changed(
    program: str, feed: str, lake: Lake
) -> None:
    lake.write_rows(1, 2, feed=feed)
    (theirs,) = lake.catalog.external
    log = read_log(lake.catalog.warehouse, theirs)
    write, changed = RUST_PROGRAMS[program]
    write(DeltaTable(log.uri))
    assert find_differing(log, log.reread()) == changed


def days_of(*litres: int) -> pa.Table:
    """Three days with a row for each value."""
    days = [dt.date.fromisoformat(day) for day in DAYS for _ in litres]
    return pa.table({"day": days, "litres": [*litres] * len(DAYS)})


def find_differing(before: TableLog, after: TableLog) -> list[str]:
    """Finds the days of which whoever reads them gets something else."""
    return [day for day in DAYS if before.checksums.get(day) != after.checksums.get(day)]


def test_their_log_is_read_as_far_as_it_says_what_changed_each_day_last(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for days in (DAYS, DAYS[2:], DAYS[:1], DAYS[1:2], DAYS[:1]):
        lake.write(days, 1)
    read: list[int] = []

    def note(uri: str, *, after: int, up_to: int) -> list[tuple[int, dict[str, Any]]]:
        read.extend(range(after + 1, up_to + 1))
        return read_commit_infos(uri, after=after, up_to=up_to)

    monkeypatch.setattr(commit_files, "_PAGE", 1)
    monkeypatch.setattr(commit_files, "read_commit_infos", note)
    (theirs,) = lake.catalog.external
    log = read_log(lake.catalog.warehouse, theirs)
    changed = {key: text.removesuffix(f" of {log.table_id}") for key, text in log.checksums.items()}
    assert changed == dict(zip(DAYS, ("version 4", "version 3", "version 1"), strict=True))
    assert read == [4, 3, 2, 1]
    log.open_snapshot().create_checkpoint()
    for version in (0, 1):
        (lake.root / "theirs" / "_delta_log" / f"{version:020}.json").unlink()
    now = read_log(lake.catalog.warehouse, theirs)
    assert now.checksums == {**log.checksums, DAYS[2]: f"version before 2 of {log.table_id}"}


def test_a_log_that_was_cleaned_since_a_step_read_it_makes_nothing_stale(lake: Lake) -> None:
    for days in (DAYS, DAYS[2:], DAYS[:1]):
        lake.write(days, 1)
    (theirs,) = lake.catalog.external
    log = read_log(lake.catalog.warehouse, theirs).keep_publishes()
    assert find_differing(log, log) == []
    lake.write(DAYS[1:2], 1)
    log.open_snapshot().create_checkpoint()
    for version in (0, 1):
        (lake.root / "theirs" / "_delta_log" / f"{version:020}.json").unlink()
    now = read_log(lake.catalog.warehouse, theirs)
    assert now.begins_with == 2
    assert find_differing(log, now) == [DAYS[1]]


def test_a_place_without_their_table_is_named(lake: Lake) -> None:
    (theirs,) = lake.catalog.external
    with pytest.raises(
        TableError, match=r"theirs/meters does not exist at .*: correct its `location`"
    ):
        read_log(lake.catalog.warehouse, theirs).require()


def test_a_column_that_their_table_lacks_is_named(lake: Lake) -> None:
    write_deltalake(
        lake.root / "theirs",
        pa.table({"day": [dt.date(2024, 1, 1)], "gas": [1]}),
        partition_by="day",
    )
    (theirs,) = lake.catalog.external
    with pytest.raises(
        TableError, match="has no column `litres`: declare the columns that there are"
    ):
        read_log(lake.catalog.warehouse, theirs).require()


def test_it_needs_a_place_and_no_asset_publishes_it() -> None:
    with pytest.raises(
        DeclarationError, match="theirs/meters is written by somebody else: say whe"
    ):
        ExternalDelta("theirs", "meters", "day", COLUMNS)
    with pytest.raises(DeclarationError, match=r"by `location=`, which DESCRIBE DETAIL main"):
        ExternalDelta("theirs", "meters", "day", COLUMNS, catalog_name="main.sales.meters")
    with pytest.raises(DeclarationError, match="`meters` is no name of a catalog: write schema"):
        ExternalDelta("theirs", "meters", "day", COLUMNS, location="/t", catalog_name="meters")
    theirs = ExternalDelta("theirs", "meters", "day", COLUMNS, location="/theirs")
    with pytest.raises(DeclarationError, match="written by somebody else: publish another table"):
        table_asset(theirs)
