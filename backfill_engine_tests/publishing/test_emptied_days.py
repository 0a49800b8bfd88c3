"""Days whose files were taken back, never came, or are of a time before the first partition."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from backfill_assets import assets
from backfill_engine.assembly import build_catalog
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import Calendar
from backfill_engine_tests.pipeline.landing_zone import FLIGHTS_A_DAY, LANDING_LATER, LandingZone
from backfill_engine_tests.pipeline.publishing import RAW_RECIPE, Lake
from backfill_engine_tests.pipeline.running import RAW, Pipeline
from backfill_engine_tests.project import RAW_FLIGHTS
from backfill_engine_tests.shared_fixtures import build_days

EMPTIED, NEVER_LANDED = "2013-01-12", "2013-01-13"


def test_an_emptied_day_is_published_empty_with_a_warning_and_a_day_to_come_is_withheld(
    pipeline: Pipeline,
) -> None:
    assert len(pipeline.read_rows(RAW_FLIGHTS, EMPTIED)) == FLIGHTS_A_DAY
    pipeline.zone.remove(EMPTIED)
    run = pipeline.run(RAW, first=EMPTIED, last=NEVER_LANDED)
    assert "withheld 1 of 2 partitions" in run.message
    assert f"{NEVER_LANDED}: partition_is_complete: landing_files_exist" in run.message
    assert EMPTIED not in run.message
    assert pipeline.find_days(RAW, "FAILED") == [NEVER_LANDED]
    assert EMPTIED in pipeline.find_days(RAW, "MATERIALIZED")
    assert pipeline.read_rows(RAW_FLIGHTS, EMPTIED) == []
    newest = pipeline.read_materializations(RAW, EMPTIED)[0]
    assert newest.metadata["dagster/partition_row_count"].value == 0
    (warning,) = (
        evaluation
        for evaluation in pipeline.read_evaluations(run)
        if evaluation.partition == EMPTIED and not evaluation.passed
    )
    assert (warning.check_name, warning.severity.value) == ("partition_is_complete", "WARN")
    bound = warning.metadata["row_count: bound"].value
    assert bound == "its source has no records: its folder is there and empty (warned)"


def test_a_published_day_does_not_shrink_when_the_first_day_moves_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    LandingZone(tmp_path / "landing").land(["2013-01-01", "2013-01-02"])
    first, second = build_days("2013-01-01", 2)
    lake = Lake(spark, Warehouse(str(tmp_path / "warehouse")), str(tmp_path / "landing"))
    before = lake.publish(RAW_RECIPE, [first, second])[1].measures
    catalog, _ = build_catalog([assets], calendar=Calendar(dt.date.fromisoformat(second.key)))
    later = replace(RAW_RECIPE, table=catalog.find_table(RAW))
    (after,) = lake.publish(later, [second])
    assert (after.measures.rows, after.measures.checksum) == (FLIGHTS_A_DAY, before.checksum)
    # Where the days before never were, nothing would read their flights that land later.
    new = replace(lake, warehouse=Warehouse(str(tmp_path / "new")))
    assert new.publish(later, [second])[0].measures.rows == FLIGHTS_A_DAY - LANDING_LATER
