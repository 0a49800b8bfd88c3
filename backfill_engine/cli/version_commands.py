"""Versions of a served table: which is served, another one promoted, one that is retired."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_engine.cli.location import (
    load_catalog,
    load_graph,
    open_instance,
    read_table_log,
    recover_dead_runs,
)
from backfill_engine.cli.options import (
    Accept,
    AsJson,
    DryRun,
    MaxPsi,
    OverrideProtection,
    Reason,
    Yes,
    refuse_unsaid,
)
from backfill_engine.cli.terminal import Grid, confirm, echo, echo_lines, print_answer, print_grid
from backfill_engine.errors import PromotionError, SettingsError, UnknownTableError
from backfill_engine.lake.origins import find_user

if TYPE_CHECKING:
    from backfill_engine.extras.versions.described import DescribedTable
    from backfill_engine.extras.versions.promotions import Promotion
    from backfill_engine.tables.declarations import Table

Served = Annotated[str, typer.Argument(help="A served table, as carrier_delays.")]
Version = Annotated[str, typer.Argument(help="A version of it, as v2.")]
_LISTED = 7

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
            help="FIRST...LAST, judged before the rest; else the last 7.", callback=refuse_unsaid
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
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Serve another version of a table to its consumers, whole and in one commit.

    Says what that replaces, and asks. First a canary range is computed, audited and compared, then
    all other partitions, then what reads the table. Nothing changes if a partition is missing,
    withheld or has other keys, or if it differs by more than the gates and no --accept says why.
    Repeated after a crash, the command finishes.

    Exit 1: it is not served, or, with --dry-run, would not be.

    Example: backfill-assets version promote carrier_delays v2 --dry-run
    """
    # The job's configuration has the names of the command's parameters.
    given: dict[str, Any] = {**context.params, "canary": _split_range(canary) if canary else []}
    del given["served"]
    run_promotion(find_served_table(served), **given)


@app.command()
def retire(
    served: Served,
    version: Version,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Keep a version up no more: empty it in one commit, and let nobody publish it again.

    Says what goes, and asks. Refused while it is served, or read by others. A rollback brings its
    rows back as long as the table keeps old versions; then `maintain` frees the space.

    Example: backfill-assets version retire carrier_delays v1 --reason "v2 is served"
    """
    from backfill_engine.cli.job_runs import run_job
    from backfill_engine.extras.versions.retiring import find_retirable, list_full

    catalog, table = load_catalog(), find_served_table(served).key
    warehouse = catalog.warehouse
    log, held = find_retirable(catalog, warehouse, table, version)
    full = list_full(log)
    rows = f"{len(full)} partitions with {sum(log.count_rows().values()):,} rows are emptied"
    echo(
        f"{log.table.key}: {rows if full else 'no rows are left'}, all of it is protected; {table} "
        f"goes on serving {held}; a rollback brings rows back for {warehouse.retention_days} days"
    )
    if dry_run:
        return
    if full and not yes:
        confirm("retire it?")
    config = {"table": table, "version": version, "reason": reason, "by": find_user()}
    echo_lines(run_job("retire", "retire_version", config))


def run_promotion(served: "Table", *, yes: bool, as_json: bool = False, **config: Any) -> None:
    """Says what a promotion would do, asks, and runs the job `promote` here and now.

    Args:
        served: the served table.
        yes: not to ask.
        as_json: how what was found is printed.
        config: of the job, which doesn't run where nothing can or need be done.

    Raises:
        BackfillError: if it can't be, or with the job's own message.
        Exit: with 1, if it is not served, or, asked only to look, would not be.
    """
    from backfill_engine.cli.job_runs import run_job
    from backfill_engine.extras.versions.promotions import describe_refusal, read_promotion
    from backfill_engine.extras.versions.switching import PromotionConfig, look_ahead

    catalog, graph = load_catalog(), load_graph()
    given = PromotionConfig(**config, table=served.key, by=find_user())
    with open_instance() as instance:
        recover_dead_runs(instance)
        promotion, words = look_ahead(catalog, instance, graph, given)
    if promotion.missing and not given.dry_run:
        raise PromotionError(describe_refusal(promotion))
    if not (promotion.missing or promotion.is_served):
        echo(words, err=as_json)
        if not (yes or given.dry_run):
            confirm("serve it?", is_aside=as_json)
        if given.version or not given.dry_run:  # of going back nothing is computed beforehand
            promotion_id = run_job("promote", "promote_version", given.model_dump())
            promotion = read_promotion(catalog.warehouse, promotion_id)
    print_answer(promotion, print_promotion, as_json=as_json)
    if promotion.is_refused:
        raise typer.Exit(1)


def find_served_table(name: str) -> "Table":
    """Finds a served table by its name or its key.

    Raises:
        UnknownTableError: if there is none; names those that there are.
    """
    served = [table for table in load_catalog().tables if table.versions]
    for table in served:
        if name in (table.name, table.key):
            return table
    known = ", ".join(table.name for table in served) or "none"
    raise UnknownTableError(f"no served table {name}: there are {known}")


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
    from backfill_engine.extras.versions.promotions import describe_cure, describe_outcome
    from backfill_engine.orchestration.instance.ranges import shorten

    for head, reasons in (("missing", promotion.missing), ("beyond the gates", promotion.beyond)):
        for reason in shorten(list(reasons), _LISTED):
            echo(f"{head}: {reason}")
    if promotion.page:
        echo(f"the drift, drawn: {promotion.page}")
    echo(describe_outcome(promotion))
    if promotion.is_refused:
        echo(describe_cure(promotion))
