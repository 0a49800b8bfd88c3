"""What changed, that nothing else did, and whether it agrees with its source; writes no table."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_engine.cli.location import (
    build_partition_reader,
    find_partitions,
    load_catalog,
    open_instance,
    read_table_log,
    select_tables,
)
from backfill_engine.cli.options import (
    AsJson,
    First,
    Last,
    MaybeFirst,
    MaybeLast,
    MaybeTableKey,
    Select,
    TableKey,
    build_origin,
    refuse_unsaid,
)
from backfill_engine.cli.terminal import (
    Grid,
    echo,
    keep_terminal,
    print_answer,
    print_grid,
    print_page,
    write_text,
)
from backfill_engine.errors import PartitionRangeError, SettingsError, UnknownRunError

if TYPE_CHECKING:
    from backfill_engine.extras.comparison.diffs import TableDiff
    from backfill_engine.extras.comparison.golden import GoldenReport
    from backfill_engine.extras.comparison.pins import Pin
    from backfill_engine.extras.comparison.reconciliation import ReconciledPartition
    from backfill_engine.proof.table_history import Change
    from backfill_engine.tables.declarations import Table

_LISTED = 20
_MOST_CERTIFIED = 400
"""Partitions of a certificate; of more only what was held back is shown, and --json has all."""
_OF_ID = 8

app = typer.Typer(
    no_args_is_help=True, help="What a run did, what changed, and whether that agrees."
)


@app.command()
def certificate(
    run: Annotated[str, typer.Argument(help="A run or a backfill, or the beginning of its id.")],
    verify: Annotated[bool, typer.Option("--verify", help="Recompute it from the tables.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a run or a backfill did; with --verify, which of it still holds (else exit 1).

    Example: backfill-assets proof certificate 0a1b2c3d --verify
    """
    from backfill_engine.proof.certificates import find_certificates
    from backfill_engine.proof.pages import render_certificate, render_lines
    from backfill_engine.proof.verification import verify_run

    catalog = load_catalog()
    warehouse = catalog.warehouse
    certificates, verified = [], {}
    if verify:
        logs = [read_table_log(table) for table in catalog.tables]
        verified = verify_run(logs, run, reader=build_partition_reader())
    else:
        certificates = find_certificates(warehouse, run)
    if not certificates and not verified:
        raise UnknownRunError(
            f"no certificate of {run} below {warehouse.root}/certificates: "
            "`backfill-assets history TABLE` lists the runs of a table"
        )
    checked = [line for lines in verified.values() for line in lines]
    texts = [
        *(render_certificate(certificate, most=_MOST_CERTIFIED) for certificate in certificates),
        *(render_lines(title, lines) for title, lines in verified.items()),
    ]
    page = "\n".join(texts)
    print_answer(certificates or checked, lambda _: print_page(page), as_json=as_json)
    if any(line.holds is False for line in checked):
        raise typer.Exit(1)


@app.command()
def diff(
    table: TableKey,
    first: First,
    last: Last,
    before: Annotated[str, typer.Option(help="A Delta version, or a run: what was before it.")],
    after: Annotated[int | None, typer.Option(help="A later version; else the newest.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what changed in partitions between two versions, and that nothing else did.

    Example: backfill-assets proof diff raw/flights --from 2013-01-10 --to 2013-01-14 --before 1
    """
    from backfill_engine.extras.comparison.diffs import diff_table

    declared = load_catalog().find_table(table)
    partitions = find_partitions(declared, first, last)
    log, reader = read_table_log(declared).require(), build_partition_reader()
    difference = diff_table(log, partitions, before=before, after=after, reader=reader)
    print_answer(difference, print_diff, as_json=as_json)


@app.command()
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
            help="Columns that identify a row of --golden, comma-separated.", callback=refuse_unsaid
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare published partitions with what follows from their source; exit 1 on a mismatch.

    Example: backfill-assets proof reconcile --from 2013-01-10 --to 2013-01-14
    """
    if golden is not None:
        report = _compare_with_golden(select, first, last, golden, keys)
        print_answer(report, print_golden, as_json=as_json)
        differs = bool(report.mismatches)
    elif keys is not None:
        raise SettingsError("--keys says how to compare with --golden: give that too")
    else:
        reconciled = _reconcile_with_source(select, first, last)
        print_answer(reconciled, print_reconciled, as_json=as_json)
        differs = any(partition.mismatch for partition in reconciled)
    if differs:
        raise typer.Exit(1)


def history(
    table: MaybeTableKey = None,
    first: MaybeFirst = None,
    last: MaybeLast = None,
    limit: Annotated[
        int | None, typer.Option(min=0, help="Most commits to list; 0 for all; else 10.")
    ] = None,
    consistent: Annotated[
        bool, typer.Option("--consistent", help="Show versions at which tables belong together.")
    ] = False,
    select: Select = None,
    as_json: AsJson = False,
) -> None:
    """List the commits of a table, or those that changed a range of partitions; newest first.

    With --consistent, the versions at which the tables of --select belong together. Exit 1:
    partitions of one were computed from other contents than another has at its version, or another
    program has changed some.

    Example: backfill-assets history raw/flights --from 2013-01-10 --to 2013-01-14
    """
    if consistent:
        if table is not None or first is not None or last is not None or limit is not None:
            raise SettingsError("--consistent is about whole tables: choose them with --select")
        _show_consistent_versions(select, as_json=as_json)
        return
    if table is None or select is not None:
        raise SettingsError("name one TABLE; --select is for --consistent")
    _show_changes(load_catalog().find_table(table), first, last, limit, as_json=as_json)


def _show_consistent_versions(select: str | None, *, as_json: bool) -> None:
    from backfill_engine.extras.comparison.pins import pin_tables

    pins = pin_tables([read_table_log(table).require() for table in select_tables(select)])
    print_answer(pins, print_pins, as_json=as_json)
    if any(pin.apart for pin in pins):
        raise typer.Exit(1)


def _show_changes(
    table: "Table", first: str | None, last: str | None, limit: int | None, *, as_json: bool
) -> None:
    from backfill_engine.proof.table_history import list_changes

    _check_keys(table, first, last)
    limit = 10 if limit is None else limit
    log = read_table_log(table).require()
    changes = list_changes(log, first=first, last=last, limit=limit + 1 if limit else None)
    print_answer(changes[: limit or None], print_history, as_json=as_json)
    if not (changes or as_json):
        echo(f"no commit has changed these partitions of {table.key}", err=True)
    if limit and len(changes) > limit:
        echo(f"the newest {limit}; --limit 0 lists all", err=True)
    elif log.begins_with:
        echo(
            f"the log begins with version {log.begins_with}; of earlier ones tell the certificates "
            f"below {log.warehouse.root}/certificates",
            err=True,
        )


def _compare_with_golden(
    select: str | None, first: str, last: str, path: Path, keys: str | None
) -> "GoldenReport":
    from backfill_engine.extras.comparison.golden import compare_with_golden

    tables = select_tables(select, first, last)
    if len(tables) != 1 or select is None:
        raise SettingsError("--golden is compared with one table: name it with --select")
    return compare_with_golden(
        read_table_log(tables[0]).require(),
        find_partitions(tables[0], first, last),
        path,
        keys=[key.strip() for key in keys.split(",")] if keys else tables[0].natural_key,
    )


def _reconcile_with_source(
    select: str | None, first: str, last: str
) -> "Sequence[ReconciledPartition]":
    from backfill_engine.extras.comparison.job import reconcile_tables
    from backfill_engine.orchestration.instance.recovered_runs import enter_reconciliation
    from backfill_engine.orchestration.runs.run_tags import tag_origin
    from backfill_engine.resources import build_lakehouse, build_spark

    catalog = load_catalog()
    tables = select_tables(select, first, last)
    with keep_terminal():
        spark, lakehouse = build_spark(catalog), build_lakehouse(catalog.settings)
        found = reconcile_tables(catalog, spark, lakehouse, tables, first=first, last=last)
    with open_instance() as instance:
        enter_reconciliation(
            instance,
            catalog.prefix("reconcile"),
            tag_origin(build_origin()),
            compared=len(found),
            different=sum(bool(partition.mismatch) for partition in found),
        )
    return found


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


def print_reconciled(reconciled: "Sequence[ReconciledPartition]") -> None:
    """Prints a grid for each table, with a row for each partition; then what doesn't agree.

    A row says what its source holds, what follows from it, what is published.
    """
    heads = (">source", ">rejects", ">dropped", ">expected", ">published", ">dup ‰")
    counted = ("source_records", "rejects", "duplicates_dropped", "rows_expected", "rows")
    for table, partitions in groupby(reconciled, key=lambda partition: partition.table):
        title = f"{table}, and what follows from its source"
        grid = Grid("partition", *heads, "agrees", title=title)
        for partition in partitions:
            grid.add_row(
                *(partition.partition, *_format_counts(partition, *counted)),
                f"{partition.duplicates_per_1000:g}",
                write_text("no", "red") if partition.mismatch else "yes",
            )
        print_grid(grid)
    for partition in reconciled:
        if partition.mismatch:
            echo(f"{partition.table} {partition.partition}: {partition.mismatch}")


def print_history(changes: "Sequence[Change]") -> None:
    """Prints a row for each commit.

    Those of other programs are without what only this project's records say.
    """
    if not changes:
        return
    grid = Grid("version", "committed", "operation", "partitions", ">rows", "~by and why")
    for change in changes:
        day, _, time = change.committed_at.partition("T")
        partitions = f"{change.first}...\n{change.last} ({change.partitions})"
        grid.add_row(
            str(change.version),
            f"{day}\n{time[:8]}",
            "\n".join(_describe_operation(change)),
            *((partitions, f"{change.rows:,}") if change.partitions else ("", "")),
            ": ".join(filter(None, (change.origin.by, change.origin.reason))),
        )
    print_grid(grid)


def _describe_operation(change: "Change") -> list[str]:
    """Describes what kind of run made a commit, which run, and of which backfill."""
    if change.run_id is None:
        return [change.operation]
    mode, operation = change.write_mode or "", change.origin.operation
    kinds = dict.fromkeys(filter(None, (operation or mode or change.operation, mode)))
    if operation:
        kinds.pop("overwrite", None)
    backfill = [f"of {change.backfill_id[:_OF_ID]}"] if change.backfill_id else []
    return [*kinds, change.run_id[:_OF_ID], *backfill]


def print_pins(pins: "Sequence[Pin]") -> None:
    """Prints a row for each table, and where they do not belong together."""
    grid = Grid("table", "version", "belongs to the others", "where")
    for pin in pins:
        counted = f"{len(pin.apart)} partitions do not"
        apart = write_text(counted, "red") if pin.apart else "yes"
        grid.add_row(pin.table, str(pin.version), apart, pin.uri)
    print_grid(grid)
    for pin in pins:
        for key, why in list(pin.apart.items())[:_LISTED]:
            echo(f"{pin.table} {key} was {why}")
        if len(pin.apart) > _LISTED:
            echo(f"and {len(pin.apart) - _LISTED} more of {pin.table}: --json lists all")


def print_diff(diff: "TableDiff") -> None:
    """Prints a row for each partition, and whether any other changed."""
    from backfill_engine.proof.pages import list_touched

    changes = ("added", "removed", "changed", "duplicates")
    heads = (">before", ">after", *(f">{change}" for change in changes))
    title = f"{diff.table}: version {diff.before} → {diff.after}"
    grid = Grid("partition", *heads, "~null shares and PSI that moved", title=title)
    for key, partition in diff.partitions.items():
        moved = [
            f"{column} null {before:.3g} → {after:.3g}"
            for column, (before, after) in partition.null_shares.items()
            if before != after
        ]
        moved += [f"{column} PSI {psi:.3g}" for column, psi in partition.psi.items() if psi]
        counts = _format_counts(partition, "rows_before", "rows_after", *changes)
        grid.add_row(key, *counts, ", ".join(moved))
    print_grid(grid)
    proof = diff.untouched
    if not proof.holds:
        echo(f"Other partitions changed too: {list_touched(proof.outside)}")
        return
    compared = f" Of {proof.compared} in the same folders rows and checksums are the same."
    echo(
        f"Nothing else changed: the log shows that versions {diff.before + 1} to "
        f"{diff.after} added and removed data files of these partitions only; the "
        f"{proof.partitions} others kept their {proof.files} files."
        + (compared if proof.compared else "")
    )


def print_golden(report: "GoldenReport") -> None:
    """Prints a row for each partition with examples, and how many rows don't agree."""
    heads = (">same", ">missing", ">extra", ">differing", ">duplicates", "~for example")
    grid = Grid("partition", *heads, title=f"{report.table} and {report.golden}")
    for key, rows in report.partitions.items():
        examples = "; ".join(
            f"{example.difference} {_join_values(example.values)}"
            for example in report.examples.get(key, ())
        )
        counts = _format_counts(rows, "same", "removed", "added", "changed", "duplicates")
        grid.add_row(key, *counts, examples)
    print_grid(grid)
    echo(f"{report.mismatches:,} rows don't agree, by {', '.join(report.keys)}")
    if report.not_compared:
        echo(f"not compared, as the other side lacks them: {', '.join(report.not_compared)}")


def _join_values(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _format_counts(counted: object, *names: str) -> list[str]:
    counts = (getattr(counted, name) for name in names)
    return ["" if count is None else f"{count:,}" for count in counts]
