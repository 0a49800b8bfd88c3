"""Runs the commands of `docs/protection.md` in a clone; the names on it are those of the code."""

import json
from pathlib import Path

from backfill_engine.orchestration.runs.features import CODE_TAG, PINNED_TAG
from backfill_engine.orchestration.runs.run_options import PublishConfig
from backfill_engine.orchestration.runs.run_tags import ALLOW_NEW_CODE_TAG, OVERRIDE_TAG
from backfill_engine_tests.pages import make_clone, read_page, run_page

PAGE = "protection.md"


def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    protected, lifted = run_page(PAGE, cwd=make_clone(tmp_path / "project"))
    assert "features/carrier_delays: ...2013-01-15 protected: reported to the board" in protected
    outcome, _, listed = lifted.partition("\n")
    assert outcome == "features/carrier_delays: 2013-01-10 no longer protected: a wrong number"
    (standing,) = json.loads(listed)
    assert standing["ranges"] == [["2013-01-01", "2013-01-09"], ["2013-01-11", "2013-01-15"]]


def test_its_names_are_those_of_the_code() -> None:
    text = read_page(PAGE)
    for tag in (CODE_TAG, PINNED_TAG, ALLOW_NEW_CODE_TAG, OVERRIDE_TAG):
        assert f"`{tag}`" in text
    assert "override_protection" in PublishConfig.model_fields
