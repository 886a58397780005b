"""Attacks on the disclosures of a fitted model other than its synthetic rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np

from dpaudit.plugins.access import Disclosure
from dpaudit.plugins.protocols import FeatureName, FloatArray, GameView
from dpaudit.seeds import rng_of
from dpaudit_attacks.classifiers import CHOSEN, LearningAttack

SHOWN: Final = 64
"""Number of features for a model's parameters, in addition to their summary."""
_WEIGHTED: Final = FeatureName("all released facts", "sum weighted by the target's effect")
_SUMMARY: Final = ("number", "norm", "mean", "standard deviation", "smallest", "largest")


@dataclass(frozen=True, kw_only=True)
class DisclosureAttack(LearningAttack):
    """An attack that computes features of a model's disclosure for a classifier.

    Attributes:
        classifier: As for attacks on tables (`ClassifierAttack`).

    Raises:
        SettingsError: If the classifier is unknown.
    """

    sees: ClassVar[Disclosure]
    classifier: str = CHOSEN

    @abstractmethod
    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `model_features`."""

    @abstractmethod
    def model_features(self, disclosed: FloatArray, game: GameView) -> FloatArray:
        """Features [f] of the disclosure of one model."""


@dataclass(frozen=True, kw_only=True)
class Logan(DisclosureAttack):
    """The discriminator's score of the target (LOGAN, white-box).

    Hayes, Melis, Danezis and De Cristofaro 2019, "LOGAN: Membership Inference Attacks Against
    Generative Models", section 4.1: a discriminator that has seen a record scores it higher. There,
    the records with the highest scores are called members; here, the target's score is compared
    with the scores of records that are in both worlds.
    """

    sees = Disclosure.DISCRIMINATOR

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `model_features`."""
        return tuple(
            FeatureName("target", feature)
            for feature in (
                "discriminator score",
                "discriminator score above the mean of others",
                "share of others with a lower discriminator score",
            )
        )

    def model_features(self, disclosed: FloatArray, game: GameView) -> FloatArray:
        """The target's score, its difference from the others' mean, and its rank.

        The score of a unit is the mean of its rows' scores.
        """
        rows = len(game.target)
        score, others = disclosed[:rows].mean(), disclosed[rows:]
        if len(others) == 0:
            return np.array([score, 0.0, 0.0])
        below = (np.mean(others < score) + np.mean(others <= score)) / 2
        return np.array([score, score - others.mean(), below])


@dataclass(frozen=True, kw_only=True)
class ParameterSummary(DisclosureAttack):
    """A model's public weights: their number and size, and 64 numbers that represent them.

    Up to 64 weights are used directly. More are projected by random signs that are the same for
    every model (Achlioptas 2003, "Database-friendly random projections"), which preserves the size
    of differences between models.
    """

    sees = Disclosure.PARAMETERS

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `model_features`."""
        names = (*_SUMMARY, *(f"value {number}" for number in range(1, SHOWN + 1)))
        return tuple(FeatureName("parameters", name) for name in names)

    def model_features(self, disclosed: FloatArray, game: GameView) -> FloatArray:
        """The summary, then the weights or their projection [6 + 64]."""
        shown = np.zeros(SHOWN)
        if len(disclosed) <= SHOWN:
            shown[: len(disclosed)] = disclosed
        else:
            shown = disclosed @ _signs(len(disclosed)) / np.sqrt(SHOWN)
        values = disclosed if len(disclosed) else np.zeros(1)
        summary = [
            len(disclosed),
            np.linalg.norm(values),
            values.mean(),
            values.std(),
            values.min(),
            values.max(),
        ]
        return np.concatenate([summary, shown])


@dataclass(frozen=True, kw_only=True)
class ReleasedFacts(DisclosureAttack):
    """The facts that the proof protects, one feature each: noisy counts, released labels.

    If the generator declares how the target changes them (`GameView.released_effect`), the first
    feature is their sum with these weights: no training finds a better direction among many facts.
    """

    sees = Disclosure.RELEASED

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the facts."""
        facts = tuple(FeatureName(name, "released") for name in game.released_facts)
        return facts if game.released_effect is None else (_WEIGHTED, *facts)

    def model_features(self, disclosed: FloatArray, game: GameView) -> FloatArray:
        """The facts as released, after their weighted sum if the weights are known."""
        if game.released_effect is None:
            return disclosed
        return np.append(disclosed @ game.released_effect, disclosed)


@lru_cache(maxsize=4)
def _signs(n: int) -> FloatArray:
    """Random signs [n, 64]; a longer matrix begins with the rows of a shorter one."""
    coins = rng_of(0, "signs of parameters").random((n, SHOWN))
    return np.where(coins < 0.5, -1.0, 1.0)
