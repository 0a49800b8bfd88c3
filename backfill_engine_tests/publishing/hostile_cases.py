"""What is done to landed files, what becomes of it, and how that is compared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.side_tables import build_quarantine_table
from backfill_engine.lake.table_log import read_log
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import PartitionResult
from backfill_engine.rules.verdicts import Finding, Outcome
from backfill_engine.tables.declarations import Table
from backfill_engine_tests.pipeline.publishing import Lake

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


@dataclass(frozen=True)
class Story:
    """Partitions published well, spoiled, and run once more: what that came to, by key.

    Attributes:
        lake: with them.
        before: what the first run made of them, but for those that are new.
        after: what the second run made of them.
        rows: that are published in the end.
        quarantined: reason and line of each record in the quarantine.
    """

    lake: Lake
    before: Mapping[str, PartitionResult]
    after: Mapping[str, PartitionResult]
    rows: Mapping[str, int]
    quarantined: Mapping[str, list[tuple[str, str | None]]]


def play(lake: Lake, recipe: Recipe, cases: Mapping[str, Case], landed: Mapping[str, Any]) -> Story:
    """Publishes what landed, but for what is new, spoils it, and publishes all of it."""
    before = publish(lake, recipe, *(key for key, case in cases.items() if not case.new))
    assert [key for key, result in before.items() if result.version is None] == []
    for key, case in cases.items():
        case.spoil(landed[key])
    after = publish(lake, recipe, *cases, run_id="second")
    rows = read_log(lake.warehouse, recipe.table).count_rows()
    return Story(lake, before, after, rows, read_quarantine(lake, recipe.table))


def publish(lake: Lake, recipe: Recipe, *keys: str, **others: Any) -> dict[str, PartitionResult]:
    """What became of partitions, by key."""
    results = lake.publish(recipe, build_partitions(recipe.table, keys), **others)
    return {result.key: result for result in results}


def read_quarantine(lake: Lake, table: Table) -> dict[str, list[tuple[str, str | None]]]:
    """Reason and line of the records in the quarantine, by partition key."""
    found: dict[str, list[tuple[str, str | None]]] = {}
    rows = lake.warehouse.open(build_quarantine_table(table)).to_pyarrow_table().to_pylist()
    for row in rows:
        key = table.grain.find_key(row[table.partition_by])
        found.setdefault(key, []).append((row["reason"], row["line"]))
    return found


def check_case(case: Case, key: str, story: Story) -> list[Finding]:
    """Compares what became of a partition with its case.

    Returns:
        What was found; of a withheld one, what withholds it.
    """
    result, held = story.after[key], story.rows.get(key, 0)
    findings = list_findings(result)
    if case.becomes == WITHHELD:
        assert result.version is None
        assert held == (0 if case.new else story.before[key].measures.rows), "it stays as it was"
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


def check_quarantine(case: Case, key: str, story: Story) -> None:
    """Compares the reasons that are in the quarantine with a case."""
    reasons = [reason for reason, _ in story.quarantined.get(key, [])]
    assert len(reasons) == len(case.quarantined), reasons
    assert all(part in reason for part, reason in zip(case.quarantined, reasons, strict=True))
