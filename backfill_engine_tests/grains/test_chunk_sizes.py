"""Chunks tile a range exactly, begin where the calendar does, and fit the grain."""

import datetime as dt
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.chunk_sizes import (
    ChunkSize,
    ChunkUnit,
    cut_chunks,
    find_why_unfit,
    parse_chunk_size,
)
from backfill_engine.grains.dates import DAYS, MONTHS, QUARTERS, WEEKS, YEARS, Days
from backfill_engine.grains.grain import Grain
from backfill_engine.grains.timestamps import HOURS
from backfill_engine_tests.grains.drawing import (
    STARTS,
    build_chain,
    draw_buckets,
    draw_multiples,
    draw_starts,
)

_OF_TIME = [unit for unit in ChunkUnit if unit not in (ChunkUnit.STEP, ChunkUnit.FILES)]
_SIZES = st.builds(ChunkSize, st.sampled_from(_OF_TIME), st.integers(1, 40))


@st.composite
def draw_range(draw: st.DrawFn) -> tuple[Grain, ChunkSize, list]:
    """A grain, a size that fits it, and the starts of neighbouring partitions."""
    grain = draw(st.sampled_from([*STARTS]) | draw_buckets(50))
    if isinstance(grain, Buckets):
        size = ChunkSize(ChunkUnit.STEP, draw(st.integers(grain.step, 9 * grain.step)))
    else:
        size = draw(_SIZES.filter(lambda candidate: not find_why_unfit(candidate, grain)))
    chain = build_chain(grain, draw(draw_starts(grain)), draw(st.integers(1, 60)))
    return grain, size, chain[:-1]


@given(drawn=draw_range())
def test_chunks_tile_a_range_and_none_holds_partitions_of_two(drawn: tuple) -> None:
    grain, size, starts = drawn
    named = [(grain.find_key(start), start) for start in starts]
    chunks = list(cut_chunks(named, size, {}))
    assert [key for chunk in chunks for key in chunk] == [key for key, _ in named]
    assert all(chunks)
    by_key = dict(named)
    bounds = [{size.find_bounds(by_key[key]) for key in chunk} for chunk in chunks]
    assert all(len(found) == 1 for found in bounds), "each partition is in its own chunk"
    assert len({*itertools.chain(*bounds)}) == len(chunks), "and no chunk is cut in two"


@given(size=_SIZES, value=draw_multiples(1))
def test_bounds_hold_their_value_and_join_on(size: ChunkSize, value: dt.datetime) -> None:
    start, end = size.find_bounds(value)
    assert start <= value < end  # type: ignore[operator]
    assert size.find_bounds(start) == (start, end)
    assert size.find_bounds(end)[0] == end


@pytest.mark.parametrize(
    ("text", "value", "start", "end"),
    [
        ("months=1", dt.date(2024, 2, 29), "2024-02-01T00", "2024-03-01T00"),
        ("months=3", dt.date(2013, 12, 31), "2013-10-01T00", "2014-01-01T00"),
        ("years", dt.date(2013, 7, 1), "2013-01-01T00", "2014-01-01T00"),
        ("years=5", dt.date(2013, 7, 1), "2010-01-01T00", "2015-01-01T00"),
        # ISO week 1 of 2013 begins in 2012.
        ("weeks", dt.date(2013, 1, 6), "2012-12-31T00", "2013-01-07T00"),
        ("hours=6", dt.datetime(2013, 1, 1, 17, tzinfo=dt.UTC), "2013-01-01T12", "2013-01-01T18"),
        ("minutes=30", dt.datetime(2013, 1, 1, 0, 29, tzinfo=dt.UTC), "2013-01-01T00", ""),
    ],
)
def test_bounds_are_those_of_the_calendar(text: str, value: dt.date, start: str, end: str) -> None:
    found = parse_chunk_size(text).find_bounds(value)
    assert found[0] == dt.datetime.fromisoformat(f"{start}:00:00+00:00")
    if end:
        assert found[1] == dt.datetime.fromisoformat(f"{end}:00:00+00:00")


def test_steps_begin_at_their_multiples() -> None:
    assert parse_chunk_size("step=100000").find_bounds(250_000) == (200_000, 300_000)


def test_files_fill_a_chunk_up_to_their_number() -> None:
    starts = [(key, number) for number, key in enumerate("abcde")]
    files = {"a": 40, "b": 60, "c": 1, "d": 250, "e": 3}
    chunks = list(cut_chunks(starts, parse_chunk_size("files=100"), files))
    assert chunks == [["a", "b"], ["c"], ["d"], ["e"]]


@pytest.mark.parametrize(
    "text",
    ["", "month", "months=0", "months=-1", "months=1.5", "1 month", "days=", "step", "files"],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"give one of years, months|say how many"):
        parse_chunk_size(text)


@pytest.mark.parametrize("text", ["years=5000", "days=999999999", "minutes=999999999"])
def test_more_time_than_there_is_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="give 1000 years at most"):
        parse_chunk_size(text)


@pytest.mark.parametrize(
    ("text", "grain", "why"),
    [
        ("hours=6", DAYS, "hours=6 is smaller than a partition, as these are days"),
        ("days", WEEKS, "days=1 is smaller"),
        ("weeks=3", MONTHS, "weeks=3 is smaller"),
        ("minutes=30", HOURS, "minutes=30 is smaller"),
        ("step=100", Buckets(250, 1000), "step=100 is smaller than a partition"),
        ("months", Buckets(250, 1000), "doesn't count: give step=N"),
        ("step=100", DAYS, "doesn't count: give a unit of time"),
    ],
)
def test_a_size_that_does_not_fit_the_grain_is_refused_by_name(
    text: str, grain: Grain, why: str
) -> None:
    assert why in find_why_unfit(parse_chunk_size(text), grain)


FITTING = {
    DAYS: ("days", "files=9"),
    WEEKS: ("weeks",),
    MONTHS: ("months", "weeks=6", "days=60", "files=9"),
    HOURS: ("hours",),
    Buckets(250, 1000): ("step=250",),
}


@pytest.mark.parametrize("grain", FITTING, ids=str)
def test_a_chunk_may_be_one_partition_or_more(grain: Grain) -> None:
    for text in FITTING[grain]:
        assert not find_why_unfit(parse_chunk_size(text), grain)


@pytest.mark.parametrize(
    ("text", "grain"),
    [("months=3", QUARTERS), ("months=12", YEARS), ("years=1", YEARS), ("days=1", Days("%Y%m%d"))],
    ids=str,
)
def test_chunk_of_a_whole_partition_fits(text: str, grain: Grain) -> None:
    assert not find_why_unfit(parse_chunk_size(text), grain)


@pytest.mark.parametrize(("text", "grain"), [("months=2", QUARTERS), ("months=11", YEARS)], ids=str)
def test_chunk_of_less_than_a_partition_is_unfit(text: str, grain: Grain) -> None:
    assert "is smaller than a partition" in find_why_unfit(parse_chunk_size(text), grain)
