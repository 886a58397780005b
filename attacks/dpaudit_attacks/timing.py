"""The attack on what a training costs: time and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dpaudit.plugins.access import COSTS, Disclosure
from dpaudit.plugins.protocols import THE_TRIAL, FeatureName, FloatArray, GameView
from dpaudit_attacks.models import DisclosureAttack

_LEAST: Final = np.array([1e-6, 1e-6, 4096.0] * 2)
"""Amounts too small to matter: a microsecond, a page of memory."""


@dataclass(frozen=True, kw_only=True)
class Timing(DisclosureAttack):
    """Wall time, processor time and peak memory of training and of sampling.

    Jin et al. 2022, "Are We There Yet? Timing and Floating-Point Attacks on Differential Privacy
    Systems": the time that a sampler of discrete noise takes shows how large the noise is.
    Logarithms keep the few trainings that a busy machine delays from hiding the others.
    """

    sees = Disclosure.COST

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the measured costs, in the order of `COSTS`."""
        return tuple(FeatureName(THE_TRIAL, cost) for cost in COSTS)

    def model_features(self, disclosed: FloatArray, game: GameView) -> FloatArray:
        """The logarithm of each number [6]."""
        features: FloatArray = np.log1p(disclosed / _LEAST)
        return features
