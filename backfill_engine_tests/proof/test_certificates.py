"""Certificates on their way to JSON and back."""

import json
from dataclasses import asdict, replace

from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.proof.certificates import (
    Certificate,
    CertifiedChunk,
    CertifiedCommit,
    CertifiedPartition,
)
from backfill_engine.proof.verification import verify_certificate
from backfill_engine_tests.contents.written_rows import FLIGHTS, WEEK

CERTIFICATE = Certificate(
    run_id="run-1",
    backfill_id="backfill",
    asset_key="staging/flights",
    table_uri="/warehouse/staging/flights",
    write_mode="merge",
    row_filter="origin = 'JFK'",
    delete_missing=True,
    code_version="0123456789abcdef",
    run_config={"ops": {"staging__flights": {"config": {"write_mode": "merge"}}}},
    input_versions={"raw/flights": 4, "landing/flights": "2 files 00ff"},
    partition_start="2013-01-01",
    partition_end="2013-01-02",
    started_at="2013-02-01T00:00:00+00:00",
    seconds=1.5,
    commits=[
        CertifiedCommit(
            7, "2013-02-01T00:00:01.000+00:00", "`day` >= DATE'2013-01-01'", {"raw/flights": 4}
        )
    ],
    partitions=[
        CertifiedPartition(
            partition="2013-01-01",
            status="published",
            version=7,
            rows=842,
            checksum="00000000000000ff",
            rows_before=840,
            checksum_before="00000000000000fe",
            checks={"partition_is_complete": "passed", "partition_is_stable": "failed"},
            failures="partition_is_stable: psi(dep_delay) = 0.4 (≤ 0.25)",
            accepted={"partition_is_stable": "a storm"},
            stated_in=7,
        ),
        CertifiedPartition("2013-01-02", "withheld", None, rows=0, checksum="0" * 16),
    ],
    touched_outside={"2013-01-05": [7]},
    untouched_partitions=9,
    untouched_files=10,
    compared_partitions=3,
    held_back_from={"2013-01-02": "00000000000000fd"},
    chunks=[
        CertifiedChunk(
            first="2013-01-01",
            last="2013-01-02",
            operation_type="merge",
            status="partly published",
            started_at="2013-02-01T00:00:00.000+00:00",
            completed_at="2013-02-01T00:00:02.000+00:00",
            partitions=2,
            published=1,
            withheld=1,
            rows=5,
        )
    ],
)
RUN_FIELDS = """
    asset_key backfill_id batch code_version commits compared_partitions delete_missing
    held_back_from chunks input_versions features partition_end partition_start partitions
    row_filter run_config run_id seal seconds started_at table_uri touched_outside untouched_files
    untouched_partitions write_mode
"""
COMMIT_FIELDS = "committed_at input_versions predicate version"
CHUNK_FIELDS = """
    completed_at error first last operation_type partitions published rows started_at status
    withheld
"""
PARTITION_FIELDS = """
    accepted checks checksum checksum_before failures partition rows rows_before stated_in
    never_came notes status version
"""


def test_certificate_is_one_line_and_survives_the_way_through_json() -> None:
    text = CERTIFICATE.to_json()
    assert "\n" not in text
    found = json.loads(text)
    assert len(found["seal"]) == 64
    assert found == {**json.loads(json.dumps(asdict(CERTIFICATE))), "seal": found["seal"]}
    assert found.keys() == {*RUN_FIELDS.split()}
    for name, fields in (
        ("commits", COMMIT_FIELDS),
        ("chunks", CHUNK_FIELDS),
        ("partitions", PARTITION_FIELDS),
    ):
        assert [row.keys() == {*fields.split()} for row in found[name]].count(False) == 0
    assert Certificate.from_json(text) == CERTIFICATE


def test_a_table_that_is_gone_has_no_commit_and_nothing_else_can_be_told(
    warehouse: Warehouse,
) -> None:
    rows = [replace(row, stated_in=None) for row in CERTIFICATE.partitions]
    older = replace(CERTIFICATE, partitions=rows)
    lines = verify_certificate(read_log(warehouse, FLIGHTS), older, WEEK[:1])
    assert [line.holds for line in lines] == [False, None, None]
    assert all(line.found for line in lines)
