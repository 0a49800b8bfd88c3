"""Commits vouch for their certificate also where a run made several, or took one back."""

import datetime as dt
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_engine.lake import writer
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.proof.certifying import certify
from backfill_engine.proof.pages import VerifiedLine
from backfill_engine.proof.verification import verify_run
from backfill_engine.publishing.results import PartitionResult, Run
from backfill_engine.publishing.write_modes.options import OVERWRITE, WriteOptions
from backfill_engine.tables.declarations import Table
from backfill_engine_tests.lake.readings import READINGS
from backfill_engine_tests.pipeline.publishing import COPIES, Interrupted, Lake
from backfill_engine_tests.publishing.test_verifying import publish_unreadable
from backfill_engine_tests.shared_fixtures import build_days

DAYS = build_days("2013-01-01", 3)
APPEND = WriteOptions(write_mode="append_once", batch="of today")


def verify(
    lake: Lake,
    results: Sequence[PartitionResult],
    run_id: str,
    options: WriteOptions = OVERWRITE,
    table: Table = COPIES.table,
) -> list[VerifiedLine]:
    """Certifies what `Lake.publish` did, and verifies it."""
    log = read_log(lake.warehouse, table)
    run = Run(run_id=run_id, started_at=dt.datetime(2013, 2, 1, tzinfo=dt.UTC), options=options)
    certify(log, results, run, code_version=COPIES.code_version, requested_at=run.started_at)
    return [line for lines in verify_run([log], run_id).values() for line in lines]


def list_doubts(lines: Sequence[VerifiedLine]) -> list[str]:
    assert lines
    return [f"{line.statement}: {line.found}" for line in lines if line.holds is not True]


def publish_meanwhile(lake: Lake) -> list[PartitionResult]:
    """A slow run of three days; a fast one publishes the second meanwhile."""
    fast = Interrupted(COPIES, lambda: lake.publish(COPIES, [DAYS[1]], run_id="fast"))
    return lake.publish(replace(COPIES, compute=fast), DAYS, run_id="slow")


def test_each_round_of_a_race_has_its_statement(lake: Lake) -> None:
    lines = verify(lake, publish_meanwhile(lake), "slow")
    assert list_doubts(lines) == []
    assert len([line for line in lines if "vouches" in line.statement]) == 2


def test_what_a_race_made_a_run_publish_again_is_stated_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on storage without locks: what another run changed is seen only after the commit."""
    refuse = writer._refuse_changed
    overlooked: list[str] = []

    def overlook_before_the_commit(commits, keys, run_id) -> None:
        if run_id == "slow" and commits and not overlooked:
            overlooked.append(run_id)
        else:
            refuse(commits, keys, run_id)

    monkeypatch.setattr(writer, "_refuse_changed", overlook_before_the_commit)
    lines = verify(lake, publish_meanwhile(lake), "slow")
    (doubt,) = list_doubts(lines)
    assert "this run published them again as version" in doubt
    assert not any(line.holds is False for line in lines)


def test_a_batch_that_was_there_already_is_as_the_log_has_it(lake: Lake) -> None:
    lake.publish(COPIES, DAYS[:2], run_id="first", options=APPEND)
    for run_id, days in (("more", DAYS), ("again", DAYS)):
        results = lake.publish(COPIES, days, run_id=run_id, options=APPEND)
        lines = verify(lake, results, run_id, APPEND)
        assert list_doubts(lines) == []


@pytest.mark.only_spark
def test_a_partition_that_was_taken_back_is_withheld_by_the_log_too(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    lake = Lake(spark, warehouse)
    results = publish_unreadable(lake, tmp_path / "source.csv")
    assert [result.version is None for result in results] == [False, True]
    lines = verify(lake, results, "second", table=READINGS)
    assert list_doubts(lines) == []


@pytest.mark.parametrize("lost", ["the log", "the newest commit"])
def test_commits_that_a_log_has_lost_vouch_for_nothing(lake: Lake, lost: str) -> None:
    """Nothing was published before, so that no former contents tell of the loss."""
    results = lake.publish(COPIES, DAYS, run_id="first")
    assert False not in [line.holds for line in verify(lake, results, "first")]
    log = Path(lake.warehouse.uri(COPIES.table)) / "_delta_log"
    for file in log.iterdir() if lost == "the log" else [max(log.glob("*.json"))]:
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    for checksum in log.glob("*.crc") if log.is_dir() else ():
        checksum.unlink()
    verified = verify_run([read_log(lake.warehouse, COPIES.table)], "first")
    wrong = [line for lines in verified.values() for line in lines if line.holds is False]
    assert "the table has no such version" in {line.found for line in wrong}
