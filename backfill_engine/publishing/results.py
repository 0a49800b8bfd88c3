"""What became of each partition of a run."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from backfill_engine.contents.partition_contents import Counted, ReadBack
from backfill_engine.lake.commits import Consumed
from backfill_engine.lake.origins import UNKNOWN, Origin
from backfill_engine.publishing.hooks import PublishHook
from backfill_engine.publishing.pacing import IN_ONE_GO, Pace
from backfill_engine.publishing.write_modes.options import OVERWRITE, WriteOptions
from backfill_engine.rules.finding_names import CONTENT_IS_AS_AUDITED, STEP_ENDED, UPSTREAM_HAS_COME
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import (
    Acceptance,
    Check,
    Finding,
    Outcome,
    Verdict,
    find_outcome,
)


@dataclass(frozen=True)
class PartitionResult:
    """A partition after its audit.

    Attributes:
        verdict: all findings.
        measures: what was measured; all zero where nothing could be.
        version: the Delta version that published it; None if it was withheld.
        input_versions: what it and its chunk were computed from.
        consumed: what it was computed from itself.
        repeated_batch: the batch that the partition held already, so that nothing was written;
            empty if something was.
        unchanged: whether it was published from the same inputs by the same code before, so that
            nothing was computed; all else is as that commit has it.
        other_code: the version of the code that it was published by then, if that is another one
            and it stands all the same: its backfill may go on by new code.
        provisional: what of its input was not there yet, or not final; empty if all was.
        notes: by name of a feature, what it did to the partition.
        not_due: upstream partitions that never came, where it waits for nothing else; empty where
            it is due.
        failed: whether its step ended with an error before it came to the partition.
        stated_in: the version whose commit keeps the hash of this result, see `statements`; None
            where none came with it.
    """

    verdict: Verdict
    measures: PartitionMeasures = field(default_factory=PartitionMeasures)
    version: int | None = None
    input_versions: Mapping[str, int | str] = field(default_factory=dict)
    consumed: Consumed = field(default_factory=Consumed)
    repeated_batch: str = ""
    unchanged: bool = False
    other_code: str = ""
    provisional: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    not_due: tuple[str, ...] = ()
    failed: bool = False
    stated_in: int | None = None

    @property
    def key(self) -> str:
        """The partition's key."""
        return self.verdict.partition

    @property
    def is_written(self) -> bool:
        """Whether the run published it, and it didn't stand there already."""
        return self.version is not None and not self.repeated_batch and not self.unchanged


def withhold(partition: str, rule: str, why: str) -> PartitionResult:
    """Withholds a partition that can't even be computed.

    The answer to whether it is complete is no.
    """
    finding = Finding(rule, None, why, Outcome.FAILED)
    return PartitionResult(Verdict(partition, {Check.COMPLETE: (finding,)}))


def postpone(partition: str, never_came: Sequence[str]) -> PartitionResult:
    """Says of a partition that it is not due: it waits for upstream partitions that never came."""
    first, *others = never_came
    listed = f"{first} and {len(others)} more" if others else first
    result = withhold(partition, UPSTREAM_HAS_COME, f"not due: {listed} never came")
    return replace(result, not_due=tuple(never_came))


def judge_contents(found: ReadBack, audited: Counted) -> Finding:
    """Judges what an independent reader found against what the audit counted."""
    return Finding(
        CONTENT_IS_AS_AUDITED,
        float(found.rows),
        f"{audited.rows} rows with checksum {audited.checksum}, found {found.checksum}",
        Outcome.of(failed=not found.agrees_with(audited)),
    )


def fail(partition: str, why: str) -> PartitionResult:
    """Says of a partition that its step ended before it came to it."""
    return replace(withhold(partition, STEP_ENDED, why), failed=True)


def find_outcomes(verdict: Verdict) -> dict[str, str]:
    """Finds the outcome of each check that has rules."""
    return {
        check.value: find_outcome(findings).value
        for check, findings in verdict.findings.items()
        if findings
    }


def list_acceptable(result: PartitionResult) -> list[Check]:
    """Lists the failed checks of a withheld partition that a person may accept; often none."""
    failed = [check for check in result.verdict.findings if result.verdict.failed(check)]
    has_anything = result.measures.rows or result.measures.rejects
    return failed if has_anything and Check.READABLE not in failed else []


def describe_failures(verdict: Verdict) -> str:
    """Describes each failed check with what was measured and the bound, in one line."""
    return "; ".join(
        f"{check}: {describe_findings([finding])}"
        for check in verdict.findings
        for finding in verdict.failed(check)
    )


def describe_findings(findings: Sequence[Finding]) -> str:
    """Describes findings with what was measured and the bound, in one line."""
    values = ("" if finding.value is None else f" = {finding.value:.6g}" for finding in findings)
    return "; ".join(
        f"{finding.rule}{value} ({finding.bound})"
        for finding, value in zip(findings, values, strict=True)
    )


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run's work on one table; code and inputs are its recipe's and its pinned inputs'.

    Attributes:
        run_id: the Dagster run.
        started_at: when the step began, UTC.
        backfill_id: the backfill that it is part of; None if none.
        chain_id: what it has in common with its retries and the runs that continue it; "" if
            nothing.
        config: its configuration, as JSON values.
        options: how it writes.
        acceptances: failed checks that a person lets pass.
        saves_watermark: whether it moves the production watermark.
        pace: how it goes through its partitions.
        hooks: of the features that take part in it.
        origin: who asked for it, and why.
    """

    run_id: str
    started_at: dt.datetime
    backfill_id: str | None = None
    chain_id: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    options: WriteOptions = OVERWRITE
    acceptances: tuple[Acceptance, ...] = ()
    saves_watermark: bool = False
    pace: Pace = IN_ONE_GO
    hooks: tuple[PublishHook, ...] = ()
    origin: Origin = UNKNOWN

    @property
    def features(self) -> dict[str, Any]:
        """What features do to it, by their names, as JSON values; and who asked for it."""
        described = {hook.name: text for hook in self.hooks if (text := hook.describe())}
        return {**described, **self.origin.describe()}
