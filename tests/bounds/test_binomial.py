"""The binomial distribution beside that of `scipy.stats`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.bounds import binomial


@pytest.mark.parametrize("p", [0.0, 1e-5, 0.3, 0.731, 0.999, 1.0])
@pytest.mark.parametrize("n", [1, 2, 17, 240, 3000])
def test_probabilities_and_quantiles_are_those_of_scipy(n: int, p: float) -> None:
    counts = np.arange(-2, n + 3)
    np.testing.assert_array_equal(binomial.sf(counts, n, p), binom.sf(counts, n, p))
    np.testing.assert_allclose(binomial.cdf(counts, n, p), binom.cdf(counts, n, p), atol=1e-13)
    shares = np.array([1e-9, 0.013, 0.05, 0.41, 0.8, 0.9999])
    np.testing.assert_array_equal(
        binomial.isf(shares, n, p), np.maximum(binom.isf(shares, n, p), 0)
    )
    np.testing.assert_array_equal(
        binomial.ppf(shares, n, p), np.maximum(binom.ppf(shares, n, p), 0)
    )


def test_arguments_are_broadcast() -> None:
    n, p = np.array([0, 5, 10]), np.array([[0.2], [0.6]])
    assert binomial.sf(2, n, p).shape == (2, 3)
    np.testing.assert_array_equal(binomial.sf(2, n, p)[:, 0], 0.0)
    np.testing.assert_array_equal(binomial.isf(0.05, n, p)[:, 0], 0)
