"""What changed, that nothing else did, and whether it agrees with its source."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from backfill_engine.cli.location import load_catalog, load_graph
from backfill_engine.cli.options import (
    AsJson,
    First,
    Last,
    Select,
    TableKey,
    build_partition_reader,
    print_grid,
    print_json,
    refuse_empty,
)
from backfill_engine.cli.terminal import Grid, echo, echo_lines, write_text
from backfill_engine.errors import CertificateError, PartitionRangeError, SettingsError

if TYPE_CHECKING:
    from backfill_engine.extras.comparison.diffs import TableDiff
    from backfill_engine.extras.comparison.golden import GoldenReport
    from backfill_engine.extras.comparison.pins import Pin
    from backfill_engine.extras.comparison.reconciliation import ReconciledPartition
    from backfill_engine.lake.partitions import Partition
    from backfill_engine.lake.table_log import TableLog
    from backfill_engine.proof.table_history import Change
    from backfill_engine.tables.declarations import Table

T = TypeVar("T")


def reconcile(
    first: First,
    last: Last,
    select: Select = None,
    golden: Annotated[
        Path | None, typer.Option(help="Compare with this Delta table, Parquet or CSV instead.")
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            help="Columns that identify a row of --golden, comma-separated.", callback=refuse_empty
        ),
    ] = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Compare published partitions with what follows from their source; exit 1 on a mismatch."""
    catalog = load_catalog()
    if golden is not None:
        _compare_with_golden(select, first, last, golden, keys, as_json=as_json)
        return
    if keys is not None:
        raise SettingsError("--keys says how to compare with --golden: give that too")
    from backfill_engine.extras.comparison.job import reconcile_tables
    from backfill_engine.resources import build_lakehouse, build_spark

    found = reconcile_tables(
        catalog,
        build_spark(catalog),
        build_lakehouse(catalog.settings),
        _select_tables(select, first, last),
        first=first,
        last=last,
    )
    _print(found, print_reconciled, as_json=as_json)
    if any(partition.mismatch for partition in found):
        raise typer.Exit(1)


def history(
    table: TableKey,
    first: Annotated[str | None, typer.Option("--from", help="First partition key.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last partition key.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Most commits to list; 0 for all.")] = 10,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """List the commits of a table, or those that changed a range of partitions; newest first."""
    from backfill_engine.proof.table_history import list_changes

    catalog = load_catalog()
    chosen = catalog.find_table(table)
    _check_keys(chosen, first, last)
    log = _read_log(chosen).require()
    changes = list_changes(log, first=first, last=last, limit=limit + 1 if limit else None)
    _print(changes[: limit or None], print_history, as_json=as_json)
    if limit and len(changes) > limit:
        echo(f"the newest {limit}; --limit 0 lists all", err=True)
    elif log.begins_with:
        echo(
            f"the log begins with version {log.begins_with}; of earlier ones tell the certificates "
            f"below {log.warehouse.root}/certificates",
            err=True,
        )


def diff(
    table: TableKey,
    first: First,
    last: Last,
    before: Annotated[str, typer.Option(help="A Delta version, or a run: what was before it.")],
    after: Annotated[int | None, typer.Option(help="A later version; else the newest.")] = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show what changed in partitions between two versions, and that nothing else did."""
    from backfill_engine.extras.comparison.diffs import diff_table

    catalog = load_catalog()
    chosen = catalog.find_table(table)
    partitions = _find_partitions(chosen, first, last)
    found = diff_table(
        _read_log(chosen).require(),
        partitions,
        before=before,
        after=after,
        reader=build_partition_reader(),
    )
    _print(found, print_diff, as_json=as_json)


def pin(
    select: Select = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show the versions at which tables belong together, for who reads several of them.

    Exit 1: partitions of one were computed from other contents than another has at its version, or
    another program has changed some.
    """
    from backfill_engine.extras.comparison.pins import pin_tables

    tables = _select_tables(select, None, None)
    found = pin_tables([_read_log(table).require() for table in tables])
    _print(found, print_pins, as_json=as_json)
    if any(pin.apart for pin in found):
        raise typer.Exit(1)


def certificate(
    run: Annotated[str, typer.Argument(help="A run or a backfill, or the beginning of its id.")],
    verify: Annotated[bool, typer.Option(help="Recompute it from the tables.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show what a run or a backfill did; with --verify, which of it still holds (else exit 1)."""
    from backfill_engine.proof.certificates import find_certificates
    from backfill_engine.proof.pages import render_certificate, render_lines
    from backfill_engine.proof.verification import verify_run

    catalog = load_catalog()
    warehouse = catalog.warehouse
    found, verified = [], {}
    if verify:
        logs = [_read_log(table) for table in catalog.tables]
        verified = verify_run(logs, run, reader=build_partition_reader())
    else:
        found = find_certificates(warehouse, run)
    if not found and not verified:
        raise CertificateError(
            f"no certificate of {run} below {warehouse.root}/certificates: "
            "`backfill-assets history TABLE` lists the runs of a table"
        )
    if as_json:
        print_json(found or [line for lines in verified.values() for line in lines])
    elif found:
        echo_lines("\n".join(map(render_certificate, found)))
    for title, lines in verified.items() if not as_json else ():
        echo_lines(render_lines(title, lines))
    if any(line.holds is False for lines in verified.values() for line in lines):
        raise typer.Exit(1)


def _compare_with_golden(
    select: str | None, first: str, last: str, path: Path, keys: str | None, *, as_json: bool
) -> None:
    from backfill_engine.extras.comparison.golden import compare_with_golden

    tables = _select_tables(select, first, last)
    if len(tables) != 1 or select is None:
        raise SettingsError("--golden is compared with one table: name it with --select")
    report = compare_with_golden(
        _read_log(tables[0]).require(),
        _find_partitions(tables[0], first, last),
        path,
        keys=[key.strip() for key in keys.split(",")] if keys else tables[0].natural_key,
    )
    _print(report, print_golden, as_json=as_json)
    if report.mismatches:
        raise typer.Exit(1)


def _print(found: T, print_found: Callable[[T], None], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        print_found(found)


def _select_tables(select: str | None, first: str | None, last: str | None) -> "tuple[Table, ...]":
    from backfill_engine.orchestration.selecting.selections import select_tables

    catalog = load_catalog()
    return select_tables(
        catalog, catalog.warehouse, select, first=first, last=last, load_graph=load_graph
    )


def _read_log(table: "Table") -> "TableLog":
    from backfill_engine.lake.table_log import read_log

    return read_log(load_catalog().warehouse, table)


def _check_keys(table: "Table", first: str | None, last: str | None) -> None:
    """Refuses bounds that are no keys of the table's grain, whatever its partitions are now."""
    for key in (first, last):
        try:
            known = key is None or table.grain.find_key(table.grain.find_start(key)) == key
        except ValueError:
            known = False
        if not known:
            raise PartitionRangeError(f"{key} is no partition of {table.key}, by {table.grain}")
    if first is not None and last is not None and first > last:
        raise PartitionRangeError(f"{first}...{last} is reversed: a range is FIRST...LAST")


def _find_partitions(table: "Table", first: str, last: str) -> "tuple[Partition, ...]":
    from backfill_engine.lake.partitions import build_partitions
    from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
    from backfill_engine.orchestration.selecting.selections import find_keys_in_range

    keys = find_keys_in_range(find_partitions_def(table), first=first, last=last)
    return build_partitions(table, keys)


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
    from backfill_engine.proof.pages import list_touched

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
        echo(f"Other partitions changed too: {list_touched(proof.outside)}")


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
