"""Of which version of an input all rows of a partition are. No Spark."""

import shutil
from pathlib import Path

from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.due.row_movements import (
    Movement,
    Movements,
    find_consumed_versions,
    find_movements,
)
from backfill_engine_tests.pipeline.written_tables import commit_days
from backfill_engine_tests.project import RAW_FLIGHTS, STAGING_FLIGHTS

FIRST, SECOND, THIRD = "2013-01-01", "2013-01-02", "2013-01-03"


def publish_staging(raw: TableLog) -> TableLog:
    """Publishes a day of staging from raw as it is in this log; returns the log of staging."""
    commit_days(
        raw.warehouse,
        STAGING_FLIGHTS,
        [FIRST],
        run_id="staging",
        input_versions={RAW_FLIGHTS.key: raw.version},
        input_ids={RAW_FLIGHTS.key: raw.table_id},
    )
    return read_log(raw.warehouse, STAGING_FLIGHTS)


def lose_newest(log: TableLog) -> None:
    """Takes the newest commit away, as an older copy of the log that is put back does."""
    Path(log.uri, "_delta_log", f"{log.version:020}.json").unlink()


def test_rows_that_a_filter_left_out_are_of_the_version_before(warehouse: Warehouse) -> None:
    """Else what it left out would never be called stale, nor be asked for by the sensor."""
    for number in range(8):
        commit_days(warehouse, RAW_FLIGHTS, [FIRST], run_id=f"raw-{number}")
    raw = read_log(warehouse, RAW_FLIGHTS)

    def publish(days: list[str], version: int, row_filter: str = "") -> dict[str, int]:
        run_id, versions = f"run-{version}", {RAW_FLIGHTS.key: version}
        commit_days(
            warehouse,
            STAGING_FLIGHTS,
            days,
            run_id=run_id,
            input_versions=versions,
            input_ids={RAW_FLIGHTS.key: raw.table_id},
            row_filter=row_filter,
        )
        return find_consumed_versions(read_log(warehouse, STAGING_FLIGHTS), raw)

    assert publish([FIRST, SECOND], 3) == {FIRST: 3, SECOND: 3}
    assert publish([FIRST, THIRD], 5, "hour < 9") == {FIRST: 3, SECOND: 3, THIRD: -1}
    assert publish([FIRST], 6, "hour > 9") == {FIRST: 3, SECOND: 3, THIRD: -1}
    assert publish([FIRST], 7) == {FIRST: 7, SECOND: 3, THIRD: -1}


def test_versions_of_a_table_that_was_deleted_and_made_anew_say_nothing(
    warehouse: Warehouse,
) -> None:
    commit_days(warehouse, RAW_FLIGHTS, [FIRST], run_id="raw")
    raw = read_log(warehouse, RAW_FLIGHTS)
    staging = publish_staging(raw)
    assert find_consumed_versions(staging, raw) == {FIRST: 0}
    shutil.rmtree(warehouse.uri(RAW_FLIGHTS))
    commit_days(warehouse, RAW_FLIGHTS, [FIRST], run_id="raw-again")
    anew = raw.reread()
    assert (anew.version, anew.publishes[FIRST].record.run_id) == (0, "raw-again")
    assert find_consumed_versions(staging, anew) == {FIRST: -1}
    # Its first commit has rows already, and before it there was nothing.
    found = find_movements(staging, anew, "landing_date", [FIRST], None)
    assert found.outstanding == {FIRST: Movement(0, FIRST)}


def test_a_number_that_was_given_again_is_no_version_that_was_read(warehouse: Warehouse) -> None:
    """A copy of the log is put back that lacks the newest commit; the next takes its number."""
    for run_id in ("first", "second"):
        commit_days(warehouse, RAW_FLIGHTS, [FIRST], run_id=run_id)
    raw = read_log(warehouse, RAW_FLIGHTS)
    staging = publish_staging(raw)
    assert find_consumed_versions(staging, raw) == {FIRST: 1}
    lose_newest(raw)
    shorter = raw.reread()
    assert shorter.version == 0
    assert find_consumed_versions(staging, shorter) == {FIRST: -1}
    assert not shorter.had(1, raw.read_at)
    commit_days(warehouse, RAW_FLIGHTS, [SECOND], run_id="third")
    anew = raw.reread()
    assert (anew.version, anew.had(0, raw.read_at), anew.had(1, raw.read_at)) == (1, True, False)
    assert find_consumed_versions(staging, anew) == {FIRST: -1}


def test_what_was_found_of_a_version_that_is_another_one_now_is_looked_up_again(
    warehouse: Warehouse,
) -> None:
    for run_id in ("first", "second"):
        commit_days(warehouse, RAW_FLIGHTS, [FIRST], run_id=run_id)
    staging, raw = read_log(warehouse, STAGING_FLIGHTS), read_log(warehouse, RAW_FLIGHTS)
    of_others = Movements(1, {FIRST: Movement(1, FIRST)}, raw.table_id, raw.read_at)
    assert find_movements(staging, raw, "landing_date", [FIRST], of_others) == of_others
    lose_newest(raw)
    commit_days(warehouse, RAW_FLIGHTS, [SECOND], run_id="third")
    found = find_movements(staging, raw.reread(), "landing_date", [FIRST], of_others)
    assert not found.outstanding
