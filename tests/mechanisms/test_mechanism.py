"""Mechanisms of known privacy: found where they leak, bounded where not, told in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.bounds.clopper_pearson import clopper_pearson, event_bound, upper_limit, upper_limits
from dpaudit.errors import SettingsError
from dpaudit.mechanisms.events import Features, lowest_bits, table_of
from dpaudit.results.verdict import Verdict

DRAWS = 40_000


def run(function: Any, *inputs: Any, epsilon: float = 1.0, **settings: Any) -> Any:
    return dpaudit.mechanism(
        function, *inputs, epsilon=epsilon, **{"draws": DRAWS, "seconds": 600.0, **settings}
    )


# -- the bound -----------------------------------------------------------------------------------


def test_the_bound_of_an_event_is_the_clopper_pearson_ratio_of_its_side() -> None:
    low, high = event_bound(400, 100, 1000, delta=0.01, confidence=0.95)
    least = 1.0 - upper_limits(1000, 0.025)[600]
    most = upper_limits(1000, 0.025)[400]
    assert low == pytest.approx(math.log((least - 0.01) / upper_limits(1000, 0.025)[100]))
    assert high == pytest.approx(math.log((most - 0.01) / (1 - upper_limits(1000, 0.025)[900])))
    reference = clopper_pearson(600, 100, 1000, 1000, delta=0.01, confidence=0.95)
    assert low == pytest.approx(reference)


def test_an_event_that_never_happens_proves_nothing() -> None:
    assert event_bound(0, 0, 1000, delta=0.0, confidence=0.95)[0] == 0.0
    assert event_bound(5, 0, 1000, delta=0.5, confidence=0.95) == (0.0, 0.0)


@pytest.mark.parametrize("errors", [0, 1, 17, 50])
def test_one_upper_limit_is_that_of_the_table(errors: int) -> None:
    assert upper_limit(errors, 50, 0.05) == upper_limits(50, 0.05)[errors]


# -- known answers -------------------------------------------------------------------------------


def response(keep: float) -> Any:
    """Randomised response: epsilon is log(keep / (1 - keep))."""
    return lambda x, rng, n: np.where(rng.random(n) < keep, x, 1 - x)


def laplace(scale: float) -> Any:
    return lambda x, rng, n: np.round(x + rng.laplace(scale=scale, size=n), 3)


def gaussian(scale: float) -> Any:
    return lambda x, rng, n: np.round(x + rng.normal(scale=scale, size=n), 3)


def largest(q: Any, rng: Any, n: int) -> Any:
    noisy = np.asarray(q) + rng.laplace(scale=2.0, size=(n, len(q)))
    return noisy.argmax(axis=1)


def largest_with_its_value(q: Any, rng: Any, n: int) -> Any:
    noisy = np.round(np.asarray(q) + rng.laplace(scale=2.0, size=(n, len(q))), 3)
    return np.stack([noisy.argmax(axis=1), noisy.max(axis=1)], axis=1)


def prefix_sums(q: Any, rng: Any, n: int) -> Any:
    noisy = np.cumsum(np.asarray(q) + rng.laplace(scale=2.0, size=(n, len(q))), axis=1)
    return np.round(noisy, 3)


def sparse_vector(*, threshold_noise: bool = True, query_noise: bool = True) -> Any:
    """Above threshold, which halts at the first query above it."""

    def answer(q: Any, seed: int) -> list[bool]:
        rng = np.random.default_rng(seed)
        threshold = 1.0 + (rng.laplace(scale=2.0) if threshold_noise else 0.0)
        said: list[bool] = []
        for query in q:
            said.append(bool(query + (rng.laplace(scale=4.0) if query_noise else 0) >= threshold))
            if said[-1]:
                break
        return said

    return answer


def rarely(value: Callable[[float], float]) -> Any:
    """Laplace noise, and in 1 of 1,000 outputs another value."""

    def answer(x: float, rng: Any, n: int) -> Any:
        return np.where(rng.random(n) < 0.001, value(x), laplace(1.0)(x, rng, n))

    return answer


HONEST = {
    "rare value": (rarely(lambda x: 7.0), (0.0, 1.0), {"draws": 300_000}),
    "response": (response(math.e / (1 + math.e)), (0, 1), {}),
    "laplace": (laplace(1.0), (0.0, 1.0), {}),
    "gaussian": (gaussian(3.7304), (0.0, 1.0), {"delta": 1e-5}),
    "noisy max": (largest, (), {"length": 4}),
    "label": (lambda x, seed: "yes" if seed % 10 < (6 if x else 3) else "no", (0, 1), {}),
    "constant": (lambda x, seed: None, (0, 1), {}),
    "sparse vector": (sparse_vector(), ([1.0] * 3, [2.0] * 3), {"draws": 6000}),
}
BROKEN = {
    "response": (response(0.8), (0, 1), {}, math.log(4)),
    "laplace": (laplace(0.5), (0.0, 1.0), {}, 2.0),
    "gaussian": (gaussian(1.0), (0.0, 1.0), {"delta": 1e-5}, 4.38),
    "value of the noisy max": (largest_with_its_value, ([1.0] * 4, [2.0] * 4), {}, math.inf),
    "prefix sums": (prefix_sums, ([1.0] * 5, [2.0] * 5), {}, 2.5),
    "sparse vector": (sparse_vector(query_noise=False), (), {"length": 3, "draws": 6000}, math.inf),
    "fails": (lambda x, seed: 1 / (x + seed % 2), (0, 1), {}, math.inf),
    "fails at one input": (lambda x, seed: 1 / x, (0, 1), {}, math.inf),
    "set": (lambda x, seed: {seed % 3 + 4 * x}, (0, 1), {}, math.inf),
    "infinity": (
        lambda x, rng, n: np.full(n, np.inf) if x else rng.random(n),
        (0, 1),
        {},
        math.inf,
    ),
    "rare value": (rarely(lambda x: x + 1e-4), (0.0, 1.0), {"draws": 300_000}, math.inf),
    "rare tail": (rarely(lambda x: 90.0 * x), (0.0, 1.0), {"draws": 300_000}, math.inf),
    "rare text": (
        lambda x, rng, n: np.where(rng.random(n) < 0.001 * x, "c", "a").tolist(),
        (0, 1),
        {"draws": 300_000},
        math.inf,
    ),
    "key": (lambda x, seed: {"n": 0, **({"more": 1} if x else {})}, (0, 1), {}, math.inf),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_mechanism_is_not_accused(name: str) -> None:
    function, inputs, more = HONEST[name]
    result = run(function, *inputs, **more)
    assert result.verdict is Verdict.CONSISTENT, str(result)
    result.assert_no_violation()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_mechanism_is_found_below_its_true_epsilon(name: str) -> None:
    function, inputs, more, true = BROKEN[name]
    result = run(function, *inputs, **more)
    assert result.verdict is Verdict.VIOLATION, str(result)
    assert 1.0 < result.proved < true
    with pytest.raises(AssertionError, match=r"^VIOLATION"):
        result.assert_no_violation()


def test_bounds_at_exactly_the_claim_exceed_it_at_most_as_often_as_they_may() -> None:
    keep = math.e / (1 + math.e)
    results = [run(response(keep), 0, 1, draws=2000, seed=seed) for seed in range(40)]
    assert sum(one.verdict is Verdict.VIOLATION for one in results) <= 5  # 1.6 % beyond, at 5 %
    assert all(one.interval[0] <= one.interval[1] for one in results)


def test_keyword_parameters_keep_their_defaults_or_those_of_a_partial_function() -> None:
    def kept(x: int, rng: Any, n: int, *, keep: float = 0.5) -> Any:
        return response(keep)(x, rng, n)

    assert run(kept, 0, 1).verdict is Verdict.CONSISTENT
    assert run(partial(kept, keep=0.9), 0, 1).verdict is Verdict.VIOLATION


# -- what an event says --------------------------------------------------------------------------


def test_the_event_is_told_in_words_and_a_recurring_value_is_a_flag() -> None:
    def flagged(x: float, rng: Any, n: int) -> Any:
        noisy = np.round(rng.laplace(scale=9.0, size=n), 2)
        return np.where(rng.random(n) < (0.2 if x else 0.01), -1000.0, noisy)

    result = run(flagged, 0.0, 1.0)
    assert result.event == "the output is -1000"
    assert result.inputs == ("1.0", "0.0")
    assert result.counts[0] > 10 * result.counts[1]


def test_a_leak_of_floating_point_is_said_to_be_one() -> None:
    def plain(x: float, rng: Any, n: int) -> Any:
        return x + rng.laplace(size=n)

    result = run(plain, 0.0, 1.0)
    assert result.is_floating_point
    assert "in floating point" in str(result)
    assert "the lowest bit of the output" in result.event
    assert run(plain, 0.0, 1.0, ignore_bits=True).verdict is Verdict.CONSISTENT
    assert run(lambda x, rng, n: np.round(plain(x, rng, n), 2), 0.0, 1.0).proved < 1.0


def test_the_lowest_bit_of_a_number() -> None:
    found = lowest_bits(np.array([1.0, 1.5, 0.0, np.nan, np.inf, 3 * 2.0**-60, 6.0]))
    assert found.tolist() == [0.0, -1.0, 0.0, 0.0, 0.0, -60.0, 1.0]


def test_outputs_of_any_kind_become_a_table() -> None:
    assert list(table_of([1.0, 2.0])) == ["the output"]
    assert list(table_of(np.zeros((2, 3)))) == ["output 1", "output 2", "output 3"]
    mixed = table_of([{"a": 1, "b": [True, "x"]}, {"a": None}])
    assert list(mixed) == ["output 'a'", "output 'b'[0]", "output 'b'[1]"]
    assert isinstance(table_of(["no", "yes"]), pd.DataFrame)
    features = Features.of(table_of([[True], [True, False]] * 50))
    assert "the number of outputs True" in features.named(table_of([[True, False]]))


def test_no_part_of_an_output_is_lost_in_the_table() -> None:
    whole = table_of([10**20 + 1, 10**20 + 2])
    assert whole["the last digits of the output"].tolist() == [1, 2]
    assert list(table_of(np.array([1j, 2.0]))) == ["output 'real'", "output 'imaginary'"]
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    assert table_of(masked)["the output"].isna().tolist() == [True, False]
    pairs = np.array([(0.5, 1), (0.7, 2)], dtype=[("a", float), ("b", int)])
    assert table_of(pairs)["output 'b'"].tolist() == [1, 2]
    assert table_of(pd.DataFrame({"a": ["u", "v"]}))["output 'a'"].tolist() == ["u", "v"]


def test_the_same_seed_gives_the_same_result() -> None:
    first, again = (run(laplace(0.7), 0.0, 1.0, seed=3) for _ in range(2))
    assert (first.event, first.counts) == (again.event, again.counts)


# -- wrong use -----------------------------------------------------------------------------------


def broken(x: Any, seed: int) -> Any:
    raise ValueError("no such thing")


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (laplace(1.0), {}, "name both inputs"),
        (laplace(1.0), {"x": 0.0, "x_prime": 1.0, "length": 3}, "leave out `x`"),
        (laplace(1.0), {"length": 0}, "at least 1"),
        (laplace(1.0), {"x": 0.0, "x_prime": 1.0, "draws": 10}, "of at least 2,000, got 10"),
        (laplace(1.0), {"x": 0.0, "x_prime": 1.0, "confidence": 2.0}, "confidence"),
        (lambda: 0, {"x": 0.0, "x_prime": 1.0}, r"must take \(x, seed\)"),
        (broken, {"x": 0.0, "x_prime": 1.0}, "fails whatever it is given: raises ValueError"),
        (lambda x, rng, n: [0] * 3, {"x": 0.0, "x_prime": 1.0}, "gave 3 outputs"),
        (lambda x, rng, n: 1 / 0, {"x": 0.0, "x_prime": 1.0}, "ZeroDivisionError"),
        ("laplace", {"x": 0.0, "x_prime": 1.0}, "must be a function"),
    ],
)
def test_wrong_use_is_refused(function: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        run(function, **given)
