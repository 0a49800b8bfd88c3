"""How the answers of `version_commands` look in a terminal."""

from typing import TYPE_CHECKING

from backfill_engine.cli.options import print_grid
from backfill_engine.cli.terminal import Grid, echo
from backfill_engine.extras.versions.pages import describe_outcome
from backfill_engine.orchestration.instance.ranges import shorten

if TYPE_CHECKING:
    from backfill_engine.extras.versions.described import DescribedTable
    from backfill_engine.extras.versions.promotions import Promotion

_LISTED = 31


def print_versions(found: "DescribedTable") -> None:
    """Prints a row for each version, and one for each switch, newest first."""
    grid = Grid("version", "table", "partitions", "state", title=found.table, title_justify="left")
    names: dict[str, str] = {}
    for one in found.versions:
        names[one.table] = one.name
        state = "served" if one.is_served else ("retired" if one.retired else "")
        grid.add_row(one.name, one.table, str(one.partitions), state)
    print_grid(grid, width=160)
    if not found.switches:
        echo("nothing is served yet")
        return
    grid = Grid("at (UTC)", "serves", "before", "by", "why", "as version", "evidence")
    for switch in found.switches:
        grid.add_row(
            f"{switch.at:%Y-%m-%d %H:%M}",
            *(names.get(key, key) for key in (switch.serves, switch.before)),
            *(switch.by, switch.why, str(switch.version)),
            switch.rehearsal[:8] or switch.run_id[:8],
        )
    print_grid(grid, width=160)


def print_promotion(found: "Promotion") -> None:
    """Prints what stands against a version, and what is served now."""
    for what in shorten(list(found.missing), _LISTED):
        echo(f"missing: {what}")
    for what in shorten(list(found.beyond), _LISTED):
        echo(f"beyond the gates: {what}")
    if found.page:
        echo(f"the drift, drawn: {found.page}")
    echo(describe_outcome(found))
