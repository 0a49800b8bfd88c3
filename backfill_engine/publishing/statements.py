"""What a commit keeps of its results: the findings of the audit, and one hash of all of it.

A certificate is a document beside the tables, which anyone who can write there can edit. All of it
that is known when a commit is made is hashed into the commit's record, so that whoever reads the
document later can tell whether it still says that. Names are those of the certificate's fields.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from pydantic_core import to_json

from backfill_engine.lake.commits import CommitAudit, Publish
from backfill_engine.publishing.results import (
    PartitionResult,
    Run,
    describe_failures,
    describe_findings,
    find_outcomes,
)
from backfill_engine.publishing.write_modes.options import WriteOptions
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Acceptance, Check, Finding, Outcome, Verdict

STATED = (
    *("run_id", "backfill_id", "asset_key", "table_uri", "started_at", "run_config"),
    *("code_version", "features"),
)
"""Fields of a certificate that each of its commits vouches for, beside options and inputs."""

WARNED = "warned"
"""Among the notes of a partition, its warnings with value and bound."""

STATED_OF_PARTITION = ("partition", "rows", "checksum", "checks", "failures", "accepted", "notes")
"""Fields of a partition's row that the commit vouches for which came with its audit."""


def hash_statement(
    fields: Mapping[str, Any],
    options: WriteOptions,
    input_versions: Mapping[str, int | str],
    partitions: Iterable[Mapping[str, Any]],
) -> str:
    """Hashes canonical JSON of all that a certificate says of one commit: the hash it carries.

    A field that a later release adds must be empty where an earlier one would have said nothing:
    what is empty is no part of the hash.

    Args:
        fields: by name, those of `STATED`.
        options: how the run writes.
        input_versions: what the partitions were computed from.
        partitions: the fields of `STATED_OF_PARTITION` of all that were judged together with the
            commit, published or not, in any order; before they are read back.

    Returns:
        SHA-256 in hexadecimal digits.
    """
    content = {
        **_drop_empty({**fields, "input_versions": input_versions}),
        "options": options.describe(),
        "partitions": sorted(map(_drop_empty, partitions), key=lambda row: row["partition"]),
    }
    # By way of the JSON that certificates are written in, so that both know the same values.
    plain = json.loads(to_json(content, inf_nan_mode="null"))
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def describe_run(run: Run, *, asset_key: str, table_uri: str, code_version: str) -> dict[str, Any]:
    """Describes a run's work on a table by the fields of `STATED`.

    Args:
        run: the run.
        asset_key: of the table, `layer/name`.
        table_uri: where it is.
        code_version: what the partitions were computed by.
    """
    return {
        "run_id": run.run_id,
        "backfill_id": run.backfill_id,
        "asset_key": asset_key,
        "table_uri": table_uri,
        "started_at": run.started_at.isoformat(timespec="milliseconds"),
        "run_config": run.config,
        "code_version": code_version,
        "features": run.features,
    }


def describe_result(result: PartitionResult) -> dict[str, Any]:
    """Describes what became of a partition by the fields of `STATED_OF_PARTITION`."""
    warned = result.verdict.warned
    return {
        "partition": result.key,
        "rows": result.measures.rows,
        "checksum": result.measures.checksum,
        "checks": find_outcomes(result.verdict),
        "failures": describe_failures(result.verdict),
        "accepted": {accepted.check: accepted.reason for accepted in result.verdict.accepted},
        "notes": {**result.notes, **({WARNED: describe_findings(warned)} if warned else {})},
    }


def _drop_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


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

    Bounds that were met are not kept.
    """
    record, key, audit = publish.record, publish.key, publish.record.audit
    accepted = tuple(
        Acceptance(acceptance["check"], acceptance["reason"], (key,))
        for acceptance in audit.accepted
        if acceptance["partition"] == key
    )
    return PartitionResult(
        Verdict(key, _read_findings(audit, key), accepted=accepted),
        PartitionMeasures(rows=publish.rows, checksum=publish.checksum),
        version=publish.version,
        input_versions=record.input_versions,
        consumed=publish.consumed,
        provisional=record.provisional.get(key, ""),
        notes=record.notes.get(key, {}),
    )


def describe_warnings(publish: Publish) -> str:
    """Describes what a published partition was warned about, by its commit; empty if nothing."""
    if publish.key not in publish.record.audit.remarks:
        return ""
    findings = _read_findings(publish.record.audit, publish.key)
    return describe_findings(Verdict(publish.key, findings).warned)


def _read_findings(audit: CommitAudit, key: str) -> dict[Check, tuple[Finding, ...]]:
    remarks = {place: (outcome, bound) for place, outcome, bound in audit.remarks.get(key, ())}
    findings: dict[Check, tuple[Finding, ...]] = {}
    for place, value in enumerate(audit.figures.get(key, ())):
        if isinstance(value, str):
            continue
        check, _, rule = audit.rules[place].partition(" ")
        outcome, bound = remarks.get(place, (Outcome.PASSED, "met when it was published"))
        finding = Finding(rule, value, bound, Outcome(outcome))
        findings[Check(check)] = (*findings.get(Check(check), ()), finding)
    return findings


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
