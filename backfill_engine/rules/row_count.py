"""Judges how many rows there are."""

from backfill_engine.rules.baseline import MIN_PARTITIONS
from backfill_engine.rules.finding_names import FindingName
from backfill_engine.rules.rule import Findings, Rule, Subject
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
        ratio_blocks: whether the ratio withholds; the absolute bounds always do. Of a partition of
            which more is yet to land it never does, and that this has few rows is no warning.
        withhold_below: ratio below which it withholds although it only warns otherwise; None for
            none.
    """

    at_least: int = 1
    at_most: int | None = None
    ratio: tuple[float, float] | None = None
    ratio_blocks: bool = True
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
            return Finding.without_baseline(
                ROW_COUNT_RATIO,
                everyone.partitions,
                is_lost=subject.baseline.is_lost,
                blocking=self.ratio_blocks or self.withhold_below is not None,
            )
        typical, whose = peers, f"{peers.partitions} of {subject.peers}"
        if peers.partitions == 0:
            typical, whose = everyone, f"all {everyone.partitions}, as none is of {subject.peers}"
        ratio, (low, high) = subject.measured.rows / typical.median, bounds
        far_below = self.withhold_below is not None and ratio < self.withhold_below
        bound = f"{low} to {high} times {format_figure(typical.median)}, the median of {whose}"
        unfinished = subject.landed is not None and bool(subject.landed.unfinished)
        blocking = (self.ratio_blocks or far_below) and not unfinished
        failed = far_below or not low <= ratio <= high
        if failed and ratio < low and not blocking and subject.provisional:
            bound, failed = f"{bound}; few, as {subject.provisional}", False
        outcome = Outcome.of(failed=failed, blocking=blocking)
        return Finding(ROW_COUNT_RATIO, ratio, bound, outcome)
