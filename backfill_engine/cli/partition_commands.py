"""What a person decides of partitions: how they are recovered, taken back, accepted, protected."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_engine.cli.location import (
    build_partition_reader,
    find_partitions,
    load_catalog,
    load_graph,
    open_instance,
    read_table_log,
)
from backfill_engine.cli.options import (
    AsJson,
    DryRun,
    First,
    Last,
    MaybeFirst,
    MaybeLast,
    MaybeTableKey,
    OverrideProtection,
    Reason,
    RequestDownstream,
    TableKey,
    Yes,
    refuse_unsaid,
)
from backfill_engine.cli.terminal import (
    Grid,
    confirm,
    echo,
    echo_lines,
    print_answer,
    print_grid,
)
from backfill_engine.errors import ProtectedError, SettingsError
from backfill_engine.lake.origins import find_user
from backfill_engine.lake.whole_files import refuse_short_id

if TYPE_CHECKING:
    from backfill_engine.lake.protections import Protection
    from backfill_engine.lake.warehouse import Warehouse
    from backfill_engine.orchestration.recovery.recovery import RecoveryReport
    from backfill_engine.orchestration.runs.protecting import ProtectionInForce
    from backfill_engine.tables.declarations import Table

_LISTED = 20


def recover(
    select: Annotated[
        str | None,
        typer.Option(
            help="Tables, comma-separated, as raw/flights; all if left out.", callback=refuse_unsaid
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Only say what would be recorded.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell this Dagster home what the tables know: after a crash, or in a new or older home.

    Runs whose process is gone are marked failed; what they, or runs of another home, published or
    withheld is recorded.

    Example: backfill-assets recover --dry-run
    """
    from backfill_engine.orchestration.recovery.recovery import recover_tables

    with open_instance() as instance:
        reader = build_partition_reader()
        report = recover_tables(load_catalog(), instance, select, dry_run=dry_run, reader=reader)
    print_answer(report, _print_recovery, as_json=as_json)


def _print_recovery(report: "RecoveryReport") -> None:
    for message in report.messages or ["nothing to recover: this Dagster home knows all"]:
        echo(message)


def rollback(
    table: TableKey,
    first: MaybeFirst = None,
    last: MaybeLast = None,
    to_version: Annotated[int | None, typer.Option(help="Delta version to go back to.")] = None,
    before_run: Annotated[str | None, typer.Option("--before", help="Or the run to undo.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Undo later runs too, and publish what fails its audit.")
    ] = False,
    downstream: RequestDownstream = False,
    override_protection: OverrideProtection = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Take partitions back to what an earlier version of the table held.

    Shows what that undoes, and asks. Without a range, of a served table: serve the version before
    again, as it is now.

    Example: backfill-assets rollback raw/flights --from 2013-01-10 --to 2013-01-14 --to-version 1
    """
    where_to = {"to_version": to_version, "before_run": before_run}
    given = [value for value in where_to.values() if value is not None]
    if first is None and last is None and not given:
        _take_promotion_back(table, override_protection, reason, dry_run=dry_run, yes=yes)
        return
    if first is None or last is None:
        raise SettingsError("say which partitions: --from FIRST --to LAST")
    if len(given) != 1:
        count = "both are given" if given else "neither is given"
        raise SettingsError(
            f"say where to go back to, by --to-version VERSION or by --before RUN: {count}"
        )
    override = override_protection or ""
    for line in _look_ahead(table, first, last, override=override, force=force, **where_to):
        echo(line)
    if dry_run:
        return
    if not yes:
        confirm("take them back?")
    _restore(
        {
            **{"table": table, "first": first, "last": last, **where_to, "force": force},
            **{"downstream": downstream, "override_protection": override_protection},
            **{"reason": reason, "by": find_user()},
        }
    )


def _look_ahead(
    table: str, first: str, last: str, *, override: str, force: bool, **where_to: Any
) -> list[str]:
    """Describes what a rollback would do; refuses one that can't be, before any run is made."""
    from backfill_engine.orchestration.rollbacks import look_ahead
    from backfill_engine.orchestration.runs.protecting import refuse_protected
    from backfill_engine.publishing.restoring import plan_rollback

    catalog = load_catalog()
    declared = catalog.find_table(table)
    partitions = find_partitions(declared, first, last)
    if run := where_to["before_run"]:
        refuse_short_id(run)
    log = read_table_log(declared).require()
    plan = plan_rollback(log, partitions, **where_to, force=force, now=datetime.now(tz=UTC))
    keys = [partition.key for partition in partitions]
    how = "with --override-protection"
    refuse_protected(catalog.warehouse, declared, keys, override=override, how=how)
    with open_instance() as instance:
        return look_ahead(catalog, instance, load_graph(), plan)


def accept(
    context: typer.Context,
    table: TableKey,
    first: First,
    last: Last,
    accept: Annotated[
        str,
        typer.Option("--reason", help="Why what they hold now is right.", callback=refuse_unsaid),
    ],
    downstream: RequestDownstream = False,
    override_protection: OverrideProtection = None,
) -> None:
    """Accept partitions as another program left them: record what they hold as published.

    Only those of the range that another program has changed; what they hold is audited, and what
    does not pass is accepted with the reason. To have the published rows back, run the partitions
    again, or roll them back.

    Example: backfill-assets accept raw/flights --from 2013-01-05 --to 2013-01-05 --reason "a law"
    """
    find_partitions(load_catalog().find_table(table), first, last)
    _restore(context.params)


def adopt(
    table: TableKey,
    reason: Annotated[
        str, typer.Option(help="Why what it holds is right.", callback=refuse_unsaid)
    ] = "adopted",
    override_protection: OverrideProtection = None,
) -> None:
    """Take over a table that exists: audit what it holds, and record that as published.

    No row is written: each partition that no run has published gets its checksum, counts and
    profile, so that later runs are compared with it, and can be taken back to it.

    Example: backfill-assets adopt gold/sales --reason "as the nightly job left it"
    """
    from backfill_engine.cli.job_runs import run_job
    from backfill_engine.grains.grain import find_hull
    from backfill_engine.lake.table_log import read_log

    catalog = load_catalog()
    log = read_log(catalog.warehouse, catalog.find_table(table)).require()
    partitions = log.list_held_partitions()
    if not partitions:
        raise SettingsError(f"{table} holds no rows: there is nothing to adopt")
    first, last = find_hull(partition.key for partition in partitions)
    config = {
        **{"table": table, "first": first, "last": last},
        **{"accept": reason, "override_protection": override_protection},
    }
    echo_lines(run_job("rollback_partitions", "restore_partitions", config))


def migrate(
    table: TableKey,
    dry_run: Annotated[bool, typer.Option(help="Only say what would change.")] = False,
    override_protection: OverrideProtection = None,
) -> None:
    """Give stored columns the wider types and the new names that are declared.

    INT becomes BIGINT, and a column takes the place of the one that it was `formerly`. All files
    are written anew, in one commit; every row stays as it is, which delta-rs reads before and after
    it. What was published stays published, and can be rolled back to.

    Example: backfill-assets migrate raw/flights --dry-run
    """
    from backfill_engine.cli.job_runs import run_job
    from backfill_engine.lake.stored_declarations import find_changes, find_uncompared
    from backfill_engine.lake.table_log import read_log

    catalog = load_catalog()
    log = read_log(catalog.warehouse, catalog.find_table(table)).require()
    changes, uncompared = find_changes(log), find_uncompared(log)
    if not (changes or uncompared):
        echo(f"{table}: nothing to migrate: it is stored as declared")
        return
    if uncompared:
        echo(
            f"{table}: the migration of version {uncompared[0]} was stopped, and is compared first"
        )
    for change in changes:
        echo(f"{table}: {change}")
    if changes:
        size = sum(log.sum_folder_bytes().values())
        echo(f"{table}: {sum(log.count_folder_rows().values())} rows ({size} bytes) are rewritten")
    if not dry_run:
        config = {"table": table, "override_protection": override_protection}
        echo_lines(run_job("migrate_columns", "migrate_table", config))


def _restore(config: Mapping[str, object]) -> None:
    from backfill_engine.cli.job_runs import run_job

    echo_lines(run_job("rollback_partitions", "restore_partitions", config))


def _take_promotion_back(
    table: str, override_protection: str | None, reason: str, *, dry_run: bool, yes: bool
) -> None:
    from backfill_engine.cli.version_commands import find_served_table, run_promotion

    if any(table == known.key and not known.versions for known in load_catalog().tables):
        raise SettingsError(
            "say which partitions, by --from FIRST --to LAST, and where to go back to, by "
            "--to-version VERSION or by --before RUN"
        )
    run_promotion(
        find_served_table(table),
        yes=yes,
        dry_run=dry_run,
        override_protection=override_protection,
        reason=reason or "taken back",
    )


def protect(
    table: MaybeTableKey = None,
    first: MaybeFirst = None,
    last: MaybeLast = None,
    reason: Annotated[
        str | None, typer.Option(help="Why; whoever is refused reads it.", callback=refuse_unsaid)
    ] = None,
    lift: Annotated[bool, typer.Option("--lift", help="Lift the protection instead.")] = False,
    show_list: Annotated[
        bool, typer.Option("--list", help="List what is protected, why, by whom, since when.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Protect a table, or a range of it: no run publishes it then, however it is started.

    Unless the run says why (docs/protection.md). It counts for all who use the warehouse, and for
    runs that begin after it. Without --from it counts from the beginning on, without --to also for
    what is yet to come. With --lift, what is declared with the table stays protected.

    Example: backfill-assets protect raw/flights --to 2013-01-15 --reason "reported to the board"
    """
    from backfill_engine.lake.protections import Protection, read_protections
    from backfill_engine.orchestration.runs.protecting import list_in_force

    catalog = load_catalog()
    if show_list:
        if table or first or last or reason or lift:
            raise SettingsError("--list shows all that is protected: leave the other options out")
        decisions = read_protections(catalog.warehouse)
        standing = [
            protection for table in catalog.tables for protection in list_in_force(table, decisions)
        ]
        print_answer(standing, _print_in_force, as_json=as_json)
        return
    if table is None or reason is None:
        raise SettingsError("name a TABLE and say why with --reason, or see with --list")
    declared = catalog.find_table(table)
    given = [key for key in (first, last) if key is not None]
    if given:  # refuses keys that the table hasn't got
        find_partitions(declared, given[0], given[-1])
    decision = Protection(
        table=declared.key,
        first=first,
        last=last,
        protected=not lift,
        reason=reason,
        by=find_user(),
    )
    _decide(catalog.warehouse, declared, decision, as_json=as_json)


def _decide(
    warehouse: "Warehouse", table: "Table", decision: "Protection", *, as_json: bool
) -> None:
    """Stores and prints a decision; of one that lifts also what stays protected, on stderr."""
    from backfill_engine.lake.protections import add_protection, list_declared, read_protections

    lifts, ends = not decision.protected, decision.format_range()
    staying = [rule for rule in list_declared(table) if lifts and rule.overlaps(decision)]
    if lifts:
        decisions = read_protections(warehouse).decisions
        if not any(earlier.protected and earlier.overlaps(decision) for earlier in decisions):
            stays = f", but for what is declared: {staying[0].describe()}" if staying else ""
            raise ProtectedError(
                f"nothing of {table.key} {ends} is protected{stays}: "
                "`backfill-assets protect --list` lists what is"
            )
    stored = add_protection(warehouse, decision, now=datetime.now(tz=UTC))
    words = "no longer protected" if lifts else "protected"
    line = f"{table.key}: {ends} {words}: {decision.reason}"
    print_answer(stored, lambda _: echo(line), as_json=as_json)
    for rule in staying:
        echo(f"{table.key}: {rule.format_range()} stays protected: {rule.describe()}", err=True)


def _print_in_force(standing: "Sequence[ProtectionInForce]") -> None:
    from backfill_engine.orchestration.instance.ranges import shorten

    if not standing:
        echo("nothing is protected")
        return
    grid = Grid("table", "partitions", "~why", "by", "since, UTC")
    for protection in standing:
        ranges = [
            first if first == last else f"{first}...{last}" for first, last in protection.ranges
        ]
        later = ["and later ones"] if protection.and_later else []
        since = f"{protection.since:%Y-%m-%d %H:%M}" if protection.since else ""
        partitions = "\n".join([*shorten(ranges, _LISTED), *later])
        by = protection.by or "declared"
        grid.add_row(protection.table, partitions, protection.reason, by, since)
    print_grid(grid)
