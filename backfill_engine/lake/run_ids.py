"""How a person names a run or a backfill: by its id, or by enough of it."""

from collections.abc import Iterable

from backfill_engine.errors import HistoryError

_ENOUGH = 8
"""Characters; as many as a backfill's whole id has, and as Dagster shows of a run's."""


def find_id(wanted: str, ids: Iterable[str]) -> str | None:
    """Finds the id that is `wanted`, or else the one that begins with it; None if there is none.

    Raises:
        HistoryError: if `wanted` is no whole id and too short to be the beginning of one, or if
            several ids begin with it.
    """
    known = set(ids)
    if wanted in known:
        return wanted
    refuse_short_id(wanted)
    found = sorted(known_id for known_id in known if known_id.startswith(wanted))
    if len(found) > 1:
        raise HistoryError(f"{wanted} is the beginning of {' and '.join(found)}: say more")
    return found[0] if found else None


def refuse_short_id(wanted: str) -> None:
    """Refuses what is too short to name a run or a backfill.

    Raises:
        HistoryError: naming the cure.
    """
    if len(wanted) < _ENOUGH:
        raise HistoryError(
            f"'{wanted}' names no run or backfill: give the whole id, or {_ENOUGH} characters or "
            "more of its beginning (`backfill-assets backfills` lists backfills, `backfill-assets "
            "history TABLE` the runs of a table)"
        )
