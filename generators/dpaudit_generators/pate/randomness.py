"""Random bits for released labels, and integer noise drawn exactly from them.

Noise for several counts is discrete Laplace or discrete Gaussian, by the samplers of Canonne,
Kamath and Steinke 2020, "The Discrete Gaussian for Differential Privacy". They use only integer
arithmetic on uniform integers, so the noise has exactly the distribution that is accounted for.
Floating-point noise does not, and its low bits can betray the count (Mironov 2012). The bounds for
continuous noise hold for discrete noise as well. How long a draw takes depends on the noise: draw
where nobody times it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dpaudit.seeds import rng_of

WordArray: TypeAlias = npt.NDArray[np.uint64]


class RandomBits:
    """A source of uniform integers.

    Args:
        seed: For audits; None takes every bit from the operating system's entropy.
        purpose: Names the stream of a seed.
    """

    def __init__(self, seed: int | None, purpose: str) -> None:
        self._bytes: Callable[[int], bytes] = secrets.token_bytes
        self._words: Callable[[int], WordArray] = _secret_words
        if seed is not None:
            rng = rng_of(seed, purpose)
            self._bytes, self._words = rng.bytes, rng.bit_generator.random_raw

    def words(self, n: int) -> WordArray:
        """Draws uniform 64-bit integers [n]."""
        return self._words(n)

    def below(self, bound: int) -> int:
        """Draws a uniform integer in [0, bound), of any size; by rejection, hence unbiased."""
        bits = (bound - 1).bit_length()
        size = (bits + 7) // 8
        while True:
            drawn = int.from_bytes(self._bytes(size), "little") >> (8 * size - bits)
            if drawn < bound:
                return drawn


def _secret_words(n: int) -> WordArray:
    return np.frombuffer(secrets.token_bytes(8 * n), dtype=np.uint64)


def discrete_laplace(scale: float | Fraction, bits: RandomBits) -> int:
    """Draws x with probability proportional to exp(-abs(x) / scale) (Algorithm 2 there).

    Args:
        scale: Positive and finite; a float stands for its exact binary fraction.
        bits: The source.
    """
    top, bottom = scale.as_integer_ratio()
    while True:
        rest = bits.below(top)
        if not _bernoulli_exp(rest, top, bits):
            continue
        whole = 0
        while _bernoulli_exp(1, 1, bits):
            whole += 1
        size = (rest + top * whole) // bottom
        negative = bits.below(2) == 1
        if not (negative and size == 0):
            return -size if negative else size


def discrete_gaussian(scale: float | Fraction, bits: RandomBits) -> int:
    """Draws x with probability proportional to exp(-x**2 / (2 scale**2)) (Algorithm 3 there).

    Args:
        scale: Sigma, positive and finite; a float stands for its exact binary fraction.
        bits: The source.
    """
    top, bottom = scale.as_integer_ratio()
    top, bottom = top * top, bottom * bottom  # sigma squared
    spread = int(scale) + 1
    while True:
        x = discrete_laplace(spread, bits)
        # Accept with probability exp(-(|x| - sigma**2 / spread)**2 / (2 sigma**2)).
        distance = abs(x) * bottom * spread - top
        if _bernoulli_exp(distance * distance, 2 * top * bottom * spread * spread, bits):
            return x


def _bernoulli_exp(top: int, bottom: int, bits: RandomBits) -> bool:
    """True with probability exp(-top / bottom), a fraction of at least 0 (Algorithm 1 there)."""
    while top > bottom:
        if not _bernoulli_exp(1, 1, bits):
            return False
        top -= bottom
    terms = 1
    while bits.below(bottom * terms) < top:
        terms += 1
    return terms % 2 == 1
