"""Versions of a table: which is served, another one promoted, one that is retired."""

import getpass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_engine.cli.location import load_catalog
from backfill_engine.cli.options import AsJson, open_instance, print_json, refuse_empty
from backfill_engine.cli.terminal import echo_lines
from backfill_engine.errors import PromotionError, SettingsError

if TYPE_CHECKING:
    from backfill_engine.extras.versions.promotions import Promotion
    from backfill_engine.tables.declarations import Table

Served = Annotated[str, typer.Argument(help="A served table, as carrier_delays.")]
Version = Annotated[str, typer.Argument(help="A version of it, as v2.")]


def promote(
    served: Served,
    version: Version,
    dry_run: Annotated[  # noqa: FBT002 (an option)
        bool, typer.Option("--dry-run", help="Only say what stands against it.")
    ] = False,
    reason: Annotated[str, typer.Option(help="Why; kept in the commit.")] = "",
    accept: Annotated[
        str, typer.Option(help="Why it is served though it differs by more than the gates.")
    ] = "",
    canary: Annotated[
        str | None,
        typer.Option(
            help="FIRST...LAST, judged before the rest; else the last 7.", callback=refuse_empty
        ),
    ] = None,
    max_psi: Annotated[
        float, typer.Option(min=0, help="Most that a column with a drift rule may drift.")
    ] = 0.25,
    max_mean_shift: Annotated[
        float, typer.Option(min=0, help="Most that a mean may shift, as a share of itself.")
    ] = 0.5,
    max_null_shift: Annotated[
        float, typer.Option(min=0, max=1, help="Most that a share of nulls may shift.")
    ] = 0.05,
    override_protection: Annotated[
        str | None,
        typer.Option(help="Why protected partitions are switched.", callback=refuse_empty),
    ] = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Serve another version of a table to its consumers, whole and in one commit.

    First a canary range is computed, audited and compared, then all other partitions, then what
    reads the table, all aside from what is published. Nothing changes where a partition is missing,
    withheld or has other keys, nor where it differs by more than the gates and nobody said why
    that is right. Repeated after a crash, the command finishes.

    Exit 1: it is not served, or, with --dry-run, would not be.
    """
    found = run_promotion(
        {
            "table": find_served_table(served).key,
            "version": version,
            "dry_run": dry_run,
            "reason": reason,
            "accept": accept,
            "canary": _split_range(canary) if canary else [],
            "max_psi": max_psi,
            "max_mean_shift": max_mean_shift,
            "max_null_shift": max_null_shift,
            "override_protection": override_protection,
        },
        as_json=as_json,
    )
    if not (found.is_served or found.may_go):
        raise typer.Exit(1)


def versions(
    served: Served,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """List the versions of a served table, and which was served when, by whom and why."""
    from backfill_engine.cli.version_grids import print_versions
    from backfill_engine.extras.versions.described import describe_versions
    from backfill_engine.lake.table_log import read_log

    catalog = load_catalog()
    warehouse, table = catalog.warehouse, find_served_table(served)
    found = describe_versions(
        read_log(warehouse, table),
        [read_log(warehouse, catalog.find_table(one.key)) for one in table.versions],
    )
    if as_json:
        print_json(found)
    else:
        print_versions(found)


def retire(
    served: Served,
    version: Version,
    reason: Annotated[str, typer.Option(help="Why; kept in the commit.")] = "",
) -> None:
    """Keep a version up no more: empty it in one commit, and let nobody publish it again.

    Refused while it is served, or read by others. A rollback brings its rows back as long as the
    table keeps old versions; then `maintain` frees the space.
    """
    from backfill_engine.cli.job_runs import run_job

    config = {
        "table": find_served_table(served).key,
        "version": version,
        "reason": reason,
        "by": getpass.getuser(),
    }
    with open_instance() as instance:
        echo_lines(run_job(instance, "retire", "retire_version", config))


def run_promotion(config: dict[str, Any], *, as_json: bool) -> "Promotion":
    """Runs the job `promote` here and now; prints and returns what it found.

    Raises:
        BackfillError: with the job's own message, if nothing is served that was to be.
    """
    from backfill_engine.cli.job_runs import run_job
    from backfill_engine.cli.version_grids import print_promotion
    from backfill_engine.extras.versions.promotions import read_promotion

    catalog = load_catalog()
    with open_instance() as instance:
        told = {**config, "by": getpass.getuser()}
        promotion_id = run_job(instance, "promote", "promote_version", told)
    found = read_promotion(catalog.warehouse, promotion_id)
    if as_json:
        print_json(found)
    else:
        print_promotion(found)
    return found


def find_served_table(name: str) -> "Table":
    """Finds a served table by its name or its key.

    Raises:
        PromotionError: if there is none; names those that there are.
    """
    catalog = load_catalog()
    served = [table for table in catalog.tables if table.versions]
    for table in served:
        if name in (table.name, table.key):
            return table
    known = ", ".join(table.name for table in served) or "none"
    raise PromotionError(f"no served table {name}: there are {known}")


def _split_range(text: str) -> list[str]:
    first, dots, last = text.partition("...")
    if not (first and dots and last and first <= last):
        raise SettingsError(f"--canary {text} is no range: write FIRST...LAST, ascending")
    return [first, last]
