"""Who asked for a run is told by its tags, else by its configuration, else by Dagster."""

from typing import Any

import pytest

from backfill_engine.lake.origins import Origin
from backfill_engine.orchestration.runs.run_tags import read_origin, tag_origin

COMMANDED = Origin("repair", by="anna", reason="wrong numbers", command="backfill-assets run --yes")


def test_it_is_read_from_the_tags_that_say_it() -> None:
    assert read_origin(tag_origin(COMMANDED), operation="rollback") == COMMANDED


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({}, Origin("materialize")),
        ({"dagster/from_ui": "true"}, Origin("materialize")),
        ({"dagster/backfill": "abcdefgh", "user": "a@b.c"}, Origin("backfill", by="a@b.c")),
        ({"dagster/schedule_name": "weekly"}, Origin("scheduled", by="schedule weekly")),
        ({"dagster/sensor_name": "eager"}, Origin("automation", by="sensor eager")),
        (
            {**tag_origin(Origin("daily", reason="1 new")), "dagster/sensor_name": "due"},
            Origin("daily", by="sensor due", reason="1 new"),
        ),
        (
            {**tag_origin(COMMANDED), "dagster/sensor_name": "go_on_after_pause"},
            COMMANDED,
        ),
    ],
)
def test_a_run_without_our_words_has_what_dagster_says(
    tags: dict[str, str], expected: Origin
) -> None:
    assert read_origin(tags) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"by": "anna", "reason": "worse", "accept": "agreed"}, Origin("x", "anna", "worse")),
        ({"accept": "a law", "by": ""}, Origin("x", "", "a law")),
        ({"accept": [{"check": "c", "reason": "r"}]}, Origin("x")),
        ({"by": {"env": "USER"}}, Origin("x")),
        ("a word", Origin("x")),
        (None, Origin("x")),
    ],
)
def test_a_job_may_be_told_by_its_configuration(config: Any, expected: Origin) -> None:
    run_config = {"ops": {"restore": {"config": config}, "other": None}, "loggers": {}}
    assert read_origin({}, run_config, operation="x") == expected
    assert read_origin({}, {}, operation="x") == Origin("x")
