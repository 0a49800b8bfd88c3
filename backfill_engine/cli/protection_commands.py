"""Which partitions are protected: set, lifted and listed."""

import getpass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_engine.cli.location import load_catalog
from backfill_engine.cli.options import AsJson, TableKey, print_grid, print_json, refuse_empty
from backfill_engine.cli.terminal import echo
from backfill_engine.errors import ProtectedError

if TYPE_CHECKING:
    from backfill_engine.lake.protections import Protection
    from backfill_engine.lake.warehouse import Warehouse
    from backfill_engine.orchestration.runs.protecting import StandingProtection
    from backfill_engine.tables.declarations import Table

_LISTED = 20

_First = Annotated[
    str | None,
    typer.Option("--from", help="First partition key; else from the beginning on."),
]
_Last = Annotated[
    str | None,
    typer.Option("--to", help="Last partition key, included; else whatever comes, too."),
]
_Reason = Annotated[
    str, typer.Option(help="Why; whoever is refused reads it.", callback=refuse_empty)
]


def protect(
    table: TableKey,
    reason: _Reason,
    first: _First = None,
    last: _Last = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Protect a table, or a range of it: no run publishes it then, however it is started.

    Unless the run says why (docs/protection.md). It counts for all who use the warehouse, and for
    runs that begin after it.
    """
    warehouse, declared = _open_warehouse(), _find_table(table, first, last)
    decision = _decide(declared, first, last, reason, protected=True)
    stored = _add(warehouse, decision)
    if as_json:
        print_json(stored)
    else:
        echo(f"{table}: {decision.format_range()} protected: {reason}")


def unprotect(
    table: TableKey,
    reason: _Reason,
    first: _First = None,
    last: _Last = None,
    as_json: AsJson = False,  # noqa: FBT002 (an option)
) -> None:
    """Lift what `protect` set, of a table or of a range of it.

    What is declared with the table stays protected: change it there, or let a run override it.
    """
    from backfill_engine.lake.protections import list_declared, read_protections

    warehouse, declared = _open_warehouse(), _find_table(table, first, last)
    decision = _decide(declared, first, last, reason, protected=False)
    decisions = read_protections(warehouse).decisions
    staying = [one for one in list_declared(declared) if one.overlaps(decision)]
    if not any(one.protected and one.overlaps(decision) for one in decisions):
        stays = f", but for what is declared: {staying[0].describe()}" if staying else ""
        raise ProtectedError(
            f"nothing of {table} {decision.format_range()} is protected{stays}: "
            "`backfill-assets protections` lists what is"
        )
    stored = _add(warehouse, decision)
    if as_json:
        print_json(stored)
    else:
        echo(f"{table}: {decision.format_range()} no longer protected: {reason}")
    for one in staying:
        echo(
            f"{table}: {one.format_range()} stays protected: {one.describe()}",
            err=True,
        )


def protections(as_json: AsJson = False) -> None:  # noqa: FBT002 (an option)
    """Show which partitions of which tables are protected, why, by whom and since when."""
    from backfill_engine.lake.protections import read_protections
    from backfill_engine.orchestration.runs.protecting import list_standing

    catalog = load_catalog()
    decided = read_protections(_open_warehouse())
    found = [one for table in catalog.tables for one in list_standing(table, decided)]
    if as_json:
        print_json(found)
    elif found:
        _print_standing(found)
    else:
        echo("nothing is protected")


def _open_warehouse() -> "Warehouse":

    catalog = load_catalog()
    return catalog.warehouse


def _find_table(key: str, first: str | None, last: str | None) -> "Table":
    """Finds the table, and refuses keys that it hasn't got."""
    from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
    from backfill_engine.orchestration.selecting.selections import find_keys_in_range

    catalog = load_catalog()
    table = catalog.find_table(key)
    given = [one for one in (first, last) if one is not None]
    if given:
        find_keys_in_range(find_partitions_def(table), first=given[0], last=given[-1])
    return table


def _decide(
    table: "Table", first: str | None, last: str | None, reason: str, *, protected: bool
) -> "Protection":
    from backfill_engine.lake.protections import Protection

    return Protection(
        table=table.key,
        first=first,
        last=last,
        protected=protected,
        reason=reason,
        by=getpass.getuser(),
    )


def _add(warehouse: "Warehouse", decision: "Protection") -> "Protection":
    from backfill_engine.lake.protections import add_protection

    return add_protection(warehouse, decision, now=datetime.now(tz=UTC))


def _print_standing(found: "list[StandingProtection]") -> None:
    from backfill_engine.cli.terminal import Grid

    grid = Grid("table", "partitions", "why", "by", "since, UTC")
    for one in found:
        grid.add_row(
            one.table,
            "\n".join(_list_ranges(one)),
            one.reason,
            one.by or "declared",
            f"{one.since:%Y-%m-%d %H:%M}" if one.since else "",
        )
    print_grid(grid, width=140)


def _list_ranges(one: "StandingProtection") -> list[str]:
    from backfill_engine.orchestration.instance.ranges import shorten

    ranges = [first if first == last else f"{first}...{last}" for first, last in one.ranges]
    return [*shorten(ranges, _LISTED), *(["and later ones"] if one.and_later else [])]
