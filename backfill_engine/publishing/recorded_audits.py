"""What a commit keeps of the audit of its partitions, and the results as it tells them again."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from backfill_engine.lake.commits import CommitAudit, Publish
from backfill_engine.publishing.results import PartitionResult
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Acceptance, Check, Finding, Outcome, Verdict

_DID_NOT_APPLY = ""


def describe_audits(results: Sequence[PartitionResult]) -> CommitAudit:
    """Describes findings and acceptances of partitions about to be published.

    The names of the rules stand once for all partitions, and only bounds that were not met are
    kept: thousands of partitions fit into one commit.
    """
    found = {result.key: dict(_name_findings(result.verdict)) for result in results}
    names = dict.fromkeys(chain.from_iterable(found.values()))
    places = {name: place for place, name in enumerate(names)}
    return CommitAudit(
        rules=tuple(rule for rule, _ in places),
        figures={
            key: tuple(
                _shorten(findings[name].value) if name in findings else _DID_NOT_APPLY
                for name in places
            )
            for key, findings in found.items()
        },
        remarks={
            key: remarks
            for key, findings in found.items()
            if (
                remarks := tuple(
                    (places[name], finding.outcome.value, finding.bound)
                    for name, finding in findings.items()
                    if finding.outcome is not Outcome.PASSED
                )
            )
        },
        accepted=tuple(
            {"partition": result.key, "check": accepted.check, "reason": accepted.reason}
            for result in results
            for accepted in result.verdict.accepted
        ),
    )


def read_result(publish: Publish) -> PartitionResult:
    """Reads the result of a partition again from the commit that published it.

    Bounds that were met are not kept, and commits from before 0.2 keep no findings.
    """
    record, key, audit = publish.record, publish.key, publish.record.audit
    remarks = {place: (outcome, bound) for place, outcome, bound in audit.remarks.get(key, ())}
    findings: dict[Check, tuple[Finding, ...]] = {}
    for place, value in enumerate(audit.figures.get(key, ())):
        if isinstance(value, str):
            continue
        check, _, rule = audit.rules[place].partition(" ")
        outcome, bound = remarks.get(place, (Outcome.PASSED, "met when it was published"))
        finding = Finding(rule, value, bound, Outcome(outcome))
        findings[Check(check)] = (*findings.get(Check(check), ()), finding)
    accepted = tuple(
        Acceptance(acceptance["check"], acceptance["reason"], (key,))
        for acceptance in audit.accepted
        if acceptance["partition"] == key
    )
    return PartitionResult(
        Verdict(key, findings, accepted=accepted),
        PartitionMeasures(rows=publish.rows, checksum=publish.checksum),
        version=publish.version,
        input_versions=record.input_versions,
        consumed=publish.consumed,
        provisional=record.provisional.get(key, ""),
        notes=record.notes.get(key, {}),
    )


def _name_findings(verdict: Verdict) -> Iterator[tuple[tuple[str, int], Finding]]:
    """Names each finding by check and rule, and by how many of that name came before it."""
    seen: Counter[str] = Counter()
    for check, findings in verdict.findings.items():
        for finding in findings:
            name = f"{check} {finding.rule}"
            yield (name, seen[name]), finding
            seen[name] += 1


def _shorten(value: float | None) -> float | None:
    """Rounds to nine digits: more of them say nothing of a share or an index."""
    return float(f"{value:.9g}") if isinstance(value, float) else value
