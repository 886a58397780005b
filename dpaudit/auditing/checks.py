"""Checks of a run: what would make its statistics mean something else than they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dpaudit.auditing.attacking.evaluation import Evaluation
from dpaudit.auditing.drift import drift_p_value
from dpaudit.bounds import Counts, Guarantee, choose_threshold_by, count_errors
from dpaudit.formatting import rounded_down
from dpaudit.game.outcomes import StoredOutcome
from dpaudit.game.trial import Outcome, Trial, TrialEnd, TrialStatus
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray, World
from dpaudit.results.record import FailureReason
from dpaudit.results.verdict import DIFFERENT_SEEDS, Check, Consequence

SIGNIFICANCE = 0.001
"""A sound run fails each of these tests at most this often."""
MOST_REASONS = 10
PERMUTATIONS = 9999
PERMUTED_NUMBERS = 2**22
"""Numbers that are shuffled at a time, in several permutations of few or in one of many."""
CONTRADICTION = 0.5
"""Share of the largest provable epsilon that a proof of nothing must not fall short of."""


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


def check_failures(counts: TrialCounts, *, highest: float, left: float) -> Check:
    """Says what failed trials did to the bound, and whether failing depends on the record.

    Args:
        counts: Trials of each world that were run, and that failed.
        highest: The largest provable epsilon without failures.
        left: The same with these failures.

    Returns:
        The check; failures that differ between worlds (Fisher's exact test) weaken the verdict,
        for then failing itself may give the record away.
    """
    (n_in, n_out), (run_in, run_out) = (
        [of[world] for world in World] for of in (counts.failed, counts.run)
    )
    if n_in + n_out == 0:
        return Check("failed trials", True, "every trial finished", Consequence.NOTED)
    detail = f"{n_in} of {run_in} trials failed in world in and {n_out} of {run_out} in world out"
    before, after = rounded_down(highest), rounded_down(left)
    if after != before:
        detail += (
            "; the scored ones count as the attack's errors, so the largest provable epsilon is "
            f"{after} instead of {before}"
        )
    from scipy.stats import fisher_exact  # takes half a second to import

    table = np.array([[n_in, run_in - n_in], [n_out, run_out - n_out]])
    p_value = float(fisher_exact(table)[1])
    if p_value >= SIGNIFICANCE:
        return Check("failed trials", False, detail, Consequence.NOTED)
    detail += f"; failing depends on the world (p = {p_value:.2g}), so failing itself may leak"
    return Check("failed trials", False, detail, Consequence.WEAKENS)


def check_given_up(outcomes: Sequence[TrialEnd], *, planned: int) -> Check:
    """Why an audit stopped where nothing could come of it any more.

    Args:
        outcomes: The trials that were run.
        planned: How many there would have been, of both worlds together.

    Returns:
        The check; it makes the audit invalid if no trial finished at all.
    """
    name = "enough trials"
    stopped = f"stopped after {len(outcomes)} of {planned} trials"
    failed = sum(TrialCounts.of(outcomes).failed.values())
    if failed == len(outcomes):
        return Check(name, False, f"{stopped}: every one of them failed")
    detail = f"{stopped}: {failed} failed, so that no attack can prove more than the claim any more"
    return Check(name, False, detail, Consequence.WEAKENS)


def check_order(scores: FloatArray, member: BoolArray, positions: FloatArray, name: str) -> Check:
    """Whether scores drift with the order in which trials were planned.

    Trials must be exchangeable within a world: a drift means that shadow models influence one
    another, and no bound holds. Kendall's rank test in each world, Bonferroni over the two.

    Args:
        scores: Scores [n] of the scored trials.
        member: Their worlds [n].
        positions: Their places [n] in the planned order.
        name: The attack's name.

    Returns:
        The check.
    """
    planned = np.argsort(positions)
    p_values = [drift_p_value(scores[planned][member[planned] == world]) for world in (True, False)]
    p_value = min(1.0, 2 * min(p_values))
    passed = p_value >= SIGNIFICANCE
    what = "do not drift" if passed else "drift"
    detail = f"scores of {name} {what} with the order of the trials (p = {p_value:.2g})"
    return Check("trial order", passed, detail)


def check_randomness(outcomes: Iterable[StoredOutcome]) -> Check:
    """Whether different seeds give different synthetic tables."""
    seen: dict[World, set[bytes]] = {World.IN: set(), World.OUT: set()}
    finished: Counter[World] = Counter()
    for outcome in outcomes:
        if outcome.digest is not None:
            seen[outcome.trial.world].add(outcome.digest)
            finished[outcome.trial.world] += 1
    if any(finished[world] < 2 for world in World):
        detail = "too few trials finished to tell whether different seeds give different tables"
        return Check("seeds compared", False, detail, Consequence.NOTED)
    if any(len(tables) > 1 for tables in seen.values()):
        return Check(
            DIFFERENT_SEEDS, True, "different seeds give different tables", Consequence.NOTED
        )
    if seen[World.IN] == seen[World.OUT]:
        detail = "every model gave the same table, in both worlds: the output is a constant"
    else:
        detail = (
            "every model of a world gave the same table: the generator does not use its seed "
            "(no randomness, or a fixed seed inside), so nothing hides the record"
        )
    return Check(DIFFERENT_SEEDS, False, detail, Consequence.NOTED)


def check_repeats(outcomes: Sequence[StoredOutcome], rng: np.random.Generator) -> Check:
    """Whether equal tables come from neighbouring trials more often than chance has it.

    A generator of few possible outputs repeats itself anywhere; a stale cache, or state that
    passes from one model to the next, repeats what has just run, and then trials are not
    independent. Permutation test on the number of equal neighbours within a world.

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
                number_of.setdefault(o.digest, len(number_of))
                for o in outcomes
                if o.trial.world is world and o.digest is not None
            ]
        )
        seen = np.count_nonzero(codes[1:] == codes[:-1])
        if seen == 0:
            continue
        by_chance = _equal_neighbours(codes, rng)
        smallest = min(smallest, (1 + np.count_nonzero(by_chance >= seen)) / (1 + PERMUTATIONS))
    p_value = min(1.0, 2 * smallest)
    if p_value >= SIGNIFICANCE:
        return Check(name, True, "equal tables do not come from neighbouring trials")
    detail = (
        f"neighbouring trials gave the same table more often than chance (p = {p_value:.2g}): a "
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


def check_agreement(
    evaluation: Evaluation,
    member: BoolArray,
    highest: float,
    *,
    guarantee: Guarantee,
    confidence: float,
) -> Check:
    """Whether AUC and bound agree.

    The best threshold on the scored trials proves nothing, but if it promises half of what is
    provable where the threshold of the fitting part proves nothing at all, the scores moved
    between the two parts: their trials do not follow one distribution, or the classifier's scores
    do not keep their scale.

    Args:
        evaluation: The attack's result.
        member: Worlds of the scored trials.
        highest: The largest provable limit.
        guarantee: That of the claim.
        confidence: Confidence of the attack's bounds.

    Returns:
        The check.
    """
    best = choose_threshold_by(
        evaluation.scores, member, guarantee.statistic, confidence=confidence
    )
    errors = count_errors(evaluation.scores, member, best)
    n_in, n_out = evaluation.counts.n_in, evaluation.counts.n_out
    counts = Counts(
        errors.false_negatives + n_in - errors.n_in,  # failed trials are errors here too
        errors.false_positives + n_out - errors.n_out,
        n_in,
        n_out,
    )
    promised = guarantee.clopper_pearson(counts, confidence=confidence)
    if evaluation.proved > 0 or promised <= CONTRADICTION * highest:
        return Check("AUC and bound", True, "AUC and bound agree")
    detail = (
        f"the AUC is {evaluation.auc:.3f} and yet nothing is proved: scores moved between the "
        "fitting and the scored part, so the threshold does not fit"
    )
    return Check("AUC and bound", False, detail)


class Replay(NamedTuple):
    """A finished trial and what its second run gave."""

    first: Outcome
    again: Outcome


def check_replay(replays: Sequence[Replay], *, seedable: bool, together: bool) -> Check:
    """Whether running trials twice gave the same features.

    Models that were trained together are compared with what `fit` gives on the trial's own table:
    if they differ, they may depend on one another or on a record that their world lacks, and
    neither trials nor worlds are what the bound takes them for.

    Args:
        replays: Finished trials and their second runs with the same seeds.
        seedable: Whether the generator says that it can be seeded.
        together: Whether the models were trained together.

    Returns:
        The check; of models trained one at a time a difference is reported, and does not touch
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
        if np.array_equal(first.features, again.features):
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
                "one trial was run again in a new process, with the same seed, and gave other "
                "features: the generator cannot be seeded, so this run cannot be repeated bit by "
                "bit; or it keeps something of one trial for the next, and then the bound, which "
                "needs independent trials, does not hold"
            )
        return Check(name, False, detail, consequence)
    detail = (
        "models trained together are those that fit gives on their own tables"
        if together
        else "one trial was run twice and gave the same features"
    )
    return Check(name, True, detail, Consequence.NOTED)


def first_finished(outcomes: Iterable[TrialEnd], world: World) -> Trial | None:
    """The first trial of a world, in the order given, that finished."""
    for outcome in outcomes:
        if outcome.trial.world is world and outcome.status is TrialStatus.FINISHED:
            return outcome.trial
    return None
