"""Which batches partitions hold: the log read forwards must say what a full history would."""

import copy
import dataclasses
import datetime as dt
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from backfill_engine.lake.commits import Commit, CommitRecord, keep_publishes
from backfill_engine.publishing.write_modes.append_once import (
    AppendOnce,
    Held,
    build_transaction,
    trace_batches,
)
from backfill_engine.publishing.write_modes.choosing import WRITE_MODES
from backfill_engine.publishing.write_modes.mode import (
    RESTORING,
    Merge,
    Overwrite,
    Rollback,
)
from backfill_engine_tests.lake.readings import READINGS

KEYS = FIRST, SECOND, THIRD = "2013-01-01", "2013-01-02", "2013-01-03"
Batches = dict[str, dict[str, int]]


def commit(
    version: int,
    mode: str,
    *keys: str,
    batch: str | None = None,
    restored: int | None = None,
    source: int | None = None,
    **options: Any,
) -> Commit:
    """A publish of `keys`, its record as it comes out of the log.

    It says from which version of its source it was computed, if that is given.
    """
    inputs = {} if source is None else {"raw/source": source}
    record = CommitRecord(
        commit_id=f"commit-{version}",
        run_id="run",
        asset_key=READINGS.key,
        code_version="code",
        input_versions=inputs if restored is None else {READINGS.key: restored},
        predicate="",
        rows=dict.fromkeys(keys, 1),
        checksums=dict.fromkeys(keys, "0"),
        batches=dict.fromkeys(keys, batch) if batch else {},
        options={"write_mode": mode, **options},
    )
    return Commit(version, dt.datetime.now(tz=dt.UTC), "WRITE", record.from_json(record.to_json()))


def commit_nothing(version: int, operation: str = "OPTIMIZE") -> Commit:
    return Commit(version, dt.datetime.now(tz=dt.UTC), operation, None)


def delete(version: int, *keys: str) -> Commit:
    """A DELETE by another writer."""
    return dataclasses.replace(commit_nothing(version, "DELETE"), foreign=keys)


def restore(version: int, restored: int) -> Commit:
    """A RESTORE by hand."""
    return dataclasses.replace(commit_nothing(version, "RESTORE"), restores=restored, foreign=KEYS)


def trace(*oldest_first: Commit, **known: Any) -> dict[str, Held]:
    """What the partitions hold."""
    return trace_batches(READINGS, reversed(oldest_first), KEYS, **known)


def find(*oldest_first: Commit) -> Batches:
    """Batches of the partitions that hold any."""
    return {key: dict(held.batches) for key, held in trace(*oldest_first).items() if held.batches}


def append(version: int, batch: str, *keys: str) -> Commit:
    return commit(version, AppendOnce.name, *keys, batch=batch)


def test_restore_by_hand_puts_back_what_every_partition_held() -> None:
    commits = [append(1, "a", FIRST), append(2, "b", FIRST, SECOND), restore(3, 1)]
    assert find(*commits) == {FIRST: {"a": 1}}
    first, second, third = trace(*commits).values()
    assert (first.publish and first.publish.version, second.publish) == (1, None)
    assert [held.changed_in for held in (first, second, third)] == [3, 3, 3]
    assert find(*commits, append(4, "b", FIRST)) == {FIRST: {"a": 1, "b": 4}}
    assert find(*commits, restore(4, 2)) == {FIRST: {"a": 1, "b": 2}, SECOND: {"b": 2}}


def test_overwrite_brings_what_it_was_computed_from() -> None:
    ((inputs, version),) = find(commit(1, Overwrite.name, FIRST, source=3))[FIRST].items()
    assert version == 1
    same = commit(2, AppendOnce.name, FIRST, batch=inputs, source=3)
    assert find(same) == {FIRST: {inputs: 2}}
    other = commit(2, Overwrite.name, FIRST, source=4)
    assert inputs not in find(commit(1, Overwrite.name, FIRST, source=3), other)[FIRST]
    filtered = commit(2, Merge.name, FIRST, source=3, row_filter="id = 1")
    assert find(filtered) == {}


def test_merge_that_deletes_what_is_missing_forgets_batches() -> None:
    mirror = commit(2, Merge.name, FIRST, delete_missing=True)
    assert find(append(1, "a", FIRST), mirror) == {}
    in_part = commit(2, Merge.name, FIRST, delete_missing=True, row_filter="id = 1")
    held = trace(append(1, "a", FIRST), in_part)[FIRST]
    assert (held.batches, held.doubt) == ({}, "version 2 deleted part of its rows")


def test_what_another_writer_changed_is_in_doubt_until_it_is_overwritten() -> None:
    commits = [append(1, "a", FIRST, SECOND), delete(2, FIRST)]
    first, second, _ = trace(*commits, append(3, "b", FIRST)).values()
    assert (first.batches, first.doubt) == ({"b": 3}, "another writer changed it in version 2")
    assert (second.batches, second.doubt, second.changed_in) == ({"a": 1}, "", 1)
    back = commit(4, Rollback.name, FIRST, restored=1)
    assert trace(*commits, append(3, "b", FIRST), back)[FIRST].doubt == ""
    assert trace(*commits, commit(3, Overwrite.name, FIRST))[FIRST].doubt == ""


def test_what_is_no_longer_known_is_in_doubt() -> None:
    old = {"doubt": "the log begins with version 1"}
    assert trace(append(1, "a", FIRST), **old)[FIRST].doubt == old["doubt"]
    assert trace(commit(1, Overwrite.name, FIRST), **old)[FIRST].doubt == ""
    certified = append(1, "a", FIRST)
    assert certified.record is not None
    record = dataclasses.replace(certified.record, commit_id="", batches={FIRST: ""})
    assert trace(dataclasses.replace(certified, record=record))[FIRST].doubt
    commits = [append(3, "a", FIRST), restore(4, 2)]
    assert trace(*commits)[FIRST].doubt == ""
    assert trace(*commits, is_whole=False)[FIRST].doubt.startswith("version 2, which was put back")


def test_the_index_keeps_what_other_writers_did() -> None:
    commits = [append(1, "a", FIRST), commit_nothing(2), delete(3, FIRST), restore(4, 1)]
    kept = keep_publishes(commits[::-1])
    assert [kept_commit.version for kept_commit in kept] == [4, 3, 1]
    assert kept[0].restores == 1


@st.composite
def draw_commits(draw: st.DrawFn) -> list[Commit]:
    """A table's commits, oldest first, over three partitions and three batches."""
    commits = [commit_nothing(0, "CREATE TABLE")]
    for version in range(1, draw(st.integers(1, 14))):
        mode = draw(st.sampled_from([*WRITE_MODES, AppendOnce.name, "restore", None]))
        if mode is None:
            commits.append(commit_nothing(version))
            continue
        if mode == "restore":
            commits.append(restore(version, draw(st.integers(0, version - 1))))
            continue
        keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
        undoes = mode in RESTORING
        restored = draw(st.integers(0, version - 1)) if undoes else None
        batch = draw(st.sampled_from("abc")) if mode == AppendOnce.name else None
        commits.append(commit(version, mode, *keys, batch=batch, restored=restored))
    return commits


def compute_states(commits: list[Commit]) -> list[Batches]:
    """What the partitions hold after each version: slow, whole, and plain."""
    states: list[Batches] = []
    for commit in commits:
        state: Batches = copy.deepcopy(states[-1]) if states else {key: {} for key in KEYS}
        if commit.restores is not None:
            state = copy.deepcopy(states[commit.restores])
        record = commit.record
        for key in record.rows if record else ():
            assert record is not None
            if record.write_mode == "overwrite":
                state[key] = {}
            elif record.write_mode == "append_once":
                state[key][record.batches[key]] = commit.version
            elif record.write_mode in ("rollback", "accept", "take_back"):
                version = record.input_versions[READINGS.key]
                assert isinstance(version, int)
                state[key] = dict(states[version][key])
        states.append(state)
    return states


@settings(max_examples=300)
@given(commits=draw_commits())
def test_batches_are_those_of_a_history_that_forgets_nothing(commits: list[Commit]) -> None:
    for count, state in enumerate(compute_states(commits), start=1):
        assert find(*commits[:count]) == {key: held for key, held in state.items() if held}


BATCHES = {FIRST: "a", SECOND: "a"}
HELD = {FIRST: Held(changed_in=1), SECOND: Held(), THIRD: Held(changed_in=2)}


def test_same_attempt_has_the_same_transaction() -> None:
    again, held = dict(reversed(BATCHES.items())), {**HELD, THIRD: Held(changed_in=3)}
    assert build_transaction(READINGS, BATCHES, HELD) == build_transaction(READINGS, again, held)


def test_other_attempts_and_tables_have_other_transactions() -> None:
    attempts: list[tuple[dict[str, str], dict[str, Held]]] = [
        (BATCHES, HELD),
        ({FIRST: "b", SECOND: "a"}, HELD),
        ({FIRST: "a", SECOND: "b"}, HELD),
        ({FIRST: "a"}, HELD),
        ({FIRST: "a", THIRD: "a"}, HELD),
        ({SECOND: "a"}, HELD),
        (BATCHES, {**HELD, FIRST: Held(changed_in=3)}),
        (BATCHES, {**HELD, SECOND: Held(changed_in=0)}),
    ]
    tables = (READINGS, dataclasses.replace(READINGS, name="others"))
    ids = {build_transaction(table, *attempt) for table in tables for attempt in attempts}
    assert len(ids) == 2 * len(attempts)
