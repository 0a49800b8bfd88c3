"""The newest decision that covers a partition counts, wherever it is stored."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.errors import TableError
from backfill_engine.lake.protections import (
    PROTECTIONS,
    Protection,
    Protections,
    add_protection,
    read_protections,
)
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.protected import Protected
from backfill_engine_tests.object_store import ObjectStore
from backfill_engine_tests.project import RAW_FLIGHTS, STAGING_FLIGHTS

KEYS = [f"2013-01-{day:02}" for day in range(1, 13)]
NOW = dt.datetime(2013, 2, 1, 12, 30, tzinfo=dt.UTC)
CLOSED = Protection(table=RAW_FLIGHTS.key, reason="books are closed", by="anna")

bounds = st.none() | st.sampled_from(KEYS)
decisions = st.builds(
    Protection,
    table=st.sampled_from([RAW_FLIGHTS.key, STAGING_FLIGHTS.key]),
    first=bounds,
    last=bounds,
    protected=st.booleans(),
    reason=st.text(min_size=1, max_size=3),
    by=st.just("anna"),
)


@given(st.lists(decisions, max_size=12))
def test_the_newest_decision_that_covers_a_partition_wins(decided: list[Protection]) -> None:
    standing: dict[str, Protection] = {}
    for decision in decided:  # oldest first, each over all that it covers
        for key in KEYS if decision.table == RAW_FLIGHTS.key else ():
            if (decision.first or KEYS[0]) <= key <= (decision.last or KEYS[-1]):
                standing[key] = decision
    found = Protections(decided[::-1]).find(RAW_FLIGHTS, KEYS)
    assert found == {
        key: decision for key, decision in sorted(standing.items()) if decision.protected
    }


@given(decisions, decisions)
def test_ranges_overlap_if_a_partition_is_in_both(left: Protection, right: Protection) -> None:
    both = [key for key in KEYS if left.covers(key) and right.covers(key)]
    assert left.overlaps(replace(right, table=left.table)) or not both
    reversed_ = any(a.first and a.last and a.first > a.last for a in (left, right))
    if left.overlaps(right) and not reversed_:
        assert both
        assert left.table == right.table


def test_what_is_declared_is_protected_whatever_is_decided() -> None:
    table = replace(RAW_FLIGHTS, protected=(Protected(last=KEYS[1], reason="audited"),))
    lifted = replace(CLOSED, protected=False)
    found = Protections([lifted, CLOSED]).find(table, KEYS)
    assert {key: protection.describe() for key, protection in found.items()} == dict.fromkeys(
        KEYS[:2], "audited (declared with the table)"
    )


def test_they_are_stored_in_the_order_in_which_they_were_decided(warehouse: Warehouse) -> None:
    assert read_protections(warehouse) == Protections()
    first = add_protection(warehouse, replace(CLOSED, first=KEYS[2], last=KEYS[4]), now=NOW)
    # The second one's clock is an hour behind.
    behind = NOW - dt.timedelta(hours=1)
    second = add_protection(warehouse, replace(CLOSED, protected=False), now=behind)
    third = add_protection(warehouse, replace(CLOSED, last=KEYS[3]), now=NOW)
    assert list(read_protections(warehouse).decisions) == [third, second, first]
    assert [decision.at - NOW for decision in (first, second, third) if decision.at] == [
        dt.timedelta(microseconds=us) for us in range(3)
    ]
    assert list(read_protections(warehouse).find(RAW_FLIGHTS, KEYS)) == KEYS[:4]


def test_what_cannot_be_read_protects_nothing_in_silence(warehouse: Warehouse) -> None:
    add_protection(warehouse, CLOSED, now=NOW)
    (file,) = Path(warehouse.root, PROTECTIONS).glob("*.parquet")
    file.write_bytes(file.read_bytes()[:10])
    with pytest.raises(TableError, match=r"the protections at .* can't be read .*: restore"):
        read_protections(warehouse)


def test_an_object_store_keeps_them_too(object_store: ObjectStore, tmp_path: Path) -> None:
    del object_store  # only its environment is needed
    warehouse = Warehouse(f"s3a://lake/{tmp_path.name}")
    assert read_protections(warehouse) == Protections()
    stored = [add_protection(warehouse, replace(CLOSED, last=key), now=NOW) for key in KEYS[:2]]
    assert list(read_protections(warehouse).decisions) == stored[::-1]
