"""The noises that decide a vote between two classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.special import ndtr

from dpaudit.account.conversion import FloatArray
from dpaudit.model.choices import Mechanism

# Probability that a label is wrong when the majority is `x` noise scales above a tie. For two
# Laplace variables this is Lemma 4 of Papernot et al. 2017, an equality for two classes.
_WRONG: Final[dict[Mechanism, Callable[[FloatArray], FloatArray]]] = {
    Mechanism.GAUSSIAN: lambda x: np.asarray(ndtr(-x)),
    Mechanism.LAPLACE: lambda x: np.asarray(0.5 * np.exp(-x)),
    Mechanism.NOISY_MAX: lambda x: np.asarray(0.5 * (1.0 + x) * np.exp(-2.0 * x)),
}

_WORDS: Final = {
    Mechanism.GAUSSIAN: "normal noise of standard deviation {:g} on the count of ones",
    Mechanism.LAPLACE: "Laplace noise of scale {:g} on the count of ones",
    Mechanism.NOISY_MAX: "Laplace noise of scale {:g} on each of the two counts",
}


def wrong_at(mechanism: Mechanism, scales: FloatArray) -> FloatArray:
    """Probability that a label contradicts the majority.

    Args:
        mechanism: Which noise decides the vote.
        scales: Distance of the majority from a tie (k/2), in scales of the noise.

    Returns:
        The probability at each distance; same shape.
    """
    return _WRONG[mechanism](scales)


def in_words(mechanism: Mechanism, scale: float) -> str:
    """The noise in words for a claim."""
    return _WORDS[mechanism].format(scale)
