"""What changed, that nothing else did, and whether it agrees with its source."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.options import (
    AsJson,
    First,
    Last,
    Select,
    TableKey,
    print_grid,
    print_json,
)
from backfill_assets.errors import CertificateError, SettingsError
from backfill_assets.settings import read_settings

if TYPE_CHECKING:
    from backfill_assets.lake.slices import Partition
    from backfill_assets.lake.warehouse import Warehouse
    from backfill_assets.proof.diffs import TableDiff
    from backfill_assets.proof.golden_comparison import GoldenReport
    from backfill_assets.proof.reconciliation import ReconciledPartition
    from backfill_assets.tables.declarations import Table


def reconcile(
    first: First,
    last: Last,
    select: Select = None,
    golden: Annotated[
        Path | None, typer.Option(help="Compare with this Delta table, Parquet or CSV instead.")
    ] = None,
    keys: Annotated[
        str | None, typer.Option(help="Columns that identify a row of --golden, comma-separated.")
    ] = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Compare published partitions with what follows from their source; exit 1 on a mismatch."""
    if golden is not None:
        _compare_with_golden(select, first, last, golden, keys, as_json=as_json)
        return
    if keys is not None:
        raise SettingsError("--keys says how to compare with --golden: give that too")
    from backfill_assets.definitions import defs
    from backfill_assets.jobs import reconcile_tables
    from backfill_assets.orchestration.selections import select_tables
    from backfill_assets.resources import build_resources

    assert defs  # importing it fills the recipes
    resources = build_resources(read_settings())
    found = reconcile_tables(
        resources["spark"],  # type: ignore[arg-type]
        resources["lakehouse"],  # type: ignore[arg-type]
        select_tables(_open_warehouse(), select, first=first, last=last),
        first=first,
        last=last,
    )
    if as_json:
        print_json(found)
    else:
        _print_reconciled(found)
    if any(one.mismatch for one in found):
        raise typer.Exit(1)


def history(
    table: TableKey,
    first: Annotated[str | None, typer.Option("--from", help="First partition key.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last partition key.")] = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """List the commits of a table, or those that changed a range of partitions; newest first."""
    from rich.table import Table as Grid

    from backfill_assets.catalog import find_table
    from backfill_assets.proof.table_history import list_changes

    changes = list_changes(_open_warehouse(), find_table(table), first=first, last=last)
    if as_json:
        print_json(changes)
        return
    grid = Grid("version", "committed", "how", "partitions", "rows", "run")
    for one in changes:
        partitions = f"{one.first}...{one.last} ({one.partitions})" if one.run_id else ""
        rows = f"{one.rows:,}" if one.run_id else ""
        grid.add_row(
            *(str(one.version), one.committed_at, one.write_mode or one.operation),
            *(partitions, rows, one.run_id or ""),
        )
    print_grid(grid, width=160)


def diff(
    table: TableKey,
    first: First,
    last: Last,
    before: Annotated[str, typer.Option(help="A Delta version, or a run: what was before it.")],
    after: Annotated[int | None, typer.Option(help="A later version; else the newest.")] = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show what changed in partitions between two versions, and that nothing else did."""
    from backfill_assets.catalog import find_table
    from backfill_assets.proof.diffs import diff_table

    chosen = find_table(table)
    partitions = _find_partitions(chosen, first, last)
    found = diff_table(_open_warehouse(), chosen, partitions, before=before, after=after)
    if as_json:
        print_json(found)
    else:
        _print_diff(found)


def certificate(
    run: Annotated[str, typer.Argument(help="A run or a backfill, or the beginning of its id.")],
    verify: Annotated[bool, typer.Option(help="Recompute it from the tables.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show what a run or a backfill did; with --verify, which of it still holds (else exit 1)."""
    from backfill_assets.proof.certificates import find_certificates
    from backfill_assets.proof.pages import render_certificate, render_verification

    warehouse = _open_warehouse()
    found = find_certificates(warehouse, run)
    if not found:
        raise CertificateError(
            f"no certificate of {run} below {warehouse.root}/certificates: "
            "`backfill-assets history TABLE` lists the runs of a table"
        )
    if not verify:
        if as_json:
            print_json(found)
        else:
            typer.echo("\n".join(map(render_certificate, found)))
        return
    from backfill_assets.catalog import find_table
    from backfill_assets.lake.partitions import build_partitions
    from backfill_assets.proof.verification import verify_certificate

    verified = [
        (
            one,
            verify_certificate(
                warehouse,
                find_table(one.asset_key),
                one,
                build_partitions(find_table(one.asset_key), one.published),
            ),
        )
        for one in found
    ]
    if as_json:
        print_json([line for _, lines in verified for line in lines])
    else:
        for one, lines in verified:
            typer.echo(render_verification(one, lines))
    if any(line.holds is False for _, lines in verified for line in lines):
        raise typer.Exit(1)


def _compare_with_golden(
    select: str | None, first: str, last: str, path: Path, keys: str | None, *, as_json: bool
) -> None:
    from backfill_assets.orchestration.selections import select_tables
    from backfill_assets.proof.golden_comparison import compare_with_golden

    tables = select_tables(_open_warehouse(), select, first=first, last=last)
    if len(tables) != 1 or select is None:
        raise SettingsError("--golden is compared with one table: name it with --select")
    report = compare_with_golden(
        _open_warehouse(),
        tables[0],
        _find_partitions(tables[0], first, last),
        path,
        keys=[one.strip() for one in keys.split(",")] if keys else tables[0].natural_key,
    )
    if as_json:
        print_json(report)
    else:
        _print_golden(report)
    if report.mismatches:
        raise typer.Exit(1)


def _open_warehouse() -> "Warehouse":
    from backfill_assets.lake.warehouse import Warehouse

    return Warehouse(read_settings().warehouse)


def _find_partitions(table: "Table", first: str, last: str) -> "tuple[Partition, ...]":
    from backfill_assets.lake.partitions import build_partitions
    from backfill_assets.orchestration.partition_definitions import find_partitions_def
    from backfill_assets.orchestration.selections import find_keys_in_range

    keys = find_keys_in_range(find_partitions_def(table), first=first, last=last)
    return build_partitions(table, keys)


def _print_reconciled(found: "list[ReconciledPartition]") -> None:
    from rich.table import Table as Grid

    grid = Grid("partition", "table", title="published partitions and what follows from the source")
    columns = ("source", "rejects", "duplicates dropped", "expected", "published", "dup ‰")
    for name in columns:
        grid.add_column(name, justify="right")
    for name in ("checksum", "agrees"):
        grid.add_column(name)
    for one in found:
        grid.add_row(
            *(one.partition, one.table),
            *("" if one.source_records is None else f"{one.source_records:,}",),
            *(f"{one.rejects:,}", f"{one.duplicates_dropped:,}", f"{one.rows_expected:,}"),
            *("" if one.rows is None else f"{one.rows:,}", f"{one.duplicates_per_1000:g}"),
            *(one.checksum or "", f"[red]{one.mismatch}[/]" if one.mismatch else "yes"),
        )
    print_grid(grid, width=200)


def _print_diff(found: "TableDiff") -> None:
    from rich.table import Table as Grid

    title = f"{found.table}: version {found.before} → {found.after}"
    grid = Grid("partition", title=title)
    for name in ("rows before", "rows", "added", "removed", "changed", "duplicates"):
        grid.add_column(name, justify="right")
    grid.add_column("null shares and PSI that moved")
    for key, one in found.partitions.items():
        moved = [
            f"{column} null {before:.3g} → {after:.3g}"
            for column, (before, after) in one.null_shares.items()
            if before != after
        ]
        moved += [f"{column} PSI {psi:.3g}" for column, psi in one.psi.items() if psi]
        figures = (one.rows_before, one.rows_after, one.added, one.removed, one.changed)
        grid.add_row(key, *(f"{n:,}" for n in (*figures, one.duplicates)), ", ".join(moved))
    print_grid(grid, width=180)
    proof = found.untouched
    if proof.holds:
        typer.echo(
            f"Nothing else changed: the log shows that versions {found.before + 1} to "
            f"{found.after} added and removed data files of these partitions only; the "
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
        typer.echo(f"Other partitions changed too: {listed}")


def _print_golden(report: "GoldenReport") -> None:
    from rich.table import Table as Grid

    grid = Grid("partition", title=f"{report.table} and {report.golden}")
    for name in ("same", "missing", "extra", "differing", "duplicates"):
        grid.add_column(name, justify="right")
    grid.add_column("for example")
    for key, one in report.partitions.items():
        examples = "; ".join(
            f"{example.difference} {', '.join(f'{k}={v}' for k, v in example.values.items())}"
            for example in report.examples.get(key, ())
        )
        figures = (one.same, one.removed, one.added, one.changed, one.duplicates)
        grid.add_row(key, *(f"{n:,}" for n in figures), examples)
    print_grid(grid, width=180)
    typer.echo(f"{report.mismatches:,} rows don't agree, by {', '.join(report.keys)}")
    if report.not_compared:
        typer.echo(f"not compared, as the other side lacks them: {', '.join(report.not_compared)}")
