"""A new rule is one class: what it asks for is measured, and its findings are in the verdicts."""

import datetime as dt
from dataclasses import replace

from pyspark.sql import SparkSession

from backfill_engine.audit_columns import REJECT_REASON
from backfill_engine.orchestration.records.events import list_publish_checks
from backfill_engine.quality.judging import judge_partitions
from backfill_engine.quality.measures import measure_partitions
from backfill_engine.rules.rule import (
    Aggregates,
    Findings,
    RowConditions,
    Rule,
    Subject,
    quote_name,
)
from backfill_engine.rules.verdicts import Check, Finding, Outcome
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine_tests.shared_fixtures import build_days


class ShareOfValue(Rule, check=Check.STABLE):
    """No value makes up too much of a column."""

    column: str
    value: str
    at_most: float

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the rows to publish that have the value."""
        return {self.figure: rows.count(f"{quote_name(self.column)} = '{self.value}'")}

    def judge(self, subject: Subject) -> Findings:
        """Judges the share of these rows."""
        if subject.measured.rows:
            share = subject.measured.figures[self.figure] / subject.measured.rows
            outcome = Outcome.of(failed=share > self.at_most)
            yield Finding(f"share({self.column})", share, f"at most {self.at_most}", outcome)


READINGS = Table(
    layer="raw",
    name="readings",
    partition_by="day",
    columns=(
        required("day", "DATE", "Day"),
        Column("the-kind", "STRING", "A name that must be quoted"),
    ),
)
WET = ShareOfValue("the-kind", "wet", 0.5)


def test_a_rule_that_the_package_does_not_know_withholds_a_partition(spark: SparkSession) -> None:
    table = replace(READINGS, rules=(WET,))
    first, second = (dt.date(2013, 1, day) for day in (1, 2))
    rows = [(first, "wet", None), (first, "dry", None), (first, "wet", "a reason")]
    rows += [(second, "wet", None), (second, "wet", None), (second, None, None)]
    frame = spark.createDataFrame(rows, f"day DATE, `the-kind` STRING, {REJECT_REASON} STRING")
    measures = measure_partitions(frame, table, build_days("2013-01-01", 3))
    verdicts = judge_partitions(table, measures, source_records={}, published={})
    assert [verdict.withheld for verdict in verdicts.values()] == [False, True, False]
    assert [verdict.findings[Check.STABLE] for verdict in verdicts.values()] == [
        (Finding("share(the-kind)", 0.5, "at most 0.5", Outcome.PASSED),),
        (Finding("share(the-kind)", 2 / 3, "at most 0.5", Outcome.FAILED),),
        (),
    ]


def test_its_check_is_one_that_the_table_has() -> None:
    assert list_publish_checks(READINGS) == (Check.COMPLETE, Check.VALID)
    assert list_publish_checks(replace(READINGS, rules=(WET,)))[2:] == (Check.STABLE,)
