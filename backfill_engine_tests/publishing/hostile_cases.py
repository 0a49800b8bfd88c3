"""What is done to landed files, what becomes of it, and how that is compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backfill_engine.publishing.results import PartitionResult
from backfill_engine.rules.verdicts import Finding, Outcome

WITHHELD = "withheld"


@dataclass(frozen=True)
class Case:
    """What is done to a partition that landed, and what the second run makes of it.

    Attributes:
        name: of the case.
        spoil: what is done.
        becomes: rows published by the second run, or `WITHHELD`.
        rule: the rule that withholds; of what is published, the one that warns; empty for none.
        says: part of what it finds.
        quarantined: part of the reason of each record in the quarantine.
        new: whether it was never published before.
    """

    name: str
    spoil: Callable[[Any], Any]
    becomes: int | str
    rule: str = ""
    says: str = ""
    quarantined: tuple[str, ...] = ()
    new: bool = False


def unreadable(
    name: str, spoil: Callable[[Any], Any], fault: str, file: str = "", *, new: bool = False
) -> Case:
    """A case in which a file has a fault, which is found of it and kept in the quarantine."""
    says, reason = f"{file} {fault}".strip(), f"the file {fault}"
    return Case(name, spoil, WITHHELD, "files_are_readable", says, (reason,), new)


def leave(landed: object) -> None:
    """Does nothing to what landed."""
    del landed


def list_findings(result: PartitionResult) -> list[Finding]:
    """What wasn't passed."""
    return [
        finding
        for findings in result.verdict.findings.values()
        for finding in findings
        if finding.outcome is not Outcome.PASSED
    ]


def check_case(
    case: Case, key: str, after: Mapping[str, PartitionResult], rows: Mapping[str, int], before: int
) -> list[Finding]:
    """Compares the result of a partition, and its rows, which were `before`, with its case.

    Returns:
        What was found; of a withheld one, what withholds it.
    """
    result, held = after[key], rows.get(key, 0)
    findings = list_findings(result)
    if case.becomes == WITHHELD:
        assert result.version is None
        assert held == (0 if case.new else before), "it stays as it was"
        findings = [finding for finding in findings if finding.outcome is Outcome.FAILED]
    else:
        assert result.version is not None, findings
        assert held == result.measures.rows == case.becomes
        assert {finding.outcome for finding in findings} <= {Outcome.WARNED}
        assert bool(findings) == bool(case.rule), findings
    if case.rule:
        bounds = [finding.bound for finding in findings if finding.rule == case.rule]
        assert [bound for bound in bounds if case.says in bound], findings
        assert "\n" not in str(findings)
    return findings


def check_quarantine(case: Case, reasons: Sequence[str]) -> None:
    """Compares the reasons that are in the quarantine with a case."""
    assert len(reasons) == len(case.quarantined), reasons
    assert all(part in reason for part, reason in zip(case.quarantined, reasons, strict=True))
