"""Publishes a chunk of partitions: the good ones in one commit, the bad ones kept aside."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from backfill_engine.contents.partition_reader import IN_THIS_PROCESS, PartitionReader
from backfill_engine.errors import TableError
from backfill_engine.lake.consumed import CommitInputs
from backfill_engine.lake.partitions import Partition, build_table_predicate
from backfill_engine.lake.stored_declarations import check_grain, extend_table, find_missing_columns
from backfill_engine.lake.writer import (
    HeldTable,
    PartitionsChangedError,
    add_columns,
    build_record,
    create_table,
    create_table_ahead,
    hold_partitions,
    overwrite_held,
    read_log_ahead,
)
from backfill_engine.publishing.audit import Audit, AuditsAhead, audit_window, describe_faults
from backfill_engine.publishing.hooks import describe_partition
from backfill_engine.publishing.inputs import (
    PinnedInputs,
    measure_input_bytes,
    pin_inputs,
    withhold_foreign,
    withhold_never_landed,
)
from backfill_engine.publishing.read_tests import ReadTest, judge_by_readers
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.recorded_audits import describe_audits
from backfill_engine.publishing.results import PartitionResult, Run, withhold
from backfill_engine.publishing.statements import build_statement
from backfill_engine.publishing.verifying import verify_publish
from backfill_engine.publishing.withholding import keep_rejected_records, keep_withheld_rows
from backfill_engine.publishing.write_modes.append_once import build_transaction, find_held
from backfill_engine.publishing.write_modes.choosing import find_write_mode
from backfill_engine.rules.finding_names import FILES_ARE_READABLE
from backfill_engine.rules.verdicts import Verdict
from backfill_engine.sources.input_window import InputWindow

_ROUNDS = 5


@dataclass(frozen=True)
class Publisher:
    """All that a run needs to publish partitions of one table.

    Attributes:
        spark: the session.
        recipe: how the table is made.
        run: the run, and what it was told.
        landing_root: root of the landing zone.
        withheld_days: for how many days withheld rows are kept.
        provisional: by partition key, what of its input is not there yet, or not final.
        reader: reads back what was published.
        ahead: audits of chunks together; None to audit each alone.
        read_tests: what reads the table, to be built over each chunk before that is published.
    """

    spark: SparkSession
    recipe: Recipe
    run: Run
    landing_root: str
    withheld_days: int
    provisional: Mapping[str, str] = field(default_factory=dict)
    reader: PartitionReader = IN_THIS_PROCESS
    ahead: AuditsAhead | None = None
    read_tests: Sequence[ReadTest] = ()

    def publish_chunk(
        self, partitions: Sequence[Partition], pinned: PinnedInputs
    ) -> list[PartitionResult]:
        """Computes, audits and publishes partitions, all together.

        Where another run changed some of them meanwhile, those are computed again from the inputs
        as they are then: the last to publish is always the one with the newest inputs.

        Args:
            partitions: ascending.
            pinned: the inputs, as they were when the step began.

        Returns:
            A result for each of `partitions`, ascending.

        Raises:
            LandingError: if landing files changed while they were read; nothing was published then.
            SparkUnavailableError: if Spark's workers lack what it takes to read the commit back;
                nothing was published then.
            TableError: if other runs keep changing the partitions.
        """
        table = self.recipe.table
        self._check_workers(partitions, pinned)
        current = pinned.target.reread()
        if not current.exists:
            create_table_ahead(self.spark, current)
        else:
            check_grain(current)
        results: dict[str, PartitionResult] = {}
        pending = tuple(partitions)
        changed: set[str] = set()
        for _ in range(_ROUNDS):
            found, changed = self._publish_once(pending, pinned.restrict(pending))
            results.update({result.key: result for result in found})
            if not changed:
                return [results[partition.key] for partition in partitions]
            pending = tuple(partition for partition in pending if partition.key in changed)
            pinned = pin_inputs(
                pinned.target,
                pinned.inputs,
                self.recipe,
                landing_root=self.landing_root,
                partitions=pending,
                windows=pinned.windows,
            )
        raise TableError(
            f"{table.key}: other runs keep changing {', '.join(sorted(changed))}: "
            "let them end, then run these partitions again"
        )

    def publish_as_pinned(
        self, partitions: Sequence[Partition], pinned: PinnedInputs
    ) -> list[PartitionResult]:
        """Publishes as `publish_chunk` does, but from these inputs or not at all.

        This is for what restores a version.

        Raises:
            SparkUnavailableError: as `publish_chunk`.
            TableError: if another run changed some of the partitions since; the others are done.
        """
        self._check_workers(partitions, pinned)
        results, changed = self._publish_once(tuple(partitions), pinned)
        if changed:
            raise TableError(
                f"{self.recipe.table.key}: another run has just changed "
                f"{', '.join(sorted(changed))}: look again at what is to be done"
            )
        return sorted(results, key=lambda result: result.key)

    def _check_workers(self, partitions: Sequence[Partition], pinned: PinnedInputs) -> None:
        sizes = measure_input_bytes(pinned, partitions)
        self.reader.check_workers(pinned.target, input_bytes=sum(sizes.values()))

    def _publish_once(
        self, partitions: tuple[Partition, ...], pinned: PinnedInputs
    ) -> tuple[list[PartitionResult], set[str]]:
        """Runs one round; returns results and the keys that another run changed meanwhile."""
        mode = find_write_mode(self.run.options)
        results = withhold_foreign(pinned, partitions, keeps_rows=mode.keeps_rows)
        foreign = {result.key for result in results}
        results += [one for one in withhold_never_landed(pinned) if one.key not in foreign]
        decided = {result.key for result in results}
        landed = [partition for partition in partitions if partition.key not in decided]
        results += mode.find_repeated(landed, pinned, self.run.options)
        decided = {result.key for result in results}
        pending = tuple(partition for partition in partitions if partition.key not in decided)
        if not pending:
            return results, set()
        window = self._build_window(pending, pinned)
        with self._open_audit(window, pinned) as audit:
            if audit.window.listing is not None:
                audit.window.listing.check_unchanged()
            is_partial = bool(self.run.options.row_filter)
            consumed = pinned.describe_consumed(audit.measures, is_partial=is_partial)
            input_versions = pinned.describe()
            verdicts: Mapping[str, Verdict] = audit.verdicts
            for hook in self.run.hooks:
                verdicts = hook.judge(verdicts, audit.measures, pinned.target)
            verdicts = judge_by_readers(self.read_tests, audit, verdicts, self.run)
            found = [
                PartitionResult(
                    verdicts[key],
                    measures,
                    input_versions=input_versions,
                    consumed=consumed[key],
                    provisional=self.provisional.get(key, ""),
                    notes=describe_partition(self.run.hooks, key),
                )
                for key, measures in audit.measures.items()
            ]
            found += [
                replace(
                    withhold(key, FILES_ARE_READABLE, faults),
                    consumed=pinned.describe_consumed([key])[key],
                )
                for key, faults in describe_faults(audit.broken_files).items()
            ]
            if not pinned.target.exists:
                create_table(self.spark, pinned.target)  # Waits for what was begun ahead.
            judged, version, changed = self._write_judged(audit, window, found, results, pinned)
            withheld = [result for result in judged if result.verdict.withheld]
            published = [
                replace(result, version=version) for result in judged if not result.verdict.withheld
            ]
            if version is not None:
                read_log_ahead(self.spark, pinned.target)
                published = verify_publish(
                    audit.window, self.recipe, self.run, published, reader=self.reader
                )
            if self.ahead and (changed or any(result.version is None for result in published)):
                # What comes after was judged as if all this were published.
                self.ahead.drop()
        together = results + withheld + published
        return [replace(result, stated_in=version) for result in together], changed

    def _build_window(self, partitions: tuple[Partition, ...], pinned: PinnedInputs) -> InputWindow:
        return InputWindow(
            spark=self.spark,
            target=pinned.target,
            partitions=partitions,
            inputs=pinned.inputs,
            listing=pinned.restrict(partitions).listing,
            extra_fields=pinned.target.reread().extra_fields,
        )

    def _open_audit(
        self, window: InputWindow, pinned: PinnedInputs
    ) -> AbstractContextManager[Audit]:
        """Audits a window, unless it is audited together with what comes after it."""
        ahead = self.ahead
        if ahead is not None:
            audit = ahead.find(
                window.partitions,
                pinned,
                lambda lot: self._audit(self._build_window(lot, ahead.pinned)),
            )
            if audit is not None:
                return nullcontext(audit)
        return self._audit(window)

    def _audit(self, window: InputWindow) -> AbstractContextManager[Audit]:
        current = window.target.reread()
        if current.exists:
            read_log_ahead(self.spark, current)  # For the commit, while the audit is planned.
        published = current.publishes
        return audit_window(self.recipe, window, self.run, published, self.provisional)

    def _write_judged(
        self,
        audit: Audit,
        window: InputWindow,
        found: list[PartitionResult],
        others: list[PartitionResult],
        pinned: PinnedInputs,
    ) -> tuple[list[PartitionResult], int | None, set[str]]:
        """Keeps aside what is withheld or rejected, and commits what is good.

        All of it only of partitions that no other run has changed meanwhile: neither its rows nor
        those that it kept aside are replaced by what comes from older inputs.

        Args:
            audit: of the window.
            window: what was to be computed.
            found: results of its partitions.
            others: results of partitions that could not be computed, for the commit's statement.
            pinned: the inputs.

        Returns:
            The results of the partitions that nobody changed, the version that published the good
            ones (None if none is good), and the keys that another run changed.
        """
        changed: set[str] = set()
        while judged := [result for result in found if result.key not in changed]:
            is_whole = any(hook.is_whole for hook in self.run.hooks)
            if is_whole and (changed or any(one.verdict.withheld for one in judged)):
                return judged, None, changed
            keys = {result.key for result in judged}
            try:
                with hold_partitions(pinned.target, keys, run_id=self.run.run_id) as held:
                    for hook in self.run.hooks:
                        hook.check(held.newest, keys)
                    if not find_write_mode(self.run.options).restores:
                        self._keep_aside(audit, window, judged)
                    version = self._commit(audit, judged, others, pinned, held)
            except PartitionsChangedError as error:
                changed |= error.keys
            else:
                return judged, version, changed
        return [], None, changed

    def _keep_aside(self, audit: Audit, window: InputWindow, judged: list[PartitionResult]) -> None:
        keys = {result.key for result in judged}
        left = tuple(partition for partition in window.partitions if partition.key in keys)
        broken = [fault for fault in audit.broken_files if fault.partition.key in keys]
        withheld = [
            result for result in judged if result.verdict.withheld and result.key in audit.measures
        ]
        keep_rejected_records(
            audit.frame, replace(window, partitions=left), judged, broken, self.run
        )
        keep_withheld_rows(
            audit.rows, audit.window, withheld, self.run, retention_days=self.withheld_days
        )

    def _commit(
        self,
        audit: Audit,
        judged: list[PartitionResult],
        others: list[PartitionResult],
        pinned: PinnedInputs,
        held: HeldTable,
    ) -> int | None:
        good = [result for result in judged if not result.verdict.withheld]
        if not good:
            return None
        keys = {result.key for result in good}
        partitions = [partition for partition in audit.window.partitions if partition.key in keys]
        rows = audit.rows
        if not audit.is_whole or len(partitions) < len(audit.measures):
            slices = (partition.slice for partition in partitions)
            rows = rows.where(build_table_predicate(self.recipe.table, slices))
        options = self.run.options
        batches = find_write_mode(options).name_batches(partitions, pinned, options)
        record = build_record(
            self.recipe.table,
            partitions,
            run_id=self.run.run_id,
            code_version=self.recipe.code_version,
            input_versions=pinned.describe(),
            input_ids=pinned.identify(),
            options=options.describe(),
            rows={result.key: result.measures.rows for result in good},
            checksums={result.key: result.measures.checksum for result in good},
            profiles={result.key: result.measures.profile().to_json() for result in good},
            batches=batches,
            backfill_id=self.run.backfill_id or "",
            based_on=pinned.target.version,
            features=self.run.features,
            statement=build_statement(
                self.run,
                asset_key=self.recipe.table.key,
                table_uri=pinned.target.uri,
                code_version=self.recipe.code_version,
                input_versions=pinned.describe(),
                results=[*judged, *others],
            ),
            audit=describe_audits(good),
            consumed=CommitInputs.of({result.key: result.consumed for result in good}),
            provisional={one.key: one.provisional for one in good if one.provisional},
            notes={one.key: one.notes for one in good if one.notes},
        )
        table, transaction = self.recipe.table, None
        if batches:
            transaction = build_transaction(table, batches, find_held(held.newest, batches))
        fields = audit.find_fields(keys, stored=held.newest.extra_fields)
        add_columns(self.spark, held, find_missing_columns(held.newest, fields))
        return overwrite_held(
            rows.select(*extend_table(table, fields).column_names),
            held,
            partitions,
            record,
            transaction=transaction,
        )
