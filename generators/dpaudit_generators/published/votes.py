"""From teachers' votes to labels, with the noise that PATE prescribes or another."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np

from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.plugins.recorder import NoiseOn
from dpaudit.seeds import rng_of
from dpaudit_generators.published.switches import Switch

_TIE: Final = 0.5


class Labels(NamedTuple):
    """Released labels of M models.

    Attributes:
        values: Labels 0 or 1, [M, n].
        noise: The draws that hide the votes, [M, draws].
        on: What the noise was added to.
    """

    values: IntArray
    noise: FloatArray
    on: NoiseOn


class Labeller:
    """Draws noisy labels for M models, each from a stream of its own.

    Without switches, a label is the larger of two counts, each with Laplace noise of scale
    1 / gamma (Papernot et al. 2017, section 2.1).

    Args:
        seeds: One for each model; None means the system's entropy.
        teachers: Number k of teachers.
        gamma: Inverse noise scale.
        deviation: Standard deviation of normal noise on labels.
        switches: Deviations.
    """

    def __init__(
        self,
        seeds: Sequence[int | None],
        *,
        teachers: int,
        gamma: float,
        deviation: float,
        switches: Collection[Switch],
    ) -> None:
        self._rngs = [rng_of(seed, "label noise") for seed in seeds]
        self._k = teachers
        self._scale = gamma if Switch.NOISE_SCALE_INVERTED in switches else 1.0 / gamma
        self._deviation = deviation
        self._normal = Switch.NOISE_GAUSSIAN_ON_LABELS in switches
        self._one = Switch.ONE_NOISE_CHARGED_AS_TWO in switches

    def label(self, ones: IntArray) -> Labels:
        """Draws labels.

        Args:
            ones: How many teachers voted 1 [M, n].
        """
        n = ones.shape[1]
        if self._normal:
            noise = np.stack([self._deviation * rng.standard_normal(n) for rng in self._rngs])
            noisy = (ones > self._k / 2) + noise
            return Labels((noisy > _TIE).astype(np.int64), noise, NoiseOn.LABELS)
        draws = n if self._one else 2 * n
        noise = np.stack([rng.laplace(scale=self._scale, size=draws) for rng in self._rngs])
        if self._one:
            chosen = ones + noise > self._k / 2
        else:
            chosen = ones + noise[:, :n] > (self._k - ones) + noise[:, n:]
        return Labels(chosen.astype(np.int64), noise, NoiseOn.VOTES)
