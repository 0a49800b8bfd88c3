"""What a run may be told of its pace, and when a window is open."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.errors import SettingsError
from backfill_engine.publishing.pacing import choose_pace, parse_window
from backfill_engine_tests.project import RAW_FLIGHTS

NOON = dt.datetime(2013, 1, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "hours"),
    [("22:00-06:00", [*range(6), 22, 23]), ("06:00-22:00", [*range(6, 22)])],
)
def test_a_window_is_open_from_its_first_minute_to_before_its_last(
    text: str, hours: list[int]
) -> None:
    window = parse_window(text)
    assert [hour for hour in range(24) if window.is_open(NOON.replace(hour=hour))] == hours
    assert str(window) == text


@given(minutes=st.lists(st.integers(0, 24 * 60 - 1), min_size=2, max_size=2, unique=True))
def test_a_window_and_its_opposite_are_never_open_together(minutes: list[int]) -> None:
    first, last = (f"{minute // 60:02}:{minute % 60:02}" for minute in minutes)
    window, other = parse_window(f"{first}-{last}"), parse_window(f"{last}-{first}")
    for minute in range(0, 24 * 60, 7):
        now = NOON.replace(hour=minute // 60, minute=minute % 60)
        assert window.is_open(now) != other.is_open(now)


def test_a_window_is_of_utc() -> None:
    in_new_york = NOON.astimezone(dt.timezone(dt.timedelta(hours=-5)))
    assert parse_window("11:00-13:00").is_open(in_new_york)


@pytest.mark.parametrize("text", ["22-6", "22:00", "24:00-06:00", "22:60-06:00", "06:00-06:00", ""])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="window"):
        parse_window(text)


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"chunk": "fortnights"}, "give one of years, months"),
        ({"chunk": "hours=6"}, "raw/flights: hours=6 is smaller than a partition"),
        ({"restart": True}, "restart is about chunks: say how large they are"),
        ({"keep_going": True}, "keep_going is about chunks"),
    ],
)
def test_what_a_table_can_not_honour_is_refused_with_its_cure(
    wishes: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        choose_pace(RAW_FLIGHTS, **wishes)  # type: ignore[arg-type]
