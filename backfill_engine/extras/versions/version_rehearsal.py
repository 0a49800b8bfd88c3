"""Rehearses the switch of a served table to another version, a stage at a time, and judges each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from backfill_engine.extras.rehearsal.records import (
    Gates,
    Rehearsal,
    RehearsedPartition,
    RehearsedTable,
    locate_beside_rehearsal,
    write_rehearsal,
)
from backfill_engine.extras.rehearsal.rehearser import Rehearser
from backfill_engine.extras.versions.column_shifts import ColumnShift, measure_shifts
from backfill_engine.extras.versions.drift_page import (
    build_drift_page,
    find_most_drifted,
    read_histograms,
)
from backfill_engine.extras.versions.promotions import (
    Promotion,
    describe_of,
    find_beyond,
    find_missing,
)
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import TableLog
from backfill_engine.lake.whole_files import write_file
from backfill_engine.publishing.recipes import Recipe

PAGE = "drift.html"


@dataclass
class VersionRehearsal:
    """What was rehearsed of a switch so far, and what stands against it.

    Attributes:
        rehearser: computes and audits, into scratch tables.
        recipe: of the served table, with the version that it is to hold as its input.
        published: log of the served table.
        promotion: what was found; each stage adds to it.
        served: partitions of the served table, in the order of the stages.
        readers: what reads it.
        shifts: of its columns.
    """

    rehearser: Rehearser
    recipe: Recipe
    published: TableLog
    promotion: Promotion
    served: list[RehearsedPartition] = field(default_factory=list)
    readers: list[RehearsedTable] = field(default_factory=list)
    shifts: list[ColumnShift] = field(default_factory=list)

    def rehearse_stage(self, keys: Sequence[str]) -> None:
        """Rehearses partitions of the served table, and compares them with what is published.

        Raises:
            BackfillError: if they can't be computed at all.
        """
        table = self.recipe.table
        stage = self.rehearser.rehearse(self.recipe, keys, blocked={}, provisional={})
        self.served += stage.partitions
        shifts: list[ColumnShift] = []
        if stage.good:
            scratch, spark = self.rehearser.overlays[table.key].log, self.rehearser.spark
            partitions = build_partitions(table, stage.good)
            shifts = measure_shifts(spark, self.published, scratch, partitions)
        # Of a partition that consumers can't read yet nothing shifts.
        known = [shift for shift in shifts if shift.partition in self.published.publishes]
        self.shifts += known
        beyond = find_beyond(table, self.promotion.gates, self.served, self.shifts)
        self.promotion = replace(self.promotion, beyond=tuple(beyond))
        self._miss(find_missing(table, stage.partitions))

    def rehearse_reader(
        self, recipe: Recipe, keys: Sequence[str], provisional: Mapping[str, str]
    ) -> None:
        """Builds partitions of what reads the served table, over what was rehearsed of that.

        Raises:
            BackfillError: if they can't be computed at all.
        """
        reader = self.rehearser.rehearse(recipe, keys, blocked={}, provisional=provisional)
        self.readers.append(reader)
        texts = {
            partition.partition: f"can't be built from it: {partition.withheld}"
            for partition in reader.withheld
        }
        self._miss(describe_of(recipe.table, texts))

    def keep(self) -> None:
        """Keeps the differences, as of any rehearsal, and draws them on a page.

        The scratch tables must still be there.
        """
        promotion, warehouse = self.promotion, self.rehearser.warehouse
        partitions = tuple(sorted(self.served, key=lambda rehearsed: rehearsed.partition))
        served = RehearsedTable(
            self.recipe.table.key, self.recipe.code_version, self.published.version, partitions
        )
        rehearsal = Rehearsal(
            rehearsal_id=promotion.promotion_id,
            at=promotion.at,
            reason=promotion.why,
            gates=Gates(max_psi=promotion.gates.max_psi),
            tables=(served, *self.readers),
            exceeded=promotion.beyond,
        )
        write_rehearsal(warehouse, rehearsal)
        page = self._draw().encode()
        place = locate_beside_rehearsal(warehouse, promotion.promotion_id, PAGE)
        write_file(place, page)
        self.promotion = replace(promotion, page=place)

    def _miss(self, lines: Sequence[str]) -> None:
        self.promotion = replace(self.promotion, missing=(*self.promotion.missing, *lines))

    def _draw(self) -> str:
        table = self.recipe.table
        diffs = {
            rehearsed.partition: rehearsed.diff
            for rehearsed in self.served
            if rehearsed.diff and rehearsed.shown_checksum
        }
        most, histograms = find_most_drifted(diffs), None
        if most is not None:
            (partition,) = build_partitions(table, [most])
            scratch = self.rehearser.overlays[table.key].log
            histograms = read_histograms(self.published, scratch, partition)
        return build_drift_page(self.promotion, table, self.shifts, diffs, histograms)
