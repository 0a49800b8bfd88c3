"""One observation tells of each change of what landed, whatever became of the cursor."""

import datetime as dt
import gzip
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetRecordsFilter,
    DagsterInstance,
    build_sensor_context,
)

from backfill_engine.extras.landing import (
    Budget,
    Seen,
    observe_landing_zone,
)
from backfill_engine.lake.commits import Consumed
from backfill_engine.lake.landing import LandedFiles
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.orchestration.due.input_tags import find_input_tags
from backfill_engine.orchestration.due.readiness import find_readiness
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.publishing.inputs import list_landing
from backfill_engine.publishing.results import PartitionResult
from backfill_engine.rules.verdicts import Verdict
from backfill_engine_tests.orchestration.instance.test_batching_instance import (
    count_commits,
    open_home,
)
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.running import find_unsynced, list_days
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS, defs, observe_landing

DAY, NEXT = "2013-01-05", "2013-01-06"
GRAPH = defs.resolve_asset_graph()


@dataclass
class Observer:
    """Looks at one table's landing zone, as the sensor does, and keeps what it has seen."""

    instance: DagsterInstance
    root: Path
    table: str = "raw/flights"
    seen: Seen = field(default_factory=dict)
    left: int = 0

    @property
    def asset_key(self) -> AssetKey:
        """Of the asset that stands for what lands."""
        return AssetKey(["landing", CATALOG.recipes[self.table].table.name])

    def look(self, budget: Budget | None = None) -> list[str]:
        """The keys that were observed."""
        recipe = CATALOG.recipes[self.table]
        look = observe_landing_zone(
            self.instance,
            recipe,
            find_partitions_def(recipe.table).get_partition_keys(),
            self.seen,
            budget or Budget(),
            landing_root=str(self.root),
            now=dt.datetime.now(tz=dt.UTC),
        )
        self.seen, self.left = look.seen, look.left
        return list(look.observed)

    def read(self, key: str) -> list[dict[str, Any]]:
        """The metadata of a partition's observations, newest first."""
        wanted = AssetRecordsFilter(self.asset_key, asset_partitions=[key])
        records = self.instance.fetch_observations(wanted, limit=100).records
        found = (record.event_log_entry.asset_observation for record in records)
        return [
            {name: value.value for name, value in each.metadata.items()} for each in found if each
        ]


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    with open_home(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def zone(tmp_path: Path) -> LandingZone:
    zone = LandingZone(tmp_path / "landing")
    zone.land(list_days(1, 9))
    return zone


@pytest.fixture
def observer(instance: DagsterInstance, zone: LandingZone) -> Observer:
    return Observer(instance, zone.root)


def test_a_first_look_observes_what_is_there_and_the_next_nothing(
    observer: Observer, zone: LandingZone
) -> None:
    assert observer.look() == list_days(1, 9)
    assert observer.look() == []
    records = observer.instance.fetch_observations(observer.asset_key, limit=100).records
    milliseconds = [round(record.timestamp * 1000) for record in records]
    assert len(set(milliseconds)) == 9, "or the UI would list fewer"
    (found,) = observer.read(DAY)
    path = zone.path(DAY)
    (name,) = found["listed_files"]
    assert name == path.relative_to(zone.root).as_posix()
    assert (found["files"], found["bytes"]) == (1, path.stat().st_size)
    assert found["records"] == len(gzip.decompress(path.read_bytes()).splitlines())
    assert found["change"] == "seen for the first time"
    assert found["landed_at"] == pytest.approx(path.stat().st_mtime)
    recipe = CATALOG.recipes["raw/flights"]
    listing = list_landing(recipe, str(zone.root), build_partitions(recipe.table, [DAY]))
    assert listing is not None
    assert found["fingerprint"] == listing.describe_files()[DAY].fingerprint


def test_each_change_is_observed_once_also_where_the_cursor_is_lost(
    observer: Observer, zone: LandingZone
) -> None:
    observer.look()
    late, own = zone.path(DAY).with_name("late.json"), zone.path(DAY)
    late.write_text('{"flight": 1}\n\n{"flight": 2}\n')
    before = observer.read(DAY)[0]
    assert observer.look() == [DAY]
    found = observer.read(DAY)[0]
    name = "flights/year=2013/month=01/day=05"
    assert found["change"] == f"1 added ({name}/late.json)"
    assert (found["files"], found["records"]) == (2, before["records"] + 2)

    os.utime(late, ns=(0, late.stat().st_mtime_ns + 1))
    own.unlink()
    zone.remove(NEXT)
    observer.seen = {}
    assert observer.look() == [DAY, NEXT]
    change = f"1 rewritten ({name}/late.json); 1 gone ({name}/{own.name})"
    assert observer.read(DAY)[0]["change"] == change
    gone = observer.read(NEXT)[0]
    assert (gone["files"], gone["records"], "landed_at" in gone) == (0, 0, False)
    observer.seen = {}
    assert observer.look() == []
    assert (len(observer.read(DAY)), len(observer.read(NEXT))) == (3, 2)


def test_what_is_too_much_for_one_look_is_left_for_the_next(
    observer: Observer, zone: LandingZone
) -> None:
    assert observer.look(Budget(partitions=4)) == list_days(1, 4)
    assert observer.left == 5
    size = zone.path(DAY).stat().st_size
    budget = Budget(bytes=size, largest=size)
    assert observer.look(budget) == [DAY]
    with zone.path(NEXT).with_name("large.json").open("w") as large:
        large.write("{}\n" * size)
    # The file is too large to be counted, so it takes nothing of the budget.
    assert observer.look(budget) == [NEXT, "2013-01-07"]
    assert "records" in observer.read(DAY)[0]
    assert "records" not in observer.read(NEXT)[0]
    assert observer.look() == list_days(8, 9)


def test_what_a_broken_file_holds_is_not_counted(observer: Observer, zone: LandingZone) -> None:
    zone.truncate(DAY)
    assert observer.look() == list_days(1, 9)
    assert [key for key in list_days(1, 9) if "records" not in observer.read(key)[0]] == [DAY]


def test_rows_of_parquet_count_where_a_file_is_of_one_bucket(
    instance: DagsterInstance, tmp_path: Path
) -> None:
    folder = tmp_path / "landing" / "orders" / "orders"
    folder.mkdir(parents=True)
    for name, keys in {"a": [1, 2, 3], "b": [99_999], "c": [250_000, 310_000]}.items():
        pq.write_table(pa.table({"o_orderkey": keys}), folder / f"{name}.parquet")
    observer = Observer(instance, tmp_path / "landing", "raw/orders")
    assert observer.look() == ["0000000", "0200000", "0300000"]
    found = {key: observer.read(key)[0] for key in ("0000000", "0200000")}
    assert (found["0000000"]["files"], found["0000000"]["records"]) == (2, 4)
    assert (found["0200000"]["files"], found["0200000"].get("records")) == (1, None)


def tick(instance: DagsterInstance, cursor: str | None) -> tuple[str, str | None]:
    """Why the sensor requests nothing, and its cursor."""
    with build_sensor_context(instance=instance, cursor=cursor) as context:
        result: Any = observe_landing(context)
    return result.skip_reason.skip_message, result.cursor


def test_the_sensor_says_what_it_saw_and_an_error_of_one_source_stops_no_other(
    instance: DagsterInstance, zone: LandingZone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKFILL_LANDING", str(zone.root))
    orders = zone.root / "orders" / "orders"
    orders.mkdir(parents=True)
    pq.write_table(pa.table({"o_orderkey": [-1]}), orders / "a.parquet")
    message, cursor = tick(instance, None)
    observed, refused, missing = message.split("; landing/")
    assert observed == "landing/flights 2013-01-01...2013-01-09: observed"
    assert refused.startswith("orders: orders/orders/a.parquet holds keys from -1 on")
    assert missing.startswith("weather: the landing folder")
    pq.write_table(pa.table({"o_orderkey": [1]}), orders / "a.parquet")
    (zone.root / "weather").mkdir()
    message, cursor = tick(instance, cursor)
    assert message == "landing/orders 0000000: observed"
    message, cursor = tick(instance, cursor)
    assert message == "nothing came, went or was rewritten"
    assert tick(instance, '{"of": "another release"}') == (message, cursor)


def test_a_landing_zone_that_is_not_there_has_lost_nothing(
    observer: Observer, zone: LandingZone, monkeypatch: pytest.MonkeyPatch
) -> None:
    observer.look()
    monkeypatch.setenv("BACKFILL_LANDING", str(zone.root))
    zone.root.rename(zone.root.with_name("unmounted"))
    message, _ = tick(observer.instance, None)
    assert message.count("isn't there: mount it or set BACKFILL_LANDING") == 3
    assert len(observer.read(DAY)) == 1


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_year_of_hours_is_stored_in_batches_and_a_look_at_it_is_short(
    instance: DagsterInstance, tmp_path: Path
) -> None:
    content, keys = gzip.compress(b"{}\n" * 10), find_hours()
    for key in keys:
        hour = dt.datetime.strptime(key, "%Y-%m-%d-%H:%M").replace(tzinfo=dt.UTC)
        folder = tmp_path / "landing" / "weather" / f"{hour:year=%Y/month=%m/day=%d/hour=%H}"
        folder.mkdir(parents=True)
        (folder / "reports.json.gz").write_bytes(content)
    observer = Observer(instance, tmp_path / "landing", "raw/weather")
    looks: list[float] = []
    with count_commits() as commits:
        while not looks or observer.left:
            looks.append(measure(observer))
    assert len(keys) > 8_700 and len(observer.read(keys[-1])) == 1
    assert commits[0] < 100
    assert max(looks) < 15
    assert measure(observer) < 6


def find_hours() -> list[str]:
    return list(find_partitions_def(CATALOG.recipes["raw/weather"].table).get_partition_keys())


def measure(observer: Observer) -> float:
    """Measures the CPU seconds of a look, as other work of the machine must not count."""
    began = time.process_time()
    observer.look()
    return time.process_time() - began


def test_what_lands_holds_no_run_back_and_makes_nothing_unsynced(
    observer: Observer, zone: LandingZone
) -> None:
    raw, instance = AssetKey(["raw", "flights"]), observer.instance
    readiness = find_readiness(instance, GRAPH, raw, [DAY])
    assert (readiness.blocked, readiness.provisional, readiness.windows) == ({}, {}, {})
    observed, unobserved = DAY, NEXT
    zone.remove(unobserved)
    observer.look()
    results = [
        PartitionResult(Verdict(key, {}), consumed=Consumed(LandedFiles(1, 1, key)))
        for key in (observed, unobserved)
    ]
    tags = find_input_tags(instance, results, RAW_FLIGHTS)
    code = GRAPH.get(raw).code_version
    for key in (observed, unobserved):
        of_run = {"dagster/code_version": str(code), "dagster/data_version": "1", **tags[key]}
        instance.report_runless_asset_event(AssetMaterialization(raw, partition=key, tags=of_run))
    assert find_unsynced(instance, GRAPH, raw, [observed, unobserved]) == []
    zone.land([unobserved])
    zone.add_lines(observed, "{}")
    assert observer.look() == [observed, unobserved]
    assert find_unsynced(instance, GRAPH, raw, [observed, unobserved]) == []
