"""What recorded calls cost: below and above known answers, and as dp-accounting's own examples."""

from __future__ import annotations

import math
import sys
import types
from itertools import pairwise
from typing import Any

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, norm

from dpaudit.account.accountants import Call, CallLaw, Sampling, figures, lower_limit
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.results.accounts import check_account
from dpaudit.results.verdict import Verdict

DELTA = 1e-5


def limits(*calls: Call, delta: float = DELTA) -> tuple[float, float]:
    """The lower limit and the smallest account."""
    most = min(one.epsilon for one in figures(calls, delta=delta) if one.epsilon is not None)
    return lower_limit(calls, delta=delta, near=most), most


def by(name: str, *calls: Call, delta: float = DELTA) -> float:
    [found] = [one for one in figures(calls, delta=delta) if one.accountant.startswith(name)]
    assert found.epsilon is not None
    return found.epsilon


def epsilon_of(delta_at: Any, delta: float) -> float:
    """The epsilon at which a privacy profile crosses delta, by bisection."""
    low, high = 0.0, 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "rdp", "pld"),
    [
        pytest.param(0.01, 1.0, 1000, 2.1014, 1.8282, marks=pytest.mark.ci),
        pytest.param(0.064, 2.0, 500, 3.6439, 3.3401, marks=pytest.mark.ci),
        (0.1, 4.0, 2000, 5.5303, 5.1170),
    ],
)
def test_poisson_sampled_gaussians_are_the_reference(
    rate: float, noise: float, steps: int, rdp: float, pld: float
) -> None:
    call = Call(law=CallLaw.GAUSSIAN, scale=noise, sampling_rate=rate, steps=steps)
    assert by("pld", call) == pytest.approx(pld, rel=1e-3)
    assert by("rdp", call) == pytest.approx(rdp, rel=0.01)
    assert by("rdp", call) >= rdp - 1e-4  # whole orders only: never less
    low, _ = limits(call)
    assert 0.95 * pld < low < pld


def test_gaussians_together_are_exact() -> None:
    calls = [Call(law=CallLaw.GAUSSIAN, scale=s, sensitivity=2, steps=3) for s in (5.0, 8.0)]
    exact = gaussian_epsilon(math.sqrt(3 * (4 / 25 + 4 / 64)), DELTA)
    assert by("exact", *calls) == lower_limit(calls, delta=DELTA, near=1.0)
    assert by("exact", *calls) == pytest.approx(exact, rel=1e-12)
    assert by("pld", *calls) == pytest.approx(exact, rel=1e-3)
    assert exact < by("rdp", *calls)


@pytest.mark.parametrize(
    "law", [CallLaw.LAPLACE, CallLaw.DISCRETE_LAPLACE, CallLaw.RANDOMISED_RESPONSE]
)
def test_one_pure_answer_is_bracketed_closely(law: CallLaw) -> None:
    # Laplace noise at its largest loss x: delta(epsilon) = 1 - exp((epsilon - x) / 2).
    # Discrete noise of sensitivity 1 is randomised response: p - e^epsilon (1 - p).
    x, delta = 1.5, 0.01
    p = 1 / (1 + math.exp(-x))
    of = {"probability": p} if law is CallLaw.RANDOMISED_RESPONSE else {"scale": 1 / x}
    call = Call(law=law, **of)
    exact = x + 2 * math.log1p(-delta)
    if law is not CallLaw.LAPLACE:
        exact = math.log((p - delta) / (1 - p))
    low, most = limits(call, delta=delta)
    assert call.largest_loss == pytest.approx(x)
    assert low <= exact <= most
    assert low == pytest.approx(exact, abs=2e-3)
    assert by("pld", call, delta=delta) == pytest.approx(exact, abs=2e-3)


def test_many_randomised_responses_are_the_binomial_sum() -> None:
    p, steps = 0.55, 100
    x, ones = math.log(p / (1 - p)), np.arange(steps + 1)
    losses = x * (2 * ones - steps)

    def delta_at(epsilon: float) -> float:
        return float(np.sum(binom.pmf(ones, steps, p) * -np.expm1(np.minimum(epsilon - losses, 0))))

    exact = epsilon_of(delta_at, DELTA)
    low, most = limits(Call(law=CallLaw.RANDOMISED_RESPONSE, probability=p, steps=steps))
    assert 0.95 * exact < low <= exact <= most + 1e-9


def test_an_exponential_mechanism_lies_between_its_best_two_candidates_and_its_range() -> None:
    call, delta = Call(law=CallLaw.EXPONENTIAL, scale=1.0), 0.01  # a range of 2

    def delta_at(epsilon: float) -> float:
        p = np.linspace(1e-4, 1 - 1e-4, 20_000)
        q = p / (p + (1 - p) * math.exp(2.0))
        return float(np.max(p - math.exp(epsilon) * q))

    exact = epsilon_of(delta_at, delta)
    low, most = limits(call, delta=delta)
    assert 0.95 * exact < low <= exact <= most <= 2.0


def test_shuffled_batches_cost_at_least_the_best_test_and_at_most_one_sum() -> None:
    # Two batches: the record is in the first or the second sum, each with probability 1/2.
    x, delta = 2.0, 1e-3

    grid = np.linspace(-6, 8, 1401)
    mass = np.outer(norm.pdf(grid), norm.pdf(grid)) * (grid[1] - grid[0]) ** 2
    ratio = np.add.outer(np.exp(x * grid), np.exp(x * grid)) / 2 * math.exp(-x * x / 2)

    def delta_at(epsilon: float) -> float:
        return float(np.sum(mass * np.maximum(ratio - math.exp(epsilon), 0.0)))

    call = Call(
        law=CallLaw.GAUSSIAN,
        scale=1 / x,
        sampling=Sampling.SHUFFLED,
        sampling_rate=0.5,
        steps=2,
    )
    low, most = limits(call, delta=delta)
    assert delta_at(low) > delta
    assert low > 0.6 * most
    assert most == pytest.approx(gaussian_epsilon(x, delta), rel=1e-3)


def test_small_noise_in_shuffled_batches_shows_in_the_largest_sum() -> None:
    shuffled = Call(
        law=CallLaw.GAUSSIAN, scale=0.3, sampling=Sampling.SHUFFLED, sampling_rate=1e-3, steps=1000
    )
    # The total of the sums is Gaussian with mu = 1 / (0.3 sqrt(1000)) = 0.1: epsilon 0.32.
    assert lower_limit([shuffled], delta=DELTA, near=5.0) > 1.0


@pytest.mark.parametrize(
    ("scale", "other"), [(1.0, 1.5), pytest.param(1.5, 1.0, marks=pytest.mark.ci)]
)
def test_noise_whose_scale_depends_on_the_data_is_below_its_divergence(
    scale: float, other: float
) -> None:
    call, delta = Call(law=CallLaw.GAUSSIAN, scale=scale, other_scale=other), 0.01

    def delta_at(epsilon: float) -> float:
        def gain(y: float, a: float, b: float) -> float:
            return float(max(norm.pdf(y, 0, a) - math.exp(epsilon) * norm.pdf(y, 0, b), 0.0))

        return max(
            2 * quad(gain, 0, 20, args=pair, limit=200)[0]
            for pair in ((scale, other), (other, scale))
        )

    low = lower_limit([call], delta=delta, near=1.0)
    assert 0 < low <= epsilon_of(delta_at, delta)
    assert [one.epsilon for one in figures([call], delta=delta)] == [None]


def test_without_delta_the_largest_losses_add_up() -> None:
    calls = [
        Call(law=CallLaw.LAPLACE, scale=10, steps=5),
        Call(law=CallLaw.EXPONENTIAL, scale=20, steps=2),
        Call(law=CallLaw.PURE, scale=1, sensitivity=0.3),
        Call(law=CallLaw.LAPLACE, scale=1, sampling_rate=0.1),
    ]
    exact = 0.5 + 0.2 + 0.3 + math.log1p(0.1 * math.expm1(1.0))
    assert limits(*calls, delta=0.0) == pytest.approx((exact, exact))
    gaussian = Call(law=CallLaw.GAUSSIAN, scale=1)
    assert lower_limit([gaussian], delta=0.0, near=1.0) == math.inf
    assert figures([gaussian], delta=0.0)[0].epsilon is None


def test_many_categories_are_exact_too() -> None:
    p, k, steps = 0.4, 4, 3
    other = (1 - p) / (k - 1)
    losses, masses = np.zeros(1), np.ones(1)
    for _ in range(steps):  # kept, moved to the other world's category, or to a third
        x = math.log(p / other)
        losses = np.concatenate([losses + x, losses - x, losses])
        masses = np.concatenate([masses * p, masses * other, masses * (k - 2) * other])

    def delta_at(epsilon: float) -> float:
        return float(np.sum(masses * -np.expm1(np.minimum(epsilon - losses, 0))))

    call = Call(law=CallLaw.RANDOMISED_RESPONSE, probability=p, categories=k, steps=steps)
    low, most = limits(call, delta=0.01)
    exact = epsilon_of(delta_at, 0.01)
    assert low <= exact <= most
    assert low == pytest.approx(exact, abs=1e-3)
    assert by("pld", call, delta=0.01) == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize(
    "call",
    [
        Call(law=CallLaw.LAPLACE, scale=1e-3, steps=10),
        Call(law=CallLaw.EXPONENTIAL, scale=1e-3),
        pytest.param(
            Call(law=CallLaw.RANDOMISED_RESPONSE, probability=1 - 1e-12, steps=50),
            marks=pytest.mark.ci,
        ),
    ],
)
def test_no_limit_exceeds_an_account_where_losses_are_extreme(call: Call) -> None:
    low, most = limits(call)
    assert 600 < low <= 700 <= most


def test_a_mechanism_of_no_known_law_proves_nothing_but_is_covered() -> None:
    call = Call(law=CallLaw.PURE, scale=10, steps=4)
    low, most = limits(call)
    assert low == 0
    assert most == pytest.approx(0.4, abs=1e-3)


CALLS = st.builds(
    Call,
    law=st.sampled_from(
        [CallLaw.LAPLACE, CallLaw.DISCRETE_LAPLACE, CallLaw.DISCRETE_GAUSSIAN, CallLaw.GAUSSIAN]
    ),
    scale=st.sampled_from([0.7, 2.0, 5.0]),
    sampling_rate=st.sampled_from([0.05, 0.5, 1.0]),
    steps=st.integers(1, 8),
)


@settings(max_examples=5, deadline=None)
@given(CALLS)
def test_more_steps_cost_more_and_more_noise_less(call: Call) -> None:
    fields = vars(call)
    more = Call(**{**fields, "steps": 3 * call.steps})
    quiet = Call(**{**fields, "scale": 3 * call.scale})
    of = [limits(one) for one in (quiet, call, more)]
    for (low, most), (next_low, next_most) in pairwise(of):
        assert low <= 1.06 * next_low + 1e-3  # the rounding of losses may differ
        assert most <= next_most + 1e-3
    assert all(low <= most for low, most in of)


TESTED = st.sampled_from(
    [
        Call(law=CallLaw.EXPONENTIAL, scale=8, steps=3),
        Call(law=CallLaw.RANDOMISED_RESPONSE, probability=0.6, steps=4),
        Call(law=CallLaw.RANDOMISED_RESPONSE, probability=0.4, categories=4, steps=2),
        Call(law=CallLaw.PURE, scale=3, steps=2),
        Call(
            law=CallLaw.GAUSSIAN,
            scale=2,
            sampling=Sampling.SHUFFLED,
            sampling_rate=0.1,
            steps=20,
        ),
    ]
)


@pytest.mark.ci
@settings(max_examples=3, deadline=None)
@given(st.lists(CALLS | TESTED, min_size=1, max_size=3))
def test_what_covers_the_calls_is_never_a_violation(calls: list[Call]) -> None:
    for figure in figures(calls, delta=DELTA):
        if figure.epsilon is not None:
            found = check_account(calls, epsilon=figure.epsilon, delta=DELTA, source="calls")
            assert found.verdict is Verdict.CONSISTENT


LAPLACE_EXAMPLE = Call(law=CallLaw.LAPLACE, scale=3, steps=40)
GAUSSIAN_EXAMPLE = Call(law=CallLaw.GAUSSIAN, scale=5)


@pytest.mark.parametrize(
    "calls",
    [
        [LAPLACE_EXAMPLE],  # dp_accounting/pld/privacy_loss_distribution_basic_example.py
        [LAPLACE_EXAMPLE, GAUSSIAN_EXAMPLE],
        pytest.param(
            [Call(law=CallLaw.GAUSSIAN, scale=1.1, sampling_rate=256 / 60000, steps=140)],
            marks=pytest.mark.ci,
        ),
        [Call(law=CallLaw.DISCRETE_LAPLACE, scale=10, sensitivity=2, steps=20)],
        [Call(law=CallLaw.RANDOMISED_RESPONSE, probability=0.4, categories=4, steps=10)],
    ],
)
@pytest.mark.parametrize("kind", [PLDAccountant, RdpAccountant])
def test_no_alarm_on_what_dp_accounting_says_itself(calls: list[Call], kind: Any) -> None:
    relation = dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    if calls[0].law is CallLaw.RANDOMISED_RESPONSE:
        relation = dp.NeighboringRelation.REPLACE_ONE
    accountant = kind(neighboring_relation=relation)
    events = [_event(one) for one in calls]
    if not all(accountant.supports(one) for one in events):
        assert kind is RdpAccountant  # it has no discrete noise
        return
    for event, one in zip(events, calls, strict=True):
        repeats = (
            one.steps if kind is PLDAccountant and one.law is CallLaw.RANDOMISED_RESPONSE else 1
        )
        for _ in range(repeats):  # see the next test
            accountant.compose(event.event if repeats > 1 else event)
    stated = float(accountant.get_epsilon(1e-6))
    found = check_account(calls, epsilon=stated, delta=1e-6, source="example")
    assert found.verdict is not Verdict.VIOLATION
    assert not found.loose


def test_dp_accounting_counts_a_repeated_randomised_response_once() -> None:
    # Of its PLDAccountant in 0.6.0: ten answers of loss ln 2 are said to cost ln 2.
    call = Call(law=CallLaw.RANDOMISED_RESPONSE, probability=2 / 3, steps=10)
    accountant = PLDAccountant(neighboring_relation=dp.NeighboringRelation.REPLACE_ONE)
    accountant.compose(_event(call))
    stated = float(accountant.get_epsilon(1e-6))
    assert stated < 0.7
    found = check_account([call], epsilon=stated, delta=1e-6, source="PLDAccountant")
    assert found.verdict is Verdict.VIOLATION
    assert found.lower == pytest.approx(10 * math.log(2), rel=0.01)


def _event(call: Call) -> dp.DpEvent:
    event: dp.DpEvent
    if call.law is CallLaw.RANDOMISED_RESPONSE:
        assert call.probability is not None
        noise = (1 - call.probability) * call.categories / (call.categories - 1)
        event = dp.dp_event.RandomizedResponseDpEvent(noise, call.categories)
    elif call.law is CallLaw.DISCRETE_LAPLACE:
        assert call.scale is not None
        event = dp.dp_event.DiscreteLaplaceDpEvent(1 / call.scale, int(call.sensitivity))
    elif call.law is CallLaw.LAPLACE:
        event = dp.LaplaceDpEvent(1 / call.ratio)
    else:
        event = dp.GaussianDpEvent(1 / call.ratio)
    if call.sampling_rate < 1:
        event = dp.PoissonSampledDpEvent(call.sampling_rate, event)
    return dp.SelfComposedDpEvent(event, call.steps)


def test_opacus_is_asked_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Accountant:
        history: tuple[Any, ...] = ()

        def get_epsilon(self, delta: float) -> float:
            [(noise, rate, steps)] = self.history
            return float(noise + rate + steps + delta)

    module = types.ModuleType("opacus.accountants")
    module.RDPAccountant = module.PRVAccountant = Accountant  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "opacus", types.ModuleType("opacus"))
    monkeypatch.setitem(sys.modules, "opacus.accountants", module)
    monkeypatch.setattr("dpaudit.account.accountants.find_spec", lambda name: name)
    call = Call(law=CallLaw.GAUSSIAN, scale=4, sensitivity=2, sampling_rate=0.5, steps=3)
    found = figures([call], delta=0.25)
    assert [one.epsilon for one in found if "opacus" in one.accountant] == [5.75, 5.75]
