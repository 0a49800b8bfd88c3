"""Judges measured partitions by their table's rules, without Spark, Delta or Dagster."""

from collections.abc import Mapping, Sequence
from typing import Any

from backfill_engine.lake.stored_declarations import find_new_fields
from backfill_engine.rules.measured import Baseline, Landed, PartitionMeasures, PartitionProfile
from backfill_engine.rules.rule import Rule, Subject
from backfill_engine.rules.verdicts import Acceptance, Check, Finding, Verdict
from backfill_engine.tables.declarations import Table

_NOTHING: Mapping[str, Any] = {}


def judge_partitions(
    table: Table,
    measures: Mapping[str, PartitionMeasures],
    *,
    source_records: Mapping[str, int],
    published: Mapping[str, PartitionProfile],
    source_fields: Sequence[str] = (),
    evolved_fields: Sequence[str] = (),
    landed: Mapping[str, Landed] = _NOTHING,
    provisional: Mapping[str, str] = _NOTHING,
    acceptances: Sequence[Acceptance] = (),
    is_history_lost: bool = False,
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
        landed: what is known of the files, by key; empty for a table that reads none.
        provisional: by key, what of a partition's input is not there yet, or not final.
        acceptances: of this run.
        is_history_lost: whether `published` lacks partitions of which nothing is known any more.

    Returns:
        By key, in the order of `measures`. A verdict has all checks but `READABLE`, which comes
        after the publish; a check of which no rule applied has no findings.
    """
    grain, rules = table.grain, table.all_rules
    baseline = Baseline(
        published,
        lambda key: grain.find_peer_group(grain.find_start(key)),
        is_lost=is_history_lost,
    )
    evolved = list(evolved_fields)
    verdicts: dict[str, Verdict] = {}
    for key, measured in measures.items():
        previous = baseline.take(key)
        new_fields = find_new_fields(table, evolved, measured.fields_seen or ())
        subject = Subject(
            key=key,
            measured=measured,
            previous=previous,
            baseline=baseline,
            peers=grain.peers,
            source_records=source_records.get(key),
            source_fields=source_fields,
            evolved_fields=evolved,
            new_fields=new_fields,
            landed=landed.get(key),
            provisional=provisional.get(key, ""),
        )
        verdict = _judge(subject, rules, acceptances)
        current = previous if verdict.withheld else measured.profile()
        if current is not None:
            baseline.put(key, current)
        if not verdict.withheld:
            evolved += new_fields
        verdicts[key] = verdict
    return verdicts


def _judge(subject: Subject, rules: Sequence[Rule], acceptances: Sequence[Acceptance]) -> Verdict:
    findings: dict[Check, tuple[Finding, ...]] = {
        check: () for check in Check if check is not Check.READABLE
    }
    for rule in rules:
        findings[rule.check] += tuple(rule.judge(subject))
    return Verdict(subject.key, findings, emptied=subject.emptied).accept(acceptances)
