"""Rehearses the switch of a served table to another version, a stage at a time, and judges each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from backfill_engine.extras.rehearsal.applying import Shown
from backfill_engine.extras.rehearsal.records import (
    Gates,
    Rehearsal,
    RehearsedPartition,
    RehearsedTable,
    locate_beside_rehearsal,
    write_rehearsal,
)
from backfill_engine.extras.rehearsal.rehearser import Rehearser
from backfill_engine.extras.versions.column_shifts import ColumnShift, find_shifted, measure_shifts
from backfill_engine.extras.versions.promotions import Promotion, find_drifted, find_missing
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
        table, gates = self.recipe.table, self.promotion.gates
        stage = self.rehearser.rehearse(self.recipe, keys, blocked={}, provisional={})
        self.served += stage.partitions
        good = [one.partition for one in stage.partitions if not one.withheld]
        partitions = build_partitions(table, good)
        shifts: list[ColumnShift] = []
        if good:
            scratch = self.rehearser.overlays[table.key].log
            spark = self.rehearser.spark
            shifts = measure_shifts(spark, self.published, scratch, partitions)
        # Of a partition that consumers can't read yet nothing shifts.
        known = [one for one in shifts if one.partition in self.published.publishes]
        self.shifts += known
        beyond = find_drifted(stage, gates) + find_shifted(
            known, max_mean_shift=gates.max_mean_shift, max_null_shift=gates.max_null_shift
        )
        self._add(missing=find_missing(stage), beyond=beyond)

    def rehearse_reader(
        self, recipe: Recipe, keys: Sequence[str], provisional: Mapping[str, str]
    ) -> None:
        """Builds partitions of what reads the served table, over what was rehearsed of that.

        Raises:
            BackfillError: if they can't be computed at all.
        """
        reader = self.rehearser.rehearse(recipe, keys, blocked={}, provisional=provisional)
        self.readers.append(reader)
        withheld = (one for one in reader.partitions if one.withheld)
        self._add(
            missing=[
                f"{reader.table} {one.partition} can't be built from it: {one.withheld}"
                for one in withheld
            ]
        )

    def list_shown(self) -> dict[str, Shown]:
        """Lists what was rehearsed of the served table, by partition key."""
        return {
            one.partition: Shown(one.rows, one.checksum, one.shown_checksum)
            for one in self.served
            if not one.withheld
        }

    def keep(self) -> None:
        """Keeps the differences, as of any rehearsal, and draws them on a page.

        Takes time to import what draws; the scratch tables must still be there.
        """
        promotion, warehouse = self.promotion, self.rehearser.warehouse
        partitions = tuple(sorted(self.served, key=lambda one: one.partition))
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

    def _add(self, *, missing: Sequence[str] = (), beyond: Sequence[str] = ()) -> None:
        self.promotion = replace(
            self.promotion,
            missing=(*self.promotion.missing, *missing),
            beyond=(*self.promotion.beyond, *beyond),
        )

    def _draw(self) -> str:
        from backfill_engine.extras.versions.drift_page import (
            JudgedGate,
            VersionChange,
            build_drift_page,
            find_most_drifted,
            read_distributions,
        )

        promotion, table = self.promotion, self.recipe.table
        accepted = f"accepted: {promotion.accepted}" if promotion.accepted else "refused"
        change = VersionChange(
            table=promotion.table,
            before=promotion.before,
            after=promotion.version,
            by=promotion.by or "somebody",
            at=promotion.at,
            reason=promotion.why,
            verdict="nothing stands against it" if promotion.may_go else "it is not served",
            gates=[
                *(JudgedGate("missing", what, "refused") for what in promotion.missing),
                *(JudgedGate("drift", what, accepted) for what in promotion.beyond),
            ],
        )
        diffs = {one.partition: one.diff for one in self.served if one.diff and one.shown_checksum}
        most = find_most_drifted(diffs)
        distributions = None
        if most is not None:
            (partition,) = build_partitions(table, [most])
            scratch = self.rehearser.overlays[table.key].log
            distributions = read_distributions(self.published, scratch, partition)
        return build_drift_page(
            table, change, self.shifts, diffs, distributions, max_psi=promotion.gates.max_psi
        )
