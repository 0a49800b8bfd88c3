"""A row without a required value."""

from backfill_engine.rules.declared import RequiredColumns
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Check, Finding
from backfill_engine_tests.rules.judged_days import FAILED, build_table, find, judge


def test_a_null_in_a_required_column_withholds():
    figure = RequiredColumns(("day", "id")).figure
    good, bad = (
        judge(build_table(), PartitionMeasures(rows=5, figures={figure: count})) for count in (0, 2)
    )
    assert good.findings[Check.VALID] == ()
    finding = find(bad, Check.VALID, "required_columns")
    assert finding == Finding("required_columns", 2, "0 rows without one of day, id", FAILED)
