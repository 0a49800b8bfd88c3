"""A step says of a chunk what it published and what needed no publishing."""

import logging
from dataclasses import replace

import pytest

from backfill_engine.orchestration.records.step_messages import log_chunk
from backfill_engine.publishing.results import PartitionResult
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Check, Finding, Outcome, Verdict
from backfill_engine_tests.pipeline.running import list_days
from backfill_engine_tests.project import STAGING_FLIGHTS

DAYS = list_days(1, 6)


def build_published(day: str, *, rows: int = 1000) -> PartitionResult:
    return PartitionResult(Verdict(day, {}), PartitionMeasures(rows=rows), version=7)


def test_what_stands_is_not_said_to_be_published_but_that_it_stands(
    caplog: pytest.LogCaptureFixture,
) -> None:
    standing = [replace(build_published(day), unchanged=True) for day in DAYS]
    mixed = [*standing[:4], *map(build_published, DAYS[4:])]
    assert list_messages(caplog, standing) == [
        "staging/flights: published 0 of 6 partitions (2013-01-01...2013-01-06, 0 rows); "
        "6 already published, left as they stand"
    ]
    assert list_messages(caplog, mixed) == [
        "staging/flights: published 2 of 6 partitions (2013-01-01...2013-01-06, 2,000 rows) "
        "as version 7; 4 already published, left as they stand"
    ]


def test_where_nothing_stood_nothing_is_said_of_that(caplog: pytest.LogCaptureFixture) -> None:
    withheld = PartitionResult(Verdict(DAYS[5], {}))
    held_already = replace(build_published(DAYS[4]), repeated_batch="batch")
    message, warning = list_messages(
        caplog, [*map(build_published, DAYS[:4]), held_already, withheld]
    )
    assert message == (
        "staging/flights: published 4 of 6 partitions (2013-01-01...2013-01-06, 4,000 rows) "
        "as version 7"
    )
    assert "hold this batch already" in warning


def test_a_warning_has_its_day_value_and_bound(caplog: pytest.LogCaptureFixture) -> None:
    finding = Finding("nulls(tailnum)", 0.5, "at most 0.1; only warns: it swings", Outcome.WARNED)
    other = Finding("rejects", 0.0, "at most 0.01", Outcome.PASSED)
    warned = replace(
        build_published(DAYS[1]), verdict=Verdict(DAYS[1], {Check.VALID: (other, finding)})
    )
    _, warning = list_messages(caplog, [build_published(DAYS[0]), warned])
    assert warning == (
        "staging/flights: published with warnings:\n"
        "2013-01-02: nulls(tailnum) = 0.5 (at most 0.1; only warns: it swings)"
    )


def list_messages(caplog: pytest.LogCaptureFixture, results: list[PartitionResult]) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.INFO):
        log_chunk(logging.getLogger("step"), STAGING_FLIGHTS, results)
    return caplog.messages
