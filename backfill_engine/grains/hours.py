"""Hours of UTC."""

from dataclasses import dataclass

from backfill_engine.grains.timestamps import TimestampGrain


@dataclass(frozen=True)
class Hourly(TimestampGrain):
    """One partition an hour. Keys as `2013-01-31-05:00`."""

    peers = "the same hour of the day"
    cron = "0 * * * *"
    minutes = 60
    landing_format = "year=%Y/month=%m/day=%d/hour=%H"
    landing_start = "make_timestamp(year, month, day, hour, 0, 0)"

    def __str__(self) -> str:
        return "hours"


HOURS = Hourly()
