"""Nothing is computed from rows that another program wrote, and none is certified. No Spark."""

from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.inputs import PinnedInputs
from backfill_engine.publishing.results import describe_failures
from backfill_engine_tests.lake.readings import READINGS
from backfill_engine_tests.lake.test_foreign_changes import FIRST, SECOND, publish, write
from backfill_engine_tests.shared_fixtures import build_days

DAYS = build_days("2013-01-02", 2)
OTHER = "raw/readings"


def pin(warehouse: Warehouse) -> PinnedInputs:
    """SECOND reads FIRST, FIRST reads itself."""
    log = read_log(warehouse, READINGS)
    windows = {FIRST: [FIRST], SECOND: [FIRST, SECOND]}
    return PinnedInputs(log, {OTHER: log}, windows={OTHER: windows})


def test_what_reads_foreign_rows_is_withheld_and_says_of_which_commit(
    warehouse: Warehouse,
) -> None:
    publish(warehouse)
    assert pin(warehouse).withhold_foreign(DAYS, keeps_rows=True) == []
    write(warehouse, SECOND)
    (withheld,) = pin(warehouse).withhold_foreign(DAYS, keeps_rows=False)
    assert withheld.key == SECOND
    assert (
        "raw/readings 2013-01-03 was changed by another writer (WRITE, version 2): run the changed"
        in describe_failures(withheld.verdict)
    )


def test_foreign_rows_of_the_partition_itself_count_where_they_would_stay(
    warehouse: Warehouse,
) -> None:
    publish(warehouse)
    write(warehouse, FIRST)
    pinned = PinnedInputs(read_log(warehouse, READINGS), {})
    assert pinned.withhold_foreign(DAYS, keeps_rows=False) == [], "all of them are replaced"
    (withheld,) = pinned.withhold_foreign(DAYS, keeps_rows=True)
    assert "the rows that stay were changed by another writer" in describe_failures(
        withheld.verdict
    )


def test_contents_that_nobody_has_audited_have_no_publishs_checksum(warehouse: Warehouse) -> None:
    log = publish(warehouse)
    before = pin(warehouse).describe_consumed([SECOND])[SECOND]
    assert before.upstream[OTHER] == {FIRST: log.publishes[FIRST].checksum, SECOND: ""}
    write(warehouse, FIRST)
    write(warehouse, SECOND)
    after = pin(warehouse).describe_consumed([SECOND])[SECOND]
    assert after.upstream[OTHER] == {
        FIRST: "changed by another writer (WRITE, version 2)",
        SECOND: "changed by another writer (WRITE, version 3)",
    }
