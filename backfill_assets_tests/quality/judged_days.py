"""One day judged by rules of choice, with four other days published."""

from backfill_assets.quality.judging import Check, Finding, Verdict, judge_partitions
from backfill_assets.quality.measures import PartitionMeasures
from backfill_assets.rules.profiles import PartitionProfile
from backfill_assets.tables.declarations import Table, required
from backfill_assets.tables.rules import Drift, Rule

DAY, NEIGHBOURS = "2013-01-08", ("2013-01-01", "2013-01-02", "2013-01-03", "2013-01-04")
WEEKDAYS = {DAY: 1, "2013-01-01": 1, "2013-01-02": 2, "2013-01-03": 3, "2013-01-04": 4}
DRIFT = Drift("d", (0.0,))
PROFILE = PartitionProfile(1000, {"n": 10}, {DRIFT.histogram: (500, 500, 0)})


def build_table(*rules: Rule, **others) -> Table:
    columns = (required("day", "DATE", "Day"), required("id", "INT", "Key"))
    return Table("raw", "readings", "day", columns, rules=rules, **others)


def judge(table: Table, measures: PartitionMeasures, **others) -> Verdict:
    """The verdict on `DAY`, with four other days published."""
    arguments = {
        "source_records": {},
        "published": dict.fromkeys(NEIGHBOURS, PROFILE),
        "peer_groups": WEEKDAYS,
    }
    verdicts = judge_partitions(table, {DAY: measures}, **{**arguments, **others})
    assert list(verdicts) == [DAY]
    return verdicts[DAY]


def find(verdict: Verdict, check: Check, rule: str) -> Finding:
    (finding,) = (one for one in verdict.findings[check] if one.rule == rule)
    return finding
