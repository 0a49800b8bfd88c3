"""Whatever names a file is refused where it would lead out of its folder; nothing is written."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from dagster import DagsterInstance, DagsterRun

from backfill_engine.errors import SettingsError
from backfill_engine.extras.pages import write_page
from backfill_engine.extras.rehearsal.records import find_scratch, locate_beside_rehearsal
from backfill_engine.lake.commits import CommitRecord
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.whole_files import is_file_name
from backfill_engine.orchestration.instance.dagster_internals import BACKFILL_TAG
from backfill_engine.orchestration.runs.run_options import PublishConfig, build_run
from backfill_engine.orchestration.runs.run_tags import CHAIN_TAG, RANGE_END_TAG, RANGE_START_TAG
from backfill_engine.proof.certificates import list_documents, locate_certificate
from backfill_engine.resources import build_lakehouse
from backfill_engine_tests.project import CATALOG, RAW_FLIGHTS, defs

DAY = "2013-01-05"
NOW = datetime(2013, 2, 1, tzinfo=UTC)
HOSTILE = [
    *("../../elsewhere", "..", ".", ".hidden", "a/b", "/etc", "a\\b", "C:\\a", "a:b", "%2e%2e"),
    *("a\nb", "a\x00", "~", "-rf", "a b", "ü", "x" * 201),
]


@pytest.mark.parametrize("name", ["abcdefgh", "64371ed4-50b2-4b2d-9df7-9d1a1a5a55d2", "INC-7.v2_b"])
def test_ids_of_dagster_and_names_of_people_may_name_files(name: str) -> None:
    assert is_file_name(name)


@pytest.mark.parametrize("tag", [BACKFILL_TAG, CHAIN_TAG])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_run_of_such_a_backfill_is_refused_in_a_line_that_names_the_cure(
    tag: str, name: str
) -> None:
    run = DagsterRun("job", run_id="run", tags={tag: name})
    with pytest.raises(SettingsError, match="can't name a file: give up to 200 letters") as refused:
        build_run(RAW_FLIGHTS, PublishConfig(), run, now=NOW)
    assert tag in str(refused.value)
    assert str(refused.value).isprintable()


def test_its_step_writes_nothing_at_all(
    instance: DagsterInstance, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKFILL_WAREHOUSE", warehouse.root)
    lakehouse = build_lakehouse(CATALOG.settings).model_dump()
    result = defs.resolve_job_def("flights").execute_in_process(
        instance=instance,
        run_config={"resources": {"lakehouse": {"config": lakehouse}}},
        tags={RANGE_START_TAG: DAY, RANGE_END_TAG: DAY, CHAIN_TAG: "../../elsewhere"},
        raise_on_error=False,
    )
    assert not result.success
    (failure, *_) = [event for event in result.all_events if event.is_step_failure]
    data = failure.step_failure_data.user_failure_data
    assert data is not None
    assert "'../../elsewhere', which can't name a file" in (data.description or "")
    assert read_log(warehouse, RAW_FLIGHTS).version == -1
    assert list_documents(warehouse) == []


WRITERS: dict[str, Callable[[Warehouse, str], object]] = {
    "a certificate of a run": lambda at, name: locate_certificate(
        read_log(at, RAW_FLIGHTS), name, None
    ),
    "a certificate of a backfill": lambda at, name: locate_certificate(
        read_log(at, RAW_FLIGHTS), "run", name
    ),
    "tables of a rehearsal": find_scratch,
    "a document of a rehearsal": lambda at, name: locate_beside_rehearsal(at, "id", name),
    "a page": lambda at, name: write_page(at, name, ""),
}


@pytest.mark.parametrize("what", WRITERS)
def test_no_place_is_found_for_it(warehouse: Warehouse, what: str) -> None:
    for name in HOSTILE:
        with pytest.raises(SettingsError, match="can't name a file"):
            WRITERS[what](warehouse, name)


def test_who_looks_for_what_it_left_finds_nothing(warehouse: Warehouse) -> None:
    write_page(warehouse, "page", "")
    assert list_documents(warehouse, "../ops") == []


@pytest.mark.parametrize("field", ["run_id", "backfill_id"])
def test_a_commit_that_tells_of_such_a_run_is_none_of_ours(field: str) -> None:
    record = CommitRecord(
        commit_id="",
        run_id="run",
        asset_key="raw/flights",
        code_version="",
        input_versions={},
        predicate="",
        rows={DAY: 1},
        checksums={DAY: ""},
        profiles={},
    )
    assert CommitRecord.from_json(record.to_json()) is not None
    forged = replace(record, **{field: "../../elsewhere"})
    assert CommitRecord.from_json(forged.to_json()) is None
