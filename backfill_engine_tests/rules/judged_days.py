"""One day judged by rules of choice, with four other days published."""

from backfill_engine.grains.grain import Grain
from backfill_engine.grains.timestamps import Hourly
from backfill_engine.quality.judging import judge_partitions
from backfill_engine.rules.column_rules import Nulls
from backfill_engine.rules.count_rules import RowCount
from backfill_engine.rules.drift import Drift
from backfill_engine.rules.measured import PartitionMeasures, PartitionProfile
from backfill_engine.rules.rule import Rule
from backfill_engine.rules.verdicts import Check, Finding, Outcome, Verdict
from backfill_engine.tables.declarations import Column, Table, required

PASSED, WARNED, FAILED = Outcome.PASSED, Outcome.WARNED, Outcome.FAILED
DAY = "2013-01-08"
NEIGHBOURS = ("2013-01-01", "2013-01-02", "2013-01-03", "2013-01-04")
"""The first is of the same weekday as `DAY`."""
DRIFT = Drift("d", (0.0,))
COMPARING = (RowCount(ratio=(0.5, 2.0)), Nulls("n", spike=0.05), DRIFT)
"""Rules that compare with other partitions."""
PROFILE = PartitionProfile(1000, {"n": 10}, {DRIFT.histogram: (500, 500, 0)})


def build_table(*rules: Rule, **others) -> Table:
    ruled = (Column(name, "INT", "What rules are about") for name in "dnv")
    columns = (required("day", "DATE", "Day"), required("id", "INT", "Key"), *ruled)
    return Table("raw", "readings", "day", columns, rules=rules, **others)


def build_table_by(grain: Grain, *rules: Rule) -> Table:
    """As `build_table`, but by hours or buckets."""
    day = required("day", "DATE", "Day")
    columns = (required("at", grain.column_types[0], "What it is partitioned by"), day)
    folder_by = "day" if isinstance(grain, Hourly) else None
    return Table("raw", "readings", "at", columns, grain, folder_by, rules=rules)


def judge(table: Table, measures: PartitionMeasures, **others) -> Verdict:
    """The verdict on `DAY`, with four other days published."""
    arguments = {"source_records": {}, "published": dict.fromkeys(NEIGHBOURS, PROFILE)}
    verdicts = judge_partitions(table, {DAY: measures}, **{**arguments, **others})
    assert list(verdicts) == [DAY]
    return verdicts[DAY]


def find(verdict: Verdict, check: Check, rule: str) -> Finding:
    (finding,) = (finding for finding in verdict.findings[check] if finding.rule == rule)
    return finding
