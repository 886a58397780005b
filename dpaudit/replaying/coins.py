"""The ordinary game, sized to a replay: a fair coin picks the world of each fit.

A score is learnt from pilot fits of both worlds, and again as trials are added; each trial is
guessed by a score that was fixed before it, or passed over. Nothing that was counted chooses. The
evidence is the e-process of `dpaudit.bounds.sequential`, which may stop at any time.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
import scipy

from dpaudit.auditing.settings import DEFAULT_ATTACKS
from dpaudit.bounds.guarantee import EpsilonGuarantee, TradeOffGuarantee, guarantee_of
from dpaudit.bounds.inputs import BoolArray
from dpaudit.bounds.sequential import coin_bound, coin_level, e_process, level_e_process
from dpaudit.errors import SchemaError
from dpaudit.game.features import SeenTable, features_of_tables
from dpaudit.model.claim import Claim
from dpaudit.model.encoding import values_of_table
from dpaudit.plugins.named import named_attacks
from dpaudit.plugins.protocols import World
from dpaudit.replaying.fits import Fits
from dpaudit.replaying.laws import FloatArray, IntArray
from dpaudit.replaying.processes import WORLDS
from dpaudit.replaying.record import GuessesFound
from dpaudit.replaying.release import ReleaseFeatures
from dpaudit.replaying.transcript import Transcript

PILOTS: Final = 8
"""Pilot fits of each world."""
MORE_PILOTS: Final = 40
"""The same of a fast generator."""
_FAST: Final = 0.05
"""Seconds of a fit of a fast generator."""
_FIRST: Final = 500_000
"""These natural fits have numbers from here on."""
_COUNTS: Final = (1, 3, 10)
"""How many features a score may add up."""
_MOST_COLUMNS: Final = 200
_MOST_PAIRED: Final = 24
"""Features whose differences are features, too."""
_CERTAINTY: Final = 25.0
"""The evidence that decides is this many times what the error probability requires: a false
accusation is the worst error, and waiting costs a true one only a dozen fits."""
LEAST: Final = 60
"""Fits that are made even if time is up, as long as the guesses are better than chance."""
_OVERTIME: Final = 4
"""How many times as long a game may take once it is half won."""
_HOPE: Final = 100
"""After this many fits a game that goes badly is given up."""
_MOST_ODDS: Final = 6.0
_TINY: Final = 1e-300


class CoinGame(NamedTuple):
    """What the game showed.

    Attributes:
        guesses: The guesses, and whether they refute the claim.
        bound: The lower bound in the quantity of the claim.
    """

    guesses: GuessesFound
    bound: float


class _Score(NamedTuple):
    """Log odds of world "in" from features: the mean of some, standardised.

    Attributes:
        columns: The features that follow the record most; their differences are features as well.
        places: The ones that count, of both.
        middle: The middle of each between the worlds.
        weight: What each is multiplied by.
        slope: Log odds for one unit of the mean.
        least: Below these log odds it abstains.
    """

    columns: IntArray
    places: IntArray
    middle: FloatArray
    weight: FloatArray
    slope: float
    least: float

    def raw_odds(self, values: FloatArray) -> float:
        """The log odds of features and their differences, however small or large."""
        return self.slope * float(np.mean((values[self.places] - self.middle) * self.weight))

    def odds(self, row: FloatArray) -> float:
        """The log odds of one fit; 0 where it abstains, as where a feature is missing."""
        value = self.raw_odds(_with_differences(row[self.columns]))
        if not math.isfinite(value) or abs(value) < self.least:
            return 0.0
        return float(np.clip(value, -_MOST_ODDS, _MOST_ODDS))

    def name(self, names: Sequence[str]) -> str:
        """What it looks at first, in words, given the features in words."""
        own: list[str] = [names[column] for column in self.columns.tolist()]
        pairs = zip(*_differences(len(own)), strict=True)
        every = [*own, *(f"{own[left]} - {own[right]}" for left, right in pairs)]
        return every[int(self.places[0])]


@dataclass
class _Trials:
    """The fits so far: pilots, and those whose world a coin picked and that were guessed.

    Attributes:
        rows: Features of all fits; None for one that failed.
        members: Whether the world of each is "in".
        odds: Log odds of those that count.
    """

    claim: Claim
    rows: list[FloatArray | None]
    members: list[bool]
    odds: list[float]

    @property
    def worlds(self) -> list[bool]:
        """Whether the worlds of the fits that count are "in"."""
        return self.members[len(self.members) - len(self.odds) :]

    @property
    def guesses(self) -> list[bool]:
        """Whether each guess is right."""
        pairs = zip(self.odds, self.worlds, strict=True)
        return [(odds > 0) == world for odds, world in pairs if odds]

    @property
    def evidence(self) -> float:
        """The largest log e-value so far."""
        if not self.odds:
            return 0.0
        guarantee, claimed = guarantee_of(self.claim), self.claim.value
        if isinstance(guarantee, EpsilonGuarantee):
            delta = guarantee.delta
            evidence = e_process(self.odds, self.worlds, epsilon=claimed, delta=delta)
        else:
            assert isinstance(guarantee, TradeOffGuarantee)
            trade_off = guarantee.trade_off
            evidence = level_e_process(self.odds, self.worlds, trade_off, level=claimed)
        return float(np.max(evidence))

    def bound(self, alpha: float) -> float:
        """The lower bound on the quantity of the claim."""
        guarantee = guarantee_of(self.claim)
        if isinstance(guarantee, EpsilonGuarantee):
            delta = guarantee.delta
            return coin_bound(self.odds, self.worlds, delta=delta, confidence=1.0 - alpha)
        assert isinstance(guarantee, TradeOffGuarantee)
        trade_off = guarantee.trade_off
        return coin_level(self.odds, self.worlds, trade_off, confidence=1.0 - alpha)

    @property
    def is_hopeless(self) -> bool:
        """Whether the guesses are no better than a claim of epsilon allows; stopping is free."""
        guarantee = guarantee_of(self.claim)
        if not isinstance(guarantee, EpsilonGuarantee) or len(self.odds) < _HOPE:
            return False
        allowed = float(scipy.special.expit(self.claim.value)) + guarantee.delta
        sure = [
            (odds > 0) == world
            for odds, world in zip(self.odds, self.worlds, strict=True)
            if abs(odds) > self.claim.value
        ]
        return len(sure) < 0.05 * len(self.odds) or sum(sure) <= allowed * len(sure)


def run_game(
    fits: Fits, *, alpha: float, budget: int, seconds: float, without: frozenset[str]
) -> CoinGame:
    """Runs the game until the claim is refuted, or the budget is spent.

    Args:
        fits: The replay's fits.
        alpha: Error probability.
        budget: Fits that may be made, pilots included.
        seconds: Time for the fits that are counted.
        without: Places of the release that differ between fits of the same table.
    """
    trials = _Trials(fits.spec.claim, [], [], [])
    reader = _Reader(fits, without)
    least = min(0.5, fits.spec.claim.value / 3)
    needed = math.log(_CERTAINTY / alpha)
    numbers = itertools.count(_FIRST)
    started, coins = time.monotonic(), fits.rng("fair coins", 0)

    def make(group: Sequence[World]) -> None:
        wanted = [(world, next(numbers)) for world in group]
        ended = list(fits.natural(wanted, is_heard=False, keeps_tables=True))
        if not trials.rows:
            reader.learn(ended, group)
        trials.rows += reader.read(ended, group)
        trials.members += [world is World.IN for world in group]

    fits.say("pilot fits of the coin game")
    make([*WORLDS] * PILOTS)
    score = _fit_score(trials, least)
    is_fast = fits.pace < _FAST and budget >= 6 * MORE_PILOTS
    if is_fast and not (score is not None and _separates(score, trials)):
        make([*WORLDS] * (MORE_PILOTS - PILOTS))
        score = _fit_score(trials, least)
    refit, block = 2 * len(trials.rows), 4
    while len(trials.rows) < budget:
        is_growing = trials.evidence > 0.5 * needed
        is_late = time.monotonic() - started > seconds * (_OVERTIME if is_growing else 1)
        if is_late and len(trials.rows) >= (LEAST if trials.evidence > 0 else LEAST // 2):
            break
        if trials.is_hopeless or (score is None and len(trials.odds) >= len(trials.rows) // 2):
            break
        group = [WORLDS[int(coins.random() < 0.5)] for _ in range(block)]
        right = trials.guesses
        fits.say(f"coin game, fit {len(trials.odds)}: {sum(right)} of {len(right)} guesses right")
        make(group)
        for row in trials.rows[-block:]:
            trials.odds.append(0.0 if row is None or score is None else score.odds(row))
        if trials.evidence >= needed:
            break
        if len(trials.rows) >= refit:
            score, refit = _fit_score(trials, least), 2 * len(trials.rows)
            block = min(2 * block, 16)
    is_decided = trials.evidence >= needed
    guesses = GuessesFound(
        fits=len(trials.odds),
        guesses=len(trials.guesses),
        right=sum(trials.guesses),
        score="" if score is None else score.name(reader.names),
        decided=is_decided,
    )
    return CoinGame(guesses, trials.bound(alpha) if is_decided else 0.0)


def _separates(score: _Score, trials: _Trials) -> bool:
    """Whether a score guesses all fits so far."""
    return all(
        row is not None and (score.odds(row) > 0) == member and score.odds(row) != 0
        for row, member in zip(trials.rows, trials.members, strict=True)
    )


class _Reader:
    """Turns fits into rows of features: released numbers, and those of the default attacks."""

    def __init__(self, fits: Fits, without: frozenset[str]) -> None:
        self._fits, self._without = fits, without
        self._view = fits.spec.game.view
        self._attacks = [] if self._view.of_tables else named_attacks(DEFAULT_ATTACKS)
        self._names = [
            name for attack in self._attacks for name in attack.feature_names(self._view)
        ]
        self._features: ReleaseFeatures | None = None

    def learn(self, pilots: Sequence[Transcript], worlds: Sequence[World]) -> None:
        """Fixes the features, from pilots of both worlds."""
        releases = [
            release
            for fit, world in zip(pilots, worlds, strict=True)
            if (release := self._fits.release_of(fit, world)) is not None
        ]
        if releases:
            self._features = ReleaseFeatures.of(releases, without=self._without)

    def read(self, fits: Sequence[Transcript], worlds: Sequence[World]) -> list[FloatArray | None]:
        """The features of some fits; None for one that failed."""
        releases = [
            self._fits.release_of(fit, world) for fit, world in zip(fits, worlds, strict=True)
        ]
        tables = [fit.tables[WORLDS.index(world)] for fit, world in zip(fits, worlds, strict=True)]
        return [
            None
            if release is None or self._features is None
            else np.concatenate([self._features.read(release), seen])
            for release, seen in zip(releases, self._of_tables(tables), strict=True)
        ]

    def _of_tables(self, tables: Sequence[pd.DataFrame | None]) -> list[FloatArray]:
        """The features of the default attacks; NaN where a table has none."""
        schema, attacks = self._fits.spec.table.schema, [attack.attack for attack in self._attacks]
        features = [np.full(len(self._names), np.nan) for _ in tables]
        seen: dict[int, SeenTable] = {}
        for at, table in enumerate(tables if attacks else ()):
            if table is None:
                continue
            try:
                known = schema.canonical(table)
            except SchemaError:  # of a release outside the schema attacks have no features
                continue
            if not known.empty:
                seen[at] = SeenTable(values_of_table(known, schema), known)
        for at, row in zip(
            seen, features_of_tables([*seen.values()], attacks, self._view), strict=True
        ):
            features[at] = row
        return features

    @property
    def names(self) -> list[str]:
        """The features in words."""
        assert self._features is not None
        return [*self._features.names, *map(str, self._names)]


def _differences(size: int) -> tuple[IntArray, IntArray]:
    """Both sides of the differences of the first of some features."""
    first, second = np.triu_indices(min(size, _MOST_PAIRED), 1)
    return first, second


def _with_differences(values: FloatArray) -> FloatArray:
    """Features and the differences of the first of them: noise that is used twice cancels."""
    first, second = _differences(values.shape[-1])
    return np.concatenate([values, values[..., first] - values[..., second]], axis=-1)


def _fit_score(trials: _Trials, least: float) -> _Score | None:
    """The score of some features that separates the worlds best; None if nothing does."""
    known = [
        (row, member)
        for row, member in zip(trials.rows, trials.members, strict=True)
        if row is not None
    ]
    if len({member for _, member in known}) < 2 or len(known) < 2 * len(WORLDS):
        return None
    values = np.array([row for row, _ in known])
    inside = np.array([member for _, member in known])
    usable = np.flatnonzero(np.isfinite(values).all(axis=0) & (np.ptp(values, axis=0) > 0))
    if not usable.size:
        return None
    sizes = np.abs(_sizes(values[:, usable], inside)[0])
    columns = usable[np.argsort(-sizes, kind="stable")[:_MOST_COLUMNS]]
    wide = _with_differences(values[:, columns])
    best, count = max((_expected_gain(wide, inside, count, least), count) for count in _COUNTS)
    if best <= 0:
        return None
    return _score_of(wide, inside, count, least)._replace(columns=columns)


def _sizes(values: FloatArray, inside: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How far each feature follows the record, its spread, and its middle between the worlds."""
    first, second = values[inside], values[~inside]
    gap = first.mean(axis=0) - second.mean(axis=0)
    spread = np.sqrt(0.5 * (first.var(axis=0) + second.var(axis=0)))
    # a little of the whole range: what is constant in the fits of a world is not certain
    spread = np.maximum(spread, 0.05 * np.ptp(values, axis=0))
    sizes = np.divide(gap, spread, out=np.zeros_like(gap), where=spread > 0)
    return sizes, spread, 0.5 * (first.mean(axis=0) + second.mean(axis=0))


def _score_of(values: FloatArray, inside: BoolArray, count: int, least: float) -> _Score:
    """The score of the features that follow the record most."""
    sizes, spread, middles = _sizes(values, inside)
    places = np.argsort(-np.abs(sizes), kind="stable")[:count]
    middle, weight = middles[places], np.sign(sizes[places]) / np.maximum(spread[places], _TINY)
    mixed = np.mean((values[:, places] - middle) * weight, axis=1)
    own = 0.5 * (mixed[inside].var() + mixed[~inside].var())
    own = max(own, (0.05 * np.ptp(mixed)) ** 2, _TINY)
    slope = float((mixed[inside].mean() - mixed[~inside].mean()) / own)
    return _Score(np.arange(0), places, middle, weight, slope, least)


def _expected_gain(values: FloatArray, inside: BoolArray, count: int, least: float) -> float:
    """The mean gain of the score on fits that were left out, a few at a time."""
    gains = []
    folds = min(len(values), 8)
    for fold in range(folds):
        out = np.arange(len(values)) % folds == fold
        kept = inside[~out]
        if kept.all() or not kept.any():
            continue
        score = _score_of(values[~out], kept, count, least)
        for row, member in zip(values[out], inside[out], strict=True):
            odds = score.raw_odds(row)
            gains.append(min(abs(odds), 2.0) * (1.0 if (odds > 0) == member else -1.0))
    return float(np.mean(gains)) if gains else 0.0
