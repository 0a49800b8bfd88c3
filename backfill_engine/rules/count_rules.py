"""Judges how many rows there are: in bounds, not vanishing, few rejected, each there once."""

import math
from collections.abc import Collection, Mapping

from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.measured import MIN_PARTITIONS, PartitionMeasures
from backfill_engine.rules.rule import (
    INTEGERS,
    Aggregates,
    Findings,
    RowConditions,
    Rule,
    Subject,
    add_reason,
    quote_name,
)
from backfill_engine.rules.verdicts import Check, Finding, Outcome, format_figure

ROW_COUNT = FindingName(
    "row_count",
    Check.COMPLETE,
    meaning="rows to publish; 0 if the source has no records",
    bound=(
        "`at_least` and `at_most`; none only with evidence that this is meant, a warning if there"
        " were any"
    ),
    cure=(
        "look for the missing or doubled files and run the layer above again; if none is right, "
        "give evidence (an empty folder or `_EMPTY`) or accept it"
    ),
)

ROW_COUNT_RATIO = FindingName(
    "row_count_ratio",
    Check.COMPLETE,
    meaning="rows to publish, as a multiple of the median of the peers",
    bound="`ratio`; from four published partitions on",
    cure="few: look for what has not landed; many: for what landed twice; accept a holiday",
)


class RowCount(Rule, check=Check.COMPLETE, kw_only=True):
    """Demands rows within bounds: `row_count`, and `row_count_ratio` if there is a ratio.

    Attributes:
        at_least: lower bound; an emptied partition (its source has no records) is exempt.
        at_most: upper bound; None for none.
        ratio: bounds of rows / median rows of its peers in the baseline; the grain says which
            partitions are peers. None to not compare.
        ratio_only_warns: why the ratio only warns; empty if it withholds, as the absolute bounds
            always do. Of a partition of which more is yet to land it never does, and that this has
            few rows is no warning.
        withhold_below: ratio below which it withholds although it only warns otherwise; None for
            none.
    """

    at_least: int = 1
    at_most: int | None = None
    ratio: tuple[float, float] | None = None
    ratio_only_warns: str = ""
    withhold_below: float | None = None

    def judge(self, subject: Subject) -> Findings:
        """Judges the rows to publish; nothing of an emptied partition."""
        if subject.emptied:
            return
        rows = subject.measured.rows
        bound = f"at least {self.at_least}"
        failed = rows < self.at_least
        if self.at_most is not None:
            bound += f", at most {self.at_most}"
            failed = failed or rows > self.at_most
        yield Finding(ROW_COUNT, rows, bound, Outcome.of(failed=failed))
        if self.ratio is not None:
            yield self._judge_ratio(self.ratio, subject)

    def _judge_ratio(self, bounds: tuple[float, float], subject: Subject) -> Finding:
        everyone = subject.baseline.find_typical_rows()
        peers = subject.baseline.find_typical_rows(peers_of=subject.key)
        if everyone.partitions < MIN_PARTITIONS:
            blocking = not self.ratio_only_warns or self.withhold_below is not None
            return subject.without_baseline(ROW_COUNT_RATIO, everyone.partitions, blocking=blocking)
        typical, whose = peers, f"{peers.partitions} of {subject.peers}"
        if peers.partitions == 0:
            typical, whose = everyone, f"all {everyone.partitions}, as none is of {subject.peers}"
        ratio, (low, high) = subject.measured.rows / typical.median, bounds
        far_below = self.withhold_below is not None and ratio < self.withhold_below
        least, most = (round(share * typical.median, 6) for share in bounds)
        bound = (
            f"{math.ceil(least):,} to {math.floor(most):,} rows: {low} to {high} times "
            f"{format_figure(typical.median)}, the median of {whose}"
        )
        unfinished = subject.landed is not None and bool(subject.landed.unfinished)
        blocking = (not self.ratio_only_warns or far_below) and not unfinished
        failed = far_below or not low <= ratio <= high
        if failed and ratio < low and not blocking and subject.provisional:
            bound, failed = f"{bound}; few, as {subject.provisional}", False
        elif not far_below:
            bound = add_reason(bound, self.ratio_only_warns)
        outcome = Outcome.of(failed=failed, blocking=blocking)
        return Finding(ROW_COUNT_RATIO, ratio, bound, outcome)


SHRINK = FindingName(
    "shrink",
    Check.COMPLETE,
    meaning="share of the published rows that would vanish",
    bound="at most `Shrink.at_most`, 0.5",
    cure="look for what the source no longer has; accept it if it was taken back",
)

SHRINK_BYTES = FindingName(
    "shrink_bytes",
    Check.COMPLETE,
    meaning="share of the bytes of the files that the published rows came from that would vanish",
    bound="at most `Shrink.at_most`, 0.5",
    cure="look for files that were cut off or lost; accept it if they were taken back",
)


class Shrink(Rule, check=Check.COMPLETE, kw_only=True):
    """Bounds what a re-run may take away: `shrink` of the rows, `shrink_bytes` of the files.

    Files are compared only where the partition landed in files of the same suffixes both times: one
    that is no longer compressed, or now is, says nothing. An emptied partition is exempt.

    Attributes:
        at_most: share of the published rows, and of the bytes that they were computed from.
        only_warns: why a failure only warns; empty if it withholds.
    """

    at_most: float = 0.5
    only_warns: str = ""

    def judge(self, subject: Subject) -> Findings:
        """Judges only where rows are published already."""
        previous = subject.previous
        if previous is None or not previous.rows or subject.emptied:
            return
        yield self._judge(SHRINK, subject.measured.rows, previous.rows, "rows")
        before, now = previous.landed_bytes, subject.measured.kept_bytes
        if sum(before.values()) and before.keys() == now.keys():
            bytes_now, bytes_before = sum(now.values()), sum(before.values())
            yield self._judge(SHRINK_BYTES, bytes_now, bytes_before, "bytes of files")

    def _judge(self, rule: str, now: int, before: int, what: str) -> Finding:
        share = max(0.0, 1 - now / before)
        bound = f"at most {self.at_most} of {before:,} {what} may vanish: {now:,} are left"
        return Finding(
            rule,
            share,
            add_reason(bound, self.only_warns),
            Outcome.of(failed=share > self.at_most, blocking=not self.only_warns),
        )


REJECTS = FindingName(
    "rejects",
    Check.VALID,
    meaning="share of the source's records that could not become rows",
    bound="at most `Rejects.at_most`; without that rule, not all",
    cure="read them in `quarantine`, each with its reason, and land them mended",
)


class Rejects(Rule, check=Check.VALID, kw_only=True):
    """Bounds the share of source records that could not become rows: `rejects`.

    Attributes:
        at_most: bound of the share, 0 to 1.
    """

    at_most: float = 0.01

    def judge(self, subject: Subject) -> Findings:
        """Judges the rejects' share of the computed rows and themselves, without those due."""
        rejects = subject.measured.rejects - subject.measured.rejects_before_first
        share = rejects / (subject.measured.computed + rejects) if rejects else 0.0
        bound = f"at most {self.at_most} of the records"
        yield Finding(REJECTS, share, bound, Outcome.of(failed=share > self.at_most))


RECONCILED = FindingName(
    "reconciled",
    Check.COMPLETE,
    meaning="records accounted for, less the records of the layer above",
    cure="the transform drops or repeats rows, or the layer above changed: run both again",
)


class Reconciled(Rule, check=Check.COMPLETE, kw_only=True):
    """Demands that every record of the layer above is accounted for: `reconciled`.

    Attributes:
        total_of: the column whose sum must equal the records above; None compares
            rows + duplicates dropped + rejects.
    """

    total_of: str | None = None

    @property
    def columns_needed(self) -> Mapping[str, Collection[str]]:
        """Names the column that it sums, of integers: sums of others depend on their order."""
        return {} if self.total_of is None else {self.total_of: INTEGERS}

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Sums the column over all computed rows, if there is one."""
        if self.total_of is None:
            return {}
        value = f"CASE WHEN {rows.computed} THEN {quote_name(self.total_of)} END"
        return {self.figure: f"sum({value})"}

    def count_accounted(self, measured: PartitionMeasures) -> int:
        """Counts the records of the source that the partition accounts for."""
        if self.total_of is None:
            return measured.computed + measured.duplicates_dropped + measured.rejects
        return measured.figures.get(self.figure, 0)

    def judge(self, subject: Subject) -> Findings:
        """Judges the records accounted for minus the records of the source."""
        if subject.source_records is None:
            yield Finding(RECONCILED, None, "nothing to reconcile with", Outcome.PASSED)
            return
        accounted = self.count_accounted(subject.measured)
        what = f"sum of {self.total_of}" if self.total_of else "rows + duplicates dropped + rejects"
        difference = accounted - subject.source_records
        bound = f"0 = {what} ({accounted}) - records of the source ({subject.source_records})"
        yield Finding(RECONCILED, difference, bound, Outcome.of(failed=difference != 0))


FILES_COME_ONCE = FindingName(
    "files_come_once",
    Check.COMPLETE,
    meaning="of an append: landed files that are to be read and of which rows are there already",
    cure="overwrite the partition: that takes all of its files, each once",
)


SOURCE_FILE = "source_file"
"""Column of a table that keeps which landed file a row is from."""


class FilesOnce(Rule, check=Check.COMPLETE):
    """Demands that no computed row is of a file of which published rows stay: `files_come_once`."""

    def build_aggregates(self, rows: RowConditions) -> Aggregates:
        """Counts the files of which rows stay and others come."""
        staying, coming = (
            f"collect_set(CASE WHEN {rows.to_publish} AND {kind} THEN {SOURCE_FILE} END)"
            for kind in (f"NOT {rows.computed}", rows.computed)
        )
        return {self.figure: f"size(array_intersect({staying}, {coming}))"}

    def judge(self, subject: Subject) -> Findings:
        """Judges the number of such files."""
        twice = subject.measured.figures.get(self.figure, 0)
        bound = "0 files of which rows are there already"
        yield Finding(FILES_COME_ONCE, twice, bound, Outcome.of(failed=twice > 0))
