"""What landed of times that have no partitions, as the calendar ends before them."""

from collections.abc import Mapping

from backfill_engine.errors import LandingError
from backfill_engine.orchestration.instance.ranges import shorten
from backfill_engine.publishing.recipes import Recipe

_LISTED = 7


def describe_landed_beyond(recipes: Mapping[str, Recipe], landing_root: str) -> list[str]:
    """Describes what landed and no run will ever read, a line a table.

    Args:
        recipes: of the tables, by key.
        landing_root: root of the landing zone.
    """
    lines: list[str] = []
    for key, recipe in recipes.items():
        end = recipe.table.calendar.end if recipe.table.calendar else None
        if end is None or recipe.landing is None:
            continue
        try:
            beyond = recipe.landing.list_landed_from(landing_root, recipe.table, end)
        except LandingError as error:
            lines.append(f"{key}: {error}")
            continue
        if beyond:
            lines.append(
                f"{key}: landed, but beyond BACKFILL_END {end}: "
                f"{', '.join(shorten(beyond, _LISTED))}: set BACKFILL_END to a later day to take "
                "this in"
            )
    return lines
