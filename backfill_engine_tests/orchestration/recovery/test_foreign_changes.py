"""Another writer changes a published table: nothing is called right by what our commits said."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_engine.errors import TableError
from backfill_engine.extras.comparison.pins import pin_tables
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.orchestration.recovery.recovery import recover_table
from backfill_engine.orchestration.status.partition_statuses import CHANGED
from backfill_engine.proof.certificates import find_certificates
from backfill_engine.proof.verification import verify_certificate
from backfill_engine_tests.orchestration.test_rollbacks import NOW
from backfill_engine_tests.pipeline.landing_zone import delay
from backfill_engine_tests.pipeline.running import RAW, STAGING, Pipeline, list_days
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS, STAGING_FLIGHTS

DAY = "2013-01-05"


def find_changed_days(pipeline: Pipeline) -> list[str]:
    (found,) = pipeline.read_statuses(RAW_FLIGHTS, first="2013-01-01", last="2013-01-12")
    return [status.partition for status in found.partitions if status.status == CHANGED]


def delete_day(pipeline: Pipeline) -> None:
    spark = SparkSession.active()
    uri = pipeline.warehouse.uri(RAW_FLIGHTS)
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE landing_date = DATE'{DAY}'")


def test_deleted_day_is_withheld_from_what_reads_it_until_it_is_run_again(
    pipeline: Pipeline,
) -> None:
    assert find_changed_days(pipeline) == []
    staged = pipeline.read_contents_checksums(STAGING_FLIGHTS)
    delete_day(pipeline)
    assert find_changed_days(pipeline) == [DAY]

    log = read_log(pipeline.warehouse, RAW_FLIGHTS)
    (pin,) = pin_tables([log])
    assert list(pin.apart) == [DAY]
    (certificate,) = (
        certificate
        for certificate in find_certificates(pipeline.warehouse, log.publishes[DAY].record.run_id)
        if certificate.asset_key == RAW
    )
    lines = verify_certificate(log, certificate, build_partitions(RAW_FLIGHTS, list_days(1, 12)))
    assert [DAY in line.statement for line in lines if line.holds is False] == [True]

    reading = pipeline.run(STAGING, first="2013-01-01", last="2013-01-10")
    assert "changed by another writer (DELETE, version" in reading.message
    assert DAY in pipeline.find_days(RAW, "FAILED"), "as the UI shows it"
    assert pipeline.read_contents_checksums(STAGING_FLIGHTS) == staged

    pipeline.run(RAW, first=DAY, last=DAY).confirm()
    assert find_changed_days(pipeline) == []
    pipeline.run(STAGING, first=DAY, last=DAY).confirm()
    assert pipeline.read_contents_checksums(STAGING_FLIGHTS) == staged


def test_deleted_day_is_published_as_it_is_once_a_person_accepts_it(pipeline: Pipeline) -> None:
    accept = (RAW, "2013-01-01", "2013-01-12")
    refused = pipeline.roll_back(*accept, accept="they asked us")
    assert "nothing to accept" in refused.message

    delete_day(pipeline)
    accepted = pipeline.roll_back(*accept, accept="they asked us").confirm()
    assert "1 partitions (2013-01-05 … 2013-01-05) are accepted" in accepted.message
    assert find_changed_days(pipeline) == []
    publish = read_log(pipeline.warehouse, RAW_FLIGHTS).publishes[DAY]
    assert publish.rows == 0
    assert "DELETE" in publish.restored
    assert publish.restored.endswith("accepted: they asked us")
    assert DAY in pipeline.find_days(RAW, "MATERIALIZED")


def set_back(pipeline: Pipeline, raw: Path, copy: Path) -> None:
    shutil.rmtree(raw)
    copy.rename(raw)


def cut_newest_commit(pipeline: Pipeline, raw: Path, copy: Path) -> None:
    newest = read_log(pipeline.warehouse, RAW_FLIGHTS).version
    (raw / "_delta_log" / f"{newest:020}.json").unlink()
    with pytest.raises(TableError, match=rf"{newest:020}.json is gone.*restore it from a copy"):
        read_log(pipeline.warehouse, RAW_FLIGHTS)
    (raw / "_delta_log" / f"{newest:020}.crc").unlink()


def lose_table(pipeline: Pipeline, raw: Path, copy: Path) -> None:
    shutil.rmtree(raw)


@pytest.mark.parametrize(
    ("lose", "lost"),
    [
        (set_back, ["2013-01-12"]),
        (cut_newest_commit, ["2013-01-12"]),
        (lose_table, list_days(1, 12)),
    ],
)
def test_what_a_table_has_lost_is_seen_by_the_home_that_knows_of_it(
    lose: Callable[[Pipeline, Path, Path], None], lost: list[str], pipeline: Pipeline
) -> None:
    raw, copy = Path(pipeline.warehouse.uri(RAW_FLIGHTS)), pipeline.root / "copy"
    shutil.copytree(raw, copy)
    pipeline.zone.change("2013-01-12", delay)
    pipeline.run(RAW, first="2013-01-12", last="2013-01-12").confirm()
    lose(pipeline, raw, copy)
    assert find_changed_days(pipeline) == lost

    log = read_log(pipeline.warehouse, RAW_FLIGHTS)
    recover_table(CATALOG, pipeline.instance, log, now=NOW)
    assert pipeline.find_days(RAW, "FAILED") == lost
    runs = pipeline.instance.get_runs_count()
    recover_table(CATALOG, pipeline.instance, log, now=NOW)
    assert pipeline.instance.get_runs_count() == runs, "entered once"
    assert find_changed_days(pipeline) == lost


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_table_made_anew_for_some_days_is_not_read_for_those_that_it_has_lost(
    pipeline: Pipeline,
) -> None:
    """A flight of the fifth may land on the sixth, which raw had, and has no more."""
    staged = pipeline.read_contents_checksums(STAGING_FLIGHTS)
    shutil.rmtree(pipeline.warehouse.uri(RAW_FLIGHTS))
    pipeline.run(RAW, first="2013-01-01", last=DAY).confirm()

    reading = pipeline.run(STAGING, first="2013-01-01", last=DAY)
    assert "raw/flights 2013-01-06 is changed by another writer (version" in reading.message
    found = pipeline.read_contents_checksums(STAGING_FLIGHTS)
    assert found == staged

    pipeline.run(RAW, first="2013-01-06", last="2013-01-12").confirm()
    pipeline.run(STAGING, first="2013-01-01", last=DAY).confirm()
