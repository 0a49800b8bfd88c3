"""Historical loads as they are declared: what is refused, and which days each fills."""

import datetime as dt
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.assets.flights import raw_flights
from backfill_engine.assembly import build_catalog, choose_histories
from backfill_engine.errors import DeclarationError, SettingsError
from backfill_engine.grains.timestamps import HOURS
from backfill_engine.sources.historical_loads import HistoricalLoad
from backfill_engine.sources.history import History
from backfill_engine.sources.json_landing import JsonLanding
from backfill_engine.sources.record_files import Constant, CsvFiles, DatePart
from backfill_engine.table_assets import TableAsset, table_asset
from backfill_engine.tables.declarations import Calendar, Column, Table, required
from backfill_engine_tests.project import RAW_FLIGHTS

FIELDS = (required("id", "INT", "Number"), Column("note", "STRING", "Note"))
FILES = CsvFiles(
    "old/{partition:%Y}/readings_{partition:%Y-%m}*.csv",
    where="on",
    origins=(("id", "number"), ("note", Constant("old"))),
)
YEAR = HistoricalLoad("year", FILES, dt.date(2011, 1, 1), dt.date(2012, 1, 1))
READINGS = Table("raw", "readings", "day", (required("day", "DATE", "Day"), *FIELDS))
FEED = JsonLanding("readings", FIELDS)


def declare(*flows: HistoricalLoad) -> TableAsset:
    """Declares the asset of readings."""
    declared = table_asset(READINGS, landing=FEED, history=flows)
    return declared(lambda window: window.read_landing())


@pytest.mark.parametrize(
    ("changes", "cure"),
    [
        ({"begin": "2011-01-01"}, "'2011-01-01' is no day"),
        ({"begin": dt.datetime(2011, 1, 1, tzinfo=dt.UTC)}, "`begin` and `end` are dates"),
        ({"end": dt.date(2011, 1, 1)}, "begin 2011-01-01 must be before end 2011-01-01"),
        ({"end": dt.date(2010, 1, 1)}, "begin 2011-01-01 must be before end 2010-01-01"),
        ({"begin": dt.date(2011, 1, 2)}, "begin and end where files do"),
        ({"end": dt.date(2011, 12, 31)}, "begin and end where files do"),
    ],
)
def test_what_cannot_be_a_flow_is_refused(changes: dict[str, Any], cure: str) -> None:
    with pytest.raises(DeclarationError, match=re.escape(cure)):
        replace(YEAR, **changes)


@pytest.mark.parametrize(
    ("flows", "cure"),
    [
        ((YEAR, replace(YEAR, name="again")), "`year` and `again` both fill 2011-01-01: leave"),
        (
            (
                replace(YEAR, begin=dt.date(2012, 1, 1), end=dt.date(2013, 1, 1)),
                replace(YEAR, name="late", begin=dt.date(2011, 6, 1), end=dt.date(2012, 2, 1)),
            ),
            "`late` and `year` both fill 2012-01-01: leave each day to one of them",
        ),
    ],
)
def test_flows_of_a_table_share_no_day(flows: Any, cure: str) -> None:
    with pytest.raises(DeclarationError, match=re.escape(cure)):
        table_asset(READINGS, landing=FEED, history=flows)


def test_only_tables_by_days_that_read_json_have_a_history_of_their_fields() -> None:
    hourly = (required("at", "TIMESTAMP", "Hour"), *READINGS.columns)
    hours = Table("raw", "h", "at", hourly, grain=HOURS, folder_by="day")
    with pytest.raises(DeclarationError, match="loads fill days, and it is partitioned by ho"):
        table_asset(hours, landing=FEED, history=[YEAR])
    bounds = (YEAR.begin, YEAR.end)
    fitted = replace(YEAR, files=replace(FILES, fields=FIELDS, bounds=bounds))
    assert declare(YEAR).history == (fitted,)
    for landing in (None, JsonLanding("readings")):
        with pytest.raises(DeclarationError, match="only a table that reads JSON lines with decl"):
            table_asset(READINGS, landing=landing, history=[YEAR])
    with pytest.raises(DeclarationError, match="no record has a field `id`: choose of note"):
        table_asset(READINGS, landing=JsonLanding("readings", FIELDS[1:]), history=[YEAR])
    more = (*FIELDS, required("kind", "STRING", "Kind"))
    with pytest.raises(DeclarationError, match="must say where `kind` comes from, which is requi"):
        table_asset(READINGS, landing=JsonLanding("readings", more), history=[YEAR])


@pytest.mark.parametrize(
    ("origins", "cure"),
    [
        ((("id", ""),), "a source column has no name"),
        ((("id", "a"), ("id", "b")), "`origins` has `id` twice: remove one"),
    ],
)
def test_origins_that_say_nothing_are_refused(origins: Any, cure: str) -> None:
    with pytest.raises(DeclarationError, match=cure):
        replace(FILES, origins=origins)


def test_files_are_read_by_the_columns_that_they_name_each_once() -> None:
    origins = (("id", DatePart("on", "day")), ("note", "b"), ("x", "b"))
    assert replace(FILES, origins=origins).source_columns == ("on", "b")


def test_a_flow_changes_no_code_version() -> None:
    # Whatever a history is declared as, the days that land daily stay as they were computed.
    assert raw_flights.history
    codes = {
        build_catalog([asset], calendar=Calendar(dt.date(2013, 1, 1)))[0]
        .recipes[RAW_FLIGHTS.key]
        .code_version
        for asset in (raw_flights, replace(raw_flights, history=()))
    }
    assert len(codes) == 1


@st.composite
def histories(draw: st.DrawFn) -> tuple[tuple[HistoricalLoad, ...], dt.date]:
    """Flows that follow one another, of files by day, and where the feed begins."""
    day = draw(st.dates(dt.date(2007, 1, 1), dt.date(2016, 12, 31)))
    flows: list[HistoricalLoad] = []
    for number, days in enumerate(draw(st.lists(st.integers(1, 500), min_size=1, max_size=4))):
        end = day + dt.timedelta(days=days)
        files = replace(FILES, path="old/{partition:%Y/%m/%d}.csv")
        flows.append(HistoricalLoad(f"n{number}", files, day, end))
        day = end
    feed = flows[0].begin + dt.timedelta(days=draw(st.integers(1, (day - flows[0].begin).days)))
    return tuple(draw(st.permutations(flows))), feed


@given(histories())
def test_flows_and_feed_tile_all_days(drawn: tuple[tuple[HistoricalLoad, ...], dt.date]) -> None:
    flows, feed = drawn
    history = choose_histories([declare(*flows)], ["all"], begin=feed)["raw/readings"]
    first = min(flow.begin for flow in flows)
    assert history.begin == first
    days = [first + dt.timedelta(days=number) for number in range((feed - first).days + 9)]
    for day in days:
        filling = [flow for flow in history.flows if flow.holds(day)] if day < feed else [None]
        assert filling == [history.find_flow(day)]
    assert history.find_flow(first - dt.timedelta(days=1)) is None


def test_a_history_that_is_not_chosen_is_not_there() -> None:
    asset = declare(YEAR)
    assert choose_histories([asset], [], begin=dt.date(2013, 1, 1)) == {}
    # Nor is one from where the feed begins.
    assert choose_histories([asset], ["all"], begin=dt.date(2011, 1, 1)) == {}
    begin = dt.date(2011, 6, 1)
    assert choose_histories([asset], ["year"], begin=begin) == {
        "raw/readings": History(FEED, asset.history, begin)
    }


@pytest.mark.parametrize(
    ("names", "begin", "cure"),
    [
        (["yaer"], "2012-01-01", "there is no historical load yaer: choose of next, year, all"),
        (["all"], "2013-01-02", "from 2013-01-01, where next ends, up to 2013-01-02: name the"),
        (["year"], "2013-01-01", "from 2012-01-01, where year ends, up to 2013-01-01: name the"),
    ],
)
def test_names_that_leave_days_out_are_refused(names: list[str], begin: str, cure: str) -> None:
    after = replace(YEAR, name="next", begin=dt.date(2012, 1, 1), end=dt.date(2013, 1, 1))
    with pytest.raises(SettingsError, match=re.escape(cure)):
        choose_histories([declare(after, YEAR)], names, begin=dt.date.fromisoformat(begin))
