"""A served table holds one version, whole, whatever happens around its switch."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetCheckSeverity
from pyspark.sql import SparkSession

from backfill_engine.errors import RollbackError, TableError
from backfill_engine.extras.rehearsal.records import read_rehearsal
from backfill_engine.extras.versions.described import find_retired, list_switches
from backfill_engine.extras.versions.promotions import Promotion, read_promotion
from backfill_engine.lake.origins import Origin
from backfill_engine.lake.partitions import Partition, build_partitions
from backfill_engine.lake.served_versions import find_served
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.orchestration.due.due_partitions import Memory
from backfill_engine.orchestration.planning.planning import open_planner
from backfill_engine.orchestration.planning.run_requests import find_run_requests
from backfill_engine.proof.certificates import find_certificates
from backfill_engine.publishing.inputs import PinnedInputs, pin_inputs
from backfill_engine.publishing.publisher import Publisher
from backfill_engine.publishing.restoring import plan_rollback
from backfill_engine.publishing.results import Run
from backfill_engine.publishing.serving import ServedHook, serve
from backfill_engine.rules.verdicts import Check
from backfill_engine.settings import Settings
from backfill_engine.tables.declarations import Table
from backfill_engine_tests.pipeline.landing_zone import Flight, delay
from backfill_engine_tests.pipeline.running import (
    RAW,
    STAGING,
    FinishedRun,
    Pipeline,
    copy_pipeline,
    list_days,
)
from backfill_engine_tests.project import (
    CARRIER_DELAYS,
    CARRIER_DELAYS_V2,
    CATALOG,
    SERVED_CARRIER_DELAYS,
    TRAINING_EXAMPLES,
    defs,
)

V1, V2, SERVED = CARRIER_DELAYS.key, CARRIER_DELAYS_V2.key, SERVED_CARRIER_DELAYS.key
EXAMPLES = TRAINING_EXAMPLES.key
TABLES = (CARRIER_DELAYS, CARRIER_DELAYS_V2, SERVED_CARRIER_DELAYS, TRAINING_EXAMPLES)
WHY = "v2 clips delays and weighs days by design"
NOW = dt.datetime.now(tz=dt.UTC)
TIMES = ("dep_time", "arr_time")


def delay_by_day(flight: Flight) -> Flight:
    """Delays differ from day to day, so that it matters how a week's days are weighed."""
    if flight["dep_time"] is None:
        return flight
    late = 12 * (flight["day"] % 3)
    times = {name: flight[name] // 100 * 60 + flight[name] % 100 + late for name in TIMES}
    delays = {name: flight[name] + late for name in ("dep_delay", "arr_delay")}
    return {**flight, **delays, **{name: 100 * (at // 60) + at % 60 for name, at in times.items()}}


@pytest.fixture(scope="module")
def serving_root(published_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both versions and the examples have eight days, and v1 is served. Tests copy this."""
    root = tmp_path_factory.mktemp("serving")
    with copy_pipeline(published_root, root) as pipeline:
        for day in list_days(1, 12):
            pipeline.zone.change(day, delay_by_day)
        for keys, last in ((RAW,), 12), ((STAGING,), 10), ([table.key for table in TABLES], 8):
            pipeline.run(*keys, first="2013-01-01", last=f"2013-01-{last:02}").confirm()
    return root


@pytest.fixture
def serving(serving_root: Path, tmp_path: Path) -> Iterator[Pipeline]:
    with copy_pipeline(serving_root, tmp_path) as pipeline:
        yield pipeline


def promote(pipeline: Pipeline, version: str = "v2", **config: Any) -> FinishedRun:
    options = {"table": SERVED, "version": version, "by": "anna", **config}
    return pipeline.run_job("promote", "promote_version", **options)


def read_found(pipeline: Pipeline, run: FinishedRun) -> Promotion:
    return read_promotion(pipeline.warehouse, run.id)


def read_served_log(pipeline: Pipeline) -> TableLog:
    return read_log(pipeline.warehouse, SERVED_CARRIER_DELAYS)


def holds(pipeline: Pipeline, version: Table) -> bool:
    """Whether the served table holds just what a version holds."""
    served = pipeline.read_contents_checksums(SERVED_CARRIER_DELAYS)
    return served == pipeline.read_contents_checksums(version)


def list_due(pipeline: Pipeline) -> dict[str, set[tuple[str, str]]]:
    """Finds the ranges that the sensor would request, by table."""
    found = find_run_requests(
        CATALOG,
        pipeline.instance,
        defs.get_repository_def().asset_graph,
        pipeline.warehouse,
        Memory(),
        landing_root=str(pipeline.zone.root),
        late_days=60,
    )
    due: dict[str, set[tuple[str, str]]] = {}
    for request in found.requested:
        due.setdefault(request.table, set()).add((request.first, request.last))
    return due


@dataclass(frozen=True)
class Story:
    """Makes a dry run, is refused, promotes, and promotes once more."""

    pipeline: Pipeline
    before: dict[str, Any]
    dry: FinishedRun
    refused: FinishedRun
    untouched: dict[str, Any]
    promoted: FinishedRun
    after: dict[str, Any]
    again: FinishedRun


@pytest.fixture(scope="module")
def story(serving_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with copy_pipeline(serving_root, tmp_path_factory.mktemp("promoted")) as pipeline:
        before = pipeline.look(*TABLES)
        canary = ["2013-01-07", "2013-01-07"]
        dry = promote(pipeline, dry_run=True, canary=canary)
        refused = promote(pipeline, canary=canary)
        untouched = pipeline.look(*TABLES)
        promoted = promote(pipeline, accept=WHY, reason="better features")
        after = pipeline.look(*TABLES)
        yield Story(pipeline, before, dry, refused, untouched, promoted, after, promote(pipeline))


@pytest.fixture
def promoted(story: Story, tmp_path: Path) -> Iterator[Pipeline]:
    """A copy in which v2 is served."""
    with copy_pipeline(story.pipeline.root, tmp_path) as pipeline:
        yield pipeline


def test_nothing_changes_before_a_person_says_why_the_drift_is_right(story: Story) -> None:
    assert story.dry.success, story.dry.message
    assert "still serves features/carrier_delays, and not features/carrier_delays_v2" in (
        story.refused.message
    )
    assert "--accept" in story.refused.message
    assert story.untouched == story.before
    dry = read_found(story.pipeline, story.dry)
    assert dry.missing == ()
    assert any("PSI of mean_dep_delay_7d" in what for what in dry.beyond)
    of_canary = f"{SERVED} 2013-01-07: "
    assert not all(what.startswith(of_canary) for what in dry.beyond), "it looks at all of them"
    canary = read_found(story.pipeline, story.refused).beyond
    assert canary
    assert all(what.startswith(of_canary) for what in canary)


def test_the_switch_is_one_commit_of_all_partitions_and_says_why(story: Story) -> None:
    assert story.promoted.success, story.promoted.message
    pipeline = story.pipeline
    version, served, materialized, failed = story.after[SERVED]
    assert version == story.before[SERVED][0] + 1
    assert served == story.after[V2][1]
    assert (materialized, failed) == (list_days(1, 8), [])
    for key in (V1, V2, EXAMPLES):
        assert story.after[key] == story.before[key]
    latest, first = list_switches(read_served_log(pipeline))
    assert (latest.serves, latest.before, latest.by) == (V2, V1, "anna")
    assert (latest.why, latest.rehearsal) == ("better features", story.promoted.id)
    assert (first.serves, first.before) == (V1, "")
    assert len(find_certificates(pipeline.warehouse, story.promoted.id)) == 1
    found = read_found(pipeline, story.promoted)
    assert (found.published, found.accepted, found.partitions) == (version, WHY, 8)


def test_its_evidence_is_kept_and_its_scratch_tables_are_not(story: Story) -> None:
    folder = Path(story.pipeline.warehouse.root, "rehearsals", story.promoted.id)
    assert sorted(path.name for path in folder.iterdir()) == [
        "drift.html",
        "promotion.json",
        "rehearsal.json",
    ]
    rehearsal = read_rehearsal(story.pipeline.warehouse, story.promoted.id)
    assert [table.table for table in rehearsal.tables] == [SERVED, EXAMPLES]
    # Of the first day no other is weighed.
    differing = [
        partition.partition for partition in rehearsal.tables[0].partitions if partition.differs
    ]
    assert differing == list_days(2, 8)


def test_dagster_takes_it_for_computed_from_the_version_that_it_is_of(story: Story) -> None:
    assert story.pipeline.find_unsynced(SERVED) == []
    assert set(story.pipeline.read_inputs(SERVED, "2013-01-04")) == {V2}


def test_what_reads_it_is_due(story: Story) -> None:
    # Day 1 has the same features in both versions; day 9 was not asked for yet.
    assert list_due(story.pipeline)[EXAMPLES] == {("2013-01-03", "2013-01-09")}


def test_promoted_again_it_is_served_already(story: Story) -> None:
    assert story.again.success, story.again.message
    assert read_found(story.pipeline, story.again).is_served
    assert read_served_log(story.pipeline).version == story.after[SERVED][0]


def test_only_the_version_that_is_served_is_upstream_of_it(story: Story) -> None:
    planner = open_planner(
        story.pipeline.instance,
        defs.get_repository_def().asset_graph,
        replace(
            CATALOG,
            given=Settings(
                landing=str(story.pipeline.zone.root), warehouse=story.pipeline.warehouse.root
            ),
        ),
        now=NOW,
    )
    ends = ("2013-01-04", "2013-01-04")
    downstream = {
        table.key: set(planner.plan({table: ends}).downstream)
        for table in (CARRIER_DELAYS, CARRIER_DELAYS_V2)
    }
    assert downstream == {V1: set(), V2: {SERVED, EXAMPLES}}


def test_late_data_reaches_every_version_and_what_is_served(promoted: Pipeline) -> None:
    promoted.zone.change("2013-01-05", lambda flight: delay(delay_by_day(flight)))
    for key, ends in (
        (RAW, ("2013-01-05", "2013-01-05")),
        (STAGING, ("2013-01-03", "2013-01-05")),
        (V1, ("2013-01-03", "2013-01-08")),
        (V2, ("2013-01-03", "2013-01-08")),
    ):
        promoted.run(key, first=ends[0], last=ends[1]).confirm()
    assert list_due(promoted)[SERVED] == {("2013-01-04", "2013-01-08")}
    promoted.run(SERVED, first="2013-01-03", last="2013-01-08").confirm()
    assert holds(promoted, CARRIER_DELAYS_V2)
    assert not holds(promoted, CARRIER_DELAYS)


def test_it_goes_back_whole_with_the_days_served_since(promoted: Pipeline) -> None:
    promoted.run(V1, V2, SERVED, first="2013-01-09", last="2013-01-10").confirm()
    version = read_served_log(promoted).version
    promote(promoted, "", reason="worse than hoped").confirm()
    log = read_served_log(promoted)
    assert (log.version, find_served(log)) == (version + 1, V1)
    assert holds(promoted, CARRIER_DELAYS)
    assert sorted(promoted.read_contents_checksums(CARRIER_DELAYS)) == list_days(1, 10)
    assert SERVED not in list_due(promoted), "it has what v1 published since already"


def test_part_of_another_version_is_never_brought_back(promoted: Pipeline) -> None:
    before = read_served_log(promoted).version - 1
    partial = promoted.roll_back(SERVED, "2013-01-02", "2013-01-03", to_version=before)
    assert f"serves {V2}, and served {V1} at version {before}" in partial.message
    assert holds(promoted, CARRIER_DELAYS_V2)
    promoted.roll_back(SERVED, "2013-01-01", "2013-01-08", to_version=before).confirm()
    assert find_served(read_served_log(promoted)) == V1
    with pytest.raises(RollbackError, match="would stay of the one beside the other"):
        plan_rollback(
            read_served_log(promoted),
            build_partitions(SERVED_CARRIER_DELAYS, ["2013-01-04"]),
            to_version=before + 1,
            force=True,
            now=NOW,
        )


def begin(
    serving: Pipeline, spark: SparkSession, hook: ServedHook, partitions: Sequence[Partition]
) -> tuple[Publisher, PinnedInputs]:
    """What publishes partitions of the version that a hook names, and what it has pinned."""
    recipe = serve(CATALOG.recipes[SERVED], hook.version)
    source = read_log(serving.warehouse, CATALOG.find_table(hook.version))
    landing = str(serving.zone.root)
    pinned = pin_inputs(
        read_served_log(serving),
        {hook.version: source},
        recipe,
        landing_root=landing,
        partitions=partitions,
    )
    run = Run(run_id="run", started_at=NOW, hooks=(hook,))
    publisher = Publisher(
        spark=spark, recipe=recipe, run=run, landing_root=landing, withheld_days=1
    )
    return publisher, pinned


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_run_that_was_to_follow_the_version_before_publishes_nothing(
    serving: Pipeline, spark: SparkSession
) -> None:
    partitions = build_partitions(SERVED_CARRIER_DELAYS, ["2013-01-09"])
    publisher, pinned = begin(serving, spark, ServedHook(V1), partitions)
    assert promote(serving, accept=WHY).success
    for keys in (["2013-01-09"], ["2013-01-04"]):
        chosen = build_partitions(SERVED_CARRIER_DELAYS, keys)
        with pytest.raises(TableError, match=f"was switched from {V1} to {V2} meanwhile"):
            publisher.publish_chunk(chosen, pinned)
    assert holds(serving, CARRIER_DELAYS_V2)


def test_a_switch_leaves_no_partition_of_the_version_before(
    serving: Pipeline, spark: SparkSession
) -> None:
    """A day that a run serves between look and switch is neither lost nor mixed."""
    partitions = build_partitions(SERVED_CARRIER_DELAYS, list_days(1, 8))
    publisher, pinned = begin(serving, spark, ServedHook(V2, is_whole=True), partitions)
    serving.run(V1, SERVED, first="2013-01-09", last="2013-01-09").confirm()
    with pytest.raises(TableError, match="2013-01-09 was published meanwhile"):
        publisher.publish_as_pinned(partitions, pinned)
    assert find_served(read_served_log(serving)) == V1


def test_a_version_that_lacks_a_partition_is_refused_by_name(serving: Pipeline) -> None:
    serving.run(V1, SERVED, first="2013-01-09", last="2013-01-10").confirm()
    before = serving.look(*TABLES)
    refused = promote(serving, accept=WHY)
    assert f"2013-01-09...2013-01-10: {V2} is missing" in refused.message
    command = f"`backfill-assets run --select {V2} --from 2013-01-09 --to 2013-01-10 --only missing"
    assert command in refused.message
    assert serving.look(*TABLES) == before


def test_a_version_with_a_failed_partition_is_refused(serving: Pipeline) -> None:
    serving.zone.change("2013-01-04", lambda flight: {**flight, "distance": -1})
    for key in (RAW, STAGING, V2):  # a day that raw withholds, and what it holds up
        assert not serving.run(key, first="2013-01-04", last="2013-01-04").success
    refused = promote(serving, accept=WHY)
    assert f"2013-01-04: {V2} is failed or withheld" in refused.message
    assert find_served(read_served_log(serving)) == V1


def accept(serving: Pipeline, table: str, day: str) -> None:
    """Accepts what another program made of a day, without which nothing would read the day."""
    serving.roll_back(table, day, day, accept=WHY).confirm()


def test_a_version_with_other_keys_is_refused_whatever_anyone_accepts(
    serving: Pipeline, spark: SparkSession
) -> None:
    # Another program takes a row out of v2, behind everybody's back.
    uri = serving.warehouse.uri(CARRIER_DELAYS_V2)
    condition = "flight_date = '2013-01-06' AND carrier = 'UA' AND origin = 'EWR'"
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE {condition}")
    accept(serving, V2, "2013-01-06")
    refused = promote(serving, accept=WHY, canary=["2013-01-06", "2013-01-06"])
    assert "2013-01-06: the keys are not the same, 0 only in the new version" in refused.message
    assert find_served(read_served_log(serving)) == V1


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_day_over_which_no_examples_could_be_built_is_not_served(
    serving: Pipeline, spark: SparkSession
) -> None:
    uri = serving.warehouse.uri(CARRIER_DELAYS)
    lost = "flight_date = '2013-01-05' AND carrier = 'UA'"
    spark.sql(f"UPDATE delta.`{uri}` SET carrier = 'ZZ' WHERE {lost}")
    accept(serving, CARRIER_DELAYS.key, "2013-01-05")
    before = serving.read_contents_checksums(SERVED_CARRIER_DELAYS)
    run = serving.run(SERVED, first="2013-01-04", last="2013-01-06")
    assert not run.success
    assert serving.find_days(SERVED, "FAILED") == ["2013-01-05"], run.message
    assert serving.read_contents_checksums(SERVED_CARRIER_DELAYS) == before
    failed = {
        (evaluation.partition, evaluation.check_name)
        for evaluation in serving.read_evaluations(run)
        if evaluation.partition
        and not evaluation.passed
        and evaluation.severity is AssetCheckSeverity.ERROR
    }
    assert failed == {("2013-01-05", Check.VALID)}
    assert "readers_can_be_built(serving/training_examples)" in run.message
    assert "2013-01-06: partition_is_valid: agrees(flights_7d)" in run.message
    serving.run(
        SERVED,
        first="2013-01-05",
        last="2013-01-05",
        accept=[{"check": "partition_is_valid", "reason": "UA has ended"}],
    ).confirm()
    assert serving.read_contents_checksums(SERVED_CARRIER_DELAYS) != before


def test_a_retired_version_is_empty_protected_and_not_served(promoted: Pipeline) -> None:
    def retire() -> FinishedRun:
        options = {"table": SERVED, "version": "v2", "by": "anna", "reason": "worse"}
        return promoted.run_job("retire", "retire_version", **options)

    refused = retire()
    assert f"serves {V2}: promote another version before" in refused.message
    assert promote(promoted, "").success
    retire().confirm()
    (emptied,) = read_log(promoted.warehouse, CARRIER_DELAYS_V2).commits[:1]
    assert emptied.record is not None
    retired = Origin("retirement", by="anna", reason="worse")
    assert Origin.read(emptied.record.features) == retired
    back, switch = (
        Origin.read(commit.record.features)
        for commit in read_log(promoted.warehouse, SERVED_CARRIER_DELAYS).commits[:2]
        if commit.record
    )
    assert (back.operation, switch.operation) == ("rollback", "promotion")
    assert set(read_log(promoted.warehouse, CARRIER_DELAYS_V2).count_rows().values()) <= {0}
    assert "worse" in find_retired(read_log(promoted.warehouse, CARRIER_DELAYS_V2))
    run = promoted.run(V2, first="2013-01-04", last="2013-01-04")
    assert "protected" in run.message
    again = promote(promoted, accept=WHY)
    assert "protect --lift" in again.message
    assert retire().message.startswith(f"{V2} is retired already")
    assert V2 not in list_due(promoted)
    assert promoted.find_days(SERVED, "MATERIALIZED") == list_days(1, 8)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"version": "v9"}, "has no version v9: there are v1 (features/carrier_delays), v2"),
        ({"version": ""}, "there is nothing to go back to"),
        ({"table": STAGING}, "serves no versions"),
        ({"table": "serving/nothing"}, "no table serving/nothing"),
        ({"canary": ["2014-01-01", "2014-01-02"]}, "lies in the canary"),
    ],
)
def test_what_can_not_be_promoted_is_said_in_a_line(
    serving: Pipeline, config: dict[str, Any], expected: str
) -> None:
    assert expected in promote(serving, **{"version": "v2", **config}).message
