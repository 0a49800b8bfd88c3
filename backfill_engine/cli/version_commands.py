"""Versions of a served table: which is served, another one promoted, one that is retired."""

import getpass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_engine.cli.location import load_catalog, read_table_log
from backfill_engine.cli.options import (
    Accept,
    AsJson,
    MaxPsi,
    OverrideProtection,
    Reason,
    refuse_empty,
)
from backfill_engine.cli.terminal import Grid, echo, echo_lines, print_answer, print_grid
from backfill_engine.errors import PromotionError, SettingsError

if TYPE_CHECKING:
    from backfill_engine.extras.versions.described import DescribedTable
    from backfill_engine.extras.versions.promotions import Promotion
    from backfill_engine.tables.declarations import Table

Served = Annotated[str, typer.Argument(help="A served table, as carrier_delays.")]
Version = Annotated[str, typer.Argument(help="A version of it, as v2.")]
_LISTED = 31

app = typer.Typer(
    no_args_is_help=True, help="Versions of a served table: listed, promoted, retired."
)


@app.command("list")
def list_versions(served: Served, as_json: AsJson = False) -> None:
    """List the versions of a served table, and which was served when, by whom and why.

    Example: backfill-assets version list carrier_delays
    """
    from backfill_engine.extras.versions.described import describe_versions

    catalog, table = load_catalog(), find_served_table(served)
    logs = [read_table_log(catalog.find_table(version.key)) for version in table.versions]
    described = describe_versions(read_table_log(table), logs)
    print_answer(described, print_versions, as_json=as_json)


@app.command()
def promote(
    context: typer.Context,
    served: Served,
    version: Version,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what stands against it.")
    ] = False,
    reason: Reason = "",
    accept: Accept = "",
    canary: Annotated[
        str | None,
        typer.Option(
            help="FIRST...LAST, judged before the rest; else the last 7.", callback=refuse_empty
        ),
    ] = None,
    max_psi: MaxPsi = 0.25,
    max_mean_shift: Annotated[
        float, typer.Option(min=0, help="Most that a mean may shift, as a share of itself.")
    ] = 0.5,
    max_null_shift: Annotated[
        float, typer.Option(min=0, max=1, help="Most that a share of nulls may shift.")
    ] = 0.05,
    override_protection: OverrideProtection = None,
    as_json: AsJson = False,
) -> None:
    """Serve another version of a table to its consumers, whole and in one commit.

    First a canary range is computed, audited and compared, then all other partitions, then what
    reads the table. Nothing changes if a partition is missing, withheld or has other keys, or if it
    differs by more than the gates and no reason is given. Repeated after a crash, the command
    finishes.

    Exit 1: it is not served, or, with --dry-run, would not be.

    Example: backfill-assets version promote carrier_delays v2 --dry-run
    """
    # The job's configuration has the names of the command's parameters.
    given = {name: value for name, value in context.params.items() if name != "served"}
    ends = _split_range(canary) if canary else []
    promotion = run_promotion(**given | {"table": find_served_table(served).key, "canary": ends})
    if not (promotion.is_served or promotion.may_go):
        raise typer.Exit(1)


@app.command()
def retire(served: Served, version: Version, reason: Reason = "") -> None:
    """Keep a version up no more: empty it in one commit, and let nobody publish it again.

    Refused while it is served, or read by others. A rollback brings its rows back as long as the
    table keeps old versions; then `maintain` frees the space.

    Example: backfill-assets version retire carrier_delays v1 --reason "v2 is served"
    """
    from backfill_engine.cli.job_runs import run_job

    table = find_served_table(served).key
    config = {"table": table, "version": version, "reason": reason, "by": getpass.getuser()}
    echo_lines(run_job("retire", "retire_version", config))


def run_promotion(*, as_json: bool = False, **config: Any) -> "Promotion":
    """Runs the job `promote` here and now; prints and returns what it found.

    Raises:
        BackfillError: with the job's own message, if nothing is served that was to be.
    """
    from backfill_engine.cli.job_runs import run_job
    from backfill_engine.extras.versions.promotions import read_promotion

    promotion_id = run_job("promote", "promote_version", {**config, "by": getpass.getuser()})
    promotion = read_promotion(load_catalog().warehouse, promotion_id)
    print_answer(promotion, print_promotion, as_json=as_json)
    return promotion


def find_served_table(name: str) -> "Table":
    """Finds a served table by its name or its key.

    Raises:
        PromotionError: if there is none; names those that there are.
    """
    served = [table for table in load_catalog().tables if table.versions]
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


def print_versions(described: "DescribedTable") -> None:
    """Prints a row for each version, and one for each switch, newest first."""
    heads = ("version", "table", "partitions", "state")
    grid = Grid(*heads, title=described.table, title_justify="left")
    for version in described.versions:
        state = "served" if version.is_served else ("retired" if version.retired else "")
        grid.add_row(version.name, version.table, str(version.partitions), state)
    print_grid(grid)
    if not described.switches:
        echo("nothing is served yet")
        return
    names = {version.table: version.name for version in described.versions}
    grid = Grid("at (UTC)", "serves", "before", "by", "~why", "as version", "evidence")
    for switch in described.switches:
        grid.add_row(
            f"{switch.at:%Y-%m-%d %H:%M}",
            *(names.get(key, key) for key in (switch.serves, switch.before)),
            *(switch.by, switch.why, str(switch.version)),
            switch.rehearsal[:8] or switch.run_id[:8],
        )
    print_grid(grid)


def print_promotion(promotion: "Promotion") -> None:
    """Prints what stands against a version, and what is served now."""
    from backfill_engine.extras.versions.promotions import describe_outcome
    from backfill_engine.orchestration.instance.ranges import shorten

    for head, reasons in (("missing", promotion.missing), ("beyond the gates", promotion.beyond)):
        for reason in shorten(list(reasons), _LISTED):
            echo(f"{head}: {reason}")
    if promotion.page:
        echo(f"the drift, drawn: {promotion.page}")
    echo(describe_outcome(promotion))
