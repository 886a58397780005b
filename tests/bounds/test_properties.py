"""What every fixed-n bound must satisfy whatever the counts and settings."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.bounds import Counts, clopper_pearson, exact, jeffreys, joint_beta

ROUNDING = 1e-9
SEARCH = 1e-6  # what `exact` may lie below its root
BOUNDS = {"exact": exact, "clopper_pearson": clopper_pearson}

deltas = st.one_of(st.sampled_from([0.0, 1e-5, 0.05]), st.floats(0.0, 0.5))
confidences = st.one_of(st.sampled_from([0.9, 0.95, 0.975, 0.99]), st.floats(0.5, 0.9999))
each_bound = pytest.mark.parametrize("name", BOUNDS)


@st.composite
def outcomes(draw: st.DrawFn, most: int = 60) -> Counts:
    """Counts of unequal or equal worlds; mostly of attacks that are better than chance."""
    n_in = draw(st.integers(1, most))
    n_out = draw(st.one_of(st.just(n_in), st.integers(1, most)))
    share = draw(st.sampled_from([0.2, 0.5, 1.0]))
    fn = draw(st.integers(0, math.ceil(share * n_in)))
    return Counts(fn, draw(st.integers(0, math.ceil(share * n_out))), n_in, n_out)


@each_bound
@given(counts=outcomes(), delta=deltas, confidence=confidences)
@settings(max_examples=12, deadline=None)
def test_more_errors_never_raise_a_bound(
    name: str, counts: Counts, delta: float, confidence: float
) -> None:
    fn, fp, n_in, n_out = counts
    bound = BOUNDS[name](*counts, delta=delta, confidence=confidence)
    for worse in ((fn + 1, fp), (fn, fp + 1)):
        if worse[0] <= n_in and worse[1] <= n_out:
            other = BOUNDS[name](*worse, n_in, n_out, delta=delta, confidence=confidence)
            assert other <= bound + (SEARCH if name == "exact" else ROUNDING)


@each_bound
@given(counts=outcomes(), pair=st.tuples(deltas, deltas), confidence=confidences)
@settings(max_examples=15, deadline=None)
def test_more_delta_never_raises_a_bound(
    name: str, counts: Counts, pair: tuple[float, float], confidence: float
) -> None:
    less, more = (BOUNDS[name](*counts, delta=d, confidence=confidence) for d in sorted(pair))
    assert more <= less + (SEARCH if name == "exact" else ROUNDING)


@each_bound
@given(counts=outcomes(), delta=deltas, pair=st.tuples(confidences, confidences))
@settings(max_examples=15, deadline=None)
def test_more_confidence_never_raises_a_bound(
    name: str, counts: Counts, delta: float, pair: tuple[float, float]
) -> None:
    less, more = (BOUNDS[name](*counts, delta=delta, confidence=c) for c in sorted(pair))
    assert more <= less + (SEARCH if name == "exact" else ROUNDING)


@pytest.mark.parametrize(
    ("counts", "delta"),
    [
        pytest.param(Counts(0, 1, 30, 3), 0.1, marks=pytest.mark.slow),
        (Counts(0, 7, 13, 13), 0.01),
        (Counts(2, 1, 22, 44), 1e-5),
    ],
)
def test_confidence_is_monotone_where_a_ranking_by_it_is_not(counts: Counts, delta: float) -> None:
    grid = [0.6 + 0.005 * step for step in range(80)]
    bounds = [exact(*counts, delta=delta, confidence=confidence) for confidence in grid]
    assert bounds[0] > 0.4
    assert all(after <= before for before, after in pairwise(bounds))


@given(counts=outcomes(), delta=deltas, confidence=confidences)
@settings(max_examples=20, deadline=None)
def test_exact_lies_between_clopper_pearson_and_the_ceiling(
    counts: Counts, delta: float, confidence: float
) -> None:
    check_between(counts, delta, confidence)


@pytest.mark.slow
@given(counts=outcomes(most=150), delta=deltas, confidence=confidences)
@settings(max_examples=30, deadline=None)
def test_so_it_does_in_larger_audits(counts: Counts, delta: float, confidence: float) -> None:
    check_between(counts, delta, confidence)


def check_between(counts: Counts, delta: float, confidence: float) -> None:
    setting = {"delta": delta, "confidence": confidence}
    bound = exact(*counts, **setting)
    assert clopper_pearson(*counts, **setting) <= bound
    assert bound <= exact(0, 0, counts.n_in, counts.n_out, **setting) + SEARCH
    assert clopper_pearson(*counts, **setting) <= clopper_pearson(
        0, 0, counts.n_in, counts.n_out, **setting
    )


@given(counts=outcomes(), delta=deltas, confidence=confidences)
@settings(max_examples=12, deadline=None)
def test_swapping_the_worlds_changes_nothing(
    counts: Counts, delta: float, confidence: float
) -> None:
    """Swapping which world is called "in" swaps the errors; so does reversing the scores."""
    fn, fp, n_in, n_out = counts
    setting = {"delta": delta, "confidence": confidence}
    for bound in (exact, clopper_pearson, jeffreys):
        upright = bound(*counts, **setting)
        assert bound(fp, fn, n_out, n_in, **setting) == pytest.approx(upright, abs=SEARCH)
        assert 0.0 <= upright < math.inf


@given(counts=outcomes(), delta=deltas, confidence=confidences)
@settings(max_examples=15, deadline=None)
def test_joint_beta_is_finite_and_symmetric(
    counts: Counts, delta: float, confidence: float
) -> None:
    fn, fp, n_in, n_out = counts
    found = joint_beta(*counts, delta=delta, confidence=confidence)
    assert 0.0 <= found < math.inf
    mirrored = joint_beta(fp, fn, n_out, n_in, delta=delta, confidence=confidence)
    assert mirrored == pytest.approx(found, abs=5e-3)


@given(counts=outcomes(), delta=deltas, confidence=confidences)
@settings(max_examples=12, deadline=None)
def test_errors_at_or_beyond_chance_give_zero(
    counts: Counts, delta: float, confidence: float
) -> None:
    fn, fp, n_in, n_out = counts
    worse = Counts(n_in - fn, n_out - fp, n_in, n_out)
    if fn / n_in + fp / n_out <= 1.0 and confidence >= 0.8:
        assert exact(*worse, delta=delta, confidence=confidence) == 0.0
        assert clopper_pearson(*worse, delta=delta, confidence=confidence) == 0.0
