"""Mixtures of normal distributions that scale a number: which component, and where in it.

Xu et al. 2019, "Modeling Tabular Data using Conditional GAN", section 4.2 (mode-specific
normalisation). A mixture that is fitted on a private table leaks, as its extremes would.
"""

from __future__ import annotations

import hashlib
import warnings
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dpaudit.plugins.protocols import FloatArray

COMPONENTS: Final = 5
"""Most components of a mixture: the length of the one-hot code that names one."""
SPREAD: Final = 4.0
"""Number of standard deviations of a component that is scaled to 1."""

_CONCENTRATION: Final = 1e-3  # weight concentration prior, so that most components get no weight
_LEAST_DEVIATION: Final = 1e-3
_SEED: Final = 0
_MOST_KEPT: Final = 4096  # mixtures: of two tables with 2,048 numeric columns

_fitted: dict[bytes, Mixture] = {}


class Component(NamedTuple):
    """A normal distribution and its share of the mixture."""

    mean: float
    deviation: float
    weight: float


class Mixture(NamedTuple):
    """At most `COMPONENTS` components, by ascending mean; those with hardly any weight as well."""

    components: tuple[Component, ...]

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.components)

    def encode(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scales values by their most probable components.

        Args:
            values: Values [n].

        Returns:
            Places in [-1, 1], [n], and one-hot codes of the components, [n, size].
        """
        means, deviations, weights = np.array(self.components).T
        scores = (values[:, None] - means) / deviations
        likely = (np.log(weights / deviations) - scores**2 / 2.0).argmax(axis=1)
        places = np.take_along_axis(scores, likely[:, None], axis=1)[:, 0] / SPREAD
        return np.clip(places, -1.0, 1.0), np.eye(self.size)[likely]

    def decode(self, places: FloatArray, slots: npt.NDArray[np.float32] | FloatArray) -> FloatArray:
        """Turns places back into values.

        Args:
            places: Places [...], clipped to [-1, 1].
            slots: One number for each component, [..., size]; the largest names it.

        Returns:
            Values [...].
        """
        means, deviations, _ = np.array(self.components).T
        chosen = slots.argmax(axis=-1)
        found: FloatArray = means[chosen] + SPREAD * deviations[chosen] * np.clip(places, -1, 1)
        return found


PUBLIC: Final = Mixture((Component(0.5, 0.5 / SPREAD, 1.0),))
"""One component that covers [0, 1] and does not depend on data."""


def fit_mixture(values: FloatArray) -> Mixture:
    """Fits a Bayesian mixture to values in [0, 1], whose order does not matter.

    Args:
        values: The values [n], finite.

    Returns:
        Its components; `PUBLIC` if there are no values.
    """
    values = np.sort(values)
    key = hashlib.blake2b(values.tobytes(), digest_size=32).digest()
    found = _fitted.get(key)
    if found is None:
        found = _fit(values)
        while len(_fitted) >= _MOST_KEPT:
            _fitted.pop(next(iter(_fitted)))  # the oldest
        _fitted[key] = found
    return found


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # cached, because this takes longer than a fit


def _fit(values: FloatArray) -> Mixture:
    distinct = len(np.unique(values))
    if distinct == 0:
        return PUBLIC
    if distinct == 1:
        return Mixture((Component(float(values[0]), _LEAST_DEVIATION, 1.0),))
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    model = BayesianGaussianMixture(
        n_components=min(COMPONENTS, distinct),
        covariance_type="diag",  # of one column, "full" is the same and slower
        weight_concentration_prior=_CONCENTRATION,
        reg_covar=_LEAST_DEVIATION**2,
        n_init=1,
        random_state=_SEED,
    )
    # Several threads would add up in another order each time.
    with _thread_pools().limit(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # as published, 100 rounds must do
        model.fit(values[:, None])
    means, deviations = model.means_[:, 0], np.sqrt(model.covariances_[:, 0])
    # One that no value is near keeps its place: a generator may choose it all the same.
    found = zip(means, deviations, model.weights_, strict=True)
    return Mixture(tuple(sorted(Component(*map(float, numbers)) for numbers in found)))
