"""What stands of a chunked run once its backfill may go on by other code. No Spark."""

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path

import pytest
from dagster import AssetKey

from backfill_engine.lake.commits import Consumed
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.due.readiness import find_windows
from backfill_engine.orchestration.due.stale_partitions import find_stale, find_up_to_date
from backfill_engine.orchestration.records.events import build_materialization
from backfill_engine.publishing.differences import NewCodeHook
from backfill_engine.publishing.inputs import PinnedInputs, list_landing
from backfill_engine.publishing.pacing import choose_pace
from backfill_engine.publishing.results import PartitionResult, Run
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.running import list_days
from backfill_engine_tests.pipeline.written_tables import commit_days
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS, defs

GRAPH = defs.get_repository_def().asset_graph
RECIPE = CATALOG.recipes[RAW_FLIGHTS.key]
DEPLOYED = replace(RECIPE, code_version="deployed meanwhile")
DAYS = list_days(4, 7)
CHUNKS = choose_pace(RAW_FLIGHTS, chunk="days=1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The first day was published by another backfill, the next two by the one that goes on."""
    LandingZone(tmp_path / "landing").land(list_days(3, 8))
    listing = pin(tmp_path).listing
    assert listing is not None
    consumed = {key: Consumed(files) for key, files in listing.describe_files().items()}
    for days, backfill in ((DAYS[:1], "another"), (DAYS[1:3], "goes-on")):
        commit_days(
            Warehouse(str(tmp_path / "warehouse")),
            RAW_FLIGHTS,
            days,
            run_id=f"run-of-{backfill}",
            backfill_id=backfill,
            code_version=RECIPE.code_version,
            consumed=consumed,
        )
    return tmp_path


def pin(root: Path) -> PinnedInputs:
    partitions = build_partitions(RAW_FLIGHTS, DAYS)
    listing = list_landing(RECIPE, str(root / "landing"), partitions)
    return PinnedInputs(
        target=read_log(Warehouse(str(root / "warehouse")), RAW_FLIGHTS),
        inputs={},
        listing=listing,
        windows=find_windows(GRAPH, AssetKey(["raw", "flights"]), DAYS),
    )


def find(root: Path, *, new_code: str, restart: bool = False) -> dict[str, PartitionResult]:
    """What stands of a run of the backfill by the deployed code."""
    run = Run(
        run_id="next-run",
        started_at=dt.datetime.now(tz=dt.UTC),
        chain_id="goes-on",
        pace=replace(CHUNKS, restart=restart),
        hooks=(NewCodeHook(new_code),),
    )
    return find_up_to_date(GRAPH, DEPLOYED, run, pin(root), DAYS, provisional={})


def describe(result: PartitionResult) -> tuple[str, str]:
    """The code version and the remark of its materialization."""
    event = build_materialization(
        AssetKey(["raw", "flights"]),
        result,
        uri="",
        code_version=DEPLOYED.code_version,
        certificate="",
        input_tags={},
    )
    remark = event.metadata["already_published"].value
    assert isinstance(remark, str)
    return (event.tags or {})["dagster/code_version"], remark


@pytest.mark.parametrize("restart", [False, True])
def test_what_a_backfill_published_stands_once_new_code_is_allowed(
    root: Path, *, restart: bool
) -> None:
    found = find(root, new_code="a remark was added", restart=restart)
    assert [*found] == DAYS[1:3], "not what others published, nor what nobody did"
    assert describe(found[DAYS[1]]) == (
        RECIPE.code_version,
        "from the same inputs, by the code that its backfill had then",
    )


def test_without_that_nothing_stands_by_another_code(root: Path) -> None:
    assert find(root, new_code="") == {}


def test_what_came_late_brings_it_down_all_the_same(root: Path) -> None:
    LandingZone(root / "landing").add_lines(DAYS[1], json.dumps({}))
    assert [*find(root, new_code="a remark was added")] == DAYS[2:3]


def test_of_what_reads_beside_its_declaration_nothing_is_called_up_to_date(root: Path) -> None:
    known = replace(RECIPE, compute=lambda window: window.read_landing())
    unknown = replace(RECIPE, compute=lambda window: (lambda: window.spark.table("x"))())
    pinned = pin(root)
    assert find_stale(GRAPH, known, pinned, DAYS) == {}
    stale = find_stale(GRAPH, unknown, pinned, DAYS)
    assert stale.keys() == {*DAYS[:3]}
    assert "reads by `window.spark` what no source declares" in stale[DAYS[0]]
