"""What a run records: one materialization a partition, and its checks' evaluations.

Within a budget every partition gets an evaluation of its own for each check. Each takes about 1 ms
and 10 kB of the instance's storage, which of a year of hours would make minutes and a gigabyte; so
beyond the budget the passes of a check are folded into one.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetKey,
    AssetMaterialization,
    EventLogRecord,
    MarkdownMetadataValue,
    MetadataValue,
)

from backfill_engine.lake.commits import Consumed
from backfill_engine.orchestration.due.readiness import PROVISIONAL
from backfill_engine.orchestration.instance.dagster_internals import (
    UNCOMPARED_PARTITIONS,
    TargetMaterialization,
)
from backfill_engine.orchestration.instance.materializations import DATA_VERSION
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.publishing.results import PartitionResult, describe_findings
from backfill_engine.rules.finding_names import find_name
from backfill_engine.rules.verdicts import Check, Finding, Outcome, find_outcome
from backfill_engine.tables.declarations import Table

FINAL_CHANGED = "final partition changed"
"""Metadata of a materialization: why it holds something else than before, though it was final."""

_LISTED = 7


def list_publish_checks(table: Table) -> tuple[Check, ...]:
    """Lists the checks that decide whether a partition is published; none that asks nothing."""
    asked = {rule.check for rule in table.all_rules}
    return tuple(check for check in Check if check in asked)


def build_materialization(
    asset_key: AssetKey,
    result: PartitionResult,
    *,
    uri: str,
    code_version: str,
    certificate: str,
    input_tags: Mapping[str, str],
    final_changed: str = "",
    recovered_at: datetime | None = None,
) -> AssetMaterialization:
    """Builds the event of a published partition, with all that was measured.

    Args:
        asset_key: the asset.
        result: the partition.
        uri: of its table.
        code_version: what it was computed by.
        certificate: its place, without suffix.
        input_tags: what tells Dagster by what upstream it was computed, see `input_tags`.
        final_changed: why it holds something else, though it was final; empty if it doesn't.
        recovered_at: when it was found that its run had not recorded it, UTC; None of a run's own.
    """
    metadata: dict[str, Any] = {
        "dagster/partition_row_count": result.measures.rows,
        "dagster/uri": uri,
        "checksum": result.measures.checksum,
        "delta_version": result.version,
        "input_versions": json.dumps(dict(result.input_versions)),
        "inputs": MetadataValue.json(_describe_consumed(result.consumed)),
        "certificate": MetadataValue.path(f"{certificate}.md"),
        **_describe_measured(result),
    }
    if result.provisional:
        metadata[PROVISIONAL] = f"to be run again: {result.provisional}"
    if final_changed:
        metadata[FINAL_CHANGED] = final_changed
    if result.repeated_batch:
        metadata["already_appended"] = result.repeated_batch
    if result.unchanged:
        metadata["already_published"] = (
            "from the same inputs, by the code that its backfill had then"
            if result.other_code
            else "from the same inputs, by the same code"
        )
    metadata |= result.notes
    if result.verdict.accepted:
        metadata["accepted"] = "; ".join(
            f"{acceptance.check}: {acceptance.reason}" for acceptance in result.verdict.accepted
        )
    if recovered_at:
        metadata["recovered_at"] = MetadataValue.timestamp(recovered_at)
    return AssetMaterialization(
        asset_key=asset_key,
        partition=result.key,
        metadata=metadata,
        tags={
            "dagster/code_version": result.other_code or code_version,
            DATA_VERSION: result.measures.checksum,
            **input_tags,
        },
    )


def build_evaluations(
    asset_key: AssetKey,
    results: Sequence[PartitionResult],
    *,
    targets: Mapping[str, EventLogRecord],
    recovering: frozenset[str] | None,
    pages: Mapping[str, MarkdownMetadataValue] | None = None,
) -> Iterator[AssetCheckEvaluation]:
    """Builds an evaluation for each partition and check.

    Args:
        asset_key: the asset.
        results: partitions after their audit.
        targets: latest materialization by partition key. Dagster shows only evaluations that are
            about it; a withheld partition's is about the version that stays.
        recovering: None within the budget. Beyond it, the keys of partitions that get evaluations
            even where they pass (recovered ones); others get them only if they failed or warned.
        pages: of withheld partitions, by key: why, and what to do; on the checks that failed.
    """
    # Nothing was to be checked of a partition that is not due.
    for result in (result for result in results if not result.not_due):
        for check, findings in result.verdict.findings.items():
            outcome = find_outcome(findings)
            folded = recovering is not None and result.key not in recovering
            if not findings or (folded and outcome is Outcome.PASSED):
                continue
            accepted = [
                acceptance for acceptance in result.verdict.accepted if acceptance.check == check
            ]
            metadata: dict[str, float | str | MarkdownMetadataValue] = {}
            failed = outcome is Outcome.FAILED
            if failed and pages and result.key in pages:
                metadata["what to do"] = pages[result.key]
            for finding in findings:
                if finding.value is not None:
                    metadata[finding.rule] = finding.value
                metadata[f"{finding.rule}: bound"] = f"{finding.bound} ({finding.outcome})"
                passed = finding.outcome is Outcome.PASSED
                if not passed and (name := find_name(finding.rule)):
                    metadata[f"{finding.rule}: what to do"] = name.cure
            if accepted:
                metadata["accepted"] = "; ".join(acceptance.reason for acceptance in accepted)
            yield AssetCheckEvaluation(
                asset_key=asset_key,
                check_name=check.value,
                passed=outcome is Outcome.PASSED,
                severity=(
                    AssetCheckSeverity.ERROR if failed and not accepted else AssetCheckSeverity.WARN
                ),
                description=describe_findings(_select_remarkable(findings)) or None,
                metadata=metadata,
                partition=result.key,
                blocking=failed and not accepted,
                target_materialization_data=describe_target(targets.get(result.key)),
            )


def build_unasked(
    table: Table,
    key: str,
    why: str,
    *,
    asked: Collection[Check] = (),
    target: EventLogRecord | None = None,
) -> Iterator[AssetCheckEvaluation]:
    """Builds evaluations of the checks that a run planned for a partition and could not ask.

    They pass, with a remark: Dagster shows a planned check of a failed run as failed if nothing is
    said of it.

    Args:
        table: its table.
        key: the partition.
        why: nothing was there to be checked.
        asked: the checks that have evaluations.
        target: as `targets` of `build_evaluations`.
    """
    for check in dict.fromkeys((*list_publish_checks(table), Check.READABLE)):
        if check not in asked:
            yield AssetCheckEvaluation(
                asset_key=find_asset_key(table),
                check_name=check.value,
                passed=True,
                metadata={"not asked": why},
                partition=key,
                target_materialization_data=describe_target(target),
            )


def describe_target(
    record: EventLogRecord | None,
) -> TargetMaterialization | None:
    """Describes the materialization that an evaluation is about, as the evaluation names it."""
    if record is None:
        return None
    return TargetMaterialization(
        storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp
    )


def build_summaries(
    results: Sequence[PartitionResult],
    checks: Sequence[Check],
    certificate: Mapping[str, MarkdownMetadataValue] | None = None,
) -> list[AssetCheckResult]:
    """Builds one result a check for the whole range: how many passed, warned, failed.

    There is none of a check that withheld a partition: the evaluations of its partitions say which
    and why, and Dagster would show one without a partition above these, as failed. Partitions that
    could not even be computed count for the check that says so, and for no other; those that are
    not due for none. The certificate is to be read in each.
    """
    due = [result for result in results if not result.not_due]
    by_check = {check: _group_by_outcome(due, check) for check in checks}
    withheld = {result.key for result in due if result.version is None}
    return [
        AssetCheckResult(
            check_name=check.value,
            passed=True,
            description=_describe_range(keys),
            metadata={
                "first partition": min((result.key for result in results), default=""),
                "last partition": max((result.key for result in results), default=""),
                **{f"partitions {outcome}": len(found) for outcome, found in keys.items()},
                **({"partitions not due": len(results) - len(due)} if due != results else {}),
                **(certificate or {}),
            },
        )
        for check, keys in by_check.items()
        if not withheld.intersection(keys[Outcome.FAILED])
    ]


def build_readable_summary(
    asset_key: AssetKey, results: Sequence[PartitionResult]
) -> Iterator[AssetCheckEvaluation]:
    """Sums up the read-backs, for a run in which Dagster skips that check.

    It does so after the failed step.
    """
    for summary in build_summaries(results, [Check.READABLE]):
        yield AssetCheckEvaluation(
            asset_key=asset_key,
            check_name=Check.READABLE.value,
            passed=summary.passed,
            metadata=summary.metadata,
        )


def _select_remarkable(findings: Sequence[Finding]) -> list[Finding]:
    """Selects what did not pass, the failed ones first."""
    found = [finding for finding in findings if finding.outcome is not Outcome.PASSED]
    return sorted(found, key=lambda finding: finding.outcome is not Outcome.FAILED)


def _describe_range(keys: Mapping[Outcome, Sequence[str]]) -> str | None:
    """Names the partitions that were published though they failed, or warned; None if none did."""
    named = (
        f"{words}: {', '.join(shorten(keys[outcome], _LISTED))}"
        for outcome, words in (
            (Outcome.FAILED, "failed, published all the same"),
            (Outcome.WARNED, "warned"),
        )
        if keys[outcome]
    )
    return "; ".join(named) or None


def _group_by_outcome(results: Sequence[PartitionResult], check: Check) -> dict[Outcome, list[str]]:
    """Groups partitions by how a check of which they have findings ended."""
    keys: dict[Outcome, list[str]] = {outcome: [] for outcome in Outcome}
    for result in results:
        if findings := result.verdict.findings.get(check):
            keys[find_outcome(findings)].append(result.key)
    return keys


def _describe_consumed(consumed: Consumed) -> dict[str, Any]:
    described: dict[str, Any] = {}
    if consumed.landed:
        described["landing"] = consumed.landed._asdict()
    for table, window in consumed.upstream.items():
        described[table] = {
            "first": min(window),
            "last": max(window),
            "partitions": len(window),
            "checksums": consumed.fingerprint(table),
        }
        if missing := [key for key, checksum in window.items() if not checksum]:
            described[table]["not published"] = shorten(missing, _LISTED)
        if len(window) >= UNCOMPARED_PARTITIONS:
            described[table]["never unsynced"] = (
                f"Dagster compares fewer than {UNCOMPARED_PARTITIONS} upstream partitions"
            )
    return described


def _describe_measured(result: PartitionResult) -> dict[str, float]:
    return {
        finding.rule: finding.value
        for findings in result.verdict.findings.values()
        for finding in findings
        if finding.value is not None and finding.rule != "row_count"
    }
