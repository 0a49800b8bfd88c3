"""What changed, that nothing else did, and whether it agrees with its source."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_engine.cli.location import load_catalog, load_graph
from backfill_engine.cli.options import (
    AsJson,
    First,
    Last,
    Select,
    TableKey,
    build_partition_reader,
    print_json,
    refuse_empty,
)
from backfill_engine.cli.proof_grids import (
    print_diff,
    print_golden,
    print_history,
    print_pins,
    print_reconciled,
)
from backfill_engine.cli.terminal import echo, echo_lines
from backfill_engine.errors import CertificateError, PartitionRangeError, SettingsError

if TYPE_CHECKING:
    from backfill_engine.lake.partitions import Partition
    from backfill_engine.lake.table_log import TableLog
    from backfill_engine.lake.warehouse import Warehouse
    from backfill_engine.tables.declarations import Table


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
    from backfill_engine.jobs import reconcile_tables
    from backfill_engine.orchestration.selecting.selections import select_tables
    from backfill_engine.resources import build_lakehouse, build_spark

    found = reconcile_tables(
        catalog,
        build_spark(catalog),
        build_lakehouse(catalog.settings),
        select_tables(
            catalog, _open_warehouse(), select, first=first, last=last, load_graph=load_graph
        ),
        first=first,
        last=last,
    )
    if as_json:
        print_json(found)
    else:
        print_reconciled(found)
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
    if as_json:
        print_json(changes[: limit or None])
    else:
        print_history(changes[: limit or None])
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
    from backfill_engine.proof.diffs import diff_table

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
    if as_json:
        print_json(found)
    else:
        print_diff(found)


def pin(
    select: Select = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show the versions at which tables belong together, for who reads several of them.

    Exit 1: partitions of one were computed from other contents than another has at its version, or
    another program has changed some.
    """
    from backfill_engine.orchestration.selecting.selections import select_tables
    from backfill_engine.proof.pins import pin_tables

    catalog = load_catalog()
    tables = select_tables(
        catalog, _open_warehouse(), select, first=None, last=None, load_graph=load_graph
    )
    found = pin_tables([_read_log(table).require() for table in tables])
    if as_json:
        print_json(found)
    else:
        print_pins(found)
    if any(one.apart for one in found):
        raise typer.Exit(1)


def certificate(
    run: Annotated[str, typer.Argument(help="A run or a backfill, or the beginning of its id.")],
    verify: Annotated[bool, typer.Option(help="Recompute it from the tables.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show what a run or a backfill did; with --verify, which of it still holds (else exit 1)."""
    from backfill_engine.proof.certificates import find_certificates
    from backfill_engine.proof.pages import render_certificate, render_lines
    from backfill_engine.proof.verified_runs import verify_run

    catalog = load_catalog()
    warehouse = _open_warehouse()
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
    from backfill_engine.orchestration.selecting.selections import select_tables
    from backfill_engine.proof.golden_comparison import compare_with_golden

    catalog = load_catalog()
    tables = select_tables(
        catalog, _open_warehouse(), select, first=first, last=last, load_graph=load_graph
    )
    if len(tables) != 1 or select is None:
        raise SettingsError("--golden is compared with one table: name it with --select")
    report = compare_with_golden(
        _read_log(tables[0]).require(),
        _find_partitions(tables[0], first, last),
        path,
        keys=[key.strip() for key in keys.split(",")] if keys else tables[0].natural_key,
    )
    if as_json:
        print_json(report)
    else:
        print_golden(report)
    if report.mismatches:
        raise typer.Exit(1)


def _open_warehouse() -> "Warehouse":
    return load_catalog().warehouse


def _read_log(table: "Table") -> "TableLog":
    from backfill_engine.lake.table_log import read_log

    return read_log(_open_warehouse(), table)


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
