"""Whatever becomes of a landing day's files, nothing is emptied or lost without being said."""

import datetime as dt
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from backfill_engine.errors import LandingError, LandingNotFoundError
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.side_tables import build_quarantine_table
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.results import PartitionResult
from backfill_engine.rules.verdicts import Acceptance, Check
from backfill_engine_tests.pipeline.landing_zone import LandingZone, build_landed
from backfill_engine_tests.pipeline.publishing import RAW_RECIPE, Lake
from backfill_engine_tests.project import RAW_FLIGHTS
from backfill_engine_tests.publishing.hostile_cases import (
    WITHHELD,
    Case,
    check_case,
    check_quarantine,
)
from backfill_engine_tests.publishing.hostile_days import CASES, EMPTIED, Day, add_noise

FIRST = dt.date(2013, 1, 2)
DAYS = {
    case.name: (FIRST + dt.timedelta(days=number)).isoformat() for number, case in enumerate(CASES)
}


@dataclass(frozen=True)
class Story:
    """A range published well, spoiled, and run once more: results and rows of that, by day."""

    lake: Lake
    before: Mapping[str, PartitionResult]
    after: Mapping[str, PartitionResult]
    rows: Mapping[str, int]
    quarantined: Mapping[str, list[str]]
    columns: tuple[str, ...]


def open_day(root: Path, key: str) -> Day:
    return Day(LandingZone(root).path(key).parent, build_landed(key))


def publish(lake: Lake, *keys: str, **others: Any) -> dict[str, PartitionResult]:
    recipe = others.pop("recipe", RAW_RECIPE)
    results = lake.publish(recipe, build_partitions(RAW_FLIGHTS, keys), **others)
    return {result.key: result for result in results}


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    root = tmp_path_factory.mktemp("hostile")
    landing, warehouse = root / "landing", Warehouse(str(root / "warehouse"))
    lake = Lake(spark, warehouse, str(landing))
    LandingZone(landing).land(DAYS.values())
    add_noise(open_day(landing, DAYS["fewer bytes"]))
    old = [DAYS[case.name] for case in CASES if not case.new]
    before = publish(lake, *old)
    assert [key for key, result in before.items() if result.verdict.withheld] == []
    for case in CASES:
        case.spoil(open_day(landing, DAYS[case.name]))
    after = publish(lake, *DAYS.values(), run_id="second")
    quarantined: dict[str, list[str]] = {}
    for row in warehouse.open(build_quarantine_table(RAW_FLIGHTS)).to_pyarrow_table().to_pylist():
        quarantined.setdefault(row["landing_date"].isoformat(), []).append(row["reason"])
    log = read_log(warehouse, RAW_FLIGHTS)
    return Story(lake, before, after, log.count_rows(), quarantined, log.extra_fields)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_spoiled_day(story: Story, case: Case) -> None:
    key = DAYS[case.name]
    case = replace(case, says=case.says.replace("__", key[-2:]))
    before = story.before[key].measures.rows if key in story.before else 0
    findings = check_case(case, key, story.after, story.rows, before)
    is_emptied = case.becomes == EMPTIED or "no records" in str(findings)
    assert story.after[key].verdict.emptied == is_emptied
    if case.quarantined or case.becomes != WITHHELD:
        check_quarantine(case, story.quarantined.get(key, []))


def test_there_are_cases_enough() -> None:
    assert len(CASES) == len(DAYS) >= 60


def test_only_the_one_new_field_of_a_published_day_became_a_column(story: Story) -> None:
    assert story.columns == ("gate",)


def test_a_loss_can_be_accepted_with_a_reason_or_by_the_table(story: Story) -> None:
    """It has to run last, because it empties the days that the cases above look at."""
    gone, unknown = DAYS["folder gone"], DAYS["named flights.jsonl"]
    shrunk, empty = DAYS["40 rows"], DAYS["file gone"]
    lenient = replace(RAW_RECIPE, table=replace(RAW_FLIGHTS, empty="publish"))
    strict = replace(RAW_RECIPE, table=replace(RAW_FLIGHTS, empty="withhold"))
    word = Acceptance(Check.COMPLETE.value, "the airline had no flights", (gone, shrunk))
    accepted = publish(story.lake, gone, shrunk, unknown, acceptances=(word,))
    published = [key for key, result in accepted.items() if result.version is not None]
    assert sorted(published) == sorted([gone, shrunk])
    assert accepted[gone].verdict.accepted == accepted[shrunk].verdict.accepted == (word,)
    assert (accepted[gone].measures.rows, accepted[shrunk].measures.rows) == (0, 40)
    assert publish(story.lake, unknown, recipe=lenient)[unknown].version is not None
    assert publish(story.lake, empty, recipe=strict)[empty].version is None


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
        publish(lake, "2013-01-02")
    assert str(caught.value).count("\n") == 0
    assert not (tmp_path / "warehouse").exists()
