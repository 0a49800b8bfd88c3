"""Whatever becomes of landed Parquet files, no record vanishes without being said."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from backfill_engine.errors import LandingError, LandingNotFoundError
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.pipeline.publishing import Lake
from backfill_engine_tests.project import CATALOG, RAW_ORDERS
from backfill_engine_tests.publishing.hostile_buckets import (
    CASES,
    ROWS,
    STEP,
    Bucket,
    build_lines,
    build_orders,
    write,
)
from backfill_engine_tests.publishing.hostile_cases import (
    Story,
    check_case,
    check_quarantine,
    list_findings,
    play,
    publish,
    read_quarantine,
)

RECIPE = CATALOG.recipes[RAW_ORDERS.key]
KEYS = [f"{number * STEP:07}" for number in range(len(CASES))]
OF_KEYS = dict(zip(KEYS, CASES, strict=True))
KEY_OF = {case.name: key for key, case in OF_KEYS.items()}


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    root = tmp_path_factory.mktemp("hostile")
    buckets = {key: Bucket(root / "landing", int(key)) for key in KEYS}
    for bucket in buckets.values():
        bucket.land()
    lake = Lake(spark, Warehouse(str(root / "warehouse")), str(root / "landing"))
    played = play(lake, RECIPE, OF_KEYS, buckets)
    assert {result.measures.rows for result in played.before.values()} == {ROWS}
    return played


@pytest.mark.parametrize("key", KEYS, ids=[case.name for case in CASES])
def test_a_spoiled_bucket(story: Story, key: str) -> None:
    check_case(OF_KEYS[key], key, story)
    check_quarantine(OF_KEYS[key], key, story)


def test_there_are_cases_enough() -> None:
    assert len(CASES) == len(KEY_OF) >= 40


@pytest.mark.only_spark
def test_a_quarantined_record_is_all_that_was_declared_of_it(story: Story) -> None:
    ((_, line),) = story.quarantined[KEY_OF["a key that is null"]]
    assert line is not None
    assert line.startswith('{"l_orderkey":null,"l_linenumber":1,"l_partkey":7')


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """Three buckets landed, and nothing published."""
    for number in range(3):
        Bucket(tmp_path / "landing", number * STEP).land()
    return Lake(spark, Warehouse(str(tmp_path / "warehouse")), str(tmp_path / "landing"))


THREE = ("0000000", "0100000", "0200000")


def find_folder(lake: Lake) -> Path:
    return Path(lake.landing_root) / "orders" / "orders"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "can't be read as Parquet: land it again"),
        (b"PAR1 and then no footer", "can't be read as Parquet: land it again"),
        (build_lines(0), "has no integer column o_orderkey: land it as it was declared"),
    ],
    ids=["0 bytes", "no footer", "no key"],
)
def test_a_file_that_may_hold_any_key_holds_back_all_that_is_asked_for(
    lake: Lake, content: bytes | pa.Table, says: str
) -> None:
    path = find_folder(lake) / "odd.parquet"
    write(path, content) if isinstance(content, pa.Table) else path.write_bytes(content)
    results = publish(lake, RECIPE, *THREE)
    for result in results.values():
        assert result.version is None
        (finding,) = list_findings(result)
        assert finding.rule == "files_are_readable"
        assert finding.bound == f"orders/orders/odd.parquet {says}"
    counts = {key: len(found) for key, found in read_quarantine(lake, RAW_ORDERS).items()}
    assert counts == dict.fromkeys(THREE, 1)


def test_names_that_are_not_read_are_named_for_all_buckets_and_broken_pages_alone_hold_back(
    lake: Lake,
) -> None:
    folder = find_folder(lake)
    for name in ("more.parq", "more.PARQUET"):
        write(folder / name, build_orders(0))
    write(folder / "part" / "more.parquet", build_orders(0))
    results = publish(lake, RECIPE, *THREE)
    beginning = "not read: orders/orders/more.PARQUET (not .parquet), orders/orders/more.parq (not"
    for result in results.values():
        assert result.version is not None
        (finding,) = list_findings(result)
        assert finding.rule == "files_are_known"
        assert finding.bound.startswith(beginning)
        assert finding.bound.endswith("orders/orders/part (a folder)")
    # The only file of the only bucket that is asked for: nothing is left to compute.
    only = Bucket(Path(lake.landing_root), STEP).orders
    content = only.read_bytes()
    only.write_bytes(content[:4] + b"\xff" * 1500 + content[1504:])
    (result,) = publish(lake, RECIPE, THREE[1], run_id="second").values()
    assert result.version is None
    assert [finding.rule for finding in list_findings(result)] == ["files_are_readable"]
    assert read_log(lake.warehouse, RAW_ORDERS).count_rows() == dict.fromkeys(THREE, ROWS)


NO_KEYS = build_orders(0, 2).set_column(0, "o_orderkey", pa.array([None, None], pa.int64()))


@pytest.mark.parametrize(
    ("orders", "options", "says"),
    [
        (build_orders(10_000_000), {}, "outside of the key space 0 to 9999999"),
        (build_orders(-100, 1), {}, "no partition holds negative ones"),
        (build_orders(0), {"write_statistics": False}, "doesn't say which o_orderkey it holds"),
        (NO_KEYS, {}, "doesn't say which o_orderkey it holds"),
    ],
    ids=["too large", "negative", "no statistics", "only nulls"],
)
def test_what_no_bucket_could_hold_is_refused(
    lake: Lake, orders: pa.Table, options: dict[str, Any], says: str
) -> None:
    write(find_folder(lake) / "odd.parquet", orders, **options)
    check_refused(lake, says, LandingError)


@pytest.mark.parametrize(("name", "says"), [("orders", ""), ("", ": mount it or set BACKFILL_LA")])
def test_a_data_set_or_a_landing_zone_that_is_gone_is_refused(
    lake: Lake, name: str, says: str
) -> None:
    folder = Path(lake.landing_root) / name
    folder.rename(folder.with_name("away"))
    check_refused(lake, f"isn't there{says}", LandingNotFoundError)


def check_refused(lake: Lake, says: str, error: type[LandingError]) -> None:
    with pytest.raises(LandingError, match=r"BACKFILL|write it|land it") as caught:
        lake.pin(RECIPE, build_partitions(RAW_ORDERS, THREE))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert type(caught.value) is error


def test_a_kind_of_file_that_is_gone_is_refused(lake: Lake) -> None:
    folder = find_folder(lake)
    folder.rename(folder.with_name("away"))
    with pytest.raises(LandingError, match="nothing has landed in orders/orders: land it"):
        publish(lake, RECIPE, *THREE)
