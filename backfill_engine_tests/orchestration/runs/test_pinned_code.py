"""A backfill goes by one code and one set of options, also over a deploy. No Spark.

The runs end before they compute anything, as nothing ever landed; what matters comes before that.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterRun
from dagster._core.storage.tags import TagType, get_tag_type

from backfill_engine.errors import CodeChangedError
from backfill_engine.orchestration.instance.dagster_internals import ROOT_RUN_ID_TAG
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.orchestration.runs.features import CODE_TAG, PINNED_TAG, check_pinned_code
from backfill_engine.orchestration.runs.run_tags import (
    ALLOW_NEW_CODE_TAG,
    CHAIN_TAG,
    CONTINUES_TAG,
    LAUNCHED_CODE_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
)
from backfill_engine_tests import (
    commands,  # a module with `Project` would be taken for one of Spark
)
from backfill_engine_tests.commands import change_code, deploy
from backfill_engine_tests.pipeline.requesting import get_run
from backfill_engine_tests.pipeline.running import RAW, STAGING, Pipeline, list_files, open_pipeline
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS

DAY = {"first": "2013-01-01", "last": "2013-01-01"}
OF_BACKFILL = {"dagster/backfill": "abcdefgh"}
NOTHING_LANDED = "landing"
NEW = {**{key: recipe.code_version for key, recipe in CATALOG.recipes.items()}, RAW: "another code"}


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    with open_pipeline(tmp_path) as opened:
        yield opened


def read_tags(pipeline: Pipeline, run_id: str) -> dict[str, str]:
    return dict(get_run(pipeline.instance, run_id).tags)


def begin(pipeline: Pipeline, *keys: str, **options: Any) -> tuple[str, str]:
    """Makes a run that ends early, and returns its id and message."""
    run = pipeline.run(*keys, **DAY, **options)
    assert not run.success
    return run.id, run.message


def check(pipeline: Pipeline, run_id: str, versions: dict[str, str]) -> str:
    """What a run by another code is told, that is else as this one."""
    run = get_run(pipeline.instance, run_id)
    return check_pinned_code(CATALOG, pipeline.instance, run, versions)


def test_runs_of_a_backfill_record_what_they_go_by(pipeline: Pipeline) -> None:
    first, message = begin(pipeline, RAW, tags=OF_BACKFILL)
    assert NOTHING_LANDED in message
    second, message = begin(pipeline, STAGING, tags={CHAIN_TAG: "abcdefgh"})
    assert "since run" not in message
    former, latter = read_tags(pipeline, first), read_tags(pipeline, second)
    assert former[CODE_TAG] == latter[CODE_TAG], "of all tables, whichever a run is about"
    assert len(former[CODE_TAG]) == 16
    assert [name for name, value in former.items() if value.startswith("{")] == [PINNED_TAG]
    assert get_tag_type(PINNED_TAG) is TagType.HIDDEN
    assert json.loads(former[PINNED_TAG])["code"] == {**NEW, RAW: CATALOG.recipes[RAW].code_version}


def test_the_first_run_of_a_backfill_goes_by_the_code_that_it_was_launched_by(
    pipeline: Pipeline,
) -> None:
    tags = {**OF_BACKFILL, LAUNCHED_CODE_TAG: json.dumps({RAW: "older code"})}
    _, message = begin(pipeline, RAW, tags=tags)
    assert message.startswith("since the launch of backfill abcdefgh another code was deployed, ")
    assert f"code of {RAW}: {CATALOG.recipes[RAW].code_version}, was older code" in message
    _, message = begin(pipeline, STAGING, tags=tags)
    assert "was older code" not in message  # It is the code of another table.
    _, message = begin(pipeline, RAW, tags={**tags, ALLOW_NEW_CODE_TAG: "only a remark"})
    assert NOTHING_LANDED in message
    for text in ("older code", "[]"):
        _, message = begin(pipeline, RAW, tags={**tags, LAUNCHED_CODE_TAG: text})
        assert message.startswith(f"the tag {LAUNCHED_CODE_TAG} isn't as `backfill-assets launch`")


def test_what_goes_on_after_a_run_of_no_backfill_is_compared_with_it(pipeline: Pipeline) -> None:
    first, _ = begin(pipeline, RAW)
    continues = {CHAIN_TAG: first, CONTINUES_TAG: first}
    second, message = begin(pipeline, RAW, tags=continues)
    assert NOTHING_LANDED in message
    with pytest.raises(CodeChangedError, match=f"since run {first} .* code of {RAW}: another"):
        check(pipeline, second, NEW)
    # Whoever runs it again by mended code intends that, and continuations go by that code.
    pipeline.instance.delete_run(second)
    retry, message = begin(pipeline, RAW, tags={ROOT_RUN_ID_TAG: first})
    assert NOTHING_LANDED in message
    assert check(pipeline, retry, NEW) == ""
    _, message = begin(pipeline, RAW, tags={CHAIN_TAG: first, CONTINUES_TAG: retry})
    assert f"since run {retry} " in message


def test_other_options_in_mid_backfill_are_refused_and_allowed_with_a_reason(
    pipeline: Pipeline,
) -> None:
    first, _ = begin(pipeline, RAW, tags=OF_BACKFILL)
    merge = {**OF_BACKFILL, "backfill_assets/write_mode": "append_once"}
    before = list_files(pipeline.root / "warehouse")
    _, message = begin(pipeline, RAW, tags=merge)
    assert message == (
        f"since run {first} of backfill abcdefgh another code was deployed, or other options were "
        f'given: options of {RAW}: {{"write_mode": "append_once"}}, was {{"write_mode": '
        '"overwrite"}: `backfill-assets launch` the rest as another backfill, or say why by the '
        f"tag {ALLOW_NEW_CODE_TAG}; nothing was written"
    )
    assert list_files(pipeline.root / "warehouse") == before
    _, message = begin(pipeline, RAW, tags={**merge, ALLOW_NEW_CODE_TAG: "the batch is whole"})
    assert NOTHING_LANDED in message
    _, message = begin(pipeline, RAW, tags={**merge, ALLOW_NEW_CODE_TAG: ""})
    assert message == f"{ALLOW_NEW_CODE_TAG} needs a reason: say why, or leave it out"
    # Options that the table has anyway, or that decide no row, are no change.
    others = {"override_protection": "why", "write_mode": "overwrite", "save_watermark": "true"}
    override = {
        **OF_BACKFILL,
        **{f"backfill_assets/{name}": option for name, option in others.items()},
    }
    assert NOTHING_LANDED in begin(pipeline, RAW, tags=override)[1]


def test_the_run_that_began_first_decides_whichever_was_made_first(pipeline: Pipeline) -> None:
    assets = frozenset({find_asset_key(RAW_FLIGHTS)})
    waiting = DagsterRun("flights", tags=OF_BACKFILL, asset_selection=assets)
    pipeline.instance.add_run(waiting)
    first, _ = begin(pipeline, RAW, tags=OF_BACKFILL)
    # A retry comes with the tags of the run that it repeats, and begins later.
    copied = {tag: read_tags(pipeline, first)[tag] for tag in (CODE_TAG, PINNED_TAG)}
    retried, message = begin(pipeline, RAW, tags={**OF_BACKFILL, **copied})
    assert NOTHING_LANDED in message
    refusal = f"since run {first} .* code of {RAW}: another code, was "
    for run_id in (retried, waiting.run_id):
        with pytest.raises(CodeChangedError, match=refusal):
            check(pipeline, run_id, NEW)
    # Later runs aren't compared with a refused run.
    assert NOTHING_LANDED in begin(pipeline, RAW, tags=OF_BACKFILL)[1]
    # The code of a table that a run isn't about may change.
    staging, _ = begin(pipeline, STAGING, tags=OF_BACKFILL)
    assert check(pipeline, staging, NEW) == ""


def test_a_deploy_in_mid_backfill_stops_the_rest(tmp_path: Path) -> None:
    deployed, root = deploy(tmp_path / "deployed"), tmp_path / "project"
    assert NOTHING_LANDED in execute(deployed, root)
    assert NOTHING_LANDED in execute(deployed, root)
    before = list_files(root / "warehouse")
    change_code(deployed)
    message = execute(deployed, root)
    assert f"another code was deployed, or other options were given: code of {RAW}: " in message
    assert "options of" not in message
    assert list_files(root / "warehouse") == before


def execute(deployed: Path, root: Path) -> str:
    """Runs a backfill by the deployed code, and returns the message at its end."""
    settings = (("PYTHONPATH", str(deployed)),)
    project = commands.Project(root, root / "landing", settings)
    tags = {**OF_BACKFILL, RANGE_START_TAG: DAY["first"], RANGE_END_TAG: DAY["last"]}
    job = ("-m", "backfill_assets.definitions", "-j", "flights", "--tags", json.dumps(tags))
    run = project.run("dagster", "job", "execute", *job)
    return run.stderr.rstrip().splitlines()[-1]
