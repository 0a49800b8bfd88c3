"""Draws grains and starts of their partitions, and walks along them."""

import datetime as dt
import itertools
from collections.abc import Sequence

from hypothesis import strategies as st

from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.dates import DAYS, MONTHS, QUARTERS, WEEKS, YEARS, Days
from backfill_engine.grains.grain import Bound, Grain, SliceBound
from backfill_engine.grains.timestamps import HOURS, Minutes

Spread = tuple[Grain, list[SliceBound]]

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
QUARTER_HOURS = Minutes(15)

dates = st.dates(dt.date(1900, 1, 1), dt.date(2100, 12, 31))


def draw_multiples(minutes: int) -> st.SearchStrategy[dt.datetime]:
    """Moments from 1900 to 2100 that are so many minutes apart."""
    count = 24 * 60 // minutes
    numbers = st.integers(-70 * 365 * count, 130 * 365 * count)
    return numbers.map(lambda number: EPOCH + number * dt.timedelta(minutes=minutes))


STARTS: dict[Grain, st.SearchStrategy] = {
    DAYS: dates,
    WEEKS: dates.map(lambda day: day - day.weekday() * DAY),
    MONTHS: dates.map(lambda day: day.replace(day=1)),
    QUARTERS: dates.map(lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)),
    YEARS: dates.map(lambda day: day.replace(month=1, day=1)),
    Days("%Y-%m-%d"): dates,
    Days("%Y%m%d", type="INT"): dates,
    HOURS: draw_multiples(60),
    QUARTER_HOURS: draw_multiples(15),
    Minutes(360): draw_multiples(360),
}
"""By grain, but for buckets, starts of its partitions."""


@st.composite
def draw_buckets(draw: st.DrawFn, most: int = 100_000) -> Buckets:
    """At most so many."""
    step, count = draw(st.integers(1, 10**12)), draw(st.integers(1, most))
    return Buckets(step, step * (count - 1) + draw(st.integers(1, step)))


def draw_starts(grain: Grain) -> st.SearchStrategy:
    """The starts of its partitions."""
    if isinstance(grain, Buckets):
        return st.integers(0, grain.count - 1).map(lambda number: number * grain.step)
    return STARTS[grain]


@st.composite
def draw_spread(draw: st.DrawFn) -> Spread:
    """A grain, and starts of some of its partitions."""
    grain = draw(st.sampled_from([*STARTS]) | draw_buckets())
    return grain, draw(st.lists(draw_starts(grain), min_size=1, max_size=8))


def build_chain(grain: Grain[Bound], first: Bound, count: int) -> list[Bound]:
    """The starts of consecutive partitions, and the end of the last."""
    return list(
        itertools.accumulate(range(count), lambda start, _: grain.find_end(start), initial=first)
    )


def count_holding(starts: Sequence[SliceBound], value: SliceBound) -> int:
    """How many of the partitions that `build_chain` returns hold a value."""
    return sum(start <= value < end for start, end in itertools.pairwise(starts))  # type: ignore[operator]
