"""The summed-up baseline says what the profiles in it say, whatever came and went."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.rules.measured import Baseline, PartitionProfile

COUNTS = st.integers(0, 50)
BINS = {"c/old": 2, "c/new": 3}
"""Of a column whose edges have changed."""
PROFILES = st.builds(
    lambda rows, nulls, histograms: PartitionProfile(rows, {"c": min(nulls, rows)}, histograms),
    COUNTS,
    COUNTS,
    st.fixed_dictionaries(
        {}, optional={name: st.tuples(*[COUNTS] * bins) for name, bins in BINS.items()}
    ),
)
KEYS = tuple("abcdefghij")
PEER_GROUPS = {key: index % 3 for index, key in enumerate(KEYS)}


@given(
    st.dictionaries(st.sampled_from(KEYS), PROFILES),
    st.dictionaries(st.sampled_from(KEYS), st.none() | PROFILES),
)
def test_what_is_taken_and_put_leaves_no_trace(before, changes):
    baseline = Baseline(before, PEER_GROUPS.get)
    after = dict(before)
    for key, profile in changes.items():
        assert baseline.take(key) == after.pop(key, None)
        if profile is not None:
            baseline.put(key, profile)
            after[key] = profile
    filled = {key: profile for key, profile in after.items() if profile.rows}
    rows = [profile.rows for profile in filled.values()]
    shares = [profile.nulls["c"] / profile.rows for profile in filled.values()]
    assert baseline.find_typical_rows() == _typical(rows)
    assert baseline.find_typical_null_share("c") == _typical(shares)
    for key in KEYS:
        peers = [filled[peer].rows for peer in filled if PEER_GROUPS[peer] == PEER_GROUPS[key]]
        assert baseline.find_typical_rows(peers_of=key) == _typical(peers)
    for name, bins in BINS.items():
        same = [p.histograms[name] for p in filled.values() if name in p.histograms]
        total = [sum(counts) for counts in zip(*same, strict=True)] or [0] * bins
        assert baseline.sum_histograms(name, bins) == (total, len(same))


def test_a_partition_is_held_once():
    baseline = Baseline({"a": PartitionProfile(1)}, PEER_GROUPS.get)
    with pytest.raises(KeyError, match="already"):
        baseline.put("a", PartitionProfile(2))


def _typical(values):
    return (statistics.median(values) if values else 0, len(values))
