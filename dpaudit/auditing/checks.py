"""Checks of a run: whether its statistics are valid.

The p-value of a drift is that of `scipy.stats.kendalltau`, whose import takes longer than the test.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from dpaudit.game.outcomes import StoredOutcome
from dpaudit.game.trial import Outcome, TrialEnd, TrialStatus
from dpaudit.plugins.protocols import FloatArray, IntArray, World
from dpaudit.results.record import FailureReason
from dpaudit.results.verdict import Check, Consequence

SIGNIFICANCE = 0.001
"""A sound run fails each of these tests at most this often."""
EVERY_TRIAL_FINISHED: Final = "every training finished"
ENOUGH_MODELS: Final = "enough shadow models"
FAILED_MODELS: Final = "failed shadow models"
MODEL_ORDER: Final = "order of shadow models"
MOST_REASONS = 10
PERMUTATIONS = 9999
PERMUTED_NUMBERS = 2**22
"""Numbers shuffled at a time: several permutations of few trials, or one of many."""


def failure_reasons(outcomes: Iterable[TrialEnd]) -> tuple[FailureReason, ...]:
    """Why trials failed, the most frequent reasons first (10 at most)."""
    counted = Counter(
        (o.trial.world, o.error) for o in outcomes if o.status is not TrialStatus.FINISHED
    )
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        FailureReason(world=world, count=n, error=error)
        for (world, error), n in ordered[:MOST_REASONS]
    )


def check_repeats(outcomes: Sequence[StoredOutcome], rng: np.random.Generator) -> Check:
    """Whether neighbouring trials give equal tables more often than expected by chance.

    A generator with few possible outputs repeats them anywhere in the order. A stale cache, or
    state passed from one model to the next, repeats the trial just run; trials are then not
    independent. This is a permutation test on the number of equal neighbours within a world.

    Args:
        outcomes: The trials in the planned order.
        rng: Draws the permutations.

    Returns:
        The check.
    """
    name = "repeated tables"
    smallest = 1.0
    for world in World:
        number_of: dict[bytes, int] = {}
        codes = np.array(
            [
                number_of.setdefault(o.table, len(number_of))
                for o in outcomes
                if o.trial.world is world and o.table is not None
            ]
        )
        seen = np.count_nonzero(codes[1:] == codes[:-1])
        if seen == 0:
            continue
        by_chance = _equal_neighbours(codes, rng)
        smallest = min(smallest, (1 + np.count_nonzero(by_chance >= seen)) / (1 + PERMUTATIONS))
    p_value = min(1.0, 2 * smallest)
    if p_value >= SIGNIFICANCE:
        detail = (
            "consecutive trainings do not repeat a synthetic table more often than chance: no sign "
            "of a cache or a state that passes from one shadow model to the next"
        )
        return Check(name, True, detail)
    detail = (
        f"neighbouring models gave the same table more often than chance (p = {p_value:.2g}): a "
        "cache or a state passes between shadow models, so they are not independent"
    )
    return Check(name, False, detail)


def _equal_neighbours(codes: IntArray, rng: np.random.Generator) -> IntArray:
    """Equal neighbours in each of many permutations of some codes [n], some at a time."""
    at_once = max(1, PERMUTED_NUMBERS // len(codes))
    counts = []
    for start in range(0, PERMUTATIONS, at_once):
        copies = np.tile(codes, (min(at_once, PERMUTATIONS - start), 1))
        shuffled = rng.permuted(copies, axis=1)
        counts.append(np.count_nonzero(shuffled[:, 1:] == shuffled[:, :-1], axis=1))
    return np.concatenate(counts)


def order_detail(scores: str, passed: bool, p_value: float) -> str:
    """The evidence of a drift with the order of trials, and its meaning."""
    what = "do not drift" if passed else "drift"
    shows = "no sign that models influence" if passed else "models influence"
    return (
        f"{scores} {what} with the order of the trainings (p = {p_value:.2g}): {shows} one another"
    )


class Replay(NamedTuple):
    """A finished trial and what its second run gave."""

    first: Outcome
    again: Outcome


def check_replay(replays: Sequence[Replay], *, seedable: bool, together: bool) -> Check:
    """Whether running trials twice gave the same table and features.

    Models that were trained together are compared with `fit` on the trial's own table. If they
    differ, they may depend on one another or on a record that their world lacks, and the
    assumptions of the bound do not hold.

    Args:
        replays: Finished trials and their second runs with the same seeds.
        seedable: Whether the generator says that it can be seeded.
        together: Whether the models were trained together.

    Returns:
        The check; for models trained one at a time, a difference is reported but does not affect
        the statistics.
    """
    name = "same seed, same table"
    consequence = Consequence.INVALIDATES if together else Consequence.NOTED
    if not seedable:
        detail = "the generator draws from secure noise: trials cannot be repeated bit by bit"
        return Check(name, True, detail, Consequence.NOTED)
    if not replays:
        return Check(name, False, "no trial could be run twice", Consequence.NOTED)
    for first, again in replays:
        if again.features is None:
            detail = f"no trial could be run twice: the second time it failed ({again.error})"
            return Check(name, False, detail, consequence)
        assert first.features is not None  # only finished trials run again
        if first.table == again.table and np.array_equal(first.features, again.features):
            continue
        if together:
            detail = (
                f"a model of world {first.trial.world} that was trained together with others is "
                "not the model that fit gives on its own table with the same seed: fit_many lets "
                "models depend on one another or on the dropped row, or the generator cannot be "
                "seeded and does not say so (seedable = False)"
            )
        else:
            detail = (
                "one trial was run again in a new process, with the same seed, and gave another "
                "table: the generator cannot be seeded, so this run cannot be repeated bit by "
                "bit; or it keeps something of one trial for the next, and then the bound, which "
                "needs independent trials, does not hold"
            )
        return Check(name, False, detail, consequence)
    detail = (
        "models trained together are those that fit gives on their own tables"
        if together
        else "one training was repeated and gave the same table, so this run can be repeated"
    )
    return Check(name, True, detail, Consequence.NOTED)


MOST_EXACT = 33
"""Up to this many trials the distribution of the statistic is exact, unless scores are tied."""


def drift_p_value(scores: FloatArray) -> float:
    """The two-sided p-value of Kendall's test that scores do not depend on their order.

    Args:
        scores: Scores [n] in the order of their trials.

    Returns:
        The two-sided p-value; 1 for fewer than three scores, and for equal ones. Exact for few
        scores without ties (where the usual approximation of Spearman's test rejects sound runs),
        else by the normal approximation with the variance corrected for ties (Kendall 1970).
    """
    n = len(scores)
    ties = np.unique(scores, return_counts=True)[1].astype(np.float64)
    if n < 3 or len(ties) == 1:
        return 1.0
    later = [np.sign(scores[place + 1 :] - scores[place]).sum() for place in range(n - 1)]
    excess = abs(float(sum(later)))  # of pairs in order over pairs out of order
    if len(ties) == n <= MOST_EXACT:
        return _exact(n, round((n * (n - 1) / 2 - excess) / 2))
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    return math.erfc(excess / math.sqrt(2.0 * variance))


def _exact(n: int, most: int) -> float:
    """Twice the probability of at most this many inversions in a random permutation."""
    shares = np.ones(1)
    for size in range(2, n + 1):  # the next element is in front of 0 to size - 1 earlier ones
        shares = np.convolve(shares, np.full(size, 1.0 / size))
    return min(1.0, 2.0 * float(shares[: most + 1].sum()))
