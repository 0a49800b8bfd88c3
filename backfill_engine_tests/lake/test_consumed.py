"""What partitions were computed from, on its way into a commit's record and back."""

import dataclasses
import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.lake.commits import CommitInputs, CommitRecord, Consumed
from backfill_engine.lake.landing import LandedFiles
from backfill_engine_tests.lake.test_commits import RECORD

KEYS = [f"2013-01-{day:02}" for day in range(1, 9)]
FILES = LandedFiles(2, 512, "00ff")

windows = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["", "aa", "bb"]), min_size=1)
consumptions = st.dictionaries(
    st.sampled_from(KEYS),
    st.builds(
        Consumed,
        st.none() | st.just(FILES),
        st.dictionaries(st.sampled_from(["raw/flights", "raw/weather"]), windows),
    ),
)


@given(consumptions, st.sets(st.sampled_from(KEYS)))
def test_what_is_described_is_read_again_also_of_some_of_the_partitions(
    consumed: dict[str, Consumed], kept: set[str]
) -> None:
    """Also where partitions read an upstream partition at different times, or not neighbours."""
    record = pass_through_json(dataclasses.replace(RECORD, consumed=CommitInputs.of(consumed)))
    assert {key: record.consumed.find(key) for key in consumed} == consumed
    reduced = record.consumed.restrict(kept)
    assert {key: reduced.find(key) for key in KEYS} == {
        key: consumed.get(key, Consumed()) if key in kept else Consumed() for key in KEYS
    }


def test_a_reduced_record_has_only_the_upstream_that_its_windows_need() -> None:
    consumed = CommitInputs.of(
        {
            key: Consumed(FILES, {"raw/flights": dict.fromkeys(KEYS[place : place + 2], "aa")})
            for place, key in enumerate(KEYS)
        }
    )
    record = dataclasses.replace(RECORD, rows=dict.fromkeys(KEYS, 1), consumed=consumed)
    reduced = record.restrict([KEYS[3]]).consumed
    assert [*reduced.landed] == [KEYS[3]]
    (read,) = reduced.upstream
    assert [*read.checksums] == KEYS[3:5]
    assert read.windows == {KEYS[3]: (KEYS[3], KEYS[4])}


def test_8760_hours_with_a_window_of_a_day_fit_into_a_commit() -> None:
    hours = build_hours(8760)
    consumed = {
        hour: Consumed(
            upstream={
                "staging/events": {
                    upstream: f"{place - back:016x}"
                    for back in reversed(range(min(24, place + 1)))
                    for upstream in [hours[place - back]]
                }
            }
        )
        for place, hour in enumerate(hours)
    }
    landed = {hour: Consumed(LandedFiles(3, 123_456, "0123456789abcdef")) for hour in hours}
    own = {hour: Consumed(upstream={"raw/events": {hour: f"{0:016x}"}}) for hour in hours}
    sizes = [measure_bytes(found) / len(hours) for found in (consumed, own, landed)]
    assert [round(size) for size in sizes] == [97, 60, 49]


def measure_bytes(consumed: dict[str, Consumed]) -> int:
    """What it adds to a record, which can be read again."""
    record = dataclasses.replace(RECORD, consumed=CommitInputs.of(consumed))
    first, last = min(consumed), max(consumed)
    found = pass_through_json(record)
    assert (found.consumed.find(first), found.consumed.find(last)) == (
        consumed[first],
        consumed[last],
    )
    return len(record.to_json()) - len(RECORD.to_json())


def pass_through_json(record: CommitRecord) -> CommitRecord:
    found = CommitRecord.from_json(record.to_json())
    assert found is not None
    return found


def build_hours(count: int) -> list[str]:
    first = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
    return [f"{first + dt.timedelta(hours=hour):%Y-%m-%d-%H:%M}" for hour in range(count)]
