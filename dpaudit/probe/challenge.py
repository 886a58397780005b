"""The test behind every violation alarm: guessing the coins that decided the training table.

Independent fair coins put records into a table or leave them out; the coins are guessed from the
synthetic table alone, by features that were chosen on other models, the pilot. If a generator
satisfies an (ε, δ) claim, the number of right guesses is limited, whatever its output: all fits
together are one run in the sense of Steinke, Nasr and Jagielski 2023, Theorem 5.2
(`bounds.one_run_p_value`). A permutation test would be wrong: the output distributions of a private
generator may differ between the two tables, by a factor of e^ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.bounds import one_run_p_value
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray, Generator
from dpaudit.probe.result import NotApplicable, Observation
from dpaudit.probe.subject import Subject, Trainer

PILOTS: Final = 3
"""Fits of each side that choose the feature to guess from."""
_SPARE: Final = 0.01
"""Share of wrong guesses tolerated by an alarm; at least one guess."""
_MOST_GUESSES: Final = 4096
_AT_ONCE: Final = 4
"""An alarm's feasibility is checked after this many fits, if models are trained one by one."""
_TEST: Final = 1000
"""Number of the test's first fit; those of the pilot are lower."""


class Coin(NamedTuple):
    """Records decided by one coin.

    Attributes:
        heads: Positions that are left out if it falls heads (the guess is True).
        tails: Positions that are left out if not.
    """

    heads: tuple[int, ...]
    tails: tuple[int, ...]


def insertions(records: Sequence[int], bases: Sequence[int], claim: PrivacyClaim) -> list[Coin]:
    """Coins for records that are added or, if the claim is for replacements, replace others.

    Args:
        records: Positions of the records.
        bases: Positions of those that they replace.
        claim: The claim.

    Returns:
        One coin for each record; heads puts it in.
    """
    if claim.neighbours is Neighbours.REPLACE_ONE:
        return [Coin((base,), (record,)) for record, base in zip(records, bases, strict=True)]
    return [Coin((base,), (record, base)) for record, base in zip(records, bases, strict=True)]


class Rule(NamedTuple):
    """A rule that guesses one coin from one feature of a table.

    Attributes:
        feature: Position of the feature.
        threshold: Threshold on it.
        above: Whether it lies above the threshold if the coin fell heads.
        score: Gap between the pilot's two sides in units of their spread.
    """

    feature: int
    threshold: float
    above: bool
    score: float

    def guess(self, features: FloatArray) -> bool:
        """Guesses from one table's features [f] whether the coin fell heads."""
        return bool((features[self.feature] > self.threshold) == self.above)


def rule(heads: FloatArray, tails: FloatArray) -> Rule | None:
    """The rule that separates the pilot's two sides best.

    Args:
        heads: Features of fits whose coin fell heads; shape [a, f].
        tails: Features of fits whose coin fell tails; shape [b, f].

    Returns:
        The rule; None if no feature's gap is wider than its spread.
    """
    best = None
    for feature in range(heads.shape[1]):
        values, others = heads[:, feature], tails[:, feature]
        above = bool(values.mean() > others.mean())
        low, high = (others, values) if above else (values, others)
        gap = float(high.min() - low.max())
        spread = float(np.ptp(low) + np.ptp(high))
        if gap > spread and gap > 1e-9 * float(np.abs(np.concatenate([low, high])).max()):
            score = gap / (spread + 1e-9 * gap)
            if best is None or score > best.score:
                best = Rule(feature, float(low.max()) + gap / 2, above, score)
    return best


def one_coin(claim: PrivacyClaim) -> PrivacyClaim:
    """The pure ε that a claim implies for fits with one coin each.

    Then fits and coins are independent, and each guess is right with probability at most (e^ε + δ)
    / (1 + e^ε) (the total variation that (ε, δ) permits: Kairouz, Oh and Viswanath 2015, Theorem
    2.1). This costs much less than δ does if several coins share a fit.
    """
    odds = (math.exp(min(claim.epsilon, 700.0)) + claim.delta) / (1.0 - claim.delta)
    return replace(claim, epsilon=math.log(odds), delta=0.0)


@cache
def fewest_guesses(claim: PrivacyClaim, alpha: float) -> int | None:
    """Fewest guesses that raise an alarm even if 1 % of them, at least one, are wrong.

    Args:
        claim: What limits right guesses.
        alpha: Largest p-value of an alarm.

    Returns:
        Their number; None if not even thousands suffice.
    """
    for guesses in range(2, _MOST_GUESSES):
        wrong = max(1, int(_SPARE * guesses))
        if _p_value(guesses - wrong, guesses, claim) <= alpha:
            return guesses
    return None


def unprovable(claim: PrivacyClaim, basis: str, fits: int | None) -> NotApplicable:
    """The outcome if the pilot found a feature, but the claim permits too many right guesses.

    Args:
        claim: The claim.
        basis: What the guesses are based on, in words.
        fits: Fits needed; None if too many to compute.

    Returns:
        The outcome, with the reason in words.
    """
    most = "thousands of" if fits is None else str(fits)
    return NotApplicable(
        f"pilot fits only: {basis}; to distinguish that from what epsilon {claim.epsilon:.3g} "
        f"permits takes {most} more: raise `fits`, or probe at a smaller `epsilon`"
    )


def challenge(
    trainer: Trainer,
    generator: Generator,
    data: pd.DataFrame,
    coins: Sequence[Coin],
    guess: Callable[[pd.DataFrame], Sequence[bool]],
    *,
    basis: str,
    schema: Schema | None = None,
    claim: PrivacyClaim | None = None,
    never: Sequence[int] = (),
    rows: int | None = None,
    seeded: bool = True,
) -> Observation | NotApplicable:
    """Runs the test and counts right guesses.

    Stops as soon as an alarm is impossible, which can only lower the false-alarm rate.

    Args:
        trainer: Trains.
        generator: The generator, built for the schema.
        data: A table with every record that a coin may put in.
        coins: The coins of one fit.
        guess: Guesses them from a synthetic table.
        basis: What the guesses are based on, in words.
        schema: The table's schema; the subject's by default.
        claim: What limits right guesses; the subject's by default.
        never: Positions of records that no fit sees.
        rows: Synthetic records requested of each model; the subject's by default.
        seeded: Whether trainings and samples are seeded.

    Returns:
        What was observed, or why so few fits cannot test the claim.
    """
    subject = trainer.subject
    claim = subject.claim if claim is None else claim
    claim = one_coin(claim) if len(coins) == 1 else claim
    guesses = fewest_guesses(claim, subject.settings.alpha)
    fits = None if guesses is None else -(-guesses // len(coins))
    if fits is None or fits > subject.settings.fits:
        return unprovable(claim, basis, fits)
    total = fits * len(coins)
    spare = _most_wrong(total, claim, subject.settings.alpha)
    toss = trainer.stream("coins").rng().random((fits, len(coins))) < 0.5
    at_once = getattr(generator, "models_at_once", _AT_ONCE)
    right = tossed = 0
    for start in range(0, fits, at_once):
        chunk = toss[start : start + at_once]
        wanted = [
            trainer.fit_of(_TEST + start + i, drops(coins, row, never), seeded=seeded)
            for i, row in enumerate(chunk)
        ]
        tables = trainer.tables(generator, data, wanted, schema=schema, rows=rows)
        for table, row in zip(tables, chunk, strict=True):
            right += int(np.count_nonzero(np.asarray(guess(table), dtype=bool) == row))
            tossed += len(row)
        if tossed - right > spare:
            break
    p_value = _p_value(right, total, claim) if tossed == total else 1.0
    numbers = {"right": right, "guesses": tossed, "planned": total, "epsilon_tested": claim.epsilon}
    return Observation(
        tossed == total and p_value <= subject.settings.alpha,
        f"{basis}: {right} of {tossed} coins guessed right",
        numbers,
        p_value,
    )


def drops(coins: Sequence[Coin], heads: BoolArray, never: Sequence[int] = ()) -> list[int]:
    """Positions of the records that a fit lacks.

    Args:
        coins: Its coins, m of them.
        heads: Whether each fell heads; shape [m].
        never: Positions that every fit lacks.

    Returns:
        The positions, ascending.
    """
    gone = {
        position
        for coin, fell in zip(coins, heads, strict=True)
        for position in (coin.heads if fell else coin.tails)
    }
    return sorted(gone | set(never))


def _most_wrong(total: int, claim: PrivacyClaim, alpha: float) -> int:
    """Largest number of wrong guesses that still raises an alarm; negative if no number does."""
    return next(
        wrong
        for wrong in range(total, -2, -1)
        if wrong < 0 or _p_value(total - wrong, total, claim) <= alpha
    )


def _p_value(correct: int, guesses: int, claim: PrivacyClaim) -> float:
    return one_run_p_value(correct, guesses, guesses, epsilon=claim.epsilon, delta=claim.delta)


def summary(table: pd.DataFrame, subject: Subject) -> dict[str, float]:
    """Summary statistics of a synthetic table, by name: means, extremes, shares of categories.

    Args:
        table: The table.
        subject: What is probed, for the schema.

    Returns:
        The numbers, those of each column in turn.
    """
    shown: dict[str, float] = {}
    for column in subject.schema.columns:
        values = table[column.name]
        if column.kind.numeric:
            numbers = column.numbers(values)
            numbers = numbers[~np.isnan(numbers)]
            for name, number in (("mean", np.mean), ("minimum", np.min), ("maximum", np.max)):
                shown[f"{name} of {column.name}"] = float(number(numbers)) if len(numbers) else 0.0
        else:
            for category in column.categories:
                share = float((values == category).mean())
                shown[f"share of {category!r} in {column.name}"] = share
    return shown


def single_coin(
    trainer: Trainer,
    generator: Generator,
    data: pd.DataFrame,
    coin: Coin,
    features: Callable[[pd.DataFrame], Mapping[str, float]],
    *,
    basis: str,
    claim: PrivacyClaim | None = None,
    first: int = 0,
    pilots: int = PILOTS,
) -> Observation | NotApplicable | None:
    """Runs the test with one coin in each fit.

    Args:
        trainer: Trains.
        generator: The generator, built for the subject's schema.
        data: A table with every record that the coin may put in.
        coin: The coin.
        features: Statistics of a synthetic table, by name, that may depend on the coin.
        basis: What depends on it, in words.
        claim: What limits right guesses; the subject's by default.
        first: Number of the pilot's first fit.
        pilots: Fits of each side in the pilot.

    Returns:
        As `challenge`; None if no feature depends on the coin in the pilot.
    """
    sides = []
    for side, dropped in enumerate(coin):
        fits = [trainer.fit_of(first + pilots * side + i, dropped) for i in range(pilots)]
        tables = trainer.tables(generator, data, fits)
        sides.append([features(table) for table in tables])
    heads, tails = (np.array([list(features.values()) for features in side]) for side in sides)
    guesser = rule(heads, tails)
    if guesser is None:
        return None
    name = list(sides[0][0])[guesser.feature]
    means = [float(side[:, guesser.feature].mean()) for side in (heads, tails)]
    return challenge(
        trainer,
        generator,
        data,
        [coin],
        lambda table: [guesser.guess(np.array(list(features(table).values())))],
        claim=claim,
        basis=f"{basis} ({name}: {means[0]:.4g} against {means[1]:.4g})",
    )
