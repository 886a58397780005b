"""One-run games without the engine: a training, the attacks' guesses, their bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.one_run.attack import ATTACKS, Guessed, guess
from dpaudit.auditing.one_run.game import OneRunSpec, build_one_run
from dpaudit.bounds import EpsilonGuarantee, one_run
from dpaudit.model.schema import Schema
from dpaudit.model.tables import load
from dpaudit.seeds import Stream

FIFTH = 0.2
Generator = Callable[[pd.DataFrame, int, int], pd.DataFrame]


@dataclass(frozen=True, kw_only=True)
class Audited:
    """What one training came to.

    Attributes:
        guessed: The guesses of each attack.
        proved: The bound of the audit: the largest of the attacks, each at its share of the error.
        nearest: The bound of the earlier rule: a fifth of the canaries, nearest record first.
    """

    guessed: tuple[Guessed, ...]
    proved: float
    nearest: float


def games(
    generator: Generator, table: pd.DataFrame, schema: Schema, *, number: int, **settings: Any
) -> Iterator[Audited]:
    """Trainings with their own coins and noise; `settings` are those of the audit."""
    loaded = load(table, schema)
    spec = build_one_run(generator, loaded, audit_settings(one_run=True, **settings))
    for seed in range(number):
        yield audited(generator, replace(spec, settings=replace(spec.settings, seed=seed)), seed)


def audited(generator: Generator, spec: OneRunSpec, seed: int) -> Audited:
    """One training: its table is scored by every attack."""
    game = spec.game
    noise = int(Stream(seed, "", "one-run study", 0).rng().integers(2**32))
    rows = game.view.schema.canonical(generator(game.data, game.view.n_rows, noise))
    features = np.concatenate([_scores(attack.scorer, rows, game.view) for attack in ATTACKS])
    guessed = guess(features, spec.coins)
    delta, confidence = spec.claim.as_settings["delta"], spec.settings.confidence
    each = spec.settings.attack_confidence
    nearest, fifth = guessed[0], round(FIFTH * spec.canaries)
    best = np.argsort(-nearest.scores, kind="stable")[:fifth]
    correct = int(nearest.coins[best].sum())
    return Audited(
        guessed=guessed,
        proved=max(of.bound(EpsilonGuarantee(delta), confidence=each) for of in guessed),
        nearest=one_run(correct, fifth, spec.canaries, delta=delta, confidence=confidence),
    )


def _scores(scorer: Any, rows: pd.DataFrame, view: Any) -> Any:
    return scorer.features(rows, view)
