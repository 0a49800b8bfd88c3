"""The limits of `dagster.yaml` are those that a launch may ask for."""

from pathlib import Path

import pytest
import yaml
from dagster import DagsterInstance

from backfill_engine.errors import SettingsError
from backfill_engine.orchestration.runs.chains import build_limit_tag
from backfill_engine_tests.commands import PROJECT


@pytest.mark.parametrize(
    ("name", "asked", "expected"),
    [
        ("dagster.yaml", None, {}),
        ("dagster.yaml", 1, {"backfill_assets/at_most_1": "mine"}),
        ("dagster.yaml", 2, {}),
        ("deploy/dagster.yaml", 2, {"backfill_assets/at_most_2": "mine"}),
        ("deploy/dagster.yaml", 3, {}),
        ("deploy/dagster.yaml", 9, {}),
    ],
)
def test_each_number_below_the_places_has_a_limit(
    tmp_path: Path, name: str, asked: int | None, expected: dict[str, str]
) -> None:
    concurrency = yaml.safe_load((PROJECT / name).read_text())["concurrency"]
    overrides = {"concurrency": concurrency}
    with DagsterInstance.local_temp(str(tmp_path), overrides=overrides) as instance:
        assert build_limit_tag(instance, asked, value="mine") == expected


def test_a_home_without_the_limit_is_told_so(tmp_path: Path) -> None:
    with (
        DagsterInstance.local_temp(str(tmp_path)) as instance,
        pytest.raises(SettingsError, match=r"has no limit for the tag backfill_assets/at_most_2"),
    ):
        build_limit_tag(instance, 2, value="mine")
