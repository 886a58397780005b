"""What synthetic rows show, in separate fits without listening.

If no noise is observed, or if coins may hide what the noisy answers show, a replay proves nothing.
The rows still may: a rule is learnt from some fits in either world; then a fair coin picks the
world of each further fit, and the rule guesses it. Under the claim each guess is right with limited
probability, so the game ends at the first wrong guess, and a few right ones in a row refute the
claim. For a black-box audit afterwards, the features that a record moves are found in pairs of
tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.auditing.settings import DEFAULT_ATTACKS
from dpaudit.bounds.fair_coin import fair_coin, fair_coin_p_value
from dpaudit.game.features import features_of_table
from dpaudit.model.encoding import encode
from dpaudit.plugins.named import named_attacks
from dpaudit.plugins.protocols import FeatureName, FloatArray, GameView, World

PILOTS: Final = 4
"""Fits in either world from which the rule is learnt."""
MOST_GUESSES: Final = 24
"""Largest number of guesses; a claim that needs more is for an audit."""
_QUANTILES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_FEATURES: Final = 8
"""Number of features handed over."""
_BESIDE_BEST: Final = 1 / 3
"""Features that move by less than this share of the best one are left out."""
_FARTHEST: Final = 100.0
"""Beyond this many standard deviations all features are equally good."""


class WorldsIdentified(NamedTuple):
    """A game in which the rows identified the world of every fit.

    Attributes:
        guesses: Fits whose world was guessed, all correctly.
        proved: The lower limit on epsilon.
    """

    guesses: int
    proved: float


def guesses_needed(*, epsilon: float, delta: float, confidence: float) -> int | None:
    """Number of right guesses in a row that refutes a claim; None if more than `MOST_GUESSES`."""
    for count in range(1, MOST_GUESSES + 1):
        p_value = fair_coin_p_value(
            (count,), (count,), count, epsilon=epsilon, delta=delta, confidence=confidence
        )
        if p_value <= 1.0 - confidence:
            return count
    return None


def worlds_identified(
    fitted: Callable[[World], FloatArray | None],
    rng: np.random.Generator,
    *,
    epsilon: float,
    delta: float,
    confidence: float,
) -> WorldsIdentified | None:
    """Runs the game.

    Args:
        fitted: Fits anew in a world and returns the features of its synthetic table; None if that
            fails.
        rng: Draws the fair coins.
        epsilon: Claimed epsilon.
        delta: Claimed delta.
        confidence: One-sided confidence of the game.

    Returns:
        The game if it was won; None if a guess was wrong, a fit failed, nothing separates the
        pilots, or the claim needs more than `MOST_GUESSES` guesses.
    """
    needed = guesses_needed(epsilon=epsilon, delta=delta, confidence=confidence)
    if needed is None:
        return None
    pilots: dict[World, list[FloatArray]] = {world: [] for world in World}
    for _ in range(PILOTS):
        for world, found in pilots.items():
            pilot = fitted(world)
            if pilot is None:
                return None
            found.append(pilot)
    rule = separating(*(np.stack(pilots[world]) for world in (World.IN, World.OUT)))
    if rule is None:
        return None
    for _ in range(needed):
        world = World.IN if rng.random() < 0.5 else World.OUT
        row = fitted(world)
        if row is None or (rule(row) > 0) != (world is World.IN):
            return None
    proved = fair_coin((needed,), (needed,), needed, delta=delta, confidence=confidence)
    return WorldsIdentified(needed, proved)


def features(table: pd.DataFrame, view: GameView) -> FloatArray:
    """A few statistics of each column of a synthetic table, and its number of rows.

    Of several tables, those of each, joined with what its keys lead to.

    Args:
        table: The table, or the frame of several.
        view: Whose tables it is like.
    """
    if view.of_tables:
        joined = view.joined(table)
        return np.concatenate([features(joined[name], of) for name, of in view.of_tables.items()])
    values = np.nan_to_num(encode(table, view.schema))
    each = [values.mean(axis=0), values.std(axis=0), *np.quantile(values, _QUANTILES, axis=0)]
    return np.concatenate([[float(len(values))], *each])


def separating(inside: FloatArray, outside: FloatArray) -> Callable[[FloatArray], float] | None:
    """The vote of all statistics that separate the pilots: above 0 for world "in".

    Args:
        inside: Features of the pilots in world "in", one row each.
        outside: Features of the pilots in world "out".

    Returns:
        The vote on one row; None if no number separates them.
    """
    sign = np.where(inside.mean(axis=0) >= outside.mean(axis=0), 1.0, -1.0)
    low = np.where(sign > 0, outside.max(axis=0), -outside.min(axis=0))
    high = np.where(sign > 0, inside.min(axis=0), -inside.max(axis=0))
    gap = high - low
    apart = gap > 0
    if not apart.any():
        return None
    span = np.ptp(np.concatenate([inside, outside]), axis=0)
    weight = np.divide(gap, span, out=np.zeros_like(gap), where=apart)
    middle = (low + high) / 2

    def vote(row: FloatArray) -> float:
        place = np.divide(sign * row - middle, gap / 2, out=np.zeros_like(gap), where=apart)
        return float(math.fsum(weight * np.clip(place, -1.0, 1.0)))

    return vote


class MovedFeature(NamedTuple):
    """A feature of synthetic tables that the record moves.

    Attributes:
        attack: The attack whose feature it is.
        column: Its column, or columns.
        feature: What it measures.
        inside: Its mean with the record.
        outside: Its mean without it.
        spreads: How far it moves, in its own standard deviations; null if these are 0.
        pairs: Number of pairs of tables in which it moves that way.
    """

    attack: str
    column: str
    feature: str
    inside: float
    outside: float
    spreads: float | None
    pairs: int

    def __str__(self) -> str:
        """The feature in a few words."""
        return str(FeatureName(self.column, self.feature))


def moved_features(
    pairs: Sequence[tuple[pd.DataFrame, pd.DataFrame]], view: GameView
) -> tuple[MovedFeature, ...]:
    """The features of the default attacks that move most, relative to their own spread.

    Args:
        pairs: Synthetic tables of world "in" and "out", canonical; the two of a pair were made
            with the same random numbers.
        view: What the attacker knows.

    Returns:
        At most `MOST_FEATURES`, largest move first; none for fewer than two pairs.

    Raises:
        AttackError: If an attack fails on a table.
    """
    if len(pairs) < 2:
        return ()
    attacks = named_attacks(DEFAULT_ATTACKS)
    names = [(one.name, name) for one in attacks for name in one.feature_names(view)]
    makers = [one.attack for one in attacks]
    inside, outside = (
        np.array([features_of_table(pair[world], makers, view) for pair in pairs])
        for world in (0, 1)
    )
    moved = inside - outside
    mean = moved.mean(axis=0)
    error = moved.std(axis=0, ddof=1) / np.sqrt(len(pairs))
    spread = np.sqrt((inside.var(axis=0, ddof=1) + outside.var(axis=0, ddof=1)) / 2)
    alike = np.sum(np.sign(moved) == np.sign(mean), axis=0)
    far = _ratio(np.abs(mean), spread)
    # of thousands of features some seem to move by chance: only a safe lower estimate counts
    sure = np.minimum(_ratio(np.maximum(np.abs(mean) - error, 0.0), spread), _FARTHEST)
    least = max(_BESIDE_BEST * float(sure.max()), np.finfo(float).tiny)
    best = [at for at in np.argsort(-sure, kind="stable") if sure[at] >= least][:MOST_FEATURES]
    return tuple(
        MovedFeature(
            attack=names[at][0],
            column=names[at][1].column,
            feature=names[at][1].feature,
            inside=float(inside[:, at].mean()),
            outside=float(outside[:, at].mean()),
            spreads=float(far[at]) if np.isfinite(far[at]) else None,
            pairs=int(alike[at]),
        )
        for at in best
    )


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Their ratio; infinite if only the denominator is 0, up to rounding."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(whole > 1e-9 * part, part / whole, np.inf)
    return np.where(part > 0, found, 0.0)
