"""Answers that are read off the release: what is found, what is proved, and what must not be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from dpaudit.model.claim import GaussianClaim, Neighbours, PrivacyClaim
from dpaudit.replaying.laws import DiscreteLaplace, Gaussian, Laplace
from dpaudit.replaying.reading import (
    Answer,
    AnswerReading,
    Proof,
    ReadThreshold,
    bound_of,
    find_readings,
    prove,
)
from dpaudit.replaying.release import Number
from dpaudit.replaying.transcript import Site
from pretended_fits import Draws, PretendedFits

LINE = Site("lib.py", 1, "fit")
CLAIM = PrivacyClaim(epsilon=1.0, delta=0.0, neighbours=Neighbours.ADD_REMOVE, source="test")


def read_off(
    mechanism: Callable[[Draws], Mapping[str, Any]], *, budget: int = 400, seed: int = 0
) -> tuple[list[AnswerReading], Proof | None]:
    """What is found and proved of a mechanism that claims epsilon 1."""
    fits = PretendedFits(mechanism, epsilon=1.0, seed=seed)
    pilots = [fits.pair(number) for number in range(3)]
    readings = find_readings(fits, pilots, frozenset())
    draws = pilots[-1].draws
    proof = prove(fits, readings, draws, alpha=0.05, budget=budget) if readings else None
    return readings, proof


def counts(draws: Draws, scale: float = 0.5) -> Any:
    """Three noisy counts, of which the record moves the second by 1."""
    return draws.add([5, 7, 3], [5, 6, 3], scale=scale)


LEAKS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda h: h,
    "clipped and cut off": lambda h: np.where(np.maximum(h, 0) < 4, 0, h),
    "rounded": np.rint,
    "logarithm": lambda h: np.log(np.maximum(h, 1e-3)),
    "negative": lambda h: -3 * h + 7,
}


@pytest.mark.parametrize("change", LEAKS.values(), ids=LEAKS)
def test_a_number_that_follows_one_answer_is_read_and_its_leak_proved(change: Any) -> None:
    readings, proof = read_off(lambda draws: {"model.h": change(counts(draws))})
    assert [str(one.number) for one in readings] == ["model.h[1]"]
    assert proof is not None
    assert 1.0 < proof.bound <= 2.0
    assert proof.fits <= 240


def test_an_answer_at_the_claim_is_read_and_proves_nothing() -> None:
    readings, proof = read_off(lambda draws: {"h": counts(draws, 1.0)})
    assert readings
    assert proof is None


def masked(draws: Draws) -> Any:
    """A remainder of one noisy count: true epsilon is far below that of the count."""
    return counts(draws)[1] % 1.0


HONEST: dict[str, Callable[[Draws], Any]] = {
    "median of copies": lambda draws: np.median(draws.add([10.0] * 9, [9.0] * 9, scale=2.0)),
    "largest": lambda draws: counts(draws).max(),
    "sum with other noise": lambda draws: counts(draws).sum(),
    "share": lambda draws: np.maximum(counts(draws), 0.1)[1] / np.maximum(counts(draws), 0.1).sum(),
    "remainder": masked,
    "cosine": lambda draws: math.cos(counts(draws)[1]),
    "more noise": lambda draws: counts(draws)[1] + draws.rng.laplace(scale=2.0),
    "one-time pad": lambda draws: float(counts(draws)[1] > 6.5) != (draws.rng.random() < 0.5),
    "sub-sample": lambda draws: counts(draws)[1] if draws.rng.random() < 0.7 else 0.0,
}


@pytest.mark.parametrize("release", HONEST.values(), ids=HONEST)
def test_a_number_of_more_than_one_answer_is_not_read(release: Callable[[Draws], Any]) -> None:
    readings, proof = read_off(lambda draws: {"m": [float(release(draws))]})
    assert readings == []
    assert proof is None


def test_what_seldom_hides_the_answer_is_caught_by_a_natural_fit() -> None:
    """A sub-sample of rate .95 may pass all 39 fits of the search; 120 natural ones it does not."""
    proofs = []
    for seed in range(12):

        def rare(draws: Draws) -> Mapping[str, Any]:
            number = counts(draws, 0.25)[1]
            return {"m": [number if draws.rng.random() < 0.95 else draws.rng.laplace() + 6.0]}

        proofs.append(read_off(rare, seed=seed)[1])
    assert proofs.count(None) == len(proofs)


def test_a_lost_draw_is_not_read() -> None:
    """A draw that was compared before it met the data may have been accepted for its value."""
    readings, _ = read_off(lambda draws: {"h": draws.add([1.0], [0.0], scale=0.1, lost=True)})
    assert readings == []


def test_a_law_that_changes_from_fit_to_fit_is_not_read() -> None:
    def mixed(draws: Draws) -> Mapping[str, Any]:
        return {"h": draws.add([1.0], [0.0], scale=0.1 if draws.rng.random() < 0.5 else 0.2)}

    assert read_off(mixed)[0] == []


def test_draws_that_are_not_equally_many_are_not_read() -> None:
    def repeated(draws: Draws) -> Mapping[str, Any]:
        answer = draws.add([1.0], [0.0], scale=0.1)
        while draws.rng.random() < 0.5:
            draws.add([0.0], [0.0], scale=1.0, line=2)
        return {"h": answer}

    assert read_off(repeated)[0] == []


def test_two_answers_prove_more_than_one() -> None:
    def both(draws: Draws) -> Mapping[str, Any]:
        return {"h": draws.add([5.0, 3.0], [4.0, 2.0], scale=0.6)}

    readings, proof = read_off(both, budget=700)
    assert len(readings) == 2
    assert proof is not None
    assert len(proof.parts) == 2
    assert 1.0 < proof.bound <= 2 / 0.6


@pytest.mark.parametrize(
    ("epsilon", "fits", "bound"), [(2.23, 39, 1.2), (1.33, 100, 1.02), (1.1, 600, 1.04)]
)
def test_the_least_leaks_that_are_shown(epsilon: float, fits: int, bound: float) -> None:
    law = Laplace(np.asarray(1 / epsilon))
    answer = Answer(("answer", LINE, 1), 0, 1, LINE, (1.0, 0.0), (law, law))
    reading = AnswerReading(answer, Number("h", 0), True)
    found = max(
        bound_of(
            [ReadThreshold(reading, cut - 0.005, cut + 0.005, 0.0, True)],
            CLAIM,
            fits=fits,
            alpha=0.05,
        )
        for cut in np.linspace(-1, 3, 200)
    )
    assert bound <= found < epsilon


@pytest.mark.parametrize("kind", [Laplace, Gaussian, DiscreteLaplace])
def test_the_bound_is_below_the_truth_for_every_threshold(kind: Any) -> None:
    law = kind(np.asarray(1.0))
    answer = Answer(("answer", LINE, 1), 0, 1, LINE, (1.0, 0.0), (law, law))
    truth = {Laplace: 1.0, DiscreteLaplace: 1.0, Gaussian: math.inf}[kind]
    for is_above in (True, False):
        for cut in np.arange(-6.0, 7.0):
            part = ReadThreshold(
                AnswerReading(answer, Number("h", 0), True), cut, cut + 1, 0.0, is_above
            )
            assert bound_of([part], CLAIM, fits=10_000, alpha=0.05) <= truth


def test_a_claim_in_mu_has_its_own_bound() -> None:
    law = Gaussian(np.asarray(0.5))
    answer = Answer(("answer", LINE, 1), 0, 1, LINE, (1.0, 0.0), (law, law))
    part = ReadThreshold(AnswerReading(answer, Number("h", 0), True), 0.499, 0.501, 0.0, True)
    claim = GaussianClaim(mu=1.0, neighbours=Neighbours.ADD_REMOVE)
    assert 1.0 < bound_of([part], claim, fits=300, alpha=0.05) < 2.0


@pytest.mark.slow
def test_at_the_claim_no_more_readings_prove_a_leak_than_may() -> None:
    """Just above what a bound of 39 fits could show, at random thresholds of the search."""
    proved = sum(
        read_off(lambda draws: {"h": counts(draws, 1.0)}, seed=seed)[1] is not None
        for seed in range(500)
    )
    assert proved <= 25
