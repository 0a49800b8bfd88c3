"""Judges measured partitions by their table's rules. Pure: no Spark, no Delta, no Dagster."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.quality import findings
from backfill_assets.quality.findings import Subject
from backfill_assets.rules.baseline import Baseline
from backfill_assets.rules.profiles import PartitionProfile
from backfill_assets.rules.verdicts import Acceptance, Check, Finding, Outcome, Verdict
from backfill_assets.tables.declarations import Table
from backfill_assets.tables.rules import Drift, Nulls, Reconciled, Rejects, RowCount, Rule, Values

if TYPE_CHECKING:  # it measures with Spark, which judging doesn't need
    from backfill_assets.quality.measures import PartitionMeasures

__all__ = ["Acceptance", "Check", "Finding", "Outcome", "Verdict", "judge_partitions"]


def judge_partitions(
    table: Table,
    measures: "Mapping[str, PartitionMeasures]",
    *,
    source_records: Mapping[str, int],
    published: Mapping[str, PartitionProfile],
    source_fields: Sequence[str] = (),
    evolved_fields: Sequence[str] = (),
    acceptances: Sequence[Acceptance] = (),
) -> dict[str, Verdict]:
    """Judges the partitions in the order of `measures` (ascending keys), each against its baseline.

    The baseline of a partition is what would be published if the partitions were run one by one:
    all of `published` but itself, each partition of `measures` that came earlier and was not
    withheld in place of its old version. So one range and the same partitions one by one give the
    same verdicts. Partitions without rows don't count in it: they have no distribution, and would
    pull the medians to 0.

    Args:
        table: whose rules apply, and whose grain says which partitions are peers.
        measures: by partition key, ascending.
        source_records: records of the layer above by key; keys may be absent where nothing
            reconciles.
        published: profiles of what is published, by key.
        source_fields: fields that the source's records should have; empty where none are parsed.
        evolved_fields: columns that the table has beyond its declaration; none has to be there.
        acceptances: of this run.

    Returns:
        By key, in the order of `measures`. A verdict has all checks but `READABLE`, which comes
        after the publish; a check of which no rule applied has no findings.
    """
    grain = table.grain
    peer_groups = {
        key: grain.find_peer_group(grain.find_start(key)) for key in (*measures, *published)
    }
    baseline = Baseline(published, peer_groups)
    verdicts: dict[str, Verdict] = {}
    for key, measured in measures.items():
        previous = baseline.take(key)
        subject = Subject(
            table=table,
            key=key,
            measured=measured,
            previous=previous,
            baseline=baseline,
            source_records=source_records.get(key),
            source_fields=source_fields,
            evolved_fields=evolved_fields,
        )
        verdict = _judge(subject, acceptances)
        current = previous if verdict.withheld else measured.profile()
        if current is not None:
            baseline.put(key, current)
        verdicts[key] = verdict
    return verdicts


def _judge(subject: Subject, acceptances: Sequence[Acceptance]) -> Verdict:
    found: dict[Check, list[Finding]] = {
        Check.COMPLETE: [*findings.judge_emptied(subject)],
        Check.VALID: [
            *findings.judge_required(subject),
            *findings.judge_keys(subject),
            *findings.judge_fields(subject),
        ],
        Check.STABLE: [],
    }
    for rule in subject.table.rules:
        check, more = _apply(rule, subject)
        found[check].extend(more)
    verdict = Verdict(
        subject.key, {check: tuple(some) for check, some in found.items()}, emptied=subject.emptied
    )
    failed = [check for check in verdict.findings if verdict.failed(check)]
    accepted = tuple(
        one for one in acceptances if any(one.covers(check, subject.key) for check in failed)
    )
    return replace(verdict, accepted=accepted)


def _apply(rule: Rule, subject: Subject) -> tuple[Check, Iterator[Finding]]:
    match rule:
        case RowCount():
            return Check.COMPLETE, findings.judge_row_count(rule, subject)
        case Reconciled():
            return Check.COMPLETE, findings.judge_reconciled(rule, subject)
        case Rejects():
            return Check.VALID, findings.judge_rejects(rule, subject)
        case Nulls():
            return Check.VALID, findings.judge_nulls(rule, subject)
        case Values():
            return Check.VALID, findings.judge_values(rule, subject)
        case Drift():
            return Check.STABLE, findings.judge_drift(rule, subject)
