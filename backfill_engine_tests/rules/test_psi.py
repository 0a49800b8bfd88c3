"""The population stability index: arithmetic known by hand, and properties."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.rules.drift import compute_psi

PAIRS = st.integers(1, 12).flatmap(
    lambda bins: st.tuples(
        *[st.lists(st.integers(0, 10**9), min_size=bins, max_size=bins) for _ in range(2)]
    )
)
"""Two histograms over the same bins."""


def test_a_value_known_by_hand():
    # 50:50 against 90:10; so many values that the prior doesn't show.
    by_hand = (0.5 - 0.9) * math.log(0.5 / 0.9) + (0.5 - 0.1) * math.log(0.5 / 0.1)
    assert by_hand == pytest.approx(0.878890)
    assert compute_psi([50_000_000] * 2, [90_000_000, 10_000_000]) == pytest.approx(by_hand)


def test_the_prior_is_half_a_value_a_bin():
    # (0 + 0.5) / (3 + 1) = 1/8 and 7/8, against 1/2 and 1/2.
    expected = (1 / 8 - 1 / 2) * math.log(1 / 4) + (7 / 8 - 1 / 2) * math.log(7 / 4)
    assert compute_psi([0, 3], [5, 5]) == pytest.approx(expected)


def test_all_values_in_another_bin_is_much_and_finite():
    assert 5 < compute_psi([900, 0, 0], [0, 0, 900]) < 100


def test_the_same_shares_of_more_values_are_no_drift():
    assert compute_psi([200, 300, 500], [20_000, 30_000, 50_000]) < 1e-3


@pytest.mark.parametrize(("counts", "reference"), [([1, 2], [1, 2, 3]), ([], [])])
def test_histograms_over_other_bins_have_none(counts, reference):
    with pytest.raises(ValueError, match="bins have no PSI"):
        compute_psi(counts, reference)


@given(PAIRS)
def test_it_is_finite_and_never_negative(pair):
    assert 0 <= compute_psi(*pair) < math.inf


@given(PAIRS)
def test_it_is_symmetric(pair):
    counts, reference = pair
    assert compute_psi(counts, reference) == compute_psi(reference, counts)


@given(PAIRS)
def test_it_is_zero_for_equal_histograms(pair):
    assert compute_psi(pair[0], list(pair[0])) == 0
