"""A run stores check evaluations by its budget of events."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dagster import AssetCheckEvaluation, AssetCheckKey, AssetKey

from backfill_engine.rules.verdicts import Check
from backfill_engine.settings import Settings
from backfill_engine_tests.pipeline.running import (
    RAW,
    STAGING,
    FinishedRun,
    Pipeline,
    copy_pipeline,
)

FIRST, BAD, LAST = "2013-01-08", "2013-01-09", "2013-01-10"
COMPLETE, VALID, STABLE, READABLE = (
    f"partition_is_{what}" for what in ("complete", "valid", "stable", "readable")
)


@dataclass(frozen=True)
class BeyondBudget:
    """Two runs that may store no passes: of three days one is bad, then it is mended."""

    pipeline: Pipeline
    failing: FinishedRun
    healing: FinishedRun

    def split(
        self, run: FinishedRun
    ) -> tuple[list[AssetCheckEvaluation], dict[str, AssetCheckEvaluation]]:
        """The evaluations of single partitions, and those of the whole range by check."""
        found = self.pipeline.read_evaluations(run)
        folded = [evaluation for evaluation in found if evaluation.partition is None]
        own = [evaluation for evaluation in found if evaluation.partition is not None]
        return own, {evaluation.check_name: evaluation for evaluation in folded}


@pytest.fixture(scope="module")
def beyond_budget(
    published_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BeyondBudget]:
    with copy_pipeline(published_root, tmp_path_factory.mktemp("beyond_budget")) as pipeline:
        pipeline.zone.add_lines(BAD, *["{"] * 5)
        failing = pipeline.run(RAW, first=FIRST, last=LAST, check_events=0)
        pipeline.zone.land([BAD])
        healing = pipeline.run(RAW, first=FIRST, last=LAST, check_events=0).confirm()
        yield BeyondBudget(pipeline, failing, healing)


def count_by_partition(evaluations: Iterable[AssetCheckEvaluation]) -> Counter:
    """Counts evaluations by check and partition; None stands for the whole range."""
    return Counter((evaluation.check_name, evaluation.partition) for evaluation in evaluations)


def test_within_the_budget_each_partition_has_one_evaluation_a_check(pipeline: Pipeline) -> None:
    run = pipeline.run(STAGING, first=FIRST, last=LAST, check_events=400).confirm()
    evaluations = pipeline.read_evaluations(run)
    assert count_by_partition(evaluations) == {
        (check, partition): 1
        for check in (COMPLETE, VALID, STABLE, READABLE)
        for partition in (FIRST, BAD, LAST, None)
    }
    assert all(evaluation.passed for evaluation in evaluations)


def test_dagster_takes_the_evaluations_for_those_of_what_is_published(pipeline: Pipeline) -> None:
    """Else it shows partitions as if they had not been checked since their materialization."""
    pipeline.zone.add_lines(BAD, *["{"] * 5)
    run = pipeline.run(RAW, first=FIRST, last=LAST, check_events=400)
    assert not run.success
    for check in (COMPLETE, VALID):
        key = AssetCheckKey(AssetKey.from_user_string(RAW), check)
        infos = pipeline.instance.event_log_storage.get_asset_check_partition_info([key])
        found = {info.partition_key: info for info in infos}
        assert all(found[day].is_current for day in (FIRST, BAD, LAST))
        statuses = [found[day].latest_execution_status.value for day in (FIRST, BAD, LAST)]
        assert statuses == ["SUCCEEDED", "FAILED" if check == VALID else "SUCCEEDED", "SUCCEEDED"]


def test_a_year_of_days_over_three_layers_is_within_the_budget() -> None:
    assert 366 * 3 * len(Check) <= Settings.model_fields["check_events"].default


def test_a_failing_run_tells_of_four_times_the_budget_which_checks_passed(
    pipeline: Pipeline,
) -> None:
    """As Dagster shows the planned checks of a failed run as failed, unless they are told."""
    pipeline.zone.add_lines(BAD, *["{"] * 5)
    run = pipeline.run(RAW, STAGING, first=FIRST, last=LAST, check_events=3)
    assert not run.success
    evaluations = pipeline.read_evaluations(run)
    found = Counter(
        evaluation.check_name
        for evaluation in evaluations
        if evaluation.partition and evaluation.passed
    )
    assert found == {COMPLETE: 3, VALID: 2, READABLE: 3}
    (remark,) = (
        evaluation.metadata["not asked"]
        for evaluation in evaluations
        if "not asked" in evaluation.metadata
    )
    assert remark.value == "nothing of the partition was published"


def test_a_run_that_withheld_says_what_was_read_back(beyond_budget: BeyondBudget) -> None:
    """Dagster skips the check's own step there."""
    evaluations = beyond_budget.pipeline.read_evaluations(beyond_budget.failing)
    (summary,) = (evaluation for evaluation in evaluations if evaluation.check_name == READABLE)
    assert summary.passed
    assert summary.partition is None
    assert summary.metadata["partitions passed"].value == 2


def test_beyond_the_budget_only_failures_have_evaluations_of_their_own(
    beyond_budget: BeyondBudget,
) -> None:
    ((own,), _) = beyond_budget.split(beyond_budget.failing)
    assert (own.check_name, own.partition, own.passed) == (VALID, BAD, False)
    assert own.metadata["rejects"].value == 5 / 125
    assert own.description == "rejects = 0.04 (at most 0.01 of the records)"
    page = str(own.metadata["what to do"].value)
    for text in (
        "was withheld",
        "120 rows are kept aside",
        f"--withheld --select {RAW} --from {BAD}",
    ):
        assert text in page


def test_beyond_the_budget_passes_are_folded_into_one_evaluation_a_check(
    beyond_budget: BeyondBudget,
) -> None:
    _, folded = beyond_budget.split(beyond_budget.healing)
    figures = {name: value.value for name, value in folded[VALID].metadata.items()}
    assert "## Partitions" in str(figures.pop("certificate")), "to be read in the UI"
    assert figures == {
        "first partition": FIRST,
        "last partition": LAST,
        "partitions passed": 3,
        "partitions warned": 0,
        "partitions failed": 0,
    }


def test_nothing_without_a_partition_stands_as_failed_above_the_one_that_was_withheld(
    beyond_budget: BeyondBudget,
) -> None:
    _, folded = beyond_budget.split(beyond_budget.failing)
    assert VALID not in folded
    assert all(evaluation.passed for evaluation in folded.values())
    assert folded[COMPLETE].metadata["partitions passed"].value == 3


def test_the_values_of_folded_passes_are_in_the_materializations(
    beyond_budget: BeyondBudget,
) -> None:
    for event in beyond_budget.pipeline.read_materializations(RAW, FIRST):
        measured = {name: event.metadata[name].value for name in ("rejects", "values(distance)")}
        assert measured == {"rejects": 0, "values(distance)": 0}


def test_beyond_the_budget_recovered_partitions_have_evaluations_of_their_own(
    beyond_budget: BeyondBudget,
) -> None:
    own, _ = beyond_budget.split(beyond_budget.healing)
    assert count_by_partition(own) == {(check, BAD): 1 for check in (COMPLETE, VALID, READABLE)}
    assert all(commit.passed for commit in own)
