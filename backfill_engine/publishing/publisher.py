"""Publishes a chunk of partitions: the good ones in one commit, the bad ones kept aside."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from backfill_engine.contents.partition_contents import IN_THIS_PROCESS, PartitionReader
from backfill_engine.errors import TableError
from backfill_engine.lake.commits import CommitInputs
from backfill_engine.lake.partitions import Partition, build_table_predicate
from backfill_engine.lake.stored_declarations import check_grain, extend_table, find_missing_columns
from backfill_engine.lake.table_log import TableLog
from backfill_engine.lake.writer import (
    HeldTable,
    PartitionsChangedError,
    add_columns,
    build_record,
    create_table,
    hold_partitions,
    overwrite_held,
    prepare_ahead,
)
from backfill_engine.publishing.audit import (
    Audit,
    BatchedAudits,
    audit_window,
    describe_faults,
    infer_columns,
)
from backfill_engine.publishing.hooks import describe_partition
from backfill_engine.publishing.inputs import (
    PinnedInputs,
    pin_inputs,
)
from backfill_engine.publishing.read_tests import ReadTest, judge_by_readers
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import PartitionResult, Run, withhold
from backfill_engine.publishing.statements import (
    describe_audits,
    describe_result,
    describe_run,
    hash_statement,
)
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
    ahead: BatchedAudits | None = None
    read_tests: Sequence[ReadTest] = ()

    def publish_chunk(
        self, partitions: Sequence[Partition], pinned: PinnedInputs
    ) -> tuple[list[PartitionResult], TableLog]:
        """Computes, audits and publishes partitions, all together.

        Where another run changed some of them meanwhile, those are computed again from the inputs
        as they are then: the last to publish is always the one with the newest inputs.

        Args:
            partitions: ascending.
            pinned: the inputs, as they were when the step began.

        Returns:
            A result for each of `partitions`, ascending; and the log of the table, read since.

        Raises:
            LandingError: if landing files changed while they were read; nothing was published then.
            SparkUnavailableError: if Spark's workers lack what it takes to read the commit back;
                nothing was published then.
            TableError: if other runs keep changing the partitions.
        """
        table = self.recipe.table
        self._check_workers(partitions, pinned)
        pinned = replace(pinned, newest=pinned.current.reread())
        if not pinned.current.exists:
            prepare_ahead(self.spark, pinned.current)
        else:
            check_grain(pinned.current)
        results: dict[str, PartitionResult] = {}
        pending = tuple(partitions)
        changed: set[str] = set()
        for _ in range(_ROUNDS):
            attempt = _Attempt(self, pending, pinned.restrict(pending))
            found, changed, newest = attempt.publish()
            results.update({result.key: result for result in found})
            if not changed:
                return [results[partition.key] for partition in partitions], newest
            pending = tuple(partition for partition in pending if partition.key in changed)
            pinned = pin_inputs(
                newest,
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
        results, changed, _ = _Attempt(self, tuple(partitions), pinned).publish()
        if changed:
            raise TableError(
                f"{self.recipe.table.key}: another run has just changed "
                f"{', '.join(sorted(changed))}: look again at what is to be done"
            )
        return sorted(results, key=lambda result: result.key)

    def _check_workers(self, partitions: Sequence[Partition], pinned: PinnedInputs) -> None:
        sizes = pinned.measure_bytes(partitions)
        self.reader.check_workers(pinned.target, input_bytes=sum(sizes.values()))

    def audit(
        self, pinned: PinnedInputs, partitions: tuple[Partition, ...]
    ) -> AbstractContextManager[Audit]:
        """Computes and audits partitions; their rows stay persisted for as long as it is open."""
        current = pinned.current.reread()
        if current.exists:
            prepare_ahead(self.spark, current)  # For the commit, while the audit is planned.
        window = self._build_window(current, pinned, partitions)
        return audit_window(self.recipe, window, self.run, self.provisional)

    def infer_columns(
        self, pinned: PinnedInputs, partitions: Sequence[Partition]
    ) -> "tuple[Publisher, PinnedInputs]":
        """Returns publisher and inputs with all columns of a table that infers them."""
        window = self._build_window(pinned.target, pinned, partitions)
        recipe, target = infer_columns(self.recipe, window)
        return replace(self, recipe=recipe), replace(pinned, target=target)

    def _build_window(
        self, target: TableLog, pinned: PinnedInputs, partitions: Sequence[Partition]
    ) -> InputWindow:
        return InputWindow(
            spark=self.spark,
            target=target,
            partitions=tuple(partitions),
            inputs=pinned.inputs,
            listing=pinned.restrict(partitions).listing,
            extra_fields=target.extra_fields,
            mapped=pinned.find_mapped(self.recipe, partitions),
        )


@dataclass(frozen=True)
class _Attempt:
    """One attempt to publish partitions from the inputs that are pinned.

    Attributes:
        publisher: with the run.
        partitions: ascending.
        pinned: their inputs.
    """

    publisher: Publisher
    partitions: tuple[Partition, ...]
    pinned: PinnedInputs

    @property
    def run(self) -> Run:
        """The run."""
        return self.publisher.run

    def publish(self) -> tuple[list[PartitionResult], set[str], TableLog]:
        """Publishes what is good.

        Returns:
            Results, the keys that another run changed meanwhile, and the log of the table then.
        """
        publisher, target = self.publisher, self.pinned.target
        others = self._find_undoable()
        decided = {result.key for result in others}
        pending = tuple(partition for partition in self.partitions if partition.key not in decided)
        if not pending:
            return others, set(), self.pinned.current
        with self._open_audit(pending) as audit:
            if audit.window.listing is not None:
                audit.window.listing.check_unchanged()
            found = self._judge(audit)
            if not target.exists:
                create_table(publisher.spark, target)  # Waits for what was begun ahead.
            judged, version, changed, newest = self._write_judged(audit, found, others)
            withheld = [result for result in judged if result.verdict.withheld]
            published = [
                replace(result, version=version) for result in judged if not result.verdict.withheld
            ]
            if version is not None:
                prepare_ahead(publisher.spark, newest)
                published = verify_publish(
                    audit.window,
                    newest,
                    publisher.recipe,
                    self.run,
                    published,
                    reader=publisher.reader,
                )
            ahead = publisher.ahead
            if ahead and (changed or any(result.version is None for result in published)):
                # What comes after was judged as if all this were published.
                ahead.drop()
        together = others + withheld + published
        return [replace(result, stated_in=version) for result in together], changed, newest

    def _find_undoable(self) -> list[PartitionResult]:
        """Finds the partitions of which nothing is to be computed."""
        mode = find_write_mode(self.run.options)
        results = self.pinned.withhold_foreign(self.partitions, keeps_rows=mode.keeps_rows)
        foreign = {result.key for result in results}
        results += [
            result for result in self.pinned.withhold_never_landed() if result.key not in foreign
        ]
        decided = {result.key for result in results}
        landed = [partition for partition in self.partitions if partition.key not in decided]
        return results + mode.find_repeated(landed, self.pinned, self.run.options)

    def _open_audit(self, partitions: tuple[Partition, ...]) -> AbstractContextManager[Audit]:
        """Audits partitions, unless they are audited together with what comes after them."""
        publisher, ahead = self.publisher, self.publisher.ahead
        if ahead is not None and ahead.pinned.target is self.pinned.target:
            pinned = replace(ahead.pinned, newest=self.pinned.current)
            audit = ahead.find(partitions, lambda lot: publisher.audit(pinned, lot))
            if audit is not None:
                return nullcontext(audit)
        return publisher.audit(self.pinned, partitions)

    def _judge(self, audit: Audit) -> list[PartitionResult]:
        """Adds to the audit's verdicts what hooks and readers of the table find."""
        publisher, pinned = self.publisher, self.pinned
        is_partial = bool(self.run.options.row_filter)
        consumed = pinned.describe_consumed(audit.measures, is_partial=is_partial)
        input_versions = pinned.describe()
        verdicts: Mapping[str, Verdict] = audit.verdicts
        for hook in self.run.hooks:
            verdicts = hook.judge(verdicts, audit.measures, pinned.current.reread())
        tests, source = publisher.read_tests, pinned.current
        verdicts = judge_by_readers(tests, audit, source, verdicts, self.run)
        found = [
            PartitionResult(
                verdicts[key],
                measures,
                input_versions=input_versions,
                consumed=consumed[key],
                provisional=publisher.provisional.get(key, ""),
                notes=describe_partition(self.run.hooks, key),
            )
            for key, measures in audit.measures.items()
        ]
        return found + [
            replace(
                withhold(key, FILES_ARE_READABLE, faults),
                consumed=pinned.describe_consumed([key])[key],
            )
            for key, faults in describe_faults(audit.broken_files).items()
        ]

    def _write_judged(
        self, audit: Audit, found: list[PartitionResult], others: list[PartitionResult]
    ) -> tuple[list[PartitionResult], int | None, set[str], TableLog]:
        """Keeps aside what is withheld or rejected, and commits what is good.

        All of it only of partitions that no other run has changed meanwhile: neither its rows nor
        those that it kept aside are replaced by what comes from older inputs.

        Args:
            audit: of the partitions.
            found: their results.
            others: results of partitions that could not be computed, for the commit's statement.

        Returns:
            The results of the partitions that nobody changed, the version that published the good
            ones (None if none is good), the keys that another run changed, and the newest log.
        """
        changed, newest = set[str](), self.pinned.current
        while judged := [result for result in found if result.key not in changed]:
            is_whole = any(hook.is_whole for hook in self.run.hooks)
            if is_whole and (changed or any(result.verdict.withheld for result in judged)):
                return judged, None, changed, newest
            keys = {result.key for result in judged}
            try:
                with hold_partitions(
                    self.pinned.target, keys, run_id=self.run.run_id, newest=newest
                ) as held:
                    for hook in self.run.hooks:
                        hook.check(held.newest, keys)
                    if not find_write_mode(self.run.options).restores:
                        self._keep_aside(audit, judged)
                    version, newest = self._commit(audit, judged, others, held)
            except PartitionsChangedError as error:
                changed |= error.keys
            else:
                return judged, version, changed, newest
        return [], None, changed, newest

    def _keep_aside(self, audit: Audit, judged: list[PartitionResult]) -> None:
        keys = {result.key for result in judged}
        left = tuple(partition for partition in self.partitions if partition.key in keys)
        broken = [fault for fault in audit.broken_files if fault.partition.key in keys]
        withheld = [
            result for result in judged if result.verdict.withheld and result.key in audit.measures
        ]
        window = replace(audit.window, partitions=left)
        keep_rejected_records(audit.frame, window, judged, broken, self.run)
        days = self.publisher.withheld_days
        keep_withheld_rows(audit.rows, audit.window, withheld, self.run, retention_days=days)

    def _commit(
        self,
        audit: Audit,
        judged: list[PartitionResult],
        others: list[PartitionResult],
        held: HeldTable,
    ) -> tuple[int | None, TableLog]:
        good = [result for result in judged if not result.verdict.withheld]
        if not good:
            return None, held.newest
        recipe, pinned, options = self.publisher.recipe, self.pinned, self.run.options
        keys = {result.key for result in good}
        partitions = [partition for partition in audit.window.partitions if partition.key in keys]
        rows = audit.rows
        if not audit.is_whole or len(partitions) < len(audit.measures):
            slices = (partition.slice for partition in partitions)
            rows = rows.where(build_table_predicate(recipe.table, slices))
        batches = find_write_mode(options).name_batches(partitions, pinned, options)
        record = build_record(
            recipe.table,
            partitions,
            run_id=self.run.run_id,
            code_version=recipe.code_version,
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
            statement=hash_statement(
                describe_run(
                    self.run,
                    asset_key=recipe.table.key,
                    table_uri=pinned.target.uri,
                    code_version=recipe.code_version,
                ),
                options,
                pinned.describe(),
                map(describe_result, [*judged, *others]),
            ),
            audit=describe_audits(good),
            consumed=CommitInputs.of({result.key: result.consumed for result in good}),
            provisional={result.key: result.provisional for result in good if result.provisional},
            notes={result.key: result.notes for result in good if result.notes},
        )
        table, transaction = recipe.table, None
        if batches:
            transaction = build_transaction(table, batches, find_held(held.newest, batches))
        fields = audit.find_fields(keys, stored=held.newest.extra_fields)
        add_columns(self.publisher.spark, held, find_missing_columns(held.newest, fields))
        return overwrite_held(
            rows.select(*extend_table(table, fields).column_names),
            held,
            partitions,
            record,
            transaction=transaction,
            writes=find_write_mode(options).writes,
        )
