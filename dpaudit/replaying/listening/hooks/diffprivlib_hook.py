"""diffprivlib: each call of a mechanism's `randomise` is one step, whatever it draws inside.

Truncated and folded mechanisms call `randomise` of the plain one, then compare and mirror its
answer, which is followed as usual. Mechanisms without a known law are reported.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import numpy as np

from .. import marks
from . import steps


def install(library: Any) -> None:
    """Replaces `randomise` of every mechanism."""
    for name in (*_MECHANISMS, *_UNFOLLOWED):
        kind = getattr(library, name, None)
        if kind is not None and "randomise" in vars(kind):
            known = _MECHANISMS.get(name)
            plain = kind.randomise
            kind.randomise = _told(plain, name) if known is None else _heard(plain, known)


def _heard(
    randomise: Callable[..., Any], replacement: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    def checked(self: Any, value: Any = None) -> Any:
        with marks.world.hushed():
            given = marks.plain(value)[()] if isinstance(value, marks.MarkedNumber) else value
            self._check_all(given)  # it refuses what the library refuses
        return replacement(self, value)

    return steps.heard(randomise, checked)


def _told(randomise: Callable[..., Any], name: str) -> Callable[..., Any]:
    def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        steps.unfollowed(f"diffprivlib's {name} mechanism, whose law replay does not know")
        return randomise(self, *args, **kwargs)

    return steps.heard(randomise, told)


def _noisy(
    self: Any, value: Any, law: str, scale: float, shape: float = 1.0, other: float = 1.0
) -> Any:
    if not scale > 0:
        return value  # with sensitivity 0 or an infinite epsilon it adds nothing
    seed = getattr(self._rng, "dpaudit_seed", None)
    return steps.added(value, law, scale=scale, shape=shape, other=other, seed=seed)


def _of_law(law: str, parameters: Callable[[Any], Tuple[float, ...]]) -> Callable[..., Any]:
    """The noise of a law, whose parameters are those of the mechanism."""
    return lambda mechanism, value: _noisy(mechanism, value, law, *parameters(mechanism))


def _laplace_bounded_noise(self: Any, value: Any) -> Any:
    scale = self.sensitivity / self.epsilon
    end = scale * np.log1p(np.expm1(self.epsilon) / 2 / self.delta)
    return _noisy(self, value, "bounded_laplace", scale, -end, end)


def _laplace_bounded_domain(self: Any, value: Any) -> Any:
    """The answer's density is that of Laplace noise divided by its mass inside the domain."""
    if isinstance(value, marks.MarkedNumber):
        steps.unfollowed("a noisy answer as the value of diffprivlib's LaplaceBoundedDomain")
    if self._scale is None:
        self._scale = self._find_scale()
    value = max(min(float(value), self.upper), self.lower)
    if np.isnan(value):
        return value
    ends = self.lower - value, self.upper - value
    return _noisy(self, value, "bounded_laplace", self._scale, *ends)


def _exponential(self: Any, _: Any) -> Any:
    # `_probabilities` are cumulative
    return _candidate(self, np.diff(self._probabilities, prepend=0.0))


def _permute_and_flip(self: Any, _: Any) -> Any:
    return _candidate(self, steps.flip_weights(self._probabilities))  # which are logarithms


def _candidate(self: Any, weights: Any) -> Any:
    place = steps.picked(weights)
    return self.candidates[place] if self.candidates else place


def _exponential_categorical(self: Any, value: Any) -> Any:
    targets = list(self._normalising_constant)
    return targets[steps.picked([self._get_prob(value, one) for one in targets])]


def _binary(self: Any, value: Any) -> Any:
    odds = np.exp(self.epsilon)
    keeps = min(1.0, (odds + self.delta) / (odds + 1.0))
    is_first = value == self.value0
    place = steps.picked([keeps, 1.0 - keeps] if is_first else [1.0 - keeps, keeps])
    return self.value1 if place else self.value0


_MECHANISMS: Dict[str, Callable[[Any, Any], Any]] = {
    "Laplace": _of_law(
        "laplace", lambda of: (of.sensitivity / (of.epsilon - np.log(1 - of.delta)),)
    ),
    "Gaussian": _of_law("gaussian", lambda of: (of._scale,)),
    "GaussianAnalytic": _of_law("gaussian", lambda of: (of._scale,)),
    "GaussianDiscrete": _of_law("discrete_gaussian", lambda of: (of._scale,)),
    "Geometric": _of_law("discrete_laplace", lambda of: (of.sensitivity / of.epsilon,)),
    "Staircase": _of_law("staircase", lambda of: (of.sensitivity, of.epsilon, of.gamma)),
    "Uniform": _of_law("uniform", lambda of: (of.sensitivity / of.delta / 2,)),
    "LaplaceBoundedNoise": _laplace_bounded_noise,
    "LaplaceBoundedDomain": _laplace_bounded_domain,
    "Exponential": _exponential,
    "PermuteAndFlip": _permute_and_flip,
    "ExponentialCategorical": _exponential_categorical,
    "Binary": _binary,
}
_UNFOLLOWED = ("Snapping", "Vector", "Bingham")
