"""Whatever becomes of a landing day's files, nothing is emptied or lost without being said."""

import datetime as dt
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_engine.errors import LandingError, LandingNotFoundError
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.rules.verdicts import Acceptance, Check
from backfill_engine_tests.pipeline.landing_zone import LandingZone, build_landed
from backfill_engine_tests.pipeline.publishing import RAW_RECIPE, Lake
from backfill_engine_tests.project import RAW_FLIGHTS
from backfill_engine_tests.publishing.hostile_cases import (
    WITHHELD,
    Story,
    check_case,
    check_quarantine,
    play,
    publish,
)
from backfill_engine_tests.publishing.hostile_days import CASES, EMPTIED, Day, add_noise

FIRST = dt.date(2013, 1, 2)
DAYS = [(FIRST + dt.timedelta(days=number)).isoformat() for number in range(len(CASES))]
OF_DAYS = dict(zip(DAYS, CASES, strict=True))
DAY_OF = {case.name: day for day, case in OF_DAYS.items()}


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    root = tmp_path_factory.mktemp("hostile")
    zone = LandingZone(root / "landing")
    zone.land(DAYS)
    landed = {day: Day(zone.path(day).parent, build_landed(day)) for day in DAYS}
    add_noise(landed[DAY_OF["fewer bytes"]])
    lake = Lake(spark, Warehouse(str(root / "warehouse")), str(zone.root))
    return play(lake, RAW_RECIPE, OF_DAYS, landed)


@pytest.mark.parametrize("day", DAYS, ids=[case.name for case in CASES])
def test_a_spoiled_day(story: Story, day: str) -> None:
    case = replace(OF_DAYS[day], says=OF_DAYS[day].says.replace("__", day[-2:]))
    findings = check_case(case, day, story)
    is_emptied = case.becomes == EMPTIED or "no records" in str(findings)
    assert story.after[day].verdict.emptied == is_emptied
    if case.quarantined or case.becomes != WITHHELD:
        check_quarantine(case, day, story)


def test_there_are_cases_enough() -> None:
    assert len(CASES) == len(DAY_OF) >= 60


def test_only_the_one_new_field_of_a_published_day_became_a_column(story: Story) -> None:
    assert read_log(story.lake.warehouse, RAW_FLIGHTS).extra_fields == ("gate",)


def test_a_loss_can_be_accepted_with_a_reason_or_by_the_table(story: Story) -> None:
    """It has to run last, because it empties the days that the cases above look at."""
    gone, unknown = DAY_OF["folder gone"], DAY_OF["named flights.jsonl"]
    shrunk, empty = DAY_OF["40 rows"], DAY_OF["file gone"]
    lenient = replace(RAW_RECIPE, table=replace(RAW_FLIGHTS, empty="publish"))
    strict = replace(RAW_RECIPE, table=replace(RAW_FLIGHTS, empty="withhold"))
    word = Acceptance(Check.COMPLETE.value, "the airline had no flights", (gone, shrunk))
    accepted = publish(story.lake, RAW_RECIPE, gone, shrunk, unknown, acceptances=(word,))
    published = [key for key, result in accepted.items() if result.version is not None]
    assert sorted(published) == sorted([gone, shrunk])
    assert accepted[gone].verdict.accepted == accepted[shrunk].verdict.accepted == (word,)
    assert (accepted[gone].measures.rows, accepted[shrunk].measures.rows) == (0, 40)
    assert publish(story.lake, lenient, unknown)[unknown].version is not None
    assert publish(story.lake, strict, empty)[empty].version is None


def _put_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("below", "spoil", "error"),
    [
        ("", shutil.rmtree, LandingNotFoundError),
        ("", _put_file, LandingNotFoundError),
        ("flights", shutil.rmtree, LandingNotFoundError),
        ("flights", _put_file, LandingNotFoundError),
        ("flights/year=2013/month=01", _put_file, LandingError),
    ],
    ids=["root gone", "file for root", "dataset gone", "file for dataset", "file for month"],
)
def test_a_landing_zone_that_is_not_there_is_refused_and_nothing_is_written(
    spark: SparkSession,
    tmp_path: Path,
    below: str,
    spoil: Callable[[Path], None],
    error: type[LandingError],
) -> None:
    landing = tmp_path / "landing"
    LandingZone(landing).land(["2013-01-02"])
    spoil(landing / below)
    lake = Lake(spark, Warehouse(str(tmp_path / "warehouse")), str(landing))
    with pytest.raises(error, match="nothing was written") as caught:
        publish(lake, RAW_RECIPE, "2013-01-02")
    assert str(caught.value).count("\n") == 0
    assert not (tmp_path / "warehouse").exists()
