"""Folders whose names mean something to a shell, a URI or a pattern: all readers find the same."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_engine.errors import SettingsError
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.proof.verification import verify_run
from backfill_engine_tests.pipeline.landing_zone import FLIGHTS_A_DAY
from backfill_engine_tests.pipeline.running import RAW, Pipeline, list_days, open_pipeline
from backfill_engine_tests.project import RAW_FLIGHTS

STRANGE = ("50% of ä+b#c?d*e[f]{g}h'i\"j$k,l;m", "12:30 of 50%")
FIRST, LAST = list_days(1, 2)


@pytest.mark.only_spark
@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_name_is_a_folder_like_any_other(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    root = tmp_path / name
    with open_pipeline(tmp_path / "home") as opened:
        pipeline = Pipeline(root, opened.instance)
        pipeline.zone.land([FIRST, LAST])
        runs = [pipeline.run(RAW, first=FIRST, last=LAST) for _ in range(2)]
        assert [run.message for run in runs] == ["", ""]
        # What lands of the second day late is still to come.
        assert len(pipeline.read_rows(RAW_FLIGHTS)) == 2 * FLIGHTS_A_DAY - 2
        verified = verify_run([read_log(pipeline.warehouse, RAW_FLIGHTS)], runs[1].id)
    lines = [line for found in verified.values() for line in found]
    assert lines
    assert [line for line in lines if line.holds is not True] == []
    assert {path.name for path in tmp_path.iterdir()} == {name, "home"}
    assert {path.name for path in root.iterdir()} == {"landing", "warehouse"}


@pytest.mark.parametrize("misread", ["%25", "%20", "`", "\\", "\n"])
def test_what_another_reader_would_take_for_another_folder_is_refused(
    tmp_path: Path, misread: str
) -> None:
    """delta-rs lists the right folder there, and reads the files of another."""
    warehouse = Warehouse(str(tmp_path / f"a{misread}b"))
    with pytest.raises(SettingsError, match="set BACKFILL_WAREHOUSE to a place without it"):
        read_log(warehouse, RAW_FLIGHTS)


@pytest.mark.parametrize("misread", ["%25", "`", "\\"])
def test_files_land_where_no_table_can_be(
    spark: SparkSession, tmp_path: Path, misread: str
) -> None:
    """Spark and Arrow alone read the landing zone, and spell these alike."""

    class Elsewhere(Pipeline):
        @property
        def warehouse(self) -> Warehouse:
            return Warehouse(str(tmp_path / "warehouse"))

    with open_pipeline(tmp_path / "home") as opened:
        pipeline = Elsewhere(tmp_path / f"a{misread}b", opened.instance)
        pipeline.zone.land([FIRST])
        run = pipeline.run(RAW, first=FIRST, last=FIRST)
        assert run.success, run.message
        assert len(pipeline.read_rows(RAW_FLIGHTS)) == FLIGHTS_A_DAY - 2


def test_what_spark_cannot_read_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with open_pipeline(tmp_path / "home") as opened:
        pipeline = Pipeline(tmp_path / "12:30 [a]", opened.instance)
        pipeline.zone.land([FIRST])
        run = pipeline.run(RAW, first=FIRST, last=FIRST)
    assert "Spark can't read a path that has a colon and one of [ ] { } * ? " in run.message
    assert run.message.endswith("set BACKFILL_LANDING to a place without them")
