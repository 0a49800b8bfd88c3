"""A difference of every kind is found, in its partition and in no other, by each way to look."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from backfill_engine.cli import app
from backfill_engine.errors import BackfillError
from backfill_engine.extras.comparison.diffs import TableDiff, diff_table
from backfill_engine.extras.comparison.golden import compare_with_golden
from backfill_engine.extras.comparison.reconciliation import ReconciledPartition, Reconciler
from backfill_engine.extras.comparison.rows import PartitionDiff
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine_tests.pipeline.landing_zone import delay
from backfill_engine_tests.pipeline.running import Pipeline, copy_pipeline, list_days
from backfill_engine_tests.project import CATALOG, STAGING_FLIGHTS
from backfill_engine_tests.shared_fixtures import build_days

pytestmark = pytest.mark.only_spark  # Its statements, by path.

DAYS = build_days("2013-01-01", 10)
MISSING, EXTRA, CHANGED, DUPLICATE, NULL, MOVED_FROM, MOVED_TO = list_days(2, 8)
SEEDED = {MISSING, EXTRA, CHANGED, DUPLICATE, NULL, MOVED_FROM, MOVED_TO}


@dataclass(frozen=True)
class Seeded:
    """A pipeline of which staging was changed by hand.

    Attributes:
        pipeline: the pipeline.
        clean: staging's version before.
        golden: a Parquet file of what it held then.
    """

    pipeline: Pipeline
    clean: int
    golden: Path

    @property
    def log(self) -> TableLog:
        """Reads the log of staging as it is now."""
        return read_log(self.pipeline.warehouse, STAGING_FLIGHTS)


@pytest.fixture(scope="module")
def seeded(
    spark: SparkSession, published_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Seeded]:
    root = tmp_path_factory.mktemp("differences")
    with copy_pipeline(published_root, root / "pipeline") as pipeline:
        clean = read_log(pipeline.warehouse, STAGING_FLIGHTS).version
        golden = root / "golden.parquet"
        pq.write_table(pipeline.warehouse.open(STAGING_FLIGHTS).to_pyarrow_table(), golden)
        table = f"delta.`{pipeline.warehouse.uri(STAGING_FLIGHTS)}`"

        def one_row(day: str) -> str:
            """Builds a condition that one row of the day meets."""
            row = pipeline.read_rows(STAGING_FLIGHTS, day)[0]
            return (
                f"flight_date = DATE'{day}' AND carrier = '{row['carrier']}' "
                f"AND flight = {row['flight']} AND origin = '{row['origin']}'"
            )

        def insert_again(day: str, change: str = "") -> str:
            # The rows go through a list, as a table can't be read while it is inserted into.
            columns = ", ".join(
                change if name == "flight" and change else name
                for name in STAGING_FLIGHTS.column_names
            )
            return f"INSERT INTO {table} SELECT {columns} FROM {table} WHERE {one_row(day)}"

        for statement in (
            f"DELETE FROM {table} WHERE {one_row(MISSING)}",
            insert_again(EXTRA, "flight + 9000 AS flight"),
            f"UPDATE {table} SET distance = distance + 1 WHERE {one_row(CHANGED)}",
            insert_again(DUPLICATE),
            f"UPDATE {table} SET tailnum = NULL WHERE {one_row(NULL)}",
            f"UPDATE {table} SET flight_date = DATE'{MOVED_TO}', flight = flight + 9000 "
            f"WHERE {one_row(MOVED_FROM)}",
        ):
            spark.sql(statement)
        yield Seeded(pipeline, clean, golden)


def test_diff_says_what_was_added_removed_and_changed_by_day(seeded: Seeded) -> None:
    found = diff(seeded)
    assert count(found.partitions, "added", "removed", "changed", "duplicates") == {
        MISSING: (0, 1, 0, 0),
        EXTRA: (1, 0, 0, 0),
        CHANGED: (0, 0, 1, 0),
        DUPLICATE: (1, 0, 0, 1),
        NULL: (0, 0, 1, 0),
        MOVED_FROM: (0, 1, 0, 0),
        MOVED_TO: (1, 0, 0, 0),
    }
    before, after = found.partitions[NULL].null_shares["tailnum"]
    assert after - before == pytest.approx(1 / 120)


def test_diff_names_the_days_outside_of_its_range_that_changed_too(seeded: Seeded) -> None:
    assert diff(seeded).untouched.holds
    narrow = diff_table(seeded.log, DAYS[1:6], before=str(seeded.clean))
    assert {*narrow.untouched.outside} == {MOVED_FROM, MOVED_TO}
    assert narrow.untouched.partitions == 5


def test_golden_comparison_counts_the_same_by_key(seeded: Seeded) -> None:
    report = compare_with_golden(seeded.log, DAYS, seeded.golden, keys=STAGING_FLIGHTS.natural_key)
    found = count(report.partitions, "added", "removed", "changed")
    assert {*found} == SEEDED
    assert found == count(diff(seeded).partitions, "added", "removed", "changed")
    assert report.mismatches == 7
    (example,) = report.examples[MISSING]
    assert example.difference == "missing"
    assert {*example.values} >= {"carrier", "flight", "origin"}


def test_reconciliation_finds_the_days_that_do_not_follow_from_raw(
    spark: SparkSession, seeded: Seeded
) -> None:
    found = reconcile(spark, seeded.pipeline, "staging/flights")
    assert {key for key, partition in found.items() if partition.mismatch} == SEEDED
    assert found[MISSING].mismatch == "119 rows are published, 120 follow from the source"
    assert found[CHANGED].mismatch == "the rows differ from those that follow from the source"
    assert found[DUPLICATE].duplicates_per_1000 == pytest.approx(1000 / 121)
    clean = found["2013-01-10"]
    assert (clean.source_records, clean.rows_expected, clean.rows) == (120, 120, 120)
    assert clean.checksum == clean.checksum_expected


def test_raw_is_reconciled_with_the_landing_files(spark: SparkSession, pipeline: Pipeline) -> None:
    before = reconcile(spark, pipeline, "raw/flights")
    assert not any(partition.mismatch for partition in before.values())
    pipeline.zone.add_lines("2013-01-03", "{")
    pipeline.zone.land(["2013-01-04"])
    pipeline.zone.change("2013-01-05", delay)
    found = reconcile(spark, pipeline, "raw/flights")
    assert {key: partition.mismatch for key, partition in found.items() if partition.mismatch} == {
        "2013-01-05": "the rows differ from those that follow from the source"
    }
    assert (found["2013-01-03"].source_records, found["2013-01-03"].rejects) == (121, 1)


def test_the_job_fails_with_the_partitions_that_differ(pipeline: Pipeline) -> None:
    where = {"tables": ["raw/flights"], "first": "2013-01-01", "last": "2013-01-12"}
    pipeline.run_job("reconcile", "compare_with_source", **where).confirm()
    pipeline.zone.change("2013-01-05", delay)
    run = pipeline.run_job("reconcile", "compare_with_source", **where)
    assert run.message.startswith("1 of 12 partitions don't agree with their source:")
    assert "raw/flights 2013-01-05: the rows differ" in run.message


def run_command(
    seeded: Seeded, monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[int, str]:
    """Returns the exit code and output of a command on the seeded tables."""
    monkeypatch.setenv("BACKFILL_WAREHOUSE", seeded.pipeline.warehouse.root)
    monkeypatch.setenv("BACKFILL_LANDING", str(seeded.pipeline.zone.root))
    result = CliRunner().invoke(app, [*arguments, "--from", DAYS[0].key, "--to", DAYS[-1].key])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def test_commands_print_json_and_end_with_1_on_a_mismatch(
    seeded: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = ("proof", "reconcile", "--select", "staging/flights", "--golden", str(seeded.golden))
    code, output = run_command(seeded, monkeypatch, *golden, "--json")
    assert (code, json.loads(output)["mismatches"]) == (1, 7)
    code, output = run_command(seeded, monkeypatch, *golden, "--keys", "flight_date,flight")
    assert code == 1
    assert "rows don't agree, by flight_date, flight" in output
    since = ("proof", "diff", "staging/flights", "--before", str(seeded.clean))
    code, output = run_command(seeded, monkeypatch, *since, "--json")
    assert (code, json.loads(output)["partitions"][MISSING]["removed"]) == (0, 1)
    code, output = run_command(seeded, monkeypatch, *since)
    assert code == 0
    assert "Nothing else changed" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("diff staging/flight --before 1", "no table staging/flight: there are raw/"),
        ("diff staging/flights --before x", "'x' names no run or backfill: give the"),
        ("diff staging/flights --before no-such-run", "no run no-such-run has publ"),
        ("diff staging/flights --before 0 --after 99", "no versions 0 and 99"),
        ("reconcile --golden a.csv", "compared with one table: name it with --select"),
        ("reconcile --keys a", "--keys says how to compare with --golden"),
        ("reconcile --select staging/flights --golden no-such.csv", "no-such.csv"),
    ],
)
def test_bad_arguments_are_one_sentence(
    seeded: Seeded, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    with pytest.raises(BackfillError, match=re.escape(message)):
        run_command(seeded, monkeypatch, "proof", *arguments.split())


def diff(seeded: Seeded) -> TableDiff:
    return diff_table(seeded.log, DAYS, before=str(seeded.clean))


def count(diffs: Mapping[str, PartitionDiff], *names: str) -> dict[str, tuple[int, ...]]:
    """Figures of the partitions that differ."""
    return {
        key: tuple(getattr(found, name) for name in names)
        for key, found in diffs.items()
        if not found.equal
    }


def reconcile(
    spark: SparkSession, pipeline: Pipeline, table: str
) -> dict[str, ReconciledPartition]:
    landing = str(pipeline.zone.root)
    reconciler = Reconciler(spark, pipeline.warehouse, landing, 4, 2**30)
    found = reconciler.reconcile(CATALOG.recipes[table], DAYS)
    return {partition.partition: partition for partition in found}
