"""A feature that is declared outside of the engine: passed to `build_defs`, registered nowhere."""

import datetime as dt
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from dagster import AssetKey, DagsterInstance, ExecuteInProcessResult
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

from backfill_engine import (
    BackfillError,
    Calendar,
    ExternalDelta,
    Features,
    InputWindow,
    PublishHook,
    Settings,
    StepRequest,
    Table,
    Upstream,
    build_defs,
    required,
    table_asset,
)
from backfill_engine.asset_definitions import find_catalogs
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.orchestration.runs.run_tags import RANGE_END_TAG, RANGE_START_TAG
from backfill_engine.proof.certificates import find_certificates
from backfill_engine.proof.verification import verify_run
from backfill_engine.rules import Check, Finding, Outcome, Verdict
from backfill_engine.rules.measured import PartitionMeasures

COLUMNS = (required("day", "DATE", "Day."), required("litres", "BIGINT", "Litres."))
DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")
GOLD = AssetKey(["gold", "days"])
CLOSED_TAG = "acme/closed"


@dataclass(frozen=True)
class Signature(PublishHook):
    """Who signs for a publish: not for a day of more than one row, and not after office hours.

    Attributes:
        by: who signs.
        is_closed: whether office hours are over once the table is locked.
    """

    name: ClassVar[str] = "signature"
    by: str
    is_closed: bool

    def judge(
        self,
        verdicts: Mapping[str, Verdict],
        measures: Mapping[str, PartitionMeasures],
        target: TableLog,
    ) -> Mapping[str, Verdict]:
        """Adds whether a day has more rows than anybody signs for."""
        return {
            key: verdict.add(
                Check.VALID,
                Finding(
                    "signed_rows",
                    float(measures[key].rows),
                    "≤ 1",
                    Outcome.of(failed=measures[key].rows > 1),
                ),
            )
            for key, verdict in verdicts.items()
        }

    def check(self, target: TableLog, keys: Collection[str]) -> None:
        """Refuses to sign after office hours."""
        if self.is_closed:
            raise BackfillError(f"nobody signs for {target.table.key} now: run it tomorrow")

    def describe(self) -> dict[str, str]:
        """Names who signed."""
        return {"by": self.by}

    def describe_partition(self, key: str) -> str:
        """Describes what was signed."""
        return f"signed by {self.by}"


def sign(request: StepRequest) -> Signature:
    """Lets anna sign for every step."""
    return Signature("anna", is_closed=CLOSED_TAG in request.run.tags)


@dataclass(frozen=True)
class Lake:
    """Three days of somebody, and a table of ours that somebody signs for."""

    root: Path
    instance: DagsterInstance
    run: Callable[..., ExecuteInProcessResult]
    read: Callable[[], TableLog]


@pytest.fixture
def lake(tmp_path: Path, instance: DagsterInstance) -> Lake:
    theirs = ExternalDelta("theirs", "meters", "day", COLUMNS, location=str(tmp_path / "theirs"))
    gold = Table("gold", "days", "day", COLUMNS)
    days = [dt.date.fromisoformat(day) for day in (*DAYS, DAYS[-1])]
    rows = pa.table({"day": days, "litres": [1, 2, 3, 4]})
    write_deltalake(tmp_path / "theirs", rows, partition_by=["day"])

    @table_asset(gold, inputs=[Upstream(theirs)])
    def gold_days(window: InputWindow) -> DataFrame:
        """One row per row of theirs."""
        return window.read(theirs, column="day").select("day", "litres")

    defs = build_defs(
        [gold_days],
        lakehouse=Settings(landing=f"{tmp_path}/landing", warehouse=f"{tmp_path}/warehouse"),
        calendar=Calendar(dt.date(2024, 1, 1), dt.date(2024, 1, 4)),
        features=Features(hooks=(sign,)),
    )
    (catalog,) = find_catalogs(defs.get_repository_def().asset_graph)
    job = defs.resolve_implicit_global_asset_job_def()
    ends = {RANGE_START_TAG: DAYS[0], RANGE_END_TAG: DAYS[-1]}
    return Lake(
        tmp_path,
        instance,
        lambda **tags: job.execute_in_process(
            instance=instance, asset_selection=[GOLD], tags=ends | tags, raise_on_error=False
        ),
        lambda: read_log(catalog.warehouse, catalog.find_table("gold/days")),
    )


@pytest.mark.spark
def test_it_judges_and_what_it_says_is_kept_and_vouched_for(
    spark: SparkSession, lake: Lake
) -> None:
    run = lake.run()
    log = lake.read()
    assert {*log.publishes} == {*DAYS[:2]}, "the day of two rows is withheld"
    (commit,) = [commit.record for commit in log.commits if commit.record]
    assert commit.features["signature"] == {"by": "anna"}
    assert commit.notes == {key: {"signature": "signed by anna"} for key in DAYS[:2]}
    assert "signed_rows = 2 (≤ 1)" in str(lake.instance.all_logs(run.run_id))
    event = lake.instance.get_latest_materialization_event(GOLD)
    assert event is not None
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["signature"].value == "signed by anna"
    (certificate,) = find_certificates(log.warehouse, run.run_id)
    assert certificate.features == commit.features
    assert {row.notes["signature"] for row in certificate.partitions} == {"signed by anna"}
    lines = [line for found in verify_run([log], run.run_id).values() for line in found]
    assert lines
    assert all(line.holds for line in lines)


@pytest.mark.spark
def test_it_refuses_under_the_lock_and_nothing_is_written(spark: SparkSession, lake: Lake) -> None:
    run = lake.run(**{CLOSED_TAG: "true"})
    assert not run.success
    assert lake.read().publishes == {}
    assert "nobody signs for gold/days now: run it tomorrow" in str(
        lake.instance.all_logs(run.run_id)
    )
