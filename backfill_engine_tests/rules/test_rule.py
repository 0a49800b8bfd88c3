"""What all rules have in common."""

import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest

from backfill_engine.rules.column_rules import Nulls
from backfill_engine.rules.count_rules import RowCount
from backfill_engine.rules.rule import Findings, Rule, Subject
from backfill_engine.rules.verdicts import Check

ROOMS_ABOVE = ("tables", "lake", "contents", "quality", "publishing", "settings")


class Nothing(Rule, check=Check.VALID, kw_only=True):
    """Never finds anything."""

    bound: int = 1

    def judge(self, subject: Subject) -> Findings:
        """Judges nothing."""
        yield from ()


def test_a_rule_is_a_value_that_belongs_to_a_check():
    assert Nothing.check is Check.VALID
    assert Nothing() == Nothing(bound=1) != Nothing(bound=2)
    assert len({Nothing(), Nothing(bound=1)}) == 1
    with pytest.raises(FrozenInstanceError):
        Nothing().bound = 2  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError, match="positional"):
        Nothing(2)  # pyright: ignore[reportCallIssue]


def test_code_versions_see_a_rule_with_all_of_its_bounds():
    """They hash what prints of a table's declaration."""
    assert repr(Nulls("a", 0.5)) == "Nulls(column='a', at_most=0.5, spike=None, only_warns='')"
    bounds = "at_least=2, at_most=None, ratio=None, ratio_only_warns='', withhold_below=None"
    assert repr(RowCount(at_least=2)) == f"RowCount({bounds})"


def test_a_rule_describes_all_its_bounds_what_it_does_and_why_it_only_warns():
    assert Nulls("a", 0.5, spike=0.1).describe() == (
        "`Nulls('a', at_most=0.5, spike=0.1)`: Bounds the share of nulls in a column, by the lower "
        "of two bounds: `nulls(column)`"
    )
    rule = RowCount(ratio=(0.5, 2.0), ratio_only_warns="days are short")
    assert rule.describe() == (
        "`RowCount(at_least=1, ratio=(0.5, 2.0))`: Demands rows within bounds: `row_count`, and "
        "`row_count_ratio` if there is a ratio; only warns: days are short"
    )


def test_rules_know_of_nothing_above_them():
    above = ("pyspark", "dagster", *(f"backfill_assets.{name}" for name in ROOMS_ABOVE))
    code = (
        "import importlib, pkgutil, sys, backfill_engine.rules as rules\n"
        "for module in pkgutil.iter_modules(rules.__path__):\n"
        "    importlib.import_module(f'{rules.__name__}.{module.name}')\n"
        f"print(sorted(set({above}) & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
