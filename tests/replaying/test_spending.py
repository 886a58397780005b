"""What steps spend together: known mechanisms, reference accountants, and null tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from dpaudit.errors import ClaimError
from dpaudit.model.claim import (
    ConcentratedClaim,
    CurveClaim,
    CurvePoint,
    GaussianClaim,
    Neighbours,
    NoClaim,
    PrivacyClaim,
)
from dpaudit.model.gaussian import gaussian_delta, gaussian_epsilon
from dpaudit.replaying import laws
from dpaudit.replaying.spending import Spent, spend
from dpaudit.replaying.transcript import (
    Parting,
    PartKind,
    SelectionKind,
    Toss,
    Transcript,
)
from steps import choice_step, noisy_step, selection, site_of, transcript_of

PURE = PrivacyClaim(epsilon=1.0, delta=0.0)
APPROXIMATE = PrivacyClaim(epsilon=1.0, delta=1e-5)
DELTA = 1e-5
ONE = np.ones(1)
LARGEST, ORDERED, COMPARED = SelectionKind.LARGEST, SelectionKind.ORDERED, SelectionKind.COMPARED


def spent(transcript: Transcript, claim: Any = PURE, **others: Any) -> Spent:
    return spend([transcript], claim, public_coins=False, **others)


def laplace(scale: float, size: int = 1) -> laws.Laplace:
    return laws.Laplace(np.full(size, scale))


def gaussian(scale: float, size: int = 1) -> laws.Gaussian:
    return laws.Gaussian(np.full(size, scale))


# -- answers in full ------------------------------------------------------------------------------


def test_a_histogram_with_laplace_noise_costs_its_claim() -> None:
    found = spent(transcript_of(noisy_step([3, 5, 2], [3, 4, 2], laplace(1.0, 3))))
    assert found.value == pytest.approx(1.0)
    assert found.is_exact
    assert found.note is None
    [line] = found.lines
    assert (line.place, line.law, line.times, line.scale) == ("code.py:1", "laplace", 1, 1.0)
    assert (line.l1, line.l2, line.linf, line.epsilon, line.share) == (1.0, 1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    "claim", [PURE, APPROXIMATE, GaussianClaim(mu=1.0), ConcentratedClaim(rho=1.0)]
)
def test_what_does_not_move_costs_nothing(claim: Any) -> None:
    steps = [
        noisy_step([1, 2], [1, 2], law, first=2 * at, line=at)
        for at, law in enumerate(
            [
                laplace(1.0, 2),
                gaussian(1.0, 2),
                None,
                laws.Gumbel(np.ones(2)),
                laws.Logistic(np.ones(2)),
            ]
        )
    ]
    same = choice_step(([0.5, 0.5], [0.5, 0.5]), line=7)
    chosen = selection(LARGEST, [0, 1], 1)
    found = spent(transcript_of(*steps, same, chosen), claim)
    assert found.value == 0.0
    assert found.note is None
    assert found.is_exact
    assert [line.epsilon for line in found.lines] == [0.0] * 6


def test_gaussian_steps_compose_in_squares() -> None:
    steps = [
        noisy_step(0.3, 0, gaussian(1.0)),
        noisy_step([0.8, 0], [0, 0], gaussian(2.0, 2), first=1),
    ]
    transcript = transcript_of(*steps)
    assert spent(transcript, GaussianClaim(mu=1.0)).value == pytest.approx(0.5)
    assert spent(transcript, ConcentratedClaim(rho=1.0)).value == pytest.approx(0.125)
    found = spent(transcript, APPROXIMATE)
    assert found.value == pytest.approx(gaussian_epsilon(0.5, DELTA))
    assert gaussian_delta(found.value, 0.5) == pytest.approx(DELTA, rel=1e-6)
    assert found.is_exact
    none = spent(transcript)
    assert none.is_unlimited
    assert none.value is None
    assert none.note == "no limit: Gaussian noise at code.py:1 has no epsilon at delta 0"


def test_laplace_and_gaussian_steps_compose_as_dp_accounting_composes_them() -> None:
    steps = [noisy_step([1, 1], [0, 0], laplace(4.0, 2)), noisy_step(1, 0, gaussian(4.0), first=2)]
    found = spent(transcript_of(*steps), APPROXIMATE)
    reference = (
        pld.from_laplace_mechanism(4.0).self_compose(2).compose(pld.from_gaussian_mechanism(4.0))
    )
    assert found.value == pytest.approx(reference.get_epsilon_for_delta(DELTA), rel=1e-3)


@pytest.mark.parametrize("name", ["discrete laplace", "discrete gaussian"])
def test_whole_noise_composes(name: str) -> None:
    law = laws.DiscreteLaplace(np.full(2, 3.0))
    if name == "discrete gaussian":
        law = laws.DiscreteGaussian(np.full(2, 3.0))  # type: ignore[assignment]
    transcript = transcript_of(noisy_step([1, 2], [0, 0], law))
    ratio = np.arange(-200.0, 201.0)
    one, two = ((ratio - move) for move in (1, 2))
    p = np.exp(law.element(0, 2).log_density(ratio))
    joint, other = (
        np.outer(p, p),
        np.outer(*(np.exp(law.element(0, 2).log_density(z)) for z in (one, two))),
    )
    found = spent(transcript, APPROXIMATE).value
    assert found is not None
    for epsilon, at_most in ((found + 1e-3, True), (found - 1e-2, False)):
        delta = max(
            float(np.sum(np.maximum(first - np.exp(epsilon) * second, 0.0)))
            for first, second in ((joint, other), (other, joint))
        )
        assert (delta <= DELTA) == at_most
    if name == "discrete laplace":
        assert spent(transcript).value == pytest.approx(1.0)
    else:
        assert spent(transcript).is_unlimited
        assert spent(transcript, ConcentratedClaim(rho=1.0)).value == pytest.approx(5 / 18)
        assert spent(transcript, GaussianClaim(mu=1.0)).note == (
            "the cost of the noise at code.py:1 is not known"
        )
    half = transcript_of(noisy_step([0.5, 0], [0, 0], law))
    for claim in (PURE, APPROXIMATE):
        found_half = spent(half, claim)
        assert found_half.is_unlimited
        assert "fractions are added" in str(found_half.note)


def test_other_laws_count_by_their_largest_loss() -> None:
    bounded = laws.BoundedLaplace(ONE, -ONE, ONE), laws.BoundedLaplace(ONE, -ONE, 1.01 * ONE)
    logistic = laws.Logistic(np.full(1, 2.0))
    transcript = transcript_of(noisy_step(1, 0, logistic))
    assert spent(transcript).value == pytest.approx(0.5)
    found = spent(transcript, APPROXIMATE)
    assert found.value == pytest.approx(0.5, abs=1e-3)
    assert found.note == "some steps by their largest losses"
    assert not found.is_exact
    for law in (laws.Gumbel(ONE), laws.Gamma(ONE, ONE)):
        moved = transcript_of(noisy_step(0.5, 0, law))
        assert spent(moved).note == f"no limit: {law.name} noise at code.py:1"
        assert spent(moved, APPROXIMATE).value is None
        assert not spent(moved, APPROXIMATE).is_unlimited
    assert spent(transcript_of(noisy_step(0, 0, bounded[0], other=bounded[1]))).is_unlimited


def test_scales_that_depend_on_the_data_have_no_limit_at_delta_0() -> None:
    for law in (laplace, gaussian):
        transcript = transcript_of(noisy_step(0, 0, law(1.0), other=law(1.001)))
        found = spent(transcript)
        assert found.note == "no limit: the scale of the noise at code.py:1 depends on the data"
        assert found.lines[0].other_scale == pytest.approx(1.001)
        assert spent(transcript, GaussianClaim(mu=1.0)).is_unlimited
        at_delta = spent(transcript, APPROXIMATE)
        assert (at_delta.value, at_delta.is_unlimited) == (None, False)


def test_missing_values_cost_nothing_in_both_worlds_and_everything_in_one() -> None:
    same = noisy_step([np.nan, np.inf], [np.nan, np.inf], gaussian(1.0, 2))
    assert spent(transcript_of(same)).value == 0.0
    for one in (np.nan, np.inf):
        for draws in ((), [[(0, 1.0)], [(0, 1.0)]]):
            step = noisy_step([one, 1.0], [0.0, 1.0], gaussian(1.0, 2), draws=draws)
            found = spent(transcript_of(step), APPROXIMATE)
            assert found.is_unlimited
            assert "missing or infinite in one world" in str(found.note)


def test_unknown_laws_are_not_known_and_noise_that_was_used_before_neither() -> None:
    for step in (noisy_step(1, 0, None), noisy_step(1, 0, laplace(1.0), is_lost=True)):
        for claim in (PURE, APPROXIMATE, ConcentratedClaim(rho=1.0)):
            found = spent(transcript_of(step), claim)
            assert (found.value, found.is_unlimited, found.is_exact) == (None, False, False)
            assert "not known" in str(found.note)
    worse = transcript_of(noisy_step(1, 0, None), noisy_step(1, 0, gaussian(1.0), first=1))
    assert spent(worse).is_unlimited


def test_pure_steps_have_a_mu_and_a_rho() -> None:
    """Randomised response: its trade-off function touches that of mu at its corner."""
    transcript = transcript_of(noisy_step(1, 0, laplace(1.0)))
    mu = spent(transcript, GaussianClaim(mu=1.0)).value
    assert mu == pytest.approx(-2 * stats.norm.ppf(1 / (1 + math.e)))
    # the Laplace mechanism's own trade-off function lies above
    for t in np.linspace(-4.0, 5.0, 40):
        alpha, beta = stats.laplace.sf(t), stats.laplace.cdf(t, loc=1.0)
        assert beta >= stats.norm.cdf(stats.norm.isf(alpha) - mu) - 1e-12
    assert spent(transcript, ConcentratedClaim(rho=1.0)).value == pytest.approx(0.5)
    small = transcript_of(
        noisy_step(0.1, 0, laplace(1.0)), noisy_step(0.4, 0, gaussian(1.0), first=1)
    )
    assert spent(small, ConcentratedClaim(rho=1.0)).value == pytest.approx(0.005 + 0.08)


def test_a_curve_costs_its_worst_factor() -> None:
    transcript = transcript_of(noisy_step(1, 0, gaussian(1.0)))
    points = tuple(
        CurvePoint(gaussian_epsilon(1.0, d) / f, d) for d, f in ((1e-5, 1.0), (1e-3, 2.0))
    )
    assert spent(transcript, CurveClaim(points=points)).value == pytest.approx(2.0)
    with_zero = CurveClaim(points=(*points, CurvePoint(9.0, 0.0)))
    assert spent(transcript, with_zero).is_unlimited


def test_a_claim_is_needed() -> None:
    with pytest.raises(ClaimError):
        spent(transcript_of(), NoClaim())


def test_huge_losses_count_by_renyi_curves() -> None:
    steps = [noisy_step(400, 0, laplace(1.0)), noisy_step(300, 0, laplace(1.0), first=1)]
    found = spent(transcript_of(*steps), APPROXIMATE)
    assert found.value is not None
    assert 690.0 <= found.value <= 720.0
    assert not found.is_exact
    far = spent(transcript_of(noisy_step(100, 0, gaussian(1.0)), steps[1]), APPROXIMATE)
    assert far.value is not None
    assert far.value >= gaussian_epsilon(100.0, DELTA)


# -- choices --------------------------------------------------------------------------------------


def test_the_exponential_mechanism_costs_at_most_its_epsilon() -> None:
    rng = np.random.default_rng(0)
    inside = rng.integers(0, 20, 30).astype(float)
    outside = inside - rng.choice([-1.0, 1.0], 30)
    weights = [np.exp(0.5 * (one - one.max())) for one in (inside, outside)]
    tables = tuple(one / one.sum() for one in weights)
    found = spent(transcript_of(choice_step(tables)))
    assert found.value is not None
    assert 0.5 < found.value <= 1.0
    assert found.value == pytest.approx(np.max(np.abs(np.log(tables[0] / tables[1]))))
    [line] = found.lines
    assert (line.law, line.counts_as, line.scale) == ("choice", "selected", None)
    # an exponential mechanism of epsilon is bounded-range: rho is epsilon² / 8 at most
    rho = spent(transcript_of(choice_step(tables)), ConcentratedClaim(rho=1.0))
    assert rho.value is not None
    assert rho.value <= 1.0 / 8 * 1.02
    assert rho.is_exact


def test_rho_of_a_table_is_its_largest_renyi_divergence_over_the_order() -> None:
    p, q = np.array([0.7, 0.25, 0.05]), np.array([0.5, 0.3, 0.2])
    orders = 1.0 + np.geomspace(1e-5, 100.0, 20_000)[:, None]
    each = [
        np.log(np.sum(one * (one / other) ** (orders - 1), axis=1))
        / (orders[:, 0] - 1)
        / orders[:, 0]
        for one, other in ((p, q), (q, p))
    ]
    found = spent(transcript_of(choice_step((p, q))), ConcentratedClaim(rho=1.0)).value
    assert found is not None
    assert np.max(each) * (1 - 1e-6) <= found <= np.max(each) * 1.02


def test_randomised_responses_compose_as_dp_accounting_composes_them() -> None:
    p = math.exp(0.2) / (1 + math.exp(0.2))
    several = choice_step(*[([p, 1 - p], [1 - p, p])] * 30)
    assert spent(transcript_of(several)).value == pytest.approx(30 * 0.2)
    found = spent(transcript_of(several), APPROXIMATE)
    reference = pld.from_randomized_response(2 * (1 - p), 2).self_compose(30)
    assert found.value == pytest.approx(reference.get_epsilon_for_delta(DELTA), rel=3e-3)
    assert found.lines[0].times == 30


def test_outcomes_of_one_world_have_no_limit_unless_delta_covers_them() -> None:
    rare = choice_step(([1 - 1e-6, 1e-6], [1.0, 0.0]))
    assert spent(transcript_of(rare)).note == (
        "no limit: an outcome at code.py:1 that only one world has"
    )
    assert spent(transcript_of(rare), APPROXIMATE).value == pytest.approx(0.0, abs=1e-3)
    assert spent(transcript_of(choice_step(([0.9, 0.1], [1.0, 0.0]))), APPROXIMATE).is_unlimited
    # a rounding error of the exponential mechanism by cumulated probabilities
    rounded = choice_step(([1.0, 1e-16], [1.0, 0.0]))
    assert spent(transcript_of(rounded)).value == 0.0


# -- selections -----------------------------------------------------------------------------------


def scores(moves: Any, law: Any, **others: Any) -> Any:
    outside = np.linspace(0.0, 5.0, len(moves))
    return noisy_step(outside + np.asarray(moves, dtype=float), outside, law, **others)


@pytest.mark.parametrize(
    ("law", "most"),
    [
        (laws.Laplace(np.full(20, 2.0)), 1.0),
        (laws.Gumbel(np.full(20, 2.0)), 1.0),
        (laws.Gamma(np.full(20, 2.0), np.ones(20)), 1.0),  # permute-and-flip: exponential noise
    ],
)
def test_report_noisy_max_costs_at_most_its_epsilon(law: Any, most: float) -> None:
    moves = np.random.default_rng(1).integers(-1, 2, 20).astype(float)
    transcript = transcript_of(scores(moves, law), selection(LARGEST, np.arange(20), 3))
    found = spent(transcript)
    assert found.value is not None
    assert 0.5 < found.value <= most * (1 + 1e-6)
    assert found.lines[0].counts_as == "selected"
    assert spent(transcript, APPROXIMATE).value <= found.value + 1e-3  # type: ignore[operator]
    whole = spent(transcript_of(*transcript.noisy, released=range(20)))
    assert whole.is_unlimited or whole.value == pytest.approx(np.abs(moves).sum() / 2.0)


def test_a_common_move_of_all_scores_costs_nothing() -> None:
    transcript = transcript_of(
        scores(np.ones(40), laplace(2.0, 40)), selection(LARGEST, range(40), 3)
    )
    assert spent(transcript).value == pytest.approx(0.0, abs=1e-7)
    constant = selection(LARGEST, [*range(40), -1], 3)
    with_limit = spent(transcript_of(*transcript.noisy, constant))
    assert with_limit.value == pytest.approx(20.0)  # a constant among them: not known
    assert with_limit.note == "if all scores were released"
    assert not with_limit.is_exact


def test_a_selection_is_free_only_if_nothing_else_shows_the_scores() -> None:
    step = scores([1, 0, 0], laplace(1.0, 3))
    chosen = selection(LARGEST, range(3), 2)
    for others in ({"released": [1]}, {"released": [0, 1, 2]}):
        assert spent(transcript_of(step, chosen, **others)).value == pytest.approx(1.0)
    assert spent(transcript_of(step)).value == pytest.approx(1.0)  # of no seen use: in full
    twice = transcript_of(step, chosen, selection(LARGEST, [0, 1], 0, line=10))
    assert spent(twice).value == pytest.approx(1.0)
    assert spent(twice).note == "if all scores were released"
    again = transcript_of(step, chosen, chosen)  # the same selection once more
    assert spent(again).value == spent(transcript_of(step, chosen)).value
    unequal = spent(transcript_of(step, selection(LARGEST, range(3), 2, is_equal=False)))
    assert (unequal.value, unequal.is_unlimited) == (None, False)
    assert unequal.note == "noise meets values that differ between the worlds at code.py:9"


def test_top_k_of_gumbel_noise_costs_k_exponential_mechanisms() -> None:
    step = scores([1, 0, 1, 0, 1], laws.Gumbel(np.full(5, 4.0)))
    first = selection(LARGEST, range(5), 4)
    offset = np.array([0, 0, 0, 0, -np.inf])
    rest = selection(LARGEST, [0, 1, 2, 3, -1], 2, offset=offset)
    one = spent(transcript_of(step, first)).value
    two = spent(transcript_of(step, first, rest))
    assert one is not None
    assert two.value is not None
    assert one <= 0.5
    assert one < two.value <= 1.0
    assert two.note == "the order seen at code.py:9 counts"
    order = selection(ORDERED, range(5), [1, 0, 3, 2, 4])
    whole = spent(transcript_of(step, order))
    assert whole.value is not None
    assert two.value < whole.value <= 4 * 0.5
    # by hand: the table of each round
    inside, outside = (np.exp(before / 4.0) for before in step.before)
    left, total = np.ones(5, dtype=bool), 0.0
    for place in (4, 2, 3, 0):
        tables = [one[left] / one[left].sum() for one in (inside, outside)]
        total += float(np.max(np.abs(np.log(tables[0] / tables[1]))))
        left[place] = False
    assert whole.value == pytest.approx(total)
    turned = selection(ORDERED, range(5), [4, 2, 3, 0, 1], factor=-np.ones(5))
    assert spent(transcript_of(step, turned)).value == whole.value  # by `argsort(-scores)`
    other = transcript_of(scores([1, 0, 1, 0, 1], laplace(4.0, 5)), order)
    assert spent(other).value == pytest.approx(3 / 4)
    assert spent(other).note == "if all scores were released"


def test_a_comparison_with_a_constant_costs_the_larger_of_its_outcomes() -> None:
    step = noisy_step([3], [2], laplace(1.0))
    transcript = transcript_of(step, selection(COMPARED, [0], 0, limits=5.0))
    inside, outside = (stats.laplace.sf(5.0, loc=one) for one in (3, 2))
    assert spent(transcript).value == pytest.approx(np.log(inside / outside))
    reversed_ = transcript_of(
        step, selection(COMPARED, [0], 1, factor=-2.0, offset=1.0, limits=-9.0)
    )
    assert spent(reversed_).value == spent(transcript).value
    reference = pld.from_two_probability_mass_functions(
        {0: np.log(outside), 1: np.log1p(-outside)},
        {0: np.log(inside), 1: np.log1p(-inside)},
        symmetric=False,
    )
    found = spent(transcript, PrivacyClaim(epsilon=1.0, delta=0.02))
    assert found.value == pytest.approx(reference.get_epsilon_for_delta(0.02), abs=2e-3)
    assert found.is_exact


def test_comparisons_with_several_constants_show_a_cell() -> None:
    step = noisy_step([3], [2], laplace(1.0))
    uses = [selection(COMPARED, [0], 1, limits=limit) for limit in (0.0, 2.5, 4.0, 2.5)]
    edges = np.array([-np.inf, 0.0, 2.5, 4.0, np.inf])
    cells = [np.diff(stats.laplace.cdf(edges, loc=one)) for one in (3, 2)]
    found = spent(transcript_of(step, *uses))
    assert found.value == pytest.approx(np.max(np.abs(np.log(cells[0] / cells[1]))))


def test_comparisons_of_whole_numbers_count_equality_apart() -> None:
    law = laws.DiscreteLaplace(np.full(1, 2.0))
    known = stats.dlaplace(0.5)
    cells = [
        np.array([known.cdf(4 - one), known.pmf(5 - one), known.sf(5 - one)]) for one in (3, 2)
    ]
    transcript = transcript_of(noisy_step([3], [2], law), selection(COMPARED, [0], 0, limits=5.0))
    expected = np.max(np.abs(np.log(cells[0] / cells[1])))
    assert spent(transcript).value == pytest.approx(expected)


def test_a_thousand_comparisons_of_numbers_one_by_one_are_charged() -> None:
    steps = [noisy_step(at % 7 + 1, at % 7, laplace(50.0), first=at) for at in range(1000)]
    uses = [selection(COMPARED, [at], 0, limits=20.0) for at in range(1000)]
    found = spent(transcript_of(*steps, *uses), APPROXIMATE)
    assert found.value is not None
    assert 0.0 < found.value < 1000 / 50.0


def sparse_vector(below: int, *, released: Any = ()) -> Transcript:
    limit = noisy_step(10, 10, laplace(2.0), answer=12.0)
    queries = [
        noisy_step(10, 9, laplace(4.0), first=1 + at, line=2, answer=5.0 if at < below else 14.0)
        for at in range(below + 1)
    ]
    uses = [
        selection(COMPARED, [1 + at], int(at == below), limit_numbers=0) for at in range(below + 1)
    ]
    return transcript_of(limit, *queries, *uses, released=released)


def test_the_sparse_vector_technique_costs_at_most_its_epsilon() -> None:
    """Noise of 2 for the limit and 4 for the queries, sensitivity 1: epsilon 1."""
    for below in (0, 5, 50):
        found = spent(sparse_vector(below))
        assert found.value is not None
        assert 0.1 < found.value <= 1.0
        assert found.lines[0].place == "code.py:2"
    assert spent(sparse_vector(5)).note == "the outcomes seen at code.py:2 count"
    # with a limit that is released, each comparison counts alone
    released = spent(sparse_vector(5, released=[0]))
    tails = [stats.laplace.sf(12.0, loc=one, scale=4.0) for one in (10, 9)]
    assert released.value == pytest.approx(6 * np.log(tails[0] / tails[1]))


def test_comparisons_with_a_limit_on_the_left_are_the_same() -> None:
    whole = sparse_vector(3)
    turned = [
        selection(COMPARED, [0], int(1 - one.outcome[0]), limit_numbers=one.numbers)
        for one in whole.selections
    ]
    found = spent(transcript_of(*whole.noisy, *turned))
    assert found.value == pytest.approx(spent(whole).value)


def test_what_comparisons_do_not_form_a_star_counts_in_full() -> None:
    steps = [noisy_step(1, 0, laplace(4.0), first=at) for at in range(4)]
    chain = [selection(COMPARED, [at], 1, limit_numbers=at + 1) for at in range(3)]
    found = spent(transcript_of(*steps, *chain))
    assert (found.value, found.note) == (pytest.approx(1.0), "if all scores were released")
    mixed = [chain[0], selection(LARGEST, [0, 1], 1)]
    assert spent(transcript_of(*steps[:2], *mixed)).value == pytest.approx(0.5)


# -- answers with common draws --------------------------------------------------------------------


def both(shifts: Any, law: Any, *, name: str, factors: Any = (1.0, 1.0)) -> Any:
    """y1 = c1 + f1 z, y2 = c2 + f2 z, in units in which the scale of z is 1."""
    draws = [[(0, factor)] for factor in factors]
    return noisy_step(shifts, [0, 0], law, draws=draws, names=[name])


@pytest.mark.parametrize("name", ["gaussian", "laplace", "gumbel"])
def test_answers_with_one_noise_cost_once_or_without_limit(name: str) -> None:
    kind = {"gaussian": laws.Gaussian, "laplace": laws.Laplace, "gumbel": laws.Gumbel}[name]
    law = kind(np.ones(2))
    alone = spent(transcript_of(noisy_step(1, 0, kind(np.ones(1)))), APPROXIMATE)
    once = spent(transcript_of(both([1, 1], law, name=name)), APPROXIMATE)
    assert (once.value, once.note) == (pytest.approx(alone.value), alone.note)
    for claim in (PURE, APPROXIMATE, GaussianClaim(mu=1.0)):
        apart = spent(transcript_of(both([1, -1], law, name=name)), claim)
        assert apart.note == "no limit: answers that share noise move apart at code.py:1"
        assert apart.is_unlimited
    doubled = both([1, 2], kind(np.array([1.0, 2.0])), name=name, factors=(1.0, 2.0))
    assert spent(transcript_of(doubled), APPROXIMATE).value == pytest.approx(alone.value)
    # a draw of its own makes the second answer another one
    parted = noisy_step([1, 1], [0, 0], law, draws=[[(0, 1.0)], [(1, 1.0)]], names=[name])
    assert (
        spent(transcript_of(parted)).value
        == spent(transcript_of(noisy_step([1, 1], [0, 0], law))).value
    )


def test_a_symmetric_matrix_of_noise_costs_its_upper_half() -> None:
    size = 6
    rng = np.random.default_rng(2)
    half = rng.normal(size=(size, size))
    move = half + half.T
    ids = np.add.outer(np.arange(size) * size, np.arange(size))
    ids = np.minimum(ids, ids.T)
    draws = [[(int(one), 2.0)] for one in ids.ravel()]
    step = noisy_step(move.ravel(), np.zeros(size * size), gaussian(2.0, size * size), draws=draws)
    found = spent(transcript_of(step), GaussianClaim(mu=1.0))
    assert found.value == pytest.approx(np.linalg.norm(move[np.triu_indices(size)]) / 2.0)


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_running_sums_of_noise_cost_the_increments(name: str) -> None:
    """y_t = c_t + z_1 + ... + z_t: mu² = d' S^-1 d, from the increments of d; else their L1."""
    size, scale = 12, 3.0
    rng = np.random.default_rng(3)
    shift = np.cumsum(rng.normal(size=size))
    draws = [[(at, scale) for at in range(end + 1)] for end in range(size)]
    law = gaussian(1.0, size)
    step = noisy_step(shift, np.zeros(size), law, draws=draws, names=[name])
    factors = np.tril(np.full((size, size), scale))
    covariance = factors @ factors.T
    if name == "gaussian":
        found = spent(transcript_of(step), GaussianClaim(mu=1.0)).value
        assert found == pytest.approx(np.sqrt(shift @ np.linalg.pinv(covariance) @ shift))
        assert found == pytest.approx(np.linalg.norm(np.diff(shift, prepend=0.0)) / scale)
    else:
        found = spent(transcript_of(step)).value
        assert found == pytest.approx(np.abs(np.diff(shift, prepend=0.0)).sum() / scale)


def test_prefix_sums_of_a_tree_cost_the_nodes_of_one_leaf_at_most() -> None:
    """The binary mechanism: three levels of nodes over four leaves, Laplace noise of scale 3."""
    nodes = {(0, 4): 0, (0, 2): 1, (2, 4): 2, (0, 1): 3, (1, 2): 4, (2, 3): 5, (3, 4): 6}
    prefixes = [[(0, 1)], [(0, 2)], [(0, 2), (2, 3)], [(0, 4)]]
    draws = [[(nodes[one], 3.0) for one in own] for own in prefixes]
    step = noisy_step([1, 1, 1, 1], [0, 0, 0, 0], laplace(3.0, 4), draws=draws, names=["laplace"])
    found = spent(transcript_of(step)).value  # the first leaf moved: nodes (0, 1), (0, 2), (0, 4)
    assert found == pytest.approx(1.0)


def test_noise_that_cancels_shows_everything() -> None:
    twice = noisy_step([1], [0], laplace(2.0), draws=[[(0, 1.0), (0, -1.0)]], names=["laplace"])
    assert spent(transcript_of(twice)).is_unlimited
    doubled = noisy_step([1], [0], gaussian(1.4), draws=[[(0, 1.0), (0, 1.0)]])
    assert spent(transcript_of(doubled), GaussianClaim(mu=1.0)).value == pytest.approx(0.5)
    odd = noisy_step([1], [0], laws.Logistic(ONE), draws=[[(0, 1.0), (0, 1.0)]], names=["logistic"])
    assert spent(transcript_of(odd)).note == "the cost of shared noise is not known at code.py:1"


def test_two_draws_in_other_combinations_are_known_for_gaussian_noise_alone() -> None:
    draws = [[(0, 1.0), (1, 1.0)], [(0, 1.0), (1, -1.0)]]
    step = noisy_step([1, 0], [0, 0], gaussian(math.sqrt(2), 2), draws=draws)
    assert spent(transcript_of(step), GaussianClaim(mu=1.0)).value == pytest.approx(math.sqrt(0.5))
    unknown = noisy_step([1, 0], [0, 0], laws.Logistic(np.ones(2)), draws=draws, names=["logistic"])
    assert spent(transcript_of(unknown)).value is None
    still = noisy_step([1, 1], [1, 1], laws.Logistic(np.ones(2)), draws=draws, names=["logistic"])
    assert spent(transcript_of(still)).value == 0.0


# -- sub-samples ----------------------------------------------------------------------------------


def sampled(steps: int, *, rate: float, law: Any, own: bool = True) -> Transcript:
    made = [noisy_step(1, 0, law, first=at, toss=at if own else 0) for at in range(steps)]
    tosses = [Toss(site_of(5), rate) for _ in range(steps if own else 1)]
    return transcript_of(*made, tosses=tosses)


def test_the_sampled_gaussian_mechanism_is_dp_accountings() -> None:
    found = spent(sampled(20, rate=0.1, law=gaussian(4.0)), APPROXIMATE)
    one = pld.from_gaussian_mechanism(4.0, sampling_prob=0.1)
    reference = one.self_compose(20).get_epsilon_for_delta(DELTA)
    assert found.value == pytest.approx(reference, rel=1e-6)
    assert found.is_exact
    assert found.lines[0].sampling == 0.1
    assert found.lines[0].mu == pytest.approx(math.sqrt(20) / 4.0)
    together = spent(sampled(4, rate=0.1, law=gaussian(8.0), own=False), APPROXIMATE)
    assert together.value == pytest.approx(one.get_epsilon_for_delta(DELTA), rel=1e-6)


def test_sub_samples_amplify_largest_losses() -> None:
    found = spent(sampled(2, rate=0.25, law=laplace(1.0)))
    assert found.value == pytest.approx(2 * math.log(1 + 0.25 * (math.e - 1)))
    together = spent(sampled(2, rate=0.25, law=laplace(1.0), own=False))
    assert together.value == pytest.approx(math.log(1 + 0.25 * (math.e**2 - 1)))
    chosen = transcript_of(
        choice_step(([0.8, 0.2], [0.5, 0.5]), toss=0), tosses=[Toss(site_of(5), 0.5)]
    )
    assert spent(chosen).value == pytest.approx(math.log(1 + 0.5 * (0.5 / 0.2 - 1)))
    small = spent(chosen, PrivacyClaim(epsilon=1.0, delta=0.05))
    mixed = 0.65, 0.35
    epsilon = small.value
    assert epsilon is not None
    deltas = [
        sum(max(p - math.exp(epsilon) * q, 0.0) for p, q in pair)
        for pair in (zip(mixed, (0.5, 0.5), strict=True), zip((0.5, 0.5), mixed, strict=True))
    ]
    assert max(deltas) == pytest.approx(0.05, abs=2e-3)


def test_public_coins_replaced_records_and_mu_are_not_amplified() -> None:
    transcript = sampled(1, rate=0.25, law=laplace(1.0))
    public = spend([transcript], PURE, public_coins=True)
    assert public.value == pytest.approx(1.0)
    assert public.lines[0].sampling is None
    replaced = PrivacyClaim(epsilon=1.0, delta=0.0, neighbours=Neighbours.REPLACE_ONE)
    assert spent(transcript, replaced).value == pytest.approx(1.0)
    assert spent(transcript, replaced).note == "as if sub-samples were public"
    moved = spent(sampled(1, rate=0.25, law=gaussian(1.0)), GaussianClaim(mu=1.0))
    assert moved.value == pytest.approx(1.0)
    assert moved.note == "as if sub-samples were public"
    assert not moved.is_exact


def test_gaussian_and_other_steps_of_one_coin_are_not_amplified() -> None:
    steps = [
        noisy_step(1, 0, gaussian(4.0), toss=0),
        noisy_step(1, 0, laplace(4.0), first=1, toss=0),
    ]
    found = spent(transcript_of(*steps, tosses=[Toss(site_of(5), 0.1)]), APPROXIMATE)
    plain = spend(
        [transcript_of(*steps, tosses=[Toss(site_of(5), 0.1)])], APPROXIMATE, public_coins=True
    )
    assert found.value == plain.value
    assert found.note == "as if sub-samples were public"
    assert plain.is_exact


# -- several replays ------------------------------------------------------------------------------


def test_the_costliest_of_several_replays_counts() -> None:
    replays = [transcript_of(noisy_step(shift, 0, laplace(2.0))) for shift in (1.0, 1.5, 1.2)]
    found = spend(replays, PURE, public_coins=False)
    assert found.value == pytest.approx(0.75)
    assert found.note == "the costliest of 3 replays"
    assert not found.is_exact
    same = spend(replays[:1] * 3, PURE, public_coins=False)
    assert same.is_exact
    worse = spend([*replays, transcript_of(noisy_step(1, 0, None))], PURE, public_coins=False)
    assert worse.value is None
    worst = spend([transcript_of(noisy_step(1, 0, gaussian(1.0)))] * 2, PURE, public_coins=False)
    assert worst.is_unlimited


def test_noise_whose_kind_or_scale_is_drawn_has_no_law_or_an_upper_limit() -> None:
    laws = (laplace(2.0), gaussian(1.0))
    kinds = spend([transcript_of(noisy_step(1, 0, one)) for one in laws], PURE, public_coins=False)
    assert kinds.value is None
    assert not kinds.is_unlimited
    first, other = (transcript_of(noisy_step(1, 0, laplace(scale))) for scale in (0.5, 2.0))
    assert spend([first, other], PURE, public_coins=False).is_upper_limit
    assert spend([first], PURE, public_coins=False, others=[other]).is_upper_limit
    assert not spend([first] * 2, PURE, public_coins=False).is_upper_limit


def test_a_fit_that_parted_has_no_whole_cost() -> None:
    parting = Parting(kind=PartKind.STEPS, sites=(None, None), values=("", ""))
    found = spent(transcript_of(noisy_step(1, 0, laplace(1.0)), parting=parting))
    assert (found.value, found.note) == (None, "the worlds part before the end")
    assert found.lines[0].epsilon == 1.0


def test_internal_lines_are_listed_and_not_charged() -> None:
    steps = [noisy_step(1, 0, laplace(1.0)), noisy_step(1, 0, laplace(2.0), first=1, line=2)]
    for name in ("code.py", "lib/code.py", "/lib/code.py"):
        found = spent(transcript_of(*steps), internal=[(name, 1)])
        assert found.value == pytest.approx(0.5)
        assert [(one.place, one.internal, one.share) for one in found.lines] == [
            ("code.py:2", False, 1.0),
            ("code.py:1", True, 0.0),
        ]
        assert found.lines[1].epsilon == 1.0
    assert spent(transcript_of(*steps), internal=[("ode.py", 1)]).value == pytest.approx(1.5)
    shared = [
        noisy_step(1, 0, gaussian(1.0), draws=[[(0, 1.0)]]),
        noisy_step(0, 0, gaussian(1.0), draws=[[(0, 1.0)]], first=1, line=2),
    ]
    assert spent(transcript_of(*shared), GaussianClaim(mu=1.0)).is_unlimited
    hidden = spent(transcript_of(*shared), GaussianClaim(mu=1.0), internal=[("code.py", 1)])
    assert hidden.value == 0.0
