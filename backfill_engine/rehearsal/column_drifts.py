"""How each column moved over all partitions: series of what `column_shifts` and diffs measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backfill_engine.proof.row_comparison import PartitionDiff
from backfill_engine.rehearsal.column_shifts import ColumnShift
from backfill_engine.rules.drift import Drift
from backfill_engine.tables.declarations import Column, Table


@dataclass(frozen=True)
class ColumnDrift:
    """One column, its figures by partition key; partitions of which one isn't known are left out.

    Attributes:
        column: its declaration.
        rules: those that bound its PSI.
        means_before: see `ColumnShift`, likewise the next five; null shares are of partitions that
            have rows.
        means_after: see there.
        mean_shifts: see there.
        nulls_before: see there.
        nulls_after: see there.
        null_shifts: see there.
        psi: see `PartitionDiff`; 0 of partitions that are equal.
    """

    column: Column
    rules: tuple[Drift, ...]
    means_before: Mapping[str, float]
    means_after: Mapping[str, float]
    mean_shifts: Mapping[str, float]
    nulls_before: Mapping[str, float]
    nulls_after: Mapping[str, float]
    null_shifts: Mapping[str, float]
    psi: Mapping[str, float]

    @property
    def is_measured(self) -> bool:
        """Whether there are any figures."""
        return bool(self.null_shifts or self.psi)

    @property
    def has_moved(self) -> bool:
        """Whether any figure is other than before, or there only before or only after."""
        shifted = any(any(one.values()) for one in (self.mean_shifts, self.null_shifts, self.psi))
        means, nulls = (
            before.keys() ^ after.keys()
            for before, after in (
                (self.means_before, self.means_after),
                (self.nulls_before, self.nulls_after),
            )
        )
        return bool(shifted or means or nulls)

    def find_bound(self, max_psi: float | None) -> float | None:
        """Finds the bound of its PSI: `max_psi` if that is given, else the least of its rules'."""
        bounds = (rule.fail if rule.blocking else rule.warn for rule in self.rules)
        return min(bounds, default=None) if max_psi is None else max_psi


def build_column_drifts(
    table: Table, shifts: Sequence[ColumnShift], diffs: Mapping[str, PartitionDiff]
) -> list[ColumnDrift]:
    """Builds a `ColumnDrift` for each column of which anything was measured, as declared.

    Args:
        table: the declaration of both sides.
        shifts: of any partitions.
        diffs: by partition key.
    """
    found = (_build(table, column, shifts, diffs) for column in table.columns)
    return [one for one in found if one.is_measured]


def _build(
    table: Table,
    column: Column,
    shifts: Sequence[ColumnShift],
    diffs: Mapping[str, PartitionDiff],
) -> ColumnDrift:
    mine = [one for one in shifts if one.column == column.name]
    rules = [rule for rule in table.rules if isinstance(rule, Drift)]
    rules = tuple(rule for rule in rules if rule.column == column.name)
    psi = {key: 0.0 if one.equal else one.psi.get(column.name) for key, one in diffs.items()}
    empty_before = {key for key, one in diffs.items() if not one.rows_before}
    empty_after = {key for key, one in diffs.items() if not one.rows_after}
    return ColumnDrift(
        column=column,
        rules=rules,
        means_before=_keep_known({one.partition: one.mean_before for one in mine}),
        means_after=_keep_known({one.partition: one.mean_after for one in mine}),
        mean_shifts=_keep_known({one.partition: one.mean_shift for one in mine}),
        nulls_before={
            one.partition: one.nulls_before for one in mine if one.partition not in empty_before
        },
        nulls_after={
            one.partition: one.nulls_after for one in mine if one.partition not in empty_after
        },
        null_shifts={one.partition: one.null_shift for one in mine},
        psi=_keep_known(psi) if rules else {},
    )


def _keep_known(figures: Mapping[str, float | None]) -> dict[str, float]:
    return {key: figure for key, figure in figures.items() if figure is not None}
