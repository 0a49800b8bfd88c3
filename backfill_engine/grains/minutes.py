"""Minutes of UTC, so many together."""

from dataclasses import dataclass, field

from backfill_engine.grains.timestamps import TimestampGrain

# What cron can say: parts of an hour, and hours that are part of a day.
_CHOICES = tuple(n for n in range(1, 24 * 60) if 60 % n == 0 or (n % 60 == 0 and 24 * 60 % n == 0))


@dataclass(frozen=True)
class Minutes(TimestampGrain):
    """One partition for each `minutes`, counted from midnight (UTC). Keys as `2013-01-31-05:15`.

    Raises:
        ValueError: if they neither divide an hour nor are whole hours that divide a day.
    """

    minutes: int
    cron: str = field(init=False, repr=False)

    landing_format = "year=%Y/month=%m/day=%d/hour=%H/minute=%M"
    landing_start = "make_timestamp(year, month, day, hour, minute, 0)"

    def __post_init__(self) -> None:
        if self.minutes not in _CHOICES:
            raise ValueError(f"no partitions of {self}: choose of {', '.join(map(str, _CHOICES))}")
        hours = self.minutes // 60
        cron = f"0 */{hours} * * *" if hours else f"*/{self.minutes} * * * *"
        object.__setattr__(self, "cron", cron)

    def __str__(self) -> str:
        return f"{self.minutes} minutes"
