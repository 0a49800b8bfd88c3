"""Judges the values of a column: missing, possible, not all the same, in agreement with others."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import sqlglot
from sqlglot import exp

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.measured import (
    MIN_PARTITIONS,
    NOT_MEASURED,
    NULLS,
    NULLS_OF_MANY,
    Typical,
)
from backfill_engine.rules.rule import (
    NUMBERS,
    Aggregates,
    Findings,
    RowConditions,
    Rule,
    Subject,
    add_reason,
    quote_name,
    write_number,
)
from backfill_engine.rules.verdicts import Check, Finding, Outcome, format_figure

NULL_SHARE = FindingName(
    "nulls",
    Check.VALID,
    meaning="share of the rows without a value in the column",
    bound="at most `at_most`, and `spike` above the baseline's median",
    cure="look for a field that was renamed or dropped at the source",
)


class Nulls(Rule, check=Check.VALID):
    """Bounds the share of nulls in a column, by the lower of two bounds: `nulls(column)`.

    Attributes:
        column: its name.
        at_most: absolute bound, 0 to 1.
        spike: bound of the increase over the baseline's median share; None to not compare.
        only_warns: why a failure only warns; empty if it withholds.
    """

    column: str
    at_most: float = 1.0
    spike: float | None = None
    only_warns: str = ""

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the column."""
        return {self.column: ()}

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the nulls among the rows to publish."""
        return {(NULLS, self.column): rows.count(f"{quote_name(self.column)} IS NULL")}

    def judge(self, subject: Subject) -> Findings:
        """Judges the nulls' share of the rows to publish; nothing of an emptied partition."""
        name, rows = NULL_SHARE.of(self.column), subject.measured.rows
        if subject.emptied:
            return
        if rows == 0:
            yield Finding(name, None, "no rows", Outcome.PASSED)
            return
        limit, bound = self.at_most, f"at most {self.at_most}"
        if self.spike is not None:
            median, partitions = subject.baseline.find_typical_null_share(self.column)
            if partitions < MIN_PARTITIONS and (limit >= 1 or subject.baseline.is_lost):
                yield subject.without_baseline(name, partitions, blocking=not self.only_warns)
                return
            if partitions < MIN_PARTITIONS:
                bound += f", no baseline ({partitions} partitions)"
            elif median + self.spike < limit:
                limit, bound = _bound_rise(Typical(median, partitions), self.spike)
        share = subject.measured.figures.get((NULLS, self.column), 0) / rows
        outcome = Outcome.of(failed=share > limit, blocking=not self.only_warns)
        yield Finding(name, share, add_reason(bound, self.only_warns), outcome)


def _bound_rise(typical: Typical, rise: float) -> tuple[float, str]:
    """Finds the largest share of nulls that is no spike, and says it in words."""
    limit = typical.median + rise
    return limit, f"at most {limit:.4g}, {rise} above the median of {typical.partitions}"


NULL_SPIKE = FindingName(
    "null_spike",
    Check.VALID,
    meaning="share of the rows without a value in the column, where it is beyond the bound",
    bound="`rise`, 0.25, above the baseline's median, in partitions of `at_least` rows, 50",
    cure=(
        "look for a field that was renamed or dropped at the source; if the column is null by "
        "nature, declare `NullSpike(columns=…, rise=…)`"
    ),
)


class NullSpike(Rule, check=Check.VALID, kw_only=True):
    """Bounds the rise of the share of nulls in each column above its own: `null_spike(column)`.

    Every table has it, for all columns that may be null, but for those that another `NullSpike` of
    the table names, and those whose `Nulls` compares them, too, or bounds them as narrowly.

    Attributes:
        columns: which it is about; none are all the others.
        rise: bound of the increase over the baseline's median share; 1 to not compare.
        at_least: rows of a partition that is judged and compared with. Where half is null by
            nature, chance alone brings one in 6,500 partitions of 50 rows beyond the bound, and one
            in 170 of 20.
        only_warns: why a failure only warns; empty if it withholds.
    """

    columns: tuple[str, ...] = ()
    rise: float = 0.25
    at_least: int = 50
    only_warns: str = ""

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the columns."""
        return dict.fromkeys(self.columns, ())

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the nulls of each column; of few rows not, so that no commit keeps that."""
        if self.rise >= 1:
            return {}
        enough = f"count_if({rows.to_publish}) >= {self.at_least}"
        return {
            (NULLS_OF_MANY, column): f"CASE WHEN {enough} THEN {nulls} ELSE {NOT_MEASURED} END"
            for column in self.columns
            for nulls in [rows.count(f"{quote_name(column)} IS NULL")]
        }

    def judge(self, subject: Subject) -> Findings:
        """Judges the columns' shares of the rows to publish; finds only what is beyond the bound.

        Where profiles were lost, one finding says so for all columns.
        """
        rows, baseline = subject.measured.rows, subject.baseline
        if rows < self.at_least or self.rise >= 1:
            return
        for column in self.columns:
            name, blocking = NULL_SPIKE.of(column), not self.only_warns
            typical = baseline.find_typical_null_share(column)
            if typical.partitions < MIN_PARTITIONS:
                # Where others were measured, it is this column that nobody counted before.
                if baseline.is_lost and baseline.measured < MIN_PARTITIONS:
                    yield subject.without_baseline(name, typical.partitions, blocking=blocking)
                    return
                continue
            limit, bound = _bound_rise(typical, self.rise)
            share = subject.measured.figures.get((NULLS_OF_MANY, column), 0) / rows
            if share > limit:
                outcome = Outcome.of(failed=True, blocking=blocking)
                yield Finding(name, share, add_reason(bound, self.only_warns), outcome)


def add_null_spike(rules: Sequence[Rule], nullable: Iterable[str]) -> tuple[Rule, ...]:
    """Completes the rules of a table by a `NullSpike` of the columns that none of them names.

    Args:
        rules: as declared; a `NullSpike` that names no columns says the bounds of these.
        nullable: the columns that may be null.
    """
    general = [rule for rule in rules if isinstance(rule, NullSpike) and not rule.columns]
    (spike,) = general or (NullSpike(),)
    bounded = [rule for rule in rules if isinstance(rule, Nulls)]
    named = {
        rule.column for rule in bounded if rule.spike is not None or rule.at_most <= spike.rise
    }
    named.update(name for rule in rules if isinstance(rule, NullSpike) for name in rule.columns)
    others = tuple(name for name in nullable if name not in named)
    added = [replace(spike, columns=others)] if others else []
    return (*added, *(rule for rule in rules if rule not in general))


VALUES = FindingName(
    "values",
    Check.VALID,
    meaning="values of the column that can't be",
    bound="0 outside `low` to `high`",
    cure="look for another unit, sign or type, or a faulty instrument",
)


class Values(Rule, check=Check.VALID):
    """Demands that values lie in `low … high`, both included, or are null: `values(column)`.

    Attributes:
        column: a numeric column.
        low: the lowest value that is possible.
        high: the highest.
        only_warns: why a failure only warns; empty if it withholds.
    """

    column: str
    low: float
    high: float
    only_warns: str = ""

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the column, which must be numeric."""
        return {self.column: NUMBERS}

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the values out of range among the rows to publish."""
        low, high = write_number(self.low), write_number(self.high)
        outside = f"{quote_name(self.column)} NOT BETWEEN {low} AND {high}"
        return {self.figure: rows.count(outside)}

    def judge(self, subject: Subject) -> Findings:
        """Judges how many are out of range."""
        outside = subject.measured.figures.get(self.figure, 0)
        bound = f"0 values outside {format_figure(self.low)} to {format_figure(self.high)}"
        outcome = Outcome.of(failed=outside > 0, blocking=not self.only_warns)
        bound = add_reason(bound, self.only_warns)
        yield Finding(VALUES.of(self.column), outside, bound, outcome)


VARIES = FindingName(
    "varies",
    Check.VALID,
    meaning="whether the column has more than one value; 0 if all are the same",
    bound="1, in partitions of `at_least` values",
    cure="look for a default that took the place of values",
)


class Variation(Rule, check=Check.VALID):
    """Demands values that aren't all the same, of columns that never are: `varies(column)`.

    Attributes:
        column: its name.
        at_least: rows of a partition that is judged; fewer may well be alike.
        only_warns: why a failure only warns; empty if it withholds.
    """

    column: str
    at_least: int = 20
    only_warns: str = ""

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the column."""
        return {self.column: ()}

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Compares the least hash of the rows to publish with the greatest; 1 if they differ.

        Over texts themselves Spark would sort all rows, and take five times as long for all rules.
        """
        name = quote_name(self.column)
        value = f"CASE WHEN {rows.to_publish} AND {name} IS NOT NULL THEN xxhash64({name}) END"
        return {self.figure: f"CASE WHEN min({value}) = max({value}) THEN 0 ELSE 1 END"}

    def judge(self, subject: Subject) -> Findings:
        """Judges whether there are two values; a column of nulls is for `Nulls` to judge."""
        if subject.measured.rows >= self.at_least:
            varies = subject.measured.figures.get(self.figure, 1)
            outcome = Outcome.of(failed=not varies, blocking=not self.only_warns)
            bound = add_reason("1: not all values are the same", self.only_warns)
            yield Finding(VARIES.of(self.column), varies, bound, outcome)


AGREES = FindingName(
    "agrees",
    Check.VALID,
    meaning="share of the rows in which the column contradicts others of the row",
    bound="at most `at_most`",
    cure="compare them in some rows: another unit, sign or time zone, shifted or lost values",
)


class Agreement(Rule, check=Check.VALID):
    """Bounds the share of rows whose column contradicts the others: `agrees(column)`.

    It tells a fault from nature where a distribution can't: delays swing from day to day, but each
    is the difference of two times.

    Attributes:
        column: the column in question, for the name.
        condition: SQL over columns of the row; a row agrees unless it is false.
        at_most: bound of the share of rows that don't, 0 to 1.
        only_warns: why a failure only warns; empty if it withholds.
        meaning: what the condition demands, in words, where its SQL is hard to read.
    """

    column: str
    condition: str
    at_most: float = 0.01
    only_warns: str = ""
    meaning: str = ""

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the column, and those of the condition."""
        read = sqlglot.parse_one(self.condition, read="spark")
        return {self.column: (), **{column.name: () for column in read.find_all(exp.Column)}}

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the rows to publish for which the condition is false."""
        return {self.figure: rows.count(f"NOT ({self.condition})")}

    def judge(self, subject: Subject) -> Findings:
        """Judges their share; nothing of a partition without rows."""
        if rows := subject.measured.rows:
            share = subject.measured.figures.get(self.figure, 0) / rows
            bound = f"at most {self.at_most} of the rows against: {self.meaning or self.condition}"
            bound = add_reason(bound, self.only_warns)
            outcome = Outcome.of(failed=share > self.at_most, blocking=not self.only_warns)
            yield Finding(AGREES.of(self.column), share, bound, outcome)
