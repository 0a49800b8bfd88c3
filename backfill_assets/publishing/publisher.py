"""Publishes a chunk of partitions: the good ones in one commit, the bad ones kept aside."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from backfill_assets.contents.read_back import read_back
from backfill_assets.errors import TableError
from backfill_assets.lake.batches import build_transaction
from backfill_assets.lake.commits import WriteMode
from backfill_assets.lake.partitions import build_table_predicate
from backfill_assets.lake.reader import read_table
from backfill_assets.lake.slices import Partition
from backfill_assets.lake.table_log import find_latest_publishes, read_commits
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.lake.window import Window
from backfill_assets.lake.writer import (
    PartitionsChangedError,
    Provenance,
    PublishedContent,
    create_table,
    overwrite_partitions,
)
from backfill_assets.publishing.appending import find_repeated, name_batches
from backfill_assets.publishing.audit import Audit, audit_window
from backfill_assets.publishing.evolution import extend_table, find_extra_fields
from backfill_assets.publishing.inputs import PinnedInputs, find_never_landed, pin_inputs
from backfill_assets.publishing.recipes import Recipe
from backfill_assets.publishing.results import PartitionResult, withhold
from backfill_assets.publishing.withholding import keep_rejected_records, keep_withheld_rows
from backfill_assets.publishing.write_options import OVERWRITE, WriteOptions
from backfill_assets.quality.measures import measure_partitions
from backfill_assets.rules.measured import PartitionMeasures
from backfill_assets.rules.verdicts import Acceptance, Check, Finding, Outcome

_ROUNDS = 5


@dataclass(frozen=True)
class Publisher:
    """All that a run needs to publish partitions of one table.

    Attributes:
        spark: the session.
        warehouse: the Delta tables.
        recipe: how the table is made.
        landing_root: root of the landing zone.
        run_id: the run.
        today: the UTC day of the run.
        withheld_days: for how many days withheld rows are kept.
        acceptances: failed checks that a person lets pass.
        options: how what is computed gets together with what is published.
    """

    spark: SparkSession
    warehouse: Warehouse
    recipe: Recipe
    landing_root: str
    run_id: str
    today: dt.date
    withheld_days: int
    acceptances: tuple[Acceptance, ...] = ()
    options: WriteOptions = OVERWRITE

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
            One result for each of `partitions`, ascending.

        Raises:
            LandingError: if landing files changed while they were read; nothing was published then.
            TableError: if other runs keep changing the partitions.
        """
        create_table(self.spark, self.warehouse, self.recipe.table)
        results: dict[str, PartitionResult] = {}
        pending = tuple(partitions)
        changed: set[str] = set()
        for _ in range(_ROUNDS):
            found, changed = self._publish_once(pending, pinned.restrict(pending))
            results.update({one.key: one for one in found})
            if not changed:
                return [results[partition.key] for partition in partitions]
            pending = tuple(one for one in pending if one.key in changed)
            pinned = pin_inputs(
                self.warehouse, self.recipe, landing_root=self.landing_root, partitions=pending
            )
        raise TableError(
            f"{self.recipe.table.key}: other runs keep changing {', '.join(sorted(changed))}: "
            "let them end, then run these partitions again"
        )

    def publish_as_pinned(
        self, partitions: Sequence[Partition], pinned: PinnedInputs
    ) -> list[PartitionResult]:
        """As `publish_chunk`, but from these inputs or not at all: for what restores a version.

        Raises:
            TableError: if another run changed some of the partitions since; the others are done.
        """
        results, changed = self._publish_once(tuple(partitions), pinned)
        if changed:
            raise TableError(
                f"{self.recipe.table.key}: another run has just changed "
                f"{', '.join(sorted(changed))}: look again at what is to be done"
            )
        return sorted(results, key=lambda one: one.key)

    def _publish_once(
        self, partitions: tuple[Partition, ...], pinned: PinnedInputs
    ) -> tuple[list[PartitionResult], set[str]]:
        """One round: the results, and the keys that another run changed meanwhile."""
        table = self.recipe.table
        never_landed = find_never_landed(self.warehouse, self.recipe, pinned)
        results = [
            withhold(key, "landing_files_exist", "nothing has ever landed")
            for key in sorted(never_landed)
        ]
        landed = tuple(one for one in partitions if one.key not in never_landed)
        if self.options.mode is WriteMode.APPEND_ONCE:
            repeated = find_repeated(self.warehouse, table, landed, pinned, self.options)
            written = {one.key for one in repeated}
            landed = tuple(one for one in landed if one.key not in written)
            results += repeated
        if not landed:
            return results, set()
        window = Window(
            spark=self.spark,
            warehouse=self.warehouse,
            table=table,
            partitions=landed,
            versions=pinned.versions,
            listing=pinned.restrict(landed).listing,
            extra_fields=find_extra_fields(self.warehouse, table),
        )
        commits = read_commits(self.warehouse, table)
        with audit_window(
            self.recipe,
            window,
            options=self.options,
            base_version=pinned.base_version,
            commits=commits,
            acceptances=self.acceptances,
        ) as audit:
            if pinned.listing is not None:
                pinned.listing.check_unchanged()
            found = [
                PartitionResult(audit.verdicts[key], measures, input_versions=pinned.describe())
                for key, measures in audit.measures.items()
            ]
            for partition, name in audit.broken_files:
                results.append(
                    withhold(partition.key, "files_are_readable", f"{name} can't be read")
                )
            bad = [one for one in found if one.verdict.withheld]
            if self.options.mode is not WriteMode.ROLLBACK:
                self._keep_aside(audit, window, found, bad)
            good = [one for one in found if not one.verdict.withheld]
            published, changed = self._publish_good(audit, good, pinned)
        return results + bad + published, changed

    def _keep_aside(
        self,
        audit: Audit,
        window: Window,
        found: list[PartitionResult],
        bad: list[PartitionResult],
    ) -> None:
        keep_rejected_records(
            audit.frame,
            window,
            found,
            audit.broken_files,
            run_id=self.run_id,
            today=self.today,
        )
        keep_withheld_rows(
            audit.rows,
            audit.window,
            bad,
            run_id=self.run_id,
            today=self.today,
            retention_days=self.withheld_days,
        )

    def _publish_good(
        self, audit: Audit, good: list[PartitionResult], pinned: PinnedInputs
    ) -> tuple[list[PartitionResult], set[str]]:
        changed: set[str] = set()
        while left := [one for one in good if one.key not in changed]:
            try:
                version = self._commit(audit, left, pinned)
            except PartitionsChangedError as error:
                changed |= error.keys
            else:
                published = [replace(one, version=version) for one in left]
                return self._verify(audit.window, published), changed
        return [], changed

    def _commit(self, audit: Audit, good: list[PartitionResult], pinned: PinnedInputs) -> int:
        keys = {one.key for one in good}
        partitions = [one for one in audit.window.partitions if one.key in keys]
        rows = audit.rows
        if len(partitions) < len(audit.measures):
            slices = (one.slice for one in partitions)
            rows = rows.where(build_table_predicate(self.recipe.table, slices))
        content = _describe_content({one.key: one.measures for one in good}, good)
        transaction = None
        if self.options.mode is WriteMode.APPEND_ONCE:
            batches = name_batches(partitions, pinned, self.options)
            content = replace(content, batches=batches)
            commits = read_commits(self.warehouse, self.recipe.table)
            transaction = build_transaction(
                self.recipe.table, batches, find_latest_publishes(commits)
            )
        return overwrite_partitions(
            rows,
            warehouse=self.warehouse,
            table=extend_table(self.recipe.table, audit.window.extra_fields),
            partitions=partitions,
            content=replace(content, row_filter=self.options.row_filter),
            provenance=self._provenance(pinned),
            base_version=pinned.base_version,
            write_mode=self.options.mode,
            transaction=transaction,
        )

    def _provenance(self, pinned: PinnedInputs) -> Provenance:
        return Provenance(self.run_id, self.recipe.code_version, pinned.describe())

    def _verify(self, window: Window, published: list[PartitionResult]) -> list[PartitionResult]:
        """Reads back what was published, without Spark; what isn't as audited is taken back."""
        version = published[0].version
        assert version is not None
        by_key = {one.key: one for one in window.partitions}
        partitions = [by_key[one.key] for one in published]
        seen = read_back(self.warehouse, self.recipe.table, partitions, version=version)
        verified: list[PartitionResult] = []
        unreadable: list[Partition] = []
        for one in published:
            there, audited = seen[one.key], one.measures
            same = (there.rows, there.checksum) == (audited.rows, audited.checksum)
            finding = Finding(
                "content_is_as_audited",
                float(there.rows),
                f"{audited.rows} rows with checksum {audited.checksum}, found {there.checksum}",
                Outcome.PASSED if same else Outcome.FAILED,
            )
            verdict = replace(
                one.verdict, findings={**one.verdict.findings, Check.READABLE: (finding,)}
            )
            verified.append(replace(one, verdict=verdict, version=version if same else None))
            if not same:
                unreadable.append(by_key[one.key])
        if unreadable:
            self._restore(window, unreadable, version=version)
        return verified

    def _restore(self, window: Window, partitions: list[Partition], *, version: int) -> None:
        """Puts back what the partitions held before `version`, where no other run replaced them."""
        table = extend_table(self.recipe.table, window.extra_fields)
        left = partitions
        while left:
            predicate = build_table_predicate(table, (one.slice for one in left))
            rows = read_table(self.spark, self.warehouse, table, version=version - 1)
            rows = rows.where(predicate)
            measures = measure_partitions(rows, self.recipe.table, left)
            try:
                overwrite_partitions(
                    rows,
                    warehouse=self.warehouse,
                    table=table,
                    partitions=left,
                    content=_describe_content(measures, ()),
                    provenance=Provenance(
                        self.run_id, self.recipe.code_version, {table.key: version - 1}
                    ),
                    base_version=version,
                    write_mode=WriteMode.TAKE_BACK,
                )
            except PartitionsChangedError as error:
                left = [one for one in left if one.key not in error.keys]
            else:
                return


def _describe_content(
    measures: dict[str, PartitionMeasures], results: Sequence[PartitionResult]
) -> PublishedContent:
    return PublishedContent(
        rows={key: one.rows for key, one in measures.items()},
        checksums={key: one.checksum for key, one in measures.items()},
        profiles={key: one.profile().to_json() for key, one in measures.items()},
        accepted=[
            {"partition": one.key, "check": accepted.check, "reason": accepted.reason}
            for one in results
            for accepted in one.verdict.accepted
        ],
    )
