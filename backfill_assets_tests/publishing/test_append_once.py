"""Which batches partitions hold: the log read forwards must say what a full history would."""

import copy
import dataclasses
import datetime as dt
import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.lake.commits import Commit, CommitRecord, Publish, find_latest_publishes
from backfill_assets.publishing.write_modes.append_once import (
    AppendOnce,
    build_transaction,
    find_batches,
)
from backfill_assets.publishing.write_modes.choosing import WRITE_MODES
from backfill_assets.publishing.write_modes.merge import Merge
from backfill_assets.publishing.write_modes.overwrite import Overwrite
from backfill_assets.publishing.write_modes.restore import RESTORING, Rollback, TakeBack
from backfill_assets_tests.lake.readings import READINGS

KEYS = FIRST, SECOND, THIRD = "2013-01-01", "2013-01-02", "2013-01-03"
Held = dict[str, dict[str, int]]


def commit(
    version: int,
    mode: str,
    *keys: str,
    batch: str | None = None,
    restored: int | None = None,
) -> Commit:
    """A publish of `keys`, its record as it comes out of the log."""
    record = CommitRecord(
        commit_id=f"commit-{version}",
        run_id="run",
        asset_key=READINGS.key,
        partition_start=min(keys),
        partition_end=max(keys),
        code_version="code",
        input_versions={"raw/source": 3}
        if restored is None
        else {READINGS.key: restored, "raw/source": 0},
        write_mode=mode,
        predicate="",
        rows=dict.fromkeys(keys, 1),
        checksums=dict.fromkeys(keys, "0"),
        batches=dict.fromkeys(keys, batch) if batch else {},
    )
    return Commit(version, dt.datetime.now(tz=dt.UTC), "WRITE", record.from_json(record.to_json()))


def commit_nothing(version: int, operation: str = "OPTIMIZE") -> Commit:
    return Commit(version, dt.datetime.now(tz=dt.UTC), operation, None)


def find(*oldest_first: Commit) -> Held:
    """Batches of the partitions that hold any."""
    found = find_batches(READINGS, reversed(oldest_first))
    return {key: batches for key, batches in found.items() if batches}


def append(version: int, batch: str, *keys: str) -> Commit:
    return commit(version, AppendOnce.name, *keys, batch=batch)


def test_partitions_that_were_never_appended_to_hold_none() -> None:
    assert find() == {}
    assert find(commit_nothing(0, "CREATE TABLE"), commit(1, Overwrite.name, FIRST)) == {}


def test_appended_batches_add_up_each_with_its_version() -> None:
    assert find(append(1, "a", FIRST, SECOND), append(2, "b", SECOND)) == {
        FIRST: {"a": 1},
        SECOND: {"a": 1, "b": 2},
    }


def test_overwrite_forgets_the_batches_of_its_partitions_only() -> None:
    overwrite = commit(2, Overwrite.name, FIRST)
    assert find(append(1, "a", FIRST, SECOND), overwrite) == {SECOND: {"a": 1}}
    assert find(append(1, "a", FIRST, SECOND), overwrite, append(3, "a", FIRST)) == {
        FIRST: {"a": 3},
        SECOND: {"a": 1},
    }


def test_merge_and_maintenance_keep_the_batches() -> None:
    merge = commit(2, Merge.name, FIRST, SECOND)
    assert find(append(1, "a", FIRST), merge, commit_nothing(3)) == {FIRST: {"a": 1}}


@pytest.mark.parametrize("mode", [Rollback.name, TakeBack.name])
@pytest.mark.parametrize(
    ("restored", "first"), [(0, {}), (1, {"a": 1}), (2, {"a": 1, "b": 2}), (3, {})]
)
def test_undoing_restores_what_its_partitions_held_at_the_version(
    mode: str, restored: int, first: dict[str, int]
) -> None:
    commits = [
        commit_nothing(0, "CREATE TABLE"),
        append(1, "a", FIRST, SECOND),
        append(2, "b", FIRST, SECOND),
        commit(3, Overwrite.name, FIRST),
        append(4, "c", FIRST, SECOND),
    ]
    found = find(*commits, commit(5, mode, FIRST, restored=restored))
    assert found.get(FIRST, {}) == first
    assert found[SECOND] == {"a": 1, "b": 2, "c": 4}


def test_undone_rollback_restores_what_it_had_undone() -> None:
    commits = [append(1, "a", FIRST), append(2, "b", FIRST)]
    back = commit(3, Rollback.name, FIRST, restored=1)
    assert find(*commits, back) == {FIRST: {"a": 1}}
    assert find(*commits, back, commit(4, Rollback.name, FIRST, restored=2)) == {
        FIRST: {"a": 1, "b": 2}
    }


def test_version_of_maintenance_can_be_restored() -> None:
    commits = [append(1, "a", FIRST), commit_nothing(2), append(3, "b", FIRST)]
    back = commit(4, TakeBack.name, FIRST, restored=2)
    assert find(*commits, back) == {FIRST: {"a": 1}}


def test_batch_that_was_undone_can_be_appended_again() -> None:
    commits = [append(1, "a", FIRST), commit(2, TakeBack.name, FIRST, restored=0)]
    assert find(*commits) == {}
    assert find(*commits, append(3, "a", FIRST)) == {FIRST: {"a": 3}}


@st.composite
def draw_commits(draw: st.DrawFn) -> list[Commit]:
    """A table's commits, oldest first, over three partitions and three batches."""
    commits = [commit_nothing(0, "CREATE TABLE")]
    for version in range(1, draw(st.integers(1, 14))):
        mode = draw(st.sampled_from([*WRITE_MODES, AppendOnce.name, None]))
        if mode is None:
            commits.append(commit_nothing(version))
            continue
        keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
        undoes = mode in RESTORING
        restored = draw(st.integers(0, version - 1)) if undoes else None
        batch = draw(st.sampled_from("abc")) if mode == AppendOnce.name else None
        commits.append(commit(version, mode, *keys, batch=batch, restored=restored))
    return commits


def compute_states(commits: list[Commit]) -> list[Held]:
    """What the partitions hold after each version: slow, whole, and plain."""
    states: list[Held] = []
    for commit in commits:
        state: Held = copy.deepcopy(states[-1]) if states else {key: {} for key in KEYS}
        record = commit.record
        for key in record.rows if record else ():
            assert record is not None
            if record.write_mode == "overwrite":
                state[key] = {}
            elif record.write_mode == "append_once":
                state[key][record.batches[key]] = commit.version
            elif record.write_mode in ("rollback", "take_back"):
                version = record.input_versions[READINGS.key]
                assert isinstance(version, int)
                state[key] = dict(states[version][key])
        states.append(state)
    return states


@given(commits=draw_commits())
def test_batches_are_those_of_a_history_that_forgets_nothing(commits: list[Commit]) -> None:
    for count, state in enumerate(compute_states(commits), start=1):
        assert find(*commits[:count]) == {key: held for key, held in state.items() if held}


BATCHES = {FIRST: "a", SECOND: "a"}


def publish(*commits: Commit) -> dict[str, Publish]:
    """The last publish of each partition; of commits oldest first."""
    return find_latest_publishes(reversed(commits))


PUBLISHED = publish(commit(1, Overwrite.name, FIRST), append(2, "a", THIRD))


def test_same_attempt_has_the_same_transaction() -> None:
    again = dict(reversed(BATCHES.items()))
    elsewhere = {**PUBLISHED, **publish(append(3, "b", THIRD))}
    assert build_transaction(READINGS, BATCHES, PUBLISHED) == build_transaction(
        READINGS, again, elsewhere
    )


def test_other_attempts_have_other_transactions() -> None:
    attempts: list[tuple[Mapping[str, str], Mapping[str, Publish]]] = [
        (BATCHES, PUBLISHED),
        ({FIRST: "b", SECOND: "a"}, PUBLISHED),
        ({FIRST: "a", SECOND: "b"}, PUBLISHED),
        ({FIRST: "a"}, PUBLISHED),
        ({FIRST: "a", THIRD: "a"}, PUBLISHED),
        ({SECOND: "a"}, PUBLISHED),
        ({THIRD: "a"}, {}),
        (BATCHES, {}),
        (BATCHES, {**PUBLISHED, **publish(append(3, "a", FIRST))}),
        (BATCHES, {**PUBLISHED, **publish(commit(0, Merge.name, SECOND))}),
    ]
    ids = [build_transaction(READINGS, batches, published) for batches, published in attempts]
    assert all(left != right for left, right in itertools.combinations(ids, 2))


def test_tables_have_transactions_of_their_own() -> None:
    other = dataclasses.replace(READINGS, name="others")
    assert build_transaction(other, BATCHES, PUBLISHED) != build_transaction(
        READINGS, BATCHES, PUBLISHED
    )
