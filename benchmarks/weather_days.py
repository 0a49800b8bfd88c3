"""A landing zone of weather with a folder a day, of one with a folder an hour: the same lines."""

import gzip
from pathlib import Path

from backfill_assets.samples.files import compress, write_if_different
from backfill_engine.sources.json_landing import EMPTY_MARKER

_NAME = "weather.json.gz"


def land_days(hours: Path, days: Path) -> int:
    """Writes `<days>/weather/year=YYYY/month=MM/day=DD/weather.json.gz` for every day of `hours`.

    It holds the lines of the day's hours, in their order; a day without any gets the marker of an
    empty one.

    Args:
        hours: root of a landing zone as `samples.weather` makes it.
        days: root of the other.

    Returns:
        The number of days.
    """
    folders = sorted((hours / "weather").glob("year=*/month=*/day=*"))
    for folder in folders:
        lines = "".join(
            gzip.decompress(path.read_bytes()).decode()
            for path in sorted(folder.glob(f"hour=*/{_NAME}"))
        )
        day = days / folder.relative_to(hours)
        if lines:
            write_if_different(day / _NAME, compress(lines))
        else:
            write_if_different(day / EMPTY_MARKER, b"")
    return len(folders)
