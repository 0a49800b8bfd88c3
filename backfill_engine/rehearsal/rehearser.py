"""Computes and audits partitions as a run would, into tables of its own."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from backfill_engine.contents.partition_reader import IN_THIS_PROCESS, PartitionReader
from backfill_engine.errors import RehearsalError
from backfill_engine.lake.partitions import Partition, build_partitions, build_table_predicate
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import build_record, create_table, overwrite_partitions
from backfill_engine.proof.diffs import compare_partitions
from backfill_engine.proof.row_comparison import PartitionDiff
from backfill_engine.publishing.audit import Audit, audit_window, describe_faults
from backfill_engine.publishing.inputs import (
    PinnedInputs,
    list_landing,
    measure_input_bytes,
    split_chunks,
    withhold_never_landed,
)
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import Run, describe_failures
from backfill_engine.publishing.write_modes.choosing import choose_options
from backfill_engine.publishing.write_modes.options import APPEND_ONCE
from backfill_engine.rehearsal.changed_values import count_changed_values
from backfill_engine.rehearsal.records import RehearsedPartition, RehearsedTable
from backfill_engine.sources.input_window import InputWindow, WrittenOverlay


@dataclass
class Rehearser:
    """Rehearses tables one after the other; each reads what was rehearsed of those before it.

    Attributes:
        spark: the session.
        warehouse: the published tables; none of them is touched.
        scratch: where the rehearsed ones are written.
        landing_root: root of the landing zone.
        chunk_partitions: most partitions to compute at once.
        chunk_bytes: most bytes of input to compute from at once.
        rehearsal_id: names it in the commits of `scratch`.
        at: when it began, UTC.
        reader: reads what is compared.
        overlays: what was rehearsed so far, by table key.
    """

    spark: SparkSession
    warehouse: Warehouse
    scratch: Warehouse
    landing_root: str
    chunk_partitions: int
    chunk_bytes: int
    rehearsal_id: str
    at: dt.datetime
    reader: PartitionReader = IN_THIS_PROCESS
    overlays: dict[str, WrittenOverlay] = field(default_factory=dict)

    def rehearse(
        self,
        recipe: Recipe,
        keys: Sequence[str],
        *,
        blocked: Mapping[str, str],
        provisional: Mapping[str, str],
    ) -> RehearsedTable:
        """Computes and audits partitions of a table, and compares what is published.

        Args:
            recipe: how the table is made.
            keys: of the partitions.
            blocked: why some of them could not go, by key.
            provisional: by key, what of a partition's input is not there yet, or not final.

        Raises:
            RehearsalError: if what the table would become depends on how often it is run.
            LandingError: if the landing zone can't be listed, or changes meanwhile.
        """
        table, options = recipe.table, choose_options(recipe.table)
        if options.write_mode == APPEND_ONCE:
            raise RehearsalError(
                f"{table.key} is appended to, batch by batch: there is nothing to compare; leave "
                "it out with --select"
            )
        published = read_log(self.warehouse, table)
        partitions = build_partitions(table, keys)
        ready = [partition for partition in partitions if partition.key not in blocked]
        run = Run(run_id=self.rehearsal_id, started_at=self.at, options=options)
        found = {key: RehearsedPartition(key, withheld=why) for key, why in blocked.items()}
        pinned = PinnedInputs(
            target=published,
            inputs={one.key: read_log(self.warehouse, one) for one in recipe.inputs},
            listing=list_landing(recipe, self.landing_root, ready) if ready else None,
        )
        for chunk in self._split(ready, pinned):
            part = pinned.restrict(chunk)
            found |= self._rehearse_chunk(recipe, run, chunk, part, provisional)
        good = tuple(one for one in partitions if not found[one.key].withheld)
        if good:
            found |= self._compare(published, good, found)
        return RehearsedTable(
            table=table.key,
            code_version=recipe.code_version,
            version=published.version,
            partitions=tuple(found[partition.key] for partition in partitions),
        )

    def _split(
        self, partitions: Sequence[Partition], pinned: PinnedInputs
    ) -> list[tuple[Partition, ...]]:
        return split_chunks(
            partitions,
            measure_input_bytes(pinned, partitions),
            max_partitions=self.chunk_partitions,
            max_bytes=self.chunk_bytes,
        )

    def _rehearse_chunk(
        self,
        recipe: Recipe,
        run: Run,
        partitions: tuple[Partition, ...],
        pinned: PinnedInputs,
        provisional: Mapping[str, str],
    ) -> dict[str, RehearsedPartition]:
        found = {
            one.key: RehearsedPartition(one.key, withheld=describe_failures(one.verdict))
            for one in withhold_never_landed(pinned)
        }
        left = tuple(partition for partition in partitions if partition.key not in found)
        if not left:
            return found
        window = InputWindow(
            spark=self.spark,
            target=pinned.target,
            partitions=left,
            inputs=pinned.inputs,
            listing=pinned.restrict(left).listing,
            extra_fields=pinned.target.extra_fields,
            overlays=self.overlays,
        )
        publishes = pinned.target.publishes
        unfinished = pinned.listing.unfinished if pinned.listing else {}
        with audit_window(
            recipe, window, run, publishes, {**provisional, **unfinished}, adds_fields=False
        ) as audit:
            if pinned.listing is not None:
                pinned.listing.check_unchanged()
            for key, faults in describe_faults(audit.broken_files).items():
                found[key] = RehearsedPartition(key, withheld=faults)
            for key, verdict in audit.verdicts.items():
                why, measures = describe_failures(verdict), audit.measures[key]
                found[key] = (
                    RehearsedPartition(key, withheld=why)
                    if verdict.withheld
                    else RehearsedPartition(key, rows=measures.rows, checksum=measures.checksum)
                )
            good = tuple(one for one in left if not found[one.key].withheld)
            if good:
                self._write(recipe, audit, good)
        return found

    def _write(self, recipe: Recipe, audit: Audit, good: tuple[Partition, ...]) -> None:
        table = recipe.table
        create_table(self.spark, read_log(self.scratch, table))
        log = read_log(self.scratch, table)
        measures = {one.key: audit.measures[one.key] for one in good}
        rows = audit.rows
        if len(good) < len(audit.measures):
            rows = rows.where(build_table_predicate(table, (one.slice for one in good)))
        record = build_record(
            table,
            good,
            run_id=self.rehearsal_id,
            code_version=recipe.code_version,
            input_versions={},
            write_mode=table.write_mode,
            rows={key: one.rows for key, one in measures.items()},
            checksums={key: one.checksum for key, one in measures.items()},
        )
        overwrite_partitions(rows.select(*table.column_names), log, good, record)
        earlier = self.overlays.get(table.key)
        partitions = (*(earlier.partitions if earlier else ()), *good)
        self.overlays[table.key] = WrittenOverlay(partitions, log.reread())

    def _compare(
        self,
        published: TableLog,
        good: tuple[Partition, ...],
        found: Mapping[str, RehearsedPartition],
    ) -> dict[str, RehearsedPartition]:
        if not published.exists:
            return {
                one.key: replace(found[one.key], diff=_add_all(found[one.key].rows)) for one in good
            }
        rehearsed = self.overlays[published.table.key].log
        diffs = compare_partitions(published, rehearsed, good, reader=self.reader)
        differing = [one for one in good if not diffs[one.key].equal]
        values = (
            count_changed_values(self.spark, published, rehearsed, differing) if differing else {}
        )
        shown = published.checksums
        return {
            one.key: replace(
                found[one.key],
                diff=diffs[one.key],
                shown_checksum=shown.get(one.key, ""),
                changed_values=values.get(one.key, {}),
            )
            for one in good
        }


def _add_all(rows: int) -> PartitionDiff:
    return PartitionDiff(rows_before=0, rows_after=rows, added=rows)
