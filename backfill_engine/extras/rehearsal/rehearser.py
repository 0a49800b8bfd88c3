"""Computes and audits partitions as a run would, into tables of its own."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from backfill_engine.audit_columns import ENGINE_PREFIX
from backfill_engine.contents.partition_contents import PartitionReader
from backfill_engine.errors import RehearsalError
from backfill_engine.extras.comparison.diffs import compare_partitions
from backfill_engine.extras.comparison.rows import PartitionDiff
from backfill_engine.extras.rehearsal.records import (
    RehearsedPartition,
    RehearsedTable,
    find_scratch,
)
from backfill_engine.lake.partitions import Partition, build_partitions, build_table_predicate
from backfill_engine.lake.reader import build_number, read_table
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import build_record, create_table, overwrite_partitions
from backfill_engine.publishing.audit import Audit, audit_window, describe_faults, infer_columns
from backfill_engine.publishing.inputs import (
    PinnedInputs,
    list_landing,
    split_chunks,
)
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import Run, describe_failures
from backfill_engine.publishing.write_modes.choosing import choose_options
from backfill_engine.publishing.write_modes.options import APPEND_ONCE
from backfill_engine.resources import LakehouseResource
from backfill_engine.sources.input_window import InputWindow, Overlay
from backfill_engine.tables.declarations import Table


@dataclass
class Rehearser:
    """Rehearses tables one after the other; each reads what was rehearsed of those before it.

    Attributes:
        spark: the session.
        lakehouse: landing zone, published tables, bounds; none of the tables is touched.
        rehearsal_id: names it in the commits of `scratch`.
        at: when it began, UTC.
        reader: reads what is compared.
        overlays: what was rehearsed so far, by table key.
    """

    spark: SparkSession
    lakehouse: LakehouseResource
    rehearsal_id: str
    at: dt.datetime
    reader: PartitionReader
    overlays: dict[str, Overlay] = field(default_factory=dict)

    @property
    def warehouse(self) -> Warehouse:
        """The published tables."""
        return self.lakehouse.warehouse()

    @property
    def scratch(self) -> Warehouse:
        """Where the rehearsed tables are written."""
        return find_scratch(self.warehouse, self.rehearsal_id)

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
            inputs={read.key: read_log(self.warehouse, read) for read in recipe.inputs},
            listing=list_landing(recipe, self.lakehouse.landing_root, ready) if ready else None,
        )
        for chunk in self._split(ready, pinned):
            part = pinned.restrict(chunk)
            found |= self._rehearse_chunk(recipe, run, chunk, part, provisional)
        good = tuple(partition for partition in partitions if not found[partition.key].withheld)
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
            pinned.measure_bytes(partitions),
            max_partitions=self.lakehouse.chunk_partitions,
            max_bytes=self.lakehouse.chunk_bytes,
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
            result.key: RehearsedPartition(result.key, withheld=describe_failures(result.verdict))
            for result in pinned.withhold_never_landed()
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
            mapped=pinned.find_mapped(recipe, left),
        )
        recipe, target = infer_columns(recipe, window)
        window = replace(window, target=target)
        unfinished = pinned.listing.unfinished if pinned.listing else {}
        with audit_window(
            recipe, window, run, {**provisional, **unfinished}, adds_fields=False
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
            good = tuple(partition for partition in left if not found[partition.key].withheld)
            if good:
                self._write(recipe, audit, good)
        return found

    def _write(self, recipe: Recipe, audit: Audit, good: tuple[Partition, ...]) -> None:
        table = recipe.table
        create_table(self.spark, read_log(self.scratch, table))
        log = read_log(self.scratch, table)
        measures = {partition.key: audit.measures[partition.key] for partition in good}
        rows = audit.rows
        if len(good) < len(audit.measures):
            rows = rows.where(build_table_predicate(table, (partition.slice for partition in good)))
        record = build_record(
            table,
            good,
            run_id=self.rehearsal_id,
            code_version=recipe.code_version,
            input_versions={},
            options={"write_mode": table.write_mode},
            rows={key: measured.rows for key, measured in measures.items()},
            checksums={key: measured.checksum for key, measured in measures.items()},
        )
        overwrite_partitions(rows.select(*table.column_names), log, good, record)
        earlier = self.overlays.get(table.key)
        partitions = (*(earlier.partitions if earlier else ()), *good)
        self.overlays[table.key] = Overlay(log.reread(), partitions)

    def _compare(
        self,
        published: TableLog,
        good: tuple[Partition, ...],
        found: Mapping[str, RehearsedPartition],
    ) -> dict[str, RehearsedPartition]:
        if not published.exists:
            rows = {partition.key: found[partition.key].rows for partition in good}
            return {
                key: replace(found[key], diff=PartitionDiff(0, count, added=count))
                for key, count in rows.items()
            }
        rehearsed = self.overlays[published.table.key].log
        diffs = compare_partitions(published, rehearsed, good, reader=self.reader)
        differing = [partition for partition in good if not diffs[partition.key].equal]
        values = (
            count_changed_values(self.spark, published, rehearsed, differing) if differing else {}
        )
        shown = published.checksums
        return {
            partition.key: replace(
                found[partition.key],
                diff=diffs[partition.key],
                shown_checksum=shown.get(partition.key, ""),
                changed_values=values.get(partition.key, {}),
            )
            for partition in good
        }


_NUMBER = f"{ENGINE_PREFIX}number"

_DECIMALS = 6
"""To which checksums tell fractions apart (see `contents.checksums`)."""


def count_changed_values(
    spark: SparkSession, before: TableLog, after: TableLog, partitions: Sequence[Partition]
) -> dict[str, dict[str, int]]:
    """Counts, by partition key and column, rows of the same key with another value; in one job.

    Args:
        spark: the session.
        before: of the one table; it exists.
        after: of the other, of the same declaration.
        partitions: which to compare; at least one.

    Returns:
        Columns without a difference are left out, and partitions without any. Nothing of a table
        without a natural key.
    """
    table = before.table
    keys = list(dict.fromkeys(filter(None, (table.partition_by, *table.natural_key))))
    others = [name for name in table.column_names if name not in (*keys, table.folder_by)]
    if not table.natural_key or not others:
        return {}
    predicate = build_table_predicate(table, (partition.slice for partition in partitions))
    number = build_number(table.grain, table.partition_by).alias(_NUMBER)
    old, new = (
        read_table(spark, log).where(predicate).select(number, *keys, *others).alias(name)
        for log, name in ((before, "old"), (after, "new"))
    )
    counts = (F.count_if(~_equals(table, name)).alias(f"_{at}") for at, name in enumerate(others))
    rows = old.join(new, [_NUMBER, *keys]).groupBy(_NUMBER).agg(*counts).collect()
    by_number = {
        table.grain.find_number(partition.slice.start): partition.key for partition in partitions
    }
    found = {
        by_number[row[_NUMBER]]: {
            name: row[f"_{at}"] for at, name in enumerate(others) if row[f"_{at}"]
        }
        for row in rows
    }
    return {key: columns for key, columns in sorted(found.items()) if columns}


def _equals(table: Table, name: str) -> Column:
    types = {column.name: column.type for column in table.columns}
    old, new = F.col(f"old.`{name}`"), F.col(f"new.`{name}`")
    if types[name] in ("DOUBLE", "FLOAT"):
        old, new = F.round(old, _DECIMALS), F.round(new, _DECIMALS)
    return old.eqNullSafe(new)
