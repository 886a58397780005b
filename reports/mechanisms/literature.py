"""Mechanisms of the literature on testing differential privacy, broken and honest.

After StatDP (Ding et al. 2018), DP-Sniper (Bichsel et al. 2021) and DP-Auditorium (Kong et al.
2024), in our own words. Numbers are rounded where the bits of floating-point noise are not the leak
that is planted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Draws = Callable[[Any, np.random.Generator, int], Numbers]

BELOW, HALTED = -1.0, -2.0
"""What a sparse vector says of a query below the threshold, and after it halted."""
VALUES: Final = 4
"""Values that a RAPPOR encodes, a bit for each."""
LARGEST: Final = 5
"""Largest count that a truncated geometric mechanism releases."""


class Mechanism(NamedTuple):
    """A mechanism and what is claimed of it.

    Attributes:
        what: The mechanism, in the table.
        function: Its draws.
        is_broken: Whether it breaks the claim.
        true: What it really spends, in the table.
        inputs: Two neighbouring inputs; empty if `length` makes them.
        length: Number of queries; None if there are inputs.
        epsilon: The claim.
        delta: The claim's delta.
    """

    what: str
    function: Draws
    is_broken: bool
    true: str
    inputs: tuple[Any, ...] = ()
    length: int | None = None
    epsilon: float = 1.0
    delta: float = 0.0


def _noisy(queries: Sequence[float], rng: np.random.Generator, n: int, scale: float) -> Numbers:
    return np.asarray(queries) + rng.laplace(scale=scale, size=(n, len(queries)))


def noisy_argmax(
    queries: Sequence[float], rng: np.random.Generator, n: int, *, scale: float
) -> Numbers:
    """The place of the largest noisy answer."""
    return _noisy(queries, rng, n, scale).argmax(axis=1).astype(np.float64)


def noisy_max_value(
    queries: Sequence[float], rng: np.random.Generator, n: int, *, scale: float
) -> Numbers:
    """The largest noisy answer itself, which shifts with all answers."""
    return np.asarray(_noisy(queries, rng, n, scale).max(axis=1).round(3))


def noisy_argmax_with_gap(
    queries: Sequence[float], rng: np.random.Generator, n: int, *, scale: float
) -> Numbers:
    """The place, and its lead over the second (Ding et al. 2019: the gap is free)."""
    noisy = _noisy(queries, rng, n, scale)
    ordered = np.sort(noisy, axis=1)
    lead = (ordered[:, -1] - ordered[:, -2]).round(3)
    return np.stack([noisy.argmax(axis=1), lead], axis=1)


def sparse_vector(
    queries: Sequence[float],
    rng: np.random.Generator,
    n: int,
    *,
    threshold: float,
    query: float,
    most: int | None = None,
    refreshed: float | None = None,
    gives_values: bool = False,
) -> Numbers:
    """Which queries lie above 1, answered in turn.

    Args:
        queries: The answers.
        rng: The noise.
        n: The number of draws.
        threshold: Scale of the threshold's noise.
        query: Scale of the queries' noise; 0 for none.
        most: Queries above the threshold after which it halts; None for no limit.
        refreshed: Scale of the threshold's new noise after each of them; None to keep the old.
        gives_values: Whether a query above is released with its noisy value.
    """
    noisy = _noisy(queries, rng, n, query) if query else np.tile(np.asarray(queries), (n, 1))
    limit = 1.0 + rng.laplace(scale=threshold, size=n)
    said = np.full(noisy.shape, HALTED)
    left = np.full(n, len(queries) if most is None else most)
    for at, answers in enumerate(noisy.T):
        is_running = left > 0
        is_above = is_running & (answers >= limit)
        said[is_running, at] = BELOW
        said[is_above, at] = answers[is_above].round(3) if gives_values else 1.0
        left[is_above] -= 1
        if refreshed is not None:
            limit[is_above] = 1.0 + rng.laplace(scale=refreshed, size=is_above.sum())
    return said


def histogram(
    counts: Sequence[float], rng: np.random.Generator, n: int, *, scale: float
) -> Numbers:
    """Noisy counts."""
    return np.asarray(_noisy(counts, rng, n, scale).round(3))


def prefix_sums(
    counts: Sequence[float], rng: np.random.Generator, n: int, *, is_noisy_first: bool
) -> Numbers:
    """Sums of the first counts, from noisy counts or with noise of their own for one change."""
    if is_noisy_first:
        return np.asarray(_noisy(counts, rng, n, 1.0).cumsum(axis=1).round(3))
    return histogram(np.cumsum(counts).tolist(), rng, n, scale=1.0)


def _keeps(epsilon: float) -> float:
    """How often randomised response keeps a bit."""
    return 1.0 / (1.0 + math.exp(-epsilon))


def response(
    bit: int, rng: np.random.Generator, n: int, *, epsilon: float = 1.0, shown: float = 0.0
) -> Numbers:
    """Randomised response of a bit that with probability `shown` is released as it is."""
    is_kept = rng.random(n) < shown + (1.0 - shown) * _keeps(epsilon)
    return np.where(is_kept, bit, 1.0 - bit)


def one_time_rappor(
    value: int, rng: np.random.Generator, n: int, *, epsilon_of_bit: float
) -> Numbers:
    """The permanent response: a bit for each value, of which two differ for two values."""
    bits = np.arange(VALUES) == value
    is_kept = rng.random((n, VALUES)) < _keeps(epsilon_of_bit)
    return np.where(is_kept, bits, ~bits).astype(np.float64)


def rappor(value: int, rng: np.random.Generator, n: int) -> Numbers:
    """A permanent response and one report of it, whose bits are 1 in 3 or 1 of 4 cases."""
    often, seldom = 0.75, 0.25
    share = (often - _keeps(0.5)) / (often - seldom)  # coins in place of bits, half of them 1
    bits = np.where(
        rng.random((n, VALUES)) < 2.0 * share,
        rng.random((n, VALUES)) < 0.5,
        np.arange(VALUES) == value,
    )
    return (rng.random(bits.shape) < np.where(bits, often, seldom)).astype(np.float64)


def geometric(
    count: int, rng: np.random.Generator, n: int, *, epsilon: float = 1.0, redraws: bool = False
) -> Numbers:
    """Two-sided geometric noise, moved to the nearest public bound or redrawn if beyond one."""
    values = np.arange(-60, 61)
    weights = np.exp(-epsilon * np.abs(values))
    if redraws:
        outputs = np.arange(LARGEST + 1)
        weights = np.exp(-epsilon * np.abs(outputs - count))
        return rng.choice(outputs, p=weights / weights.sum(), size=n).astype(np.float64)
    noise = rng.choice(values, p=weights / weights.sum(), size=n)
    return np.clip(count + noise, 0, LARGEST).astype(np.float64)


def laplace(
    answer: float, rng: np.random.Generator, n: int, *, digits: int | None = None
) -> Numbers:
    """An answer with Laplace noise, as the floating-point sum or rounded to a public grid."""
    noisy = answer + rng.laplace(size=n)
    return noisy if digits is None else np.asarray(noisy.round(digits))


_QUERIES = 6
_COUNTS = ([1.0] * 5, [2.0, *[1.0] * 4])

MECHANISMS: Final = (
    Mechanism(
        "value of the noisy max, scale 2, five queries",
        partial(noisy_max_value, scale=2.0),
        True,
        "2.5",
        length=5,
    ),
    Mechanism(
        "noisy max with half of the noise, ten queries",
        partial(noisy_argmax, scale=1.0),
        True,
        "at most 2",
        length=10,
    ),
    Mechanism(
        "sparse vector 3: gives the noisy value",
        partial(sparse_vector, threshold=2.0, query=2.0, most=1, gives_values=True),
        True,
        "no limit",
        length=_QUERIES,
    ),
    Mechanism(
        "sparse vector 4: noise of the queries does not grow with their number",
        partial(sparse_vector, threshold=4.0, query=4.0 / 3.0, most=3),
        True,
        "at most 4.75",
        length=_QUERIES,
    ),
    Mechanism(
        "sparse vector 5: no noise on queries",
        partial(sparse_vector, threshold=2.0, query=0.0),
        True,
        "no limit",
        length=_QUERIES,
    ),
    Mechanism(
        "sparse vector 6: never halts",
        partial(sparse_vector, threshold=2.0, query=2.0),
        True,
        "no limit",
        length=_QUERIES,
    ),
    Mechanism(
        "histogram with epsilon as its scale, at epsilon 0.5",
        partial(histogram, scale=0.5),
        True,
        "2",
        _COUNTS,
        epsilon=0.5,
    ),
    Mechanism(
        "prefix sums with noise for one of five",
        partial(prefix_sums, is_noisy_first=False),
        True,
        "5",
        _COUNTS,
    ),
    Mechanism(
        "one-time RAPPOR charged for one of two bits",
        partial(one_time_rappor, epsilon_of_bit=1.0),
        True,
        "2",
        (0, 1),
    ),
    Mechanism(
        "geometric, redrawn until within bounds",
        partial(geometric, redraws=True),
        True,
        "1.21",
        (0, 1),
    ),
    Mechanism(
        "Laplace as a floating-point sum", laplace, True, "no limit, in its bits", (0.0, 1.0)
    ),
    Mechanism("noisy max", partial(noisy_argmax, scale=2.0), False, "at most 1", length=10),
    Mechanism(
        "noisy max with its gap",
        partial(noisy_argmax_with_gap, scale=2.0),
        False,
        "at most 1",
        length=5,
    ),
    Mechanism(
        "sparse vector 1",
        partial(sparse_vector, threshold=2.0, query=4.0, most=1),
        False,
        "at most 1",
        length=_QUERIES,
    ),
    Mechanism(
        "sparse vector 2: the threshold's noise is renewed",
        partial(sparse_vector, threshold=4.0, query=8.0, most=2, refreshed=4.0),
        False,
        "at most 1",
        length=_QUERIES,
    ),
    Mechanism("histogram", partial(histogram, scale=1.0), False, "1", _COUNTS),
    Mechanism(
        "prefix sums of noisy counts",
        partial(prefix_sums, is_noisy_first=True),
        False,
        "1",
        _COUNTS,
    ),
    Mechanism(
        "one-time RAPPOR",
        partial(one_time_rappor, epsilon_of_bit=0.5),
        False,
        "1",
        (0, 1),
    ),
    Mechanism("RAPPOR, one report", rappor, False, "1", (0, 1)),
    Mechanism("geometric, moved to the bounds", geometric, False, "1", (0, 1)),
    Mechanism(
        "Laplace on a grid of 0.001",
        partial(laplace, digits=3),
        False,
        "1",
        (0.0, 1.0),
    ),
)
"""Broken ones first. True values of broken ones are suprema over events, known or bounded."""

EXACT: Final = (
    Mechanism("randomised response", response, False, "1", (0, 1)),
    Mechanism(
        "randomised response shown in 5 of 100 cases",
        partial(response, shown=0.05),
        False,
        "1",
        (0, 1),
        delta=0.05,
    ),
    Mechanism("geometric, moved to the bounds", geometric, False, "1", (0, 1)),
    Mechanism(
        "one-time RAPPOR",
        partial(one_time_rappor, epsilon_of_bit=0.5),
        False,
        "1",
        (0, 1),
    ),
)
"""Mechanisms of which an event meets the claim exactly."""
