"""How the answers of `proof_commands` look in a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backfill_engine.cli.grids import Grid, write_text
from backfill_engine.cli.options import print_grid
from backfill_engine.cli.terminal import echo

if TYPE_CHECKING:
    from backfill_engine.proof.diffs import TableDiff
    from backfill_engine.proof.golden_comparison import GoldenReport
    from backfill_engine.proof.pins import Pin
    from backfill_engine.proof.reconciliation import ReconciledPartition
    from backfill_engine.proof.table_history import Change

_LISTED = 20


def print_reconciled(reconciled: "Sequence[ReconciledPartition]") -> None:
    """Prints a row for each partition.

    It says what its source holds, what follows from it, what is published.
    """
    grid = Grid("partition", "table", title="published partitions and what follows from the source")
    columns = ("source", "rejects", "duplicates dropped", "expected", "published", "dup ‰")
    for name in columns:
        grid.add_column(name, justify="right")
    for name in ("checksum", "agrees"):
        grid.add_column(name)
    counted = ("source_records", "rejects", "duplicates_dropped", "rows_expected", "rows")
    for partition in reconciled:
        grid.add_row(
            *(partition.partition, partition.table, *_format_counts(partition, *counted)),
            *(f"{partition.duplicates_per_1000:g}", partition.checksum or ""),
            write_text(partition.mismatch, "red") if partition.mismatch else "yes",
        )
    print_grid(grid, width=200)


def print_history(changes: "Sequence[Change]") -> None:
    """Prints a row for each commit.

    Those of other programs are without what only this project's records say.
    """
    grid = Grid("version", "committed", "how", "partitions", "rows", "run", "of backfill")
    for change in changes:
        partitions = f"{change.first}...{change.last} ({change.partitions})"
        grid.add_row(
            *(str(change.version), change.committed_at, change.write_mode or change.operation),
            *((partitions, f"{change.rows:,}", change.run_id) if change.run_id else ("", "", "")),
            change.backfill_id or "",
        )
    print_grid(grid, width=200)


def print_pins(pins: "Sequence[Pin]") -> None:
    """Prints a row for each table, and where they do not belong together."""
    grid = Grid("table", "version", "belongs to the others", "where")
    for pin in pins:
        held = f"{len(pin.apart)} partitions do not"
        apart = write_text(held, "red") if pin.apart else "yes"
        grid.add_row(pin.table, str(pin.version), apart, pin.uri)
    print_grid(grid, width=160)
    for pin in pins:
        for key, why in list(pin.apart.items())[:_LISTED]:
            echo(f"{pin.table} {key} was {why}")
        if len(pin.apart) > _LISTED:
            echo(f"and {len(pin.apart) - _LISTED} more of {pin.table}: --json lists all")


def print_diff(diff: "TableDiff") -> None:
    """Prints a row for each partition, and whether any other changed."""
    title = f"{diff.table}: version {diff.before} → {diff.after}"
    grid = Grid("partition", title=title)
    for name in ("rows before", "rows", "added", "removed", "changed", "duplicates"):
        grid.add_column(name, justify="right")
    grid.add_column("null shares and PSI that moved")
    changes = ("added", "removed", "changed", "duplicates")
    for key, partition in diff.partitions.items():
        moved = [
            f"{column} null {before:.3g} → {after:.3g}"
            for column, (before, after) in partition.null_shares.items()
            if before != after
        ]
        moved += [f"{column} PSI {psi:.3g}" for column, psi in partition.psi.items() if psi]
        counts = _format_counts(partition, "rows_before", "rows_after", *changes)
        grid.add_row(key, *counts, ", ".join(moved))
    print_grid(grid, width=180)
    proof = diff.untouched
    if proof.holds:
        echo(
            f"Nothing else changed: the log shows that versions {diff.before + 1} to "
            f"{diff.after} added and removed data files of these partitions only; the "
            f"{proof.partitions} others kept their {proof.files} files."
            + (
                f" Of {proof.compared} in the same folders rows and checksums are the same."
                if proof.compared
                else ""
            )
        )
    else:
        listed = ", ".join(
            f"{key} (version {', '.join(map(str, versions))})"
            for key, versions in proof.outside.items()
        )
        echo(f"Other partitions changed too: {listed}")


def print_golden(report: "GoldenReport") -> None:
    """Prints a row for each partition with examples, and how many rows don't agree."""
    grid = Grid("partition", title=f"{report.table} and {report.golden}")
    for name in ("same", "missing", "extra", "differing", "duplicates"):
        grid.add_column(name, justify="right")
    grid.add_column("for example")
    for key, rows in report.partitions.items():
        examples = "; ".join(
            f"{example.difference} {', '.join(f'{k}={v}' for k, v in example.values.items())}"
            for example in report.examples.get(key, ())
        )
        counts = _format_counts(rows, "same", "removed", "added", "changed", "duplicates")
        grid.add_row(key, *counts, examples)
    print_grid(grid, width=180)
    echo(f"{report.mismatches:,} rows don't agree, by {', '.join(report.keys)}")
    if report.not_compared:
        echo(f"not compared, as the other side lacks them: {', '.join(report.not_compared)}")


def _format_counts(counted: object, *names: str) -> list[str]:
    counts = (getattr(counted, name) for name in names)
    return ["" if count is None else f"{count:,}" for count in counts]
