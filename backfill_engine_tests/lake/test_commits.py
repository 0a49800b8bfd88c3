"""The audit record on its way into a commit's `userMetadata` and back."""

import dataclasses
import json

import pytest

from backfill_engine.lake.commits import CommitAudit, CommitRecord

RECORD = CommitRecord(
    commit_id="0f3e",
    run_id="run",
    asset_key="raw/flights",
    code_version="abc",
    input_versions={"raw/flights": 4, "landing/flights": "2 files 00ff"},
    options={"write_mode": "overwrite"},
    predicate="(`day` >= DATE'2013-01-01' AND `day` < DATE'2013-01-03')",
    rows={"2013-01-01": 842, "2013-01-02": 0},
    checksums={"2013-01-01": "00000000000000ff", "2013-01-02": "0000000000000000"},
    profiles={"2013-01-01": {"r": 842, "n": {"dest": 1}, "h": {"hour": [1, 2, 3]}}},
    audit=CommitAudit(
        accepted=({"partition": "2013-01-01", "check": "partition_is_valid", "reason": "known"},)
    ),
)


def test_record_survives_the_way_through_json() -> None:
    assert CommitRecord.from_json(RECORD.to_json()) == RECORD


def test_record_is_one_line() -> None:
    assert "\n" not in dataclasses.replace(RECORD, predicate="a\nb").to_json()


def test_fields_of_a_later_version_are_ignored() -> None:
    text = json.dumps({**json.loads(RECORD.to_json()), "added_later": 1})
    assert CommitRecord.from_json(text) == RECORD


def test_rare_fields_are_written_only_where_they_say_something() -> None:
    assert {"features", "notes"} & json.loads(RECORD.to_json()).keys() == set()
    note = {"override_protection": "known"}
    overridden = dataclasses.replace(
        RECORD, notes={"2013-01-01": note}, features={"new_code": "mended"}
    )
    assert CommitRecord.from_json(overridden.to_json()) == overridden
    assert overridden.restrict({"2013-01-02"}).notes == {}


@pytest.mark.parametrize("text", [None, "", "VACUUM by hand", "{", "[]", "3", "null", '"x"', "{}"])
def test_foreign_user_metadata_is_no_record(text: str | None) -> None:
    assert CommitRecord.from_json(text) is None


@pytest.mark.parametrize("field", ["commit_id", "run_id", "rows", "checksums"])
def test_record_without_one_of_its_fields_is_no_record(field: str) -> None:
    fields = json.loads(RECORD.to_json())
    del fields[field]
    assert CommitRecord.from_json(json.dumps(fields)) is None


def test_record_from_before_the_later_fields_is_still_ours() -> None:
    fields = json.loads(RECORD.to_json())
    del fields["profiles"], fields["audit"]
    assert CommitRecord.from_json(json.dumps(fields)) == dataclasses.replace(
        RECORD, profiles={}, audit=CommitAudit()
    )
