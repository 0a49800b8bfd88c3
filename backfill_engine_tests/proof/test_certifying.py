"""Each run leaves a certificate for each table, and it can be verified."""

import logging
import shutil
from pathlib import Path

import pytest

from backfill_engine.errors import LandingError
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.table_log import read_log
from backfill_engine.proof.certificates import Certificate, find_certificates, locate_certificate
from backfill_engine.proof.pages import VerifiedLine, build_title, render_certificate, render_lines
from backfill_engine.proof.verification import verify_certificate
from backfill_engine.publishing.publisher import Publisher
from backfill_engine_tests.pipeline.landing_zone import delay
from backfill_engine_tests.pipeline.running import (
    RAW,
    STAGING,
    FinishedRun,
    Pipeline,
    list_days,
)
from backfill_engine_tests.project import RAW_FLIGHTS
from backfill_engine_tests.publishing.test_verifying import (
    change_one_value,
    fill_up,
    find_data_file,
)

FIRST, BAD, LAST = list_days(4, 6)


def run_with_a_bad_day(pipeline: Pipeline) -> FinishedRun:
    pipeline.zone.add_lines(BAD, *["{"] * 5)
    pipeline.zone.change(FIRST, delay)
    return pipeline.run(RAW, first=FIRST, last=LAST)


@pytest.fixture
def certificate(pipeline: Pipeline) -> Certificate:
    """What a run of three days with a bad one left."""
    (found,) = find_certificates(pipeline.warehouse, run_with_a_bad_day(pipeline).id)
    return found


def verify(pipeline: Pipeline, certificate: Certificate) -> list[VerifiedLine]:
    partitions = build_partitions(RAW_FLIGHTS, certificate.published)
    log = read_log(pipeline.warehouse, RAW_FLIGHTS)
    return verify_certificate(log, certificate, partitions)


def test_it_says_what_was_published_withheld_and_left_alone(certificate: Certificate) -> None:
    assert (certificate.asset_key, certificate.partition_start, certificate.partition_end) == (
        RAW,
        FIRST,
        LAST,
    )
    assert (certificate.backfill_id, certificate.write_mode) == (None, "overwrite")
    assert [*certificate.input_versions] == ["landing/flights"]
    assert "lakehouse" in certificate.run_config["resources"]
    first, bad, last = certificate.partitions
    assert (first.status, bad.status, last.status) == ("published", "withheld", "published")
    assert first.checksum != first.checksum_before
    assert last.checksum == last.checksum_before
    assert first.rows == first.rows_before == 120
    assert bad.version is None
    assert bad.failures.startswith("partition_is_valid: rejects = 0.04")
    assert first.checks["partition_is_valid"] == "passed"
    assert [commit.version for commit in certificate.commits] == [first.version]
    assert not certificate.touched_outside
    assert certificate.untouched_partitions == 9 == certificate.untouched_files


def test_the_materialization_links_to_its_page(
    pipeline: Pipeline, certificate: Certificate
) -> None:
    event = pipeline.read_materializations(RAW, FIRST)[0]
    page = Path(str(event.metadata["certificate"].value)).read_text()
    assert page == render_certificate(certificate)
    assert "1 of them with other contents than before" in page
    assert f"| {BAD} | withheld |" in page


def test_all_certificates_of_a_backfill_are_found_by_its_id(pipeline: Pipeline) -> None:
    runs = [
        pipeline.run(key, first=FIRST, last=LAST, tags={"dagster/backfill": "abcdefgh"})
        for key in (RAW, STAGING)
    ]
    found = find_certificates(pipeline.warehouse, "abcdefgh")
    assert [(certificate.run_id, certificate.asset_key) for certificate in found] == [
        (runs[0].id, RAW),
        (runs[1].id, STAGING),
    ]
    assert find_certificates(pipeline.warehouse, runs[1].id) == found[1:]
    log = read_log(pipeline.warehouse, RAW_FLIGHTS)
    place = locate_certificate(log, runs[0].id, "abcdefgh")
    assert Certificate.from_json(Path(f"{place}.json").read_text()) == found[0]


def test_it_holds_until_a_file_is_tampered_with(
    pipeline: Pipeline, certificate: Certificate
) -> None:
    assert all(line.holds for line in verify(pipeline, certificate))
    path = find_data_file(pipeline, LAST)
    size = path.stat().st_size
    change_one_value(path)
    fill_up(path, size)
    lines = verify(pipeline, certificate)
    (broken,) = (line for line in lines if not line.holds)
    assert broken.statement.startswith(f"{LAST} holds 120 rows with checksum ")
    assert broken.found.startswith("120 rows with checksum ")
    assert "DOES NOT HOLD" in render_lines(build_title(certificate), lines)


def test_it_holds_though_a_later_run_replaced_the_partitions(
    pipeline: Pipeline, certificate: Certificate
) -> None:
    pipeline.zone.land([FIRST])
    later = pipeline.run(RAW, first=FIRST, last=FIRST)
    assert later.success, later.message
    lines = verify(pipeline, certificate)
    assert all(line.holds for line in lines)
    (description,) = (line.found for line in lines if line.found)
    assert (
        description
        == f"at version {certificate.commits[0].version}; run {later.id} has replaced it since"
    )


def test_a_file_that_is_gone_is_a_broken_line_only_while_it_is_the_newest(
    pipeline: Pipeline, certificate: Certificate
) -> None:
    find_data_file(pipeline, LAST).unlink()
    (broken,) = (line for line in verify(pipeline, certificate) if not line.holds)
    assert broken.statement.startswith(LAST)
    assert (broken.holds, broken.found[-8:]) == (False, " is gone")
    pipeline.zone.land([BAD])
    later = pipeline.run(RAW, first=FIRST, last=LAST)
    assert later.success, later.message
    (lost,) = (line for line in verify(pipeline, certificate) if not line.holds)
    assert lost.holds is None


def test_a_run_that_breaks_off_leaves_one_of_what_it_had_done_and_what_it_had_not(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = Publisher.publish_chunk

    def fail_for_the_last(self, partitions, pinned):
        if partitions[0].key == LAST:
            raise LandingError("the landing zone is gone")
        return publish(self, partitions, pinned)

    monkeypatch.setattr(Publisher, "publish_chunk", fail_for_the_last)
    run = pipeline.run(RAW, first=FIRST, last=LAST, chunk_partitions=1)
    assert run.message == "the landing zone is gone"
    (certificate,) = find_certificates(pipeline.warehouse, run.id)
    assert [(row.partition, row.status) for row in certificate.partitions] == [
        (FIRST, "published"),
        (BAD, "published"),
        (LAST, "failed"),
    ]
    assert "the landing zone is gone" in certificate.partitions[-1].failures
    assert len(certificate.commits) == 2


def take_the_place(pipeline: Pipeline) -> Path:
    """Puts a file where the folder of certificates belongs."""
    place = Path(pipeline.warehouse.root) / "certificates"
    shutil.rmtree(place)
    place.write_text("in the way")
    return place


def read_errors(pipeline: Pipeline, run: FinishedRun) -> list[str]:
    """What the run logged as an error, without Dagster's own events."""
    entries = pipeline.instance.all_logs(run.id)
    return [
        entry.user_message
        for entry in entries
        if entry.level == logging.ERROR and not entry.is_dagster_event
    ]


def test_one_that_cannot_be_written_fails_nothing_that_is_published(pipeline: Pipeline) -> None:
    place = take_the_place(pipeline)
    pipeline.zone.change(FIRST, delay)
    run = pipeline.run(RAW, first=FIRST, last=LAST)
    assert run.success, run.message
    (error,) = read_errors(pipeline, run)
    assert error.startswith(f"the certificate of raw/flights can't be written at {place}/{run.id}/")
    assert "\n" not in error
    back = pipeline.run_job(
        *("rollback_partitions", "restore_partitions"),
        **{"table": RAW, "first": FIRST, "last": FIRST, "before_run": run.id},
    )
    assert back.success, back.message
    assert "hold again what they held" in back.message


def test_one_that_cannot_be_written_does_not_hide_why_the_step_failed(pipeline: Pipeline) -> None:
    take_the_place(pipeline)
    run = run_with_a_bad_day(pipeline)
    assert run.message.startswith("raw/flights: withheld 1 of 3 partitions")
    assert read_errors(pipeline, run)[0].startswith("the certificate of raw/flights can't be ")
