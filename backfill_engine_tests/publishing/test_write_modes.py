"""Overwrite, merge, append once: what is there afterwards, and that a repeat changes nothing."""

import gzip
import shutil
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from backfill_engine.errors import FilterError, SettingsError, TableError
from backfill_engine.lake.commits import CommitRecord
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import create_table, overwrite_partitions
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import PartitionResult
from backfill_engine.publishing.write_modes.append_once import AppendOnce
from backfill_engine.publishing.write_modes.choosing import choose_options
from backfill_engine.publishing.write_modes.mode import Merge
from backfill_engine.publishing.write_modes.options import WriteOptions
from backfill_engine.rules.count_rules import Reconciled, Shrink
from backfill_engine.rules.verdicts import Check
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.tables.declarations import Table
from backfill_engine_tests.lake.readings import (
    READINGS,
    build_frame,
    build_readings_record,
    build_rows,
    overwrite_readings,
)
from backfill_engine_tests.pipeline.landing_zone import delay
from backfill_engine_tests.pipeline.publishing import COPIES, Interrupted, Lake
from backfill_engine_tests.pipeline.running import FEATURES, RAW, STAGING, Pipeline, list_days
from backfill_engine_tests.project import RAW_FLIGHTS, STAGING_FLIGHTS
from backfill_engine_tests.shared_fixtures import build_days

DAYS = build_days("2013-01-01", 2)
FIRST, SECOND = (day.key for day in DAYS)
MERGE = WriteOptions(write_mode=Merge.name)
MIRROR = WriteOptions(write_mode=Merge.name, delete_missing=True)
APPEND = WriteOptions(write_mode=AppendOnce.name)
# To delete two of three rows is meant here.
RECONCILED = replace(COPIES, table=replace(COPIES.table, rules=(Reconciled(), Shrink(at_most=1.0))))


@pytest.fixture(scope="module")
def old_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Copies of two days hold sensors 0 and 1, "old"; the source now has 1 and 2, "new"."""
    lake = Lake(spark, Warehouse(str(tmp_path_factory.mktemp("old_lake"))))
    create_table(spark, read_log(lake.warehouse, READINGS))
    lake.overwrite_readings(DAYS, "old")
    lake.publish(COPIES, DAYS)
    land(lake, DAYS, {1: "new", 2: "new"})
    return lake


@pytest.fixture
def lake(old_lake: Lake, warehouse: Warehouse) -> Lake:
    """A copy of it, for the test to go on from."""
    shutil.copytree(old_lake.warehouse.root, warehouse.root)
    return Lake(old_lake.spark, warehouse)


def land(lake: Lake, days: Sequence[Partition], sensors: dict[int, str | None]) -> None:
    rows = [(day.slice.start, number, value) for day in days for number, value in sensors.items()]
    overwrite_readings(lake.spark, lake.warehouse, days, rows)  # type: ignore[arg-type]


def read(lake: Lake, day: str = FIRST, *, table: Table = COPIES.table) -> dict[int, str]:
    rows = lake.warehouse.open(table).to_pyarrow_table().to_pylist()
    found = [(row["id"], row["value"]) for row in rows if row["day"].isoformat() == day]
    assert len(dict(found)) == len(found), "a sensor is there twice"
    return dict(sorted(found))


def find_place(lake: Lake) -> str:
    """The copies as Spark's SQL calls them."""
    return f"delta.`{lake.warehouse.uri(COPIES.table)}`"


def read_days(lake: Lake) -> list[dict[int, str]]:
    return [read(lake, day) for day in (FIRST, SECOND)]


def read_version(lake: Lake) -> int:
    return read_log(lake.warehouse, COPIES.table).version


def append(
    lake: Lake, run_id: str = "append", *, days: Sequence[Partition] = DAYS, recipe: Recipe = COPIES
) -> list[PartitionResult]:
    return lake.publish(recipe, days, options=APPEND, run_id=run_id)


def read_records(lake: Lake) -> list[CommitRecord]:
    """Reads the records of the copies' commits, newest first."""
    return [
        commit.record for commit in read_log(lake.warehouse, COPIES.table).commits if commit.record
    ]


def read_source_rows(lake: Lake) -> list[int]:
    """Rows of the source from which commits say that they computed the first day, newest first."""
    consumed = [record.consumed.find(FIRST) for record in read_records(lake)]
    # What stands for a checksum of the readings.
    return [int(inputs.upstream[READINGS.key][FIRST], 16) for inputs in consumed]


def test_merge_replaces_equal_keys_and_keeps_the_others(lake: Lake) -> None:
    lake.publish(RECONCILED, DAYS[:1], options=MERGE)
    assert read(lake) == {0: "old", 1: "new", 2: "new"}
    assert read(lake, SECOND) == {0: "old", 1: "old"}, "not asked for"
    assert read_records(lake)[0].write_mode == "merge"
    assert read_records(lake)[0].rows == {FIRST: 3}


@pytest.mark.parametrize("options", [MERGE, MIRROR, APPEND], ids=["merge", "mirror", "append"])
def test_a_second_time_changes_nothing(lake: Lake, options: WriteOptions) -> None:
    land(lake, DAYS, {2: "new"})
    lake.publish(RECONCILED, DAYS, options=options)
    once = read_days(lake)
    lake.publish(RECONCILED, DAYS, options=options, run_id="again")
    assert read_days(lake) == once
    assert once[0] == ({2: "new"} if options is MIRROR else {0: "old", 1: "old", 2: "new"})
    assert read_source_rows(lake)[0] == 1


def lose_one(window: InputWindow) -> DataFrame:
    return COPIES.compute(window).where("id <> 2")


def test_merge_is_audited_over_all_that_will_be_there(lake: Lake) -> None:
    crowded = replace(COPIES.table, rules=(Reconciled(),))
    recipe = replace(COPIES, table=crowded, compute=lose_one)
    (result,) = lake.publish(recipe, DAYS[:1], options=MERGE)
    assert result.version is None
    assert [finding.rule for finding in result.verdict.failed(Check.COMPLETE)] == ["reconciled"]
    assert read(lake) == {0: "old", 1: "old"}


def test_filter_takes_part_of_the_rows_and_deletes_missing_ones_among_these_only(
    lake: Lake,
) -> None:
    only_two = replace(MERGE, row_filter="id = 2")
    lake.publish(RECONCILED, DAYS[:1], options=only_two)
    assert read(lake) == {0: "old", 1: "old", 2: "new"}
    assert read_records(lake)[0].row_filter == "id = 2"
    land(lake, DAYS, {5: "new"})
    lake.publish(RECONCILED, DAYS[:1], options=replace(MIRROR, row_filter="id >= 1 AND id <> 5"))
    assert read(lake) == {0: "old"}
    assert read_source_rows(lake) == [2, 2, 2], "what a filter leaves out is of earlier inputs"


def test_rows_for_which_the_filter_is_null_are_filtered_out(lake: Lake) -> None:
    land(lake, DAYS[:1], {3: None, 4: "x"})
    lake.publish(RECONCILED, DAYS[:1], options=replace(MERGE, row_filter="value = 'x'"))
    assert read(lake) == {0: "old", 1: "old", 4: "x"}


def test_a_tables_own_filter_holds_in_every_run_and_with_the_runs(lake: Lake) -> None:
    small = replace(RECONCILED, table=replace(RECONCILED.table, row_filter="id < 2 OR id > 9"))
    lake.publish(small, DAYS)
    assert read(lake) == {1: "new"}
    land(lake, DAYS, {1: "newer", 2: "newer", 10: "newer", 11: "newer"})
    lake.publish(small, DAYS[:1], options=replace(MERGE, row_filter="id = 2 OR id = 10"))
    assert read(lake) == {1: "new", 10: "newer"}


@pytest.mark.slow
@pytest.mark.by_hand
def test_merge_that_loses_a_race_merges_with_what_the_winner_wrote(lake: Lake) -> None:
    def publish_another() -> None:
        land(lake, DAYS, {7: "fast"})
        lake.publish(COPIES, DAYS[1:], run_id="fast", options=MERGE)
        land(lake, DAYS, {1: "new", 2: "new"})

    compute = Interrupted(COPIES, publish_another)
    lake.publish(replace(COPIES, compute=compute), DAYS, run_id="slow", options=MERGE)
    assert read(lake) == {0: "old", 1: "new", 2: "new"}
    assert read(lake, SECOND) == {0: "old", 1: "new", 2: "new", 7: "fast"}
    assert compute.computed == [[FIRST, SECOND], [SECOND]]


def test_appended_batch_comes_beside_what_is_there_and_only_once(lake: Lake) -> None:
    land(lake, DAYS, {2: "new"})
    lake.publish(RECONCILED, DAYS, options=APPEND)
    version = read_version(lake)
    assert read(lake) == {0: "old", 1: "old", 2: "new"}
    results = lake.publish(RECONCILED, DAYS, options=APPEND, run_id="again")
    assert read_version(lake) == version, "no commit for a repeat"
    assert all(result.repeated_batch and result.version == version for result in results)
    assert [result.measures.rows for result in results] == [3, 3]


def test_a_named_batch_is_the_same_whatever_its_inputs(lake: Lake) -> None:
    named = replace(APPEND, batch="2013-02")
    land(lake, DAYS, {2: "new"})
    lake.publish(COPIES, DAYS[:1], options=named)
    land(lake, DAYS, {3: "newer"})
    first, second = lake.publish(COPIES, DAYS, options=named, run_id="again")
    assert (first.repeated_batch, second.repeated_batch) == ("2013-02", "")
    assert read(lake) == {0: "old", 1: "old", 2: "new"}
    assert read(lake, SECOND) == {0: "old", 1: "old", 3: "newer"}


def test_append_whose_keys_are_there_already_is_withheld(lake: Lake) -> None:
    land(lake, DAYS[:1], {1: "new", 2: "new", 3: "new"})
    (result,) = append(lake, days=DAYS[:1])
    assert result.version is None
    assert [finding.rule for finding in result.verdict.failed(Check.VALID)] == ["keys_are_unique"]
    assert read(lake) == {0: "old", 1: "old"}


def test_two_runs_that_append_the_same_batch_at_the_same_time_append_it_once(lake: Lake) -> None:
    land(lake, DAYS, {2: "new"})
    compute = Interrupted(COPIES, lambda: append(lake, "fast"))
    results = append(lake, "slow", recipe=replace(COPIES, compute=compute))
    assert read(lake) == read(lake, SECOND) == {0: "old", 1: "old", 2: "new"}
    assert [record.run_id for record in read_records(lake)] == ["fast", "run"]
    assert all(result.repeated_batch for result in results)


def test_a_batch_that_was_rolled_back_can_be_appended_again(lake: Lake) -> None:
    land(lake, DAYS, {2: "new"})
    append(lake)
    lake.roll_back(COPIES.table, DAYS[:1], before_run="append", run_id="undo")
    assert read(lake) == {0: "old", 1: "old"}
    first, second = append(lake, "again")
    assert (first.repeated_batch, bool(second.repeated_batch)) == ("", True)
    assert read(lake) == read(lake, SECOND) == {0: "old", 1: "old", 2: "new"}


@pytest.mark.only_spark
@pytest.mark.slow
@pytest.mark.by_hand
def test_a_batch_that_was_restored_away_by_hand_can_be_appended_again(lake: Lake) -> None:
    before = read_version(lake)
    land(lake, DAYS, {2: "new"})
    append(lake)
    lake.spark.sql(f"RESTORE {find_place(lake)} TO VERSION AS OF {before}")
    assert read(lake) == {0: "old", 1: "old"}
    results = append(lake, "again")
    assert [result.repeated_batch for result in results] == ["", ""]
    assert read(lake) == read(lake, SECOND) == {0: "old", 1: "old", 2: "new"}


def test_what_an_overwrite_was_computed_from_is_not_appended_again(lake: Lake) -> None:
    keyless = replace(COPIES, table=replace(COPIES.table, natural_key=()))
    lake.publish(keyless, DAYS)
    version = read_version(lake)
    for options in (APPEND, replace(APPEND, batch="by another name")):
        results = lake.publish(keyless, DAYS, options=options, run_id="again")
        assert [result.version for result in results] == [version, version]
        assert all(result.repeated_batch for result in results)
    assert read(lake) == {1: "new", 2: "new"}
    assert read_version(lake) == version


def test_what_another_writer_changed_is_appended_to_once_it_was_overwritten(lake: Lake) -> None:
    land(lake, DAYS, {2: "new"})
    append(lake)
    lake.spark.sql(f"DELETE FROM {find_place(lake)} WHERE day = '{FIRST}' AND id = 2")
    first, second = append(lake, "again")
    assert (first.version, bool(second.repeated_batch)) == (None, True)
    (failed,) = first.verdict.failed(Check.COMPLETE)
    assert "another writer changed it in version" in failed.bound
    lake.publish(RECONCILED, DAYS[:1], run_id="overwrite")
    (first,) = lake.publish(RECONCILED, DAYS[:1], options=APPEND, run_id="once-more")
    assert first.repeated_batch
    assert read(lake) == {2: "new"}


@pytest.mark.only_spark
def test_delta_itself_writes_a_transaction_once_and_it_is_told(lake: Lake) -> None:
    rows = build_rows(DAYS[:1], "twice")
    log = read_log(lake.warehouse, READINGS)

    def write(log: TableLog) -> int:
        record = build_readings_record(
            DAYS[:1],
            options={"write_mode": AppendOnce.name},
            rows={FIRST: 2},
            checksums={FIRST: "0"},
            batches={FIRST: "b"},
        )
        frame = build_frame(lake.spark, rows)
        return overwrite_partitions(frame, log, DAYS[:1], record, transaction="same")

    written = write(log)
    assert written == log.version + 1
    with pytest.raises(TableError, match=r"this batch was appended .* no longer describes"):
        write(log.reread())
    assert log.reread().version == written


FILTER = {"row_filter": "hour = 3"}
MERGING, UPSERTING = (replace(RAW_FLIGHTS, write_mode=mode) for mode in ("merge", "upsert"))


@pytest.mark.parametrize(
    ("table", "wishes", "why"),
    [
        (STAGING_FLIGHTS, {"write_mode": "upsert"}, "no write mode upsert"),
        (RAW_FLIGHTS, {"write_mode": "merge"}, "declares no natural key"),
        (MERGING, {}, "declares no natural key"),
        (UPSERTING, {}, "no write mode upsert"),
        (STAGING_FLIGHTS, FILTER, "set write_mode to merge"),
        (STAGING_FLIGHTS, {**FILTER, "write_mode": "append_once"}, "set write_mode to merge"),
        (STAGING_FLIGHTS, {"delete_missing": True}, "delete_missing is for"),
        (STAGING_FLIGHTS, {"batch": "b"}, "a batch is for write_mode append_once"),
    ],
)
def test_what_a_table_cannot_honour_is_refused(
    table: Table, wishes: dict[str, Any], why: str
) -> None:
    with pytest.raises(SettingsError, match=why) as caught:
        choose_options(table, **wishes)
    assert "\n" not in str(caught.value)


def test_a_filter_by_what_is_no_column_is_refused() -> None:
    with pytest.raises(FilterError, match="gate"):
        choose_options(STAGING_FLIGHTS, write_mode="merge", row_filter="gate = 3")


def test_what_is_empty_is_not_asked_for() -> None:
    wishes = {"write_mode": "", "row_filter": "", "delete_missing": False, "batch": ""}
    merging = replace(STAGING_FLIGHTS, write_mode=Merge.name)
    assert choose_options(STAGING_FLIGHTS, **wishes) == WriteOptions()
    assert choose_options(merging, **wishes) == MERGE == choose_options(merging)


def test_a_run_is_refused_before_its_first_asset_if_a_later_one_cannot_honour_it(
    pipeline: Pipeline,
) -> None:
    logs = [read_log(pipeline.warehouse, table) for table in (RAW_FLIGHTS, STAGING_FLIGHTS)]
    ops = {STAGING: {"filter": "origin = 'JFK'"}}
    run = pipeline.run(RAW, STAGING, FEATURES, first="2013-01-03", last="2013-01-04", ops=ops)
    assert not run.success
    assert run.message == (
        "staging/flights: a run with a filter would overwrite whole partitions with part of their "
        "rows: set write_mode to merge, or leave the filter out"
    )
    assert [log.reread().version for log in logs] == [log.version for log in logs]


def test_files_of_which_rows_are_there_are_not_appended_with_others(pipeline: Pipeline) -> None:
    (day,) = list_days(5, 5)
    before = pipeline.read_rows(RAW_FLIGHTS, day)
    landed = pipeline.zone.path(day)
    lines = gzip.decompress(landed.read_bytes()).splitlines(keepends=True)
    (landed.parent / "late.json").write_bytes(lines[0].replace(b"UA", b"DL"))
    run = pipeline.run(RAW, first=day, last=day, ops={RAW: {"write_mode": AppendOnce.name}})
    assert "files_come_once = 1 (0 files of which rows are there already)" in run.message
    assert pipeline.read_rows(RAW_FLIGHTS, day) == before


def test_a_run_told_by_tags_merges_the_rows_of_one_airport(pipeline: Pipeline) -> None:
    day = list_days(5, 5)[0]
    pipeline.zone.change(day, delay)
    assert pipeline.run(RAW, first=day, last=day).success
    before = pipeline.read_rows(STAGING_FLIGHTS, day)
    tags = {"backfill_assets/write_mode": "merge", "backfill_assets/filter": "origin = 'JFK'"}
    run = pipeline.run(STAGING, first=day, last=day, tags=tags)
    assert run.success, run.message
    after = pipeline.read_rows(STAGING_FLIGHTS, day)
    changed = [flight for flight in after if flight not in before]
    assert len(after) == len(before)
    assert {(flight["origin"], flight["arr_delay"]) for flight in changed} == {("JFK", 7)}
    landed = [flight for flight in before if flight["landing_date"].isoformat() == day]
    delays = [flight["arr_delay"] for flight in landed if flight["origin"] == "JFK"]
    assert len(changed) == len(delays) - delays.count(7) > 0
    (materialization, *_) = pipeline.read_materializations(STAGING, day)
    assert materialization.metadata["dagster/partition_row_count"].value == len(after)
