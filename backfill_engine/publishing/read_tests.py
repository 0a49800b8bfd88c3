"""Builds what reads a table over what is about to be published, before anyone can read that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException

from backfill_engine.errors import BackfillError
from backfill_engine.lake.partitions import Partition, build_partitions
from backfill_engine.lake.table_log import TableLog
from backfill_engine.publishing.audit import Audit, audit_window
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import Run, describe_failures
from backfill_engine.publishing.write_modes.choosing import choose_options
from backfill_engine.rules.finding_names import READERS_CAN_BE_BUILT
from backfill_engine.rules.verdicts import Check, Finding, Outcome, Verdict
from backfill_engine.sources.input_window import InputWindow, Overlay


@dataclass(frozen=True)
class ReadTest:
    """A table that is built over another, in memory only, before that is published.

    Attributes:
        recipe: how it is made.
        log: of it.
        inputs: logs of what else it reads, by table key.
        reads: by its partition keys, which partitions of the other each reads.
        provisional: by its partition keys, what of the input is not there yet, or not final.
    """

    recipe: Recipe
    log: TableLog
    inputs: Mapping[str, TableLog]
    reads: Mapping[str, Sequence[str]]
    provisional: Mapping[str, str]

    def find_failures(
        self, audit: Audit, source: TableLog, good: Sequence[Partition], run: Run
    ) -> dict[str, str]:
        """Builds and audits what can be read once partitions are published.

        Args:
            audit: of the partitions to be published.
            source: log of their table, with what chunks before have published.
            good: those of them that will be.
            run: that is to publish them.

        Returns:
            Why each partition of this table would be withheld, by key; empty if none would be.
        """
        published = {partition.key for partition in good}
        known = published | source.publishes.keys()
        keys = [
            key
            for key, read in self.reads.items()
            if published.intersection(read) and known.issuperset(read)
        ]
        if not keys:
            return {}
        counts = {partition.key: audit.measures[partition.key].rows for partition in good}
        rows = audit.rows.select(*source.table.column_names)
        overlay = Overlay(source, tuple(good), rows, counts)
        window = InputWindow(
            spark=audit.window.spark,
            target=self.log,
            partitions=build_partitions(self.recipe.table, keys),
            inputs={**self.inputs, source.table.key: source},
            extra_fields=self.log.extra_fields,
            overlays={source.table.key: overlay},
            mapped=self.recipe.map_inputs(keys),
        )
        as_usual = Run(
            run_id=run.run_id,
            started_at=run.started_at,
            options=choose_options(self.recipe.table),
        )
        try:
            with audit_window(
                self.recipe, window, as_usual, self.provisional, adds_fields=False
            ) as found:
                return {
                    key: describe_failures(verdict)
                    for key, verdict in found.verdicts.items()
                    if verdict.withheld
                }
        except (BackfillError, PySparkException) as error:
            return dict.fromkeys(keys, next(iter(str(error).splitlines()), type(error).__name__))


def judge_by_readers(
    tests: Sequence[ReadTest],
    audit: Audit,
    source: TableLog,
    verdicts: Mapping[str, Verdict],
    run: Run,
) -> Mapping[str, Verdict]:
    """Adds to the verdicts of what would be published which readers can't be built over it.

    Args:
        tests: of the table.
        audit: of the partitions.
        source: log of the table, with what chunks before have published.
        verdicts: of the same.
        run: whose acceptances apply to this, too.
    """
    judged = dict(verdicts)
    for test in tests:
        good = [
            partition
            for partition in audit.window.partitions
            if partition.key in judged and not judged[partition.key].withheld
        ]
        failures = test.find_failures(audit, source, good, run)
        for partition in good:
            failed = [
                f"{key}: {why}" for key, why in failures.items() if partition.key in test.reads[key]
            ]
            if failed:
                finding = Finding(
                    READERS_CAN_BE_BUILT.of(test.recipe.table.key),
                    float(len(failed)),
                    f"0: {'; '.join(failed)}",
                    Outcome.FAILED,
                )
                verdict = judged[partition.key].add(Check.VALID, finding)
                judged[partition.key] = verdict.accept(run.acceptances)
    return judged
