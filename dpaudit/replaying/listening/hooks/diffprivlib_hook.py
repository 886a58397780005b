"""diffprivlib: each call of a mechanism's `randomise` is one step, whatever it draws inside.

Truncated and folded mechanisms call `randomise` of the plain one, then compare and mirror its
answer, which is followed as usual. Mechanisms without a known law are reported.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Tuple

import numpy as np

from .. import marks
from . import steps


def install(library: Any) -> None:
    """Replaces `randomise` of every mechanism."""
    for name in (*_NOISE, *_CHOICES, *_UNFOLLOWED):
        kind = getattr(library, name, None)
        if kind is not None and "randomise" in vars(kind):
            make = _report if name in _UNFOLLOWED else _follow
            kind.randomise = make(kind.randomise, name)


def _follow(randomise: Callable[..., Any], name: str) -> Callable[..., Any]:
    def wrapper(self: Any, value: Any = None) -> Any:
        library = functools.partial(randomise, self)
        if name in _CHOICES:
            value = marks.end_marks(value, name)
            if marks.world.natural:
                with marks.world.hushed():
                    return library(value)
        with marks.world.hushed():
            self._check_all(marks.without_marks(value))  # it refuses what the library refuses
        if name in _CHOICES:
            return _CHOICES[name](self, value)
        return _NOISE[name](self, value, library)

    return steps.intercept(randomise, wrapper)


def _report(randomise: Callable[..., Any], name: str) -> Callable[..., Any]:
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        steps.report_unfollowed(f"diffprivlib's {name} mechanism, whose law replay does not know")
        return randomise(self, *args, **kwargs)

    return steps.intercept(randomise, wrapper)


def _add_noise(
    self: Any,
    value: Any,
    library: Any,
    law: str,
    scale: float,
    shape: float = 1.0,
    other: float = 1.0,
) -> Any:
    if not scale > 0:
        return value  # with sensitivity 0 or an infinite epsilon it adds nothing
    seed = getattr(self._rng, "dpaudit_seed", None)
    return steps.add_noise(
        value,
        law,
        library=library,
        redraw=lambda: library(marks.without_marks(value)),
        scale=scale,
        shape=shape,
        other=other,
        seed=seed,
    )


def _noise_of(law: str, parameters: Callable[[Any], Tuple[float, ...]]) -> Callable[..., Any]:
    """The noise of a law, whose parameters are those of the mechanism."""
    return lambda self, value, library: _add_noise(self, value, library, law, *parameters(self))


def _laplace_bounded_noise(self: Any, value: Any, library: Any) -> Any:
    scale = self.sensitivity / self.epsilon
    end = scale * np.log1p(np.expm1(self.epsilon) / 2 / self.delta)
    return _add_noise(self, value, library, "bounded_laplace", scale, -end, end)


def _laplace_bounded_domain(self: Any, value: Any, library: Any) -> Any:
    """The answer's density is that of Laplace noise divided by its mass inside the domain."""
    if self._scale is None:
        self._scale = self._find_scale()
    value = max(min(float(marks.end_marks(value, "a mechanism")), self.upper), self.lower)
    if np.isnan(value):
        return value
    ends = self.lower - value, self.upper - value
    return _add_noise(self, value, library, "bounded_laplace", self._scale, *ends)


def _exponential(self: Any, _: Any) -> Any:
    # `_probabilities` are cumulative
    return _candidate(self, np.diff(self._probabilities, prepend=0.0))


def _permute_and_flip(self: Any, _: Any) -> Any:
    return _candidate(self, steps.flip_weights(self._probabilities))  # which are logarithms


def _candidate(self: Any, weights: Any) -> Any:
    place = steps.pick(weights)
    return self.candidates[place] if self.candidates else place


def _exponential_categorical(self: Any, value: Any) -> Any:
    targets = list(self._normalising_constant)
    return targets[steps.pick([self._get_prob(value, target) for target in targets])]


def _binary(self: Any, value: Any) -> Any:
    odds = np.exp(self.epsilon)
    keeps = min(1.0, (odds + self.delta) / (odds + 1.0))
    is_first = value == self.value0
    place = steps.pick([keeps, 1.0 - keeps] if is_first else [1.0 - keeps, keeps])
    return self.value1 if place else self.value0


_NOISE: Dict[str, Callable[[Any, Any, Any], Any]] = {
    "Laplace": _noise_of(
        "laplace", lambda of: (of.sensitivity / (of.epsilon - np.log(1 - of.delta)),)
    ),
    "Gaussian": _noise_of("gaussian", lambda of: (of._scale,)),
    "GaussianAnalytic": _noise_of("gaussian", lambda of: (of._scale,)),
    "GaussianDiscrete": _noise_of("discrete_gaussian", lambda of: (of._scale,)),
    "Geometric": _noise_of("discrete_laplace", lambda of: (of.sensitivity / of.epsilon,)),
    "LaplaceBoundedNoise": _laplace_bounded_noise,
    "LaplaceBoundedDomain": _laplace_bounded_domain,
}
_CHOICES: Dict[str, Callable[[Any, Any], Any]] = {
    "Exponential": _exponential,
    "PermuteAndFlip": _permute_and_flip,
    "ExponentialCategorical": _exponential_categorical,
    "Binary": _binary,
}
_UNFOLLOWED = ("Snapping", "Staircase", "Uniform", "Vector", "Bingham")
