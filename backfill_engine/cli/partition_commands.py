"""What was withheld of partitions, how they are recovered, and how they are taken back."""

import json
from typing import Annotated

import typer

from backfill_engine.cli.location import load_catalog
from backfill_engine.cli.options import (
    AsJson,
    First,
    Last,
    TableKey,
    TableKeys,
    build_partition_reader,
    open_instance,
    print_json,
    refuse_empty,
)
from backfill_engine.cli.terminal import echo, echo_lines
from backfill_engine.errors import SettingsError
from backfill_engine.lake.whole_files import refuse_short_id


def withheld(
    table: TableKey,
    first: First,
    last: Last,
    most: Annotated[int, typer.Option(min=1, help="Rows of each kind to show.")] = 20,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Show rows that were withheld and records that were rejected, with run and reason."""
    from backfill_engine.lake.partitions import build_partitions
    from backfill_engine.lake.side_tables import read_kept_aside
    from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
    from backfill_engine.orchestration.selecting.selections import find_keys_in_range

    catalog = load_catalog()
    declared = catalog.find_table(table)
    warehouse = catalog.warehouse
    warehouse.check_root()
    keys = find_keys_in_range(find_partitions_def(declared), first=first, last=last)
    found = read_kept_aside(warehouse, declared, build_partitions(declared, keys), most=most)
    if as_json:
        print_json(found)
        return
    for kept in found:
        if not kept.count:
            continue
        echo(f"{kept.count:,} {kept.what} in {kept.table}")
        for row in kept.rows:
            echo("  " + json.dumps(row, default=str))
    if not any(kept.count for kept in found):
        echo(f"nothing is kept aside of {table} {first}...{last}")


def recover(
    select: TableKeys = None,
    dry_run: Annotated[bool, typer.Option(help="Only say what would be recorded.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Tell this Dagster home what the tables know: after a crash, or in a new or older home.

    Runs whose process is gone are marked failed; what they, or runs of another home, published or
    withheld is recorded. Repeated, it finds nothing more to do.
    """
    from backfill_engine.orchestration.recovery.recovering import recover_tables

    catalog = load_catalog()
    with open_instance() as instance:
        report = recover_tables(
            catalog,
            instance,
            select,
            dry_run=dry_run,
            reader=build_partition_reader(),
        )
    if as_json:
        print_json(report)
        return
    for message in report.messages or ["nothing to recover: this Dagster home knows all"]:
        echo(message)


def watermark(as_json: AsJson = False) -> None:  # noqa: FBT002 (an option)
    """Show up to where incremental runs have processed each table."""
    from backfill_engine.lake.watermarks import read_watermarks

    catalog = load_catalog()
    found = list(read_watermarks(catalog.warehouse).values())
    if as_json:
        print_json(found)
        return
    for mark in found:
        echo(f"{mark.table}\tbefore {mark.next_key}\t{mark.moved_at:%Y-%m-%d %H:%M}\t{mark.run_id}")


def rollback(
    table: TableKey,
    first: Annotated[
        str | None,
        typer.Option("--from", help="First partition key; none to take back the last promotion."),
    ] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last partition key, included.")] = None,
    to_version: Annotated[int | None, typer.Option(help="Delta version to go back to.")] = None,
    before: Annotated[str | None, typer.Option(help="Or the run to undo.")] = None,
    force: Annotated[  # noqa: FBT002 (an option)
        bool, typer.Option(help="Undo later runs too, and publish what fails its audit.")
    ] = False,
    downstream: Annotated[  # noqa: FBT002 (an option)
        bool, typer.Option(help="Request a backfill of what was computed from the partitions.")
    ] = False,
    override_protection: Annotated[
        str | None,
        typer.Option(help="Why protected partitions are taken back.", callback=refuse_empty),
    ] = None,
) -> None:
    """Take partitions back to what an earlier version of the table held.

    Without a range, of a served table: serve the version again that was served before, as it is
    now, so that days served since stay.
    """
    if first is None and last is None and to_version is None and before is None:
        _take_promotion_back(table, override_protection)
        return
    if first is None or last is None:
        raise SettingsError("say which partitions: --from FIRST --to LAST")
    if before is not None:
        refuse_short_id(before)
    from backfill_engine.cli.job_runs import run_job

    config = {
        "table": table,
        "first": first,
        "last": last,
        "to_version": to_version,
        "before_run": before,
        "force": force,
        "downstream": downstream,
        "override_protection": override_protection,
    }
    with open_instance() as instance:
        echo_lines(run_job(instance, "rollback_partitions", "restore_partitions", config))


def accept(
    table: TableKey,
    first: First,
    last: Last,
    reason: Annotated[
        str, typer.Option(help="Why what they hold now is right.", callback=refuse_empty)
    ],
    downstream: Annotated[  # noqa: FBT002 (an option)
        bool, typer.Option(help="Request a backfill of what was computed from the partitions.")
    ] = False,
    override_protection: Annotated[
        str | None,
        typer.Option(help="Why protected partitions are accepted.", callback=refuse_empty),
    ] = None,
) -> None:
    """Accept partitions as another program left them: record what they hold as published.

    Of a range only those that another program has changed since they were published; what they hold
    is audited, and what does not pass is accepted with the reason. To have the rows back that were
    published run the partitions again, or roll them back.
    """
    from backfill_engine.cli.job_runs import run_job

    config = {
        "table": table,
        "first": first,
        "last": last,
        "accept": reason,
        "downstream": downstream,
        "override_protection": override_protection,
    }
    with open_instance() as instance:
        echo_lines(run_job(instance, "rollback_partitions", "restore_partitions", config))


def _take_promotion_back(table: str, override_protection: str | None) -> None:
    from backfill_engine.cli.version_commands import find_served_table, run_promotion

    told = {"table": find_served_table(table).key, "override_protection": override_protection}
    run_promotion({**told, "reason": "taken back"}, as_json=False)
