"""Controls and checks of a run: whether its statistics are valid.

The controls are two generators with known answers, run through the same game as the audit. A
harness that finds a leak in a generator that ignores its data is broken. If an attack misses the
record in a generator that copies it, finding nothing elsewhere means nothing.

The p-value of a drift is that of `scipy.stats.kendalltau`, whose import takes longer than the test.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from dpaudit.formatting import rounded_down
from dpaudit.game.store import StoredOutcome
from dpaudit.game.trial import Outcome, Role, TrialEnd, TrialStatus
from dpaudit.model.claim import Claim, PrivacyClaim
from dpaudit.plugins.protocols import FloatArray, IntArray, World
from dpaudit.results.record import ControlOutcome, FailureReason
from dpaudit.results.verdict import Check, Consequence

CONTROLS = (Role.NULL_CONTROL, Role.POSITIVE_CONTROL)
CONFIDENCE = 0.999
"""Strict, because a sound audit fails its null control with probability 1 - CONFIDENCE."""
BEYOND_CHANCE = 1.5
"""Error probability of a small control, as a multiple of that of a perfect chance separation."""
CAUGHT = 0.5
"""Share of its upper limit that the attack on a leaking generator must reach."""


def control_claim(claim: Claim) -> PrivacyClaim:
    """The claim used to judge controls: the audit's, or pure DP if that is not in epsilon.

    A control asks whether anything is proved, and which share of the upper limit; epsilon can
    express that whatever the quantity of the audit's claim.
    """
    if isinstance(claim, PrivacyClaim):
        return claim
    return PrivacyClaim(epsilon=1.0, neighbours=claim.neighbours)


def judge(
    role: Role,
    bound: float,
    *,
    auc: float,
    highest: float,
    hidden: str,
    detected: str,
    caught: str,
    missed: str,
) -> ControlOutcome:
    """Whether a control ended as it must.

    Args:
        role: Which control.
        bound: The largest bound of any attack on it.
        auc: AUC of that attack.
        highest: The largest epsilon that it could prove.
        hidden: The game's sentence about a null control in which nothing was found, in which
            "{bound}" is replaced by the bound and its upper limit, as in the others.
        detected: The sentence about a null control in which something was found.
        caught: The sentence about a positive control whose leak was found.
        missed: The sentence about a positive control whose leak was missed.

    Returns:
        The result.
    """
    if role is Role.NULL_CONTROL:
        passed = bound == 0
        detail, shown = (hidden if passed else detected), rounded_down(bound)
    else:
        passed = bound >= CAUGHT * highest
        detail = caught if passed else missed
        shown = f"{rounded_down(bound)} of {rounded_down(highest)}"
    return ControlOutcome(
        passed=passed,
        bound=bound,
        auc=auc,
        max_provable_epsilon=highest,
        detail=detail.replace("{bound}", f"bound {shown}"),
    )


def judge_guesses(
    role: Role, bound: float, *, auc: float, highest: float, seen: str, leaks: str, remedy: str
) -> ControlOutcome:
    """As `judge`, for a game in which the coins of many records are guessed.

    Args:
        role: Which control.
        bound: As for `judge`.
        auc: As for `judge`.
        highest: As for `judge`.
        seen: The right guesses, in words.
        leaks: What the generator of the positive control does, in words.
        remedy: What to do if that is missed, or what it means.

    Returns:
        The result.
    """
    return judge(
        role,
        bound,
        auc=auc,
        highest=highest,
        hidden=f"a generator that ignores its data revealed no coin: {seen}",
        detected=f"a generator that ignores its data revealed coins ({seen}): the game leaks",
        caught=f"a generator that {leaks} was caught: {seen}",
        missed=f"a generator that {leaks} was not caught ({{bound}}): {seen}; {remedy}",
    )


def auc_by_chance(n_in: int, n_out: int) -> tuple[float, float]:
    """The limits within which an AUC lies in 95 % of cases if the scores are uninformative.

    By the normal approximation of the rank-sum statistic without ties (Mann and Whitney 1947).

    Args:
        n_in: Scored trials of world in, at least 1.
        n_out: Scored trials of world out, at least 1.
    """
    half = 1.96 * math.sqrt((n_in + n_out + 1) / (12 * n_in * n_out))
    return max(0.0, 0.5 - half), min(1.0, 0.5 + half)


def unfinished_control(role: Role, reason: str, *, highest: float) -> ControlOutcome:
    """A control that failed because too little of it finished to be attacked.

    Args:
        role: Which control.
        reason: What did not finish.
        highest: The largest epsilon that it could prove.
    """
    return ControlOutcome(
        passed=False,
        bound=None,
        auc=None,
        max_provable_epsilon=highest,
        detail=f"{role.in_words}: {reason}",
    )


def control_check(role: Role, outcome: ControlOutcome, *, ran: bool) -> Check:
    """A control as a check: if it fails, the run is invalid, unless it was run nevertheless.

    A leak that attacks missed in the positive control does not invalidate what they prove; finding
    nothing says less.

    Args:
        role: Which control.
        outcome: How it ended.
        ran: Whether the audit's own trials were run after it.
    """
    consequence = Consequence.WEAKENS if ran else Consequence.INVALIDATES
    return Check(role.in_words, outcome.passed, outcome.detail, consequence)


SIGNIFICANCE = 0.001
"""A sound run fails each of these tests at most this often."""
ENOUGH_MODELS: Final = "enough shadow models"
FAILED_MODELS: Final = "failed shadow models"
MODEL_ORDER: Final = "order of shadow models"
TOO_FEW_MODELS: Final = Check(
    ENOUGH_MODELS, False, "too few models finished to fit and score an attack"
)
NONE_FAILED: Final = Check(FAILED_MODELS, True, "every training finished", Consequence.NOTED)
SEEDS_NOT_COMPARED: Final = Check(
    "seeds compared",
    False,
    "too few models finished to tell whether different seeds give different tables",
    Consequence.NOTED,
)
MOST_REASONS = 10
PERMUTATIONS = 9999
PERMUTED_NUMBERS = 2**22
"""Numbers shuffled at a time: several permutations of few trials, or one of many."""


class TrialCounts(NamedTuple):
    """Trials of each world that were run, and how many of them failed."""

    run: Mapping[World, int]
    failed: Mapping[World, int]

    @classmethod
    def of(cls, outcomes: Iterable[TrialEnd]) -> TrialCounts:
        """Counts outcomes."""
        run, failed = dict.fromkeys(World, 0), dict.fromkeys(World, 0)
        for outcome in outcomes:
            run[outcome.trial.world] += 1
            failed[outcome.trial.world] += outcome.status is not TrialStatus.FINISHED
        return cls(run, failed)


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


def check_failing(detail: str, p_value: float, *, on: str) -> Check:
    """A check for failures, and for whether they depend on a record and may so reveal it.

    Args:
        detail: What failed.
        p_value: P-value of the hypothesis that failing does not depend on the record.
        on: The record, in words.
    """
    if p_value >= SIGNIFICANCE:
        return Check(FAILED_MODELS, False, detail, Consequence.NOTED)
    detail += f"; failing depends on {on} (p = {p_value:.2g}), so failing itself may leak"
    return Check(FAILED_MODELS, False, detail, Consequence.WEAKENS)


def check_drift(scores: str, p_value: float) -> Check:
    """Whether scores drift with the order of trials, and what that means."""
    passed = p_value >= SIGNIFICANCE
    what = "do not drift" if passed else "drift"
    shows = "no sign that models influence" if passed else "models influence"
    detail = (
        f"{scores} {what} with the order of the trainings (p = {p_value:.2g}): {shows} one another"
    )
    return Check(MODEL_ORDER, passed, detail)


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
                "bit, and should say so (seedable = False); or it keeps something of one trial for "
                "the next, and then the bound, which needs independent trials, does not hold"
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
