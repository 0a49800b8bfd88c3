"""Runs and backfills say in a tag what they are about, however they were made."""

from dagster import (
    AssetKey,
    DagsterInstance,
    DailyPartitionsDefinition,
    asset,
    job,
    materialize,
    op,
)

from backfill_engine.orchestration.instance.own_runs import (
    OWN_STEP,
    find_own_assets,
    note_own_assets,
)
from backfill_engine.orchestration.runs.claims import add_title, build_run_title
from backfill_engine.orchestration.runs.run_tags import (
    ABOUT_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
)
from backfill_engine_tests.pipeline.requesting import add_backfill, get_backfill

RAW, STAGING = AssetKey(["raw", "flights"]), AssetKey(["staging", "flights"])
DAYS = DailyPartitionsDefinition("2013-01-01", end_date="2013-02-01")


def ask_for(instance: DagsterInstance, *keys: AssetKey, title: str | None = None) -> None:
    days = ["2013-01-12", "2013-01-10", "2013-01-14"]
    add_backfill(instance, "asked", *keys, days=days, title=title, tags={"why": "INC-7"})


def read_tags(instance: DagsterInstance) -> dict[str, str]:
    return dict(get_backfill(instance, "asked").tags)


def test_a_backfill_without_a_title_is_about_its_tables_and_the_ends_of_their_range(
    instance: DagsterInstance,
) -> None:
    note_own_assets(instance, [RAW, STAGING])
    ask_for(instance, STAGING, RAW)
    about = "raw/flights, staging/flights 2013-01-10...2013-01-14"
    assert read_tags(instance) == {"why": "INC-7", ABOUT_TAG: about}


def test_a_backfill_with_a_title_is_about_that(instance: DagsterInstance) -> None:
    note_own_assets(instance, [STAGING])
    note_own_assets(instance, [RAW])
    assert find_own_assets(instance) == {RAW, STAGING}
    ask_for(instance, RAW, title="wrong numbers")
    assert read_tags(instance)[ABOUT_TAG] == "wrong numbers"


def test_what_names_no_partitions_stays_as_it_is(instance: DagsterInstance) -> None:
    ask_for(instance, RAW)
    backfill = get_backfill(instance, "asked")
    bare = backfill._replace(asset_backfill_data=None, asset_selection=None, title=None)
    assert add_title(bare, ()).tags == bare.tags


def test_runs_are_about_their_assets_or_their_job(instance: DagsterInstance) -> None:
    @asset(key=RAW, partitions_def=DAYS, op_tags=OWN_STEP)
    def flights() -> None:
        pass

    @op(tags=OWN_STEP)
    def rest() -> None:
        pass

    @job
    def tidy() -> None:
        rest()

    assert materialize([flights], partition_key="2013-01-12", instance=instance).success
    # A retry has the tags of the run before.
    run = instance.create_run_for_job(tidy.get_subset(), tags={ABOUT_TAG: "another"})
    (of_job, of_asset) = instance.get_runs()
    assert of_job.run_id == run.run_id
    assert of_job.tags[ABOUT_TAG] == "tidy"
    assert of_asset.tags[ABOUT_TAG] == "__ephemeral_asset_job__ 2013-01-12"


def test_a_range_is_told_by_its_ends() -> None:
    tags = {RANGE_START_TAG: "2013-01-10", RANGE_END_TAG: "2013-01-14"}
    assert build_run_title("flights", None, tags) == "flights 2013-01-10...2013-01-14"
    assert build_run_title("__ASSET_JOB", {STAGING, RAW}, {}) == "raw/flights, staging/flights"
