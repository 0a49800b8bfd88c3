"""What each rule finds in one partition. Pure: a partition and its baseline in, findings out."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.rules.baseline import MIN_PARTITIONS, Baseline
from backfill_assets.rules.profiles import PartitionProfile
from backfill_assets.rules.psi import MIN_VALUES, compute_psi
from backfill_assets.rules.verdicts import Finding, Outcome
from backfill_assets.tables.declarations import Table
from backfill_assets.tables.rules import Drift, Nulls, Reconciled, Rejects, RowCount, Values

if TYPE_CHECKING:  # it measures with Spark, which judging doesn't need
    from backfill_assets.quality.measures import PartitionMeasures


@dataclass(frozen=True)
class Subject:
    """One partition, and all that its rules look at.

    Attributes:
        table: its table.
        key: its partition key.
        measured: what is to be published.
        previous: what is published; None if nothing is.
        baseline: the other partitions.
        source_records: records of the layer above; None if unknown.
        source_fields: fields that these should have; empty where none are parsed.
        evolved_fields: columns that the table has beyond its declaration.
    """

    table: Table
    key: str
    measured: "PartitionMeasures"
    previous: PartitionProfile | None
    baseline: Baseline
    source_records: int | None
    source_fields: Collection[str]
    evolved_fields: Collection[str]

    @property
    def emptied(self) -> bool:
        """Whether its source has no records, and so there are no rows."""
        return self.source_records == 0 and self.measured.rows == 0 and self.measured.rejects == 0


def judge_emptied(subject: Subject) -> Iterator[Finding]:
    """In place of the rules that an emptied partition is exempt from."""
    if subject.emptied:
        outcome = _outcome(failed=True, blocking=subject.table.empty == "withhold")
        yield Finding("row_count", 0, "its source has no records", outcome)


def judge_row_count(rule: RowCount, subject: Subject) -> Iterator[Finding]:
    """`row_count`, and `row_count_ratio` if the rule has one."""
    if subject.emptied:
        return
    rows = subject.measured.rows
    bound = f"at least {rule.at_least}"
    failed = rows < rule.at_least
    if rule.at_most is not None:
        bound += f", at most {rule.at_most}"
        failed = failed or rows > rule.at_most
    yield Finding("row_count", rows, bound, _outcome(failed=failed))
    if rule.ratio is not None:
        yield _judge_ratio(rule.ratio, subject, blocking=rule.ratio_blocks)


def _judge_ratio(bounds: tuple[float, float], subject: Subject, *, blocking: bool) -> Finding:
    everyone = subject.baseline.find_typical_rows()
    peers = subject.baseline.find_typical_rows(peers_of=subject.key)
    if everyone.partitions < MIN_PARTITIONS:
        return _without_baseline("row_count_ratio", everyone.partitions)
    if peers.partitions > 0:
        typical, whose = peers, f"{peers.partitions} of {subject.table.grain.peers}"
    else:
        whose = f"all {everyone.partitions}, as none is of {subject.table.grain.peers}"
        typical = everyone
    ratio, (low, high) = subject.measured.rows / typical.median, bounds
    return Finding(
        "row_count_ratio",
        ratio,
        f"{low} to {high} times {_text(typical.median)}, the median of {whose}",
        _outcome(failed=not low <= ratio <= high, blocking=blocking),
    )


def judge_reconciled(rule: Reconciled, subject: Subject) -> Iterator[Finding]:
    """`reconciled`: records accounted for minus records of the source."""
    measured, source_records = subject.measured, subject.source_records
    if source_records is None:
        yield Finding("reconciled", None, "nothing to reconcile with", Outcome.PASSED)
        return
    what = "rows + duplicates dropped + rejects"
    if rule.total_of is not None:
        what = f"sum of {rule.total_of}"
    accounted = count_accounted(rule, measured)
    difference = accounted - source_records
    bound = f"0 = {what} ({accounted}) - records of the source ({source_records})"
    yield Finding("reconciled", difference, bound, _outcome(failed=difference != 0))


def count_accounted(rule: Reconciled, measured: "PartitionMeasures") -> int:
    """Records of the source that the partition accounts for."""
    if rule.total_of is None:
        computed = measured.rows - measured.kept + measured.left_out
        return computed + measured.duplicates_dropped + measured.rejects
    return measured.totals.get(rule.total_of, 0)


def judge_rejects(rule: Rejects, subject: Subject) -> Iterator[Finding]:
    """`rejects`: their share of the source's records; those that are due don't count."""
    rejects = subject.measured.rejects - subject.measured.rejects_due
    computed = subject.measured.rows - subject.measured.kept + subject.measured.left_out
    share = rejects / (computed + rejects) if rejects else 0.0
    bound = f"at most {rule.at_most} of the records"
    yield Finding("rejects", share, bound, _outcome(failed=share > rule.at_most))


def judge_keys(subject: Subject) -> Iterator[Finding]:
    """`keys_are_unique`, if the table has a natural key: duplicates per 1,000 rows."""
    if not subject.table.natural_key:
        return
    duplicates, rows = subject.measured.key_duplicates, subject.measured.rows
    per_1000 = 1000 * duplicates / rows if rows else 0.0
    bound = f"0 duplicates of ({', '.join(subject.table.natural_key)}) per 1,000 rows"
    yield Finding("keys_are_unique", per_1000, bound, _outcome(failed=duplicates > 0))


def judge_required(subject: Subject) -> Iterator[Finding]:
    """`required_columns`, if one is null somewhere: Delta would refuse the whole commit for it."""
    lacking = subject.measured.required_nulls
    if lacking:
        required = [one.name for one in subject.table.columns if not one.nullable]
        bound = f"0 rows without one of {', '.join(required)}"
        yield Finding("required_columns", lacking, bound, _outcome(failed=True))


def judge_fields(subject: Subject) -> Iterator[Finding]:
    """`fields_are_declared`, if the source's records were parsed: fields that disappeared.

    A field that isn't declared is only a warning: the table grows a column for it.
    """
    seen, declared = subject.measured.fields_seen, frozenset(subject.source_fields)
    if seen is None or not declared or subject.measured.rows == 0:
        return
    missing = sorted(declared - seen)
    unknown = sorted(seen - declared - frozenset(subject.evolved_fields))
    bound = "no field disappeared"
    if missing:
        bound = f"disappeared: {', '.join(missing)}"
    if unknown:
        bound += f"; not declared: {', '.join(unknown)}"
    outcome = _outcome(failed=bool(missing or unknown), blocking=bool(missing))
    yield Finding("fields_are_declared", len(missing), bound, outcome)


def judge_nulls(rule: Nulls, subject: Subject) -> Iterator[Finding]:
    """`nulls(column)`: their share, held against the lower of both bounds."""
    name, rows = f"nulls({rule.column})", subject.measured.rows
    if subject.emptied:
        return
    if rows == 0:
        yield Finding(name, None, "no rows", Outcome.PASSED)
        return
    limit, bound = rule.at_most, f"at most {rule.at_most}"
    if rule.spike is not None:
        typical = subject.baseline.find_typical_null_share(rule.column)
        if typical.partitions >= MIN_PARTITIONS and typical.median + rule.spike < limit:
            limit = typical.median + rule.spike
            bound = f"at most {limit:.4g}, {rule.spike} above the median of {typical.partitions}"
        elif typical.partitions < MIN_PARTITIONS and rule.at_most < 1:
            bound += f", no baseline ({typical.partitions} partitions)"
        elif typical.partitions < MIN_PARTITIONS:
            yield _without_baseline(name, typical.partitions)
            return
    share = subject.measured.nulls.get(rule.column, 0) / rows
    yield Finding(name, share, bound, _outcome(failed=share > limit, blocking=rule.blocking))


def judge_values(rule: Values, subject: Subject) -> Iterator[Finding]:
    """`values(column)`: how many are out of range."""
    outside = subject.measured.out_of_range.get(rule.column, 0)
    bound = f"0 values outside {_text(rule.low)} to {_text(rule.high)}"
    outcome = _outcome(failed=outside > 0, blocking=rule.blocking)
    yield Finding(f"values({rule.column})", outside, bound, outcome)


def judge_drift(rule: Drift, subject: Subject) -> Iterator[Finding]:
    """`drift(column)`: PSI of the values that aren't null."""
    if not subject.emptied:
        yield _judge_drift(rule, subject)


def _judge_drift(rule: Drift, subject: Subject) -> Finding:
    name, bins = f"drift({rule.column})", len(rule.edges) + 2  # the last one counts the nulls
    values = subject.measured.histograms.get(rule.histogram, (0,) * bins)[:-1]
    reference = _find_published_values(rule, subject.previous)
    whose = "its published version"
    if reference is None:
        total, count = subject.baseline.sum_histograms(rule.histogram, bins)
        if count < MIN_PARTITIONS:
            return _without_baseline(name, count)
        reference, whose = total[:-1], f"the baseline of {count}"
    fewer = min(sum(values), sum(reference))
    if fewer < MIN_VALUES:
        return Finding(name, None, f"too few rows ({fewer} of {MIN_VALUES})", Outcome.PASSED)
    psi = compute_psi(values, reference)
    bound = f"below {min(rule.warn, rule.fail)}, against {whose}"
    if rule.blocking:
        bound = f"below {rule.fail}, warning from {rule.warn}, against {whose}"
    failed = psi >= min(rule.warn, rule.fail)
    outcome = _outcome(failed=failed, blocking=rule.blocking and psi >= rule.fail)
    return Finding(name, psi, bound, outcome)


def _find_published_values(rule: Drift, published: PartitionProfile | None) -> Sequence[int] | None:
    """Values per bin of the published version; None if it has other bins or too few values."""
    values = published.histograms.get(rule.histogram, ())[:-1] if published else ()
    return values if sum(values) >= MIN_VALUES else None


def _outcome(*, failed: bool, blocking: bool = True) -> Outcome:
    if not failed:
        return Outcome.PASSED
    return Outcome.FAILED if blocking else Outcome.WARNED


def _without_baseline(rule: str, partitions: int) -> Finding:
    return Finding(rule, None, f"no baseline ({partitions} partitions)", Outcome.PASSED)


def _text(figure: float) -> str:
    return f"{figure:,.1f}".removesuffix(".0")
