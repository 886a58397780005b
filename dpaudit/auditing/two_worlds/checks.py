"""Checks of a run in two worlds: whether its numbers can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np

from dpaudit.auditing.checks import (
    ENOUGH_MODELS,
    MODEL_ORDER,
    NONE_FAILED,
    SEEDS_NOT_COMPARED,
    SIGNIFICANCE,
    TrialCounts,
    check_drift,
    check_failing,
    drift_p_value,
)
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds.attacking.extra import Ending, ending
from dpaudit.auditing.two_worlds.attacking.fitting import Evaluation
from dpaudit.auditing.two_worlds.plan import highest_provable
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.bounds import Counts, Guarantee, choose_threshold_by, count_errors
from dpaudit.formatting import rounded_down
from dpaudit.game.outcomes import StoredOutcome
from dpaudit.game.trial import Trial, TrialEnd, TrialStatus
from dpaudit.model.claim import Claim
from dpaudit.plugins.protocols import BoolArray, FloatArray, World
from dpaudit.results.verdict import DIFFERENT_SEEDS, Check, Consequence

CONTRADICTION = 0.5
"""A bound of 0 contradicts an AUC whose best threshold gives this share of the upper limit."""


def check_failures(counts: TrialCounts, *, highest: float, left: float) -> Check:
    """States how failed models affect the bound, and whether failing depends on the record.

    Args:
        counts: Trials of each world that were run, and that failed.
        highest: The largest provable epsilon without failures.
        left: The largest provable epsilon with these failures.

    Returns:
        The check; failures that differ between worlds (Fisher's exact test) weaken the verdict,
        because failing itself may then reveal the record.
    """
    (n_in, n_out), (run_in, run_out) = (
        [number[world] for world in World] for number in (counts.failed, counts.run)
    )
    if n_in + n_out == 0:
        return NONE_FAILED
    detail = f"{n_in} of {run_in} models with the target failed and {n_out} of {run_out} without it"
    before, after = rounded_down(highest), rounded_down(left)
    if after != before:
        detail += (
            "; the scored ones count as the attack's errors, so the largest provable epsilon is "
            f"{after} instead of {before}"
        )
    from scipy.stats import fisher_exact  # takes half a second to import

    table = np.array([[n_in, run_in - n_in], [n_out, run_out - n_out]])
    return check_failing(detail, float(fisher_exact(table)[1]), on="the target")


def check_given_up(outcomes: Sequence[TrialEnd], *, planned: int) -> Check:
    """The reason why an audit stopped once it could not prove anything any more.

    Args:
        outcomes: The trials that were run.
        planned: Number of planned trials, of both worlds together.

    Returns:
        The check; it makes the audit invalid if no trial finished at all.
    """
    name = ENOUGH_MODELS
    stopped = f"stopped after {len(outcomes)} of {planned} shadow models"
    failed = sum(TrialCounts.of(outcomes).failed.values())
    if failed == len(outcomes):
        return Check(name, False, f"{stopped}: every one of them failed")
    detail = f"{stopped}: {failed} failed, so that no attack can prove more than the claim any more"
    return Check(name, False, detail, Consequence.WEAKENS)


DRIFT_OF_THE_MACHINE: Final = (
    "; seconds and memory depend on the machine, which changed during the audit: the bound holds "
    "all the same, and may be smaller than on an idle machine"
)
"""Why scores of what is measured may change from trial to trial (`dpaudit.game.meter`)."""


def check_measured(*, memory: bool) -> Check:
    """States that seconds and memory were measured, so that no repetition gives the same numbers.

    Args:
        memory: Whether the system shows peaks of memory.

    Returns:
        The check, which fails if memory was not measured.
    """
    detail = (
        f"seconds {'and memory ' * memory}of each training were measured: a busy machine hides "
        "leaks and adds none, and a repetition gives other numbers"
    )
    if not memory:
        detail += "; peaks of memory were not, since this system does not show them"
    return Check("measured trainings", memory, detail, Consequence.NOTED)


def check_order(
    scores: FloatArray, member: BoolArray, positions: FloatArray, name: str, *, timed: bool = False
) -> Check:
    """Whether scores drift with the planned order of trials.

    Trials must be exchangeable within a world: a drift means that shadow models influence one
    another, and no bound holds. Kendall's rank test in each world, Bonferroni over the two.

    Args:
        scores: Scores [n] of the scored trials.
        member: Their worlds [n].
        positions: Their places [n] in the planned order.
        name: The attack's name.
        timed: Whether they depend on seconds or memory.

    Returns:
        The check; a drift of what is measured does not affect the statistics.
    """
    planned = np.argsort(positions)
    p_values = [drift_p_value(scores[planned][member[planned] == world]) for world in (True, False)]
    p_value = min(1.0, 2 * min(p_values))
    if timed and p_value < SIGNIFICANCE:
        detail = f"scores of {name} drift with the order of the models (p = {p_value:.2g})"
        return Check(MODEL_ORDER, False, detail + DRIFT_OF_THE_MACHINE, Consequence.NOTED)
    return check_drift(f"scores of {name}", p_value)


def check_randomness(outcomes: Iterable[StoredOutcome]) -> Check:
    """Whether different seeds give different synthetic tables."""
    seen: dict[World, set[bytes]] = {World.IN: set(), World.OUT: set()}
    finished: Counter[World] = Counter()
    for outcome in outcomes:
        if outcome.table is not None:
            seen[outcome.trial.world].add(outcome.table)
            finished[outcome.trial.world] += 1
    if any(finished[world] < 2 for world in World):
        return SEEDS_NOT_COMPARED
    if any(len(tables) > 1 for tables in seen.values()):
        detail = "different seeds give different tables: the output is not a constant"
        return Check(DIFFERENT_SEEDS, True, detail, Consequence.NOTED)
    if seen[World.IN] == seen[World.OUT]:
        detail = "every model gave the same table, in both worlds: the output is a constant"
    else:
        detail = (
            "every model of a world gave the same table: the generator does not use its seed "
            "(no randomness, or a fixed seed inside), so nothing hides the record"
        )
    return Check(DIFFERENT_SEEDS, False, detail, Consequence.NOTED)


def check_agreement(
    evaluation: Evaluation,
    member: BoolArray,
    highest: float,
    *,
    guarantee: Guarantee,
    confidence: float,
    timed: bool = False,
) -> Check:
    """Whether AUC and bound agree.

    The best threshold on the scored trials proves nothing. But if its bound is half of the upper
    limit while the threshold of the fitting part proves nothing, the scores moved between the two
    parts: the trials of the two parts have different distributions, or the scale of the
    classifier's scores changed.

    Args:
        evaluation: The attack's result.
        member: Worlds of the scored trials.
        highest: The largest provable limit.
        guarantee: The claim's guarantee.
        confidence: Confidence of the attack's bounds.
        timed: As for `check_order`.

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
    forecast = guarantee.clopper_pearson(counts, confidence=confidence)
    if evaluation.proved > 0 or forecast <= CONTRADICTION * highest:
        detail = (
            "AUC and bound agree: no sign that scores moved between the models that trained the "
            "attack and the scored ones"
        )
        return Check("AUC and bound", True, detail)
    detail = (
        f"the AUC is {evaluation.auc:.3f} and yet nothing is proved: scores moved between the "
        "fitting and the scored part, so the threshold does not fit"
    )
    if timed:
        return Check("AUC and bound", False, detail + DRIFT_OF_THE_MACHINE, Consequence.NOTED)
    return Check("AUC and bound", False, detail)


def first_finished(outcomes: Iterable[TrialEnd], world: World) -> Trial | None:
    """The first trial of a world, in the order given, that finished."""
    for outcome in outcomes:
        if outcome.trial.world is world and outcome.status is TrialStatus.FINISHED:
            return outcome.trial
    return None


SIGN = 0.05
"""Significance level for a dependence of how trials end on the world."""


def all_failed_alike(ends: Sequence[TrialEnd]) -> bool:
    """Whether every trial failed, in ways that do not depend on the world.

    Args:
        ends: The first trials, at least one of each world.

    Returns:
        False also if the two worlds have no way of failing in common, or if trials gave different
        numbers of rows: an attack may learn from that.
    """
    if any(end.status is TrialStatus.FINISHED for end in ends):
        return False
    ways = {world: {ending(end) for end in ends if end.trial.world is world} for world in World}
    return not ways[World.IN].isdisjoint(ways[World.OUT]) and not _rows_vary(ends)


def failed_by_world(ends: Iterable[TrialEnd], among: Collection[Trial]) -> Counter[World]:
    """How many of some trials failed, by world."""
    return Counter(
        end.trial.world
        for end in ends
        if end.status is not TrialStatus.FINISHED and end.trial in among
    )


def cannot_prove(
    ends: Sequence[TrialEnd],
    settings: AuditSettings[TwoWorlds],
    claim: Claim,
    *,
    scored: set[Trial],
) -> bool:
    """Whether so many trials failed that no attack can exceed the claim any more.

    A failed trial is an error of an attack on tables. If even an attack with no other error stays
    within the claim, only how trials end could prove anything, and there must be a sign of that by
    now.

    Args:
        ends: The first trials.
        settings: Settings of the audit.
        claim: The claim under audit.
        scored: The trials that will be scored; only these cost power.

    Returns:
        False also if the audit was too small before any trial failed.
    """
    lost = failed_by_world(ends, scored)
    if not lost or highest_provable(settings, claim) <= claim.value:
        return False
    left = highest_provable(
        settings, claim, false_negatives=lost[World.IN], false_positives=lost[World.OUT]
    )
    return left <= claim.value and not _rows_vary(ends) and not _depends_on_world(ends)


def _rows_vary(ends: Sequence[TrialEnd]) -> bool:
    """Whether trials that gave a wrong number of rows gave different ones."""
    return len({end.rows for end in ends} - {None}) > 1


def _depends_on_world(ends: Sequence[TrialEnd]) -> bool:
    """Whether any way of ending is more frequent in one world (Fisher's exact test, Bonferroni)."""
    from scipy.stats import fisher_exact

    run = Counter(end.trial.world for end in ends)
    ways: dict[Ending, Counter[World]] = {}
    for end in ends:
        ways.setdefault(ending(end), Counter())[end.trial.world] += 1
    for seen in ways.values():
        table = np.array([[seen[world], run[world] - seen[world]] for world in World])
        if float(fisher_exact(table)[1]) * len(ways) < SIGN:
            return True
    return False
