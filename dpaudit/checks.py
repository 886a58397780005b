"""Checks of a run: what would make its statistics mean something else than they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dpaudit.game.trial import Outcome, Status, Trial
from dpaudit.numerals import rounded_down
from dpaudit.protocols import BoolArray, FloatArray, World
from dpaudit.verdict import Check, Consequence

SIGNIFICANCE = 0.001
"""A sound run fails each of these tests at most this often."""
MOST_REASONS = 10


class FailureReason(NamedTuple):
    """How many trials of a world failed for one reason."""

    world: World
    trials: int
    error: str


def failure_reasons(outcomes: Sequence[Outcome]) -> list[FailureReason]:
    """Why trials failed, the most frequent reasons first (10 at most)."""
    counted = Counter((o.trial.world, o.error) for o in outcomes if o.status is not Status.FINISHED)
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [FailureReason(world, n, error) for (world, error), n in ordered[:MOST_REASONS]]


def check_failures(
    failed: Mapping[World, int], per_world: int, ceilings: tuple[float, float]
) -> Check:
    """Says what failed trials did to the bound, and whether failing depends on the record.

    Args:
        failed: Failed trials of each world.
        per_world: Trials of each world.
        ceilings: The largest provable epsilon without failures, and with these.

    Returns:
        The check; failures that differ between worlds (Fisher's exact test) weaken the verdict,
        for then failing itself may give the record away.
    """
    from scipy.stats import fisher_exact

    n_in, n_out = failed[World.IN], failed[World.OUT]
    if n_in + n_out == 0:
        return Check("failed trials", True, "every trial finished", Consequence.NOTED)
    before, after = ceilings
    detail = (
        f"{n_in} trial(s) failed in world in and {n_out} in world out, of {per_world} each; "
        "the scored ones count as the attack's errors, so the largest provable epsilon is "
        f"{rounded_down(after)} instead of {rounded_down(before)}"
    )
    table = np.array([[n_in, per_world - n_in], [n_out, per_world - n_out]])
    p_value = float(fisher_exact(table)[1])
    if p_value >= SIGNIFICANCE:
        return Check("failed trials", False, detail, Consequence.NOTED)
    detail += f"; failing depends on the world (p = {p_value:.2g}), so failing itself may leak"
    return Check("failed trials", False, detail, Consequence.WEAKENS)


def check_order(scores: FloatArray, member: BoolArray, positions: FloatArray, name: str) -> Check:
    """Whether scores drift with the order in which trials were planned.

    Trials must be exchangeable within a world: a drift means that shadow models influence one
    another, and no bound holds. Kendall's rank test in each world (exact for few trials without
    ties, where the usual approximation of Spearman's rejects sound runs), Bonferroni over the two.

    Args:
        scores: Scores [n] of the scored trials.
        member: Their worlds [n].
        positions: Their places [n] in the planned order.
        name: The attack's name.

    Returns:
        The check.
    """
    from scipy.stats import kendalltau

    p_values = [1.0]
    for world in (True, False):
        own = scores[member == world]
        if len(np.unique(own)) > 1 and len(own) > 2:
            p_values.append(float(kendalltau(own, positions[member == world]).pvalue))
    p_value = min(1.0, 2 * min(p_values))
    passed = p_value >= SIGNIFICANCE
    what = "do not drift" if passed else "drift"
    detail = f"scores of {name} {what} with the order of the trials (p = {p_value:.2g})"
    return Check("trial order", passed, detail)


def check_randomness(outcomes: Sequence[Outcome]) -> Check:
    """Whether different seeds give different synthetic tables."""
    seen: dict[World, set[bytes]] = {World.IN: set(), World.OUT: set()}
    for outcome in outcomes:
        if outcome.features is not None:
            seen[outcome.trial.world].add(outcome.features.tobytes())
    finished = Counter(o.trial.world for o in outcomes if o.features is not None)
    if any(finished[world] < 2 for world in World):
        return Check("different seeds", False, "too few trials finished to tell", Consequence.NOTED)
    if any(len(tables) > 1 for tables in seen.values()):
        return Check(
            "different seeds", True, "different seeds give different tables", Consequence.NOTED
        )
    if seen[World.IN] == seen[World.OUT]:
        detail = "every model gave the same table, in both worlds: the output is a constant"
    else:
        detail = (
            "every model of a world gave the same table: the generator does not use its seed "
            "(no randomness, or a fixed seed inside), so nothing hides the record"
        )
    return Check("different seeds", False, detail, Consequence.NOTED)


def check_replay(first: Outcome | None, again: Outcome | None, *, seedable: bool) -> Check:
    """Whether playing one trial twice gave the same features.

    Args:
        first: A finished trial.
        again: Its replay with the same seeds; None if it was not played.
        seedable: Whether the generator says that it can be seeded.

    Returns:
        The check; a difference is reported, and does not touch the statistics.
    """
    name = "same seed, same table"
    if not seedable:
        detail = "the generator draws from secure noise: trials cannot be repeated bit by bit"
        return Check(name, True, detail, Consequence.NOTED)
    if first is None or again is None or first.features is None or again.features is None:
        return Check(name, False, "no trial could be played twice", Consequence.NOTED)
    if np.array_equal(first.features, again.features):
        detail = "one trial was played twice and gave the same features"
        return Check(name, True, detail, Consequence.NOTED)
    detail = (
        "one trial was played twice with the same seed and gave other features: the generator "
        "cannot be seeded, so this run cannot be repeated bit by bit"
    )
    return Check(name, False, detail, Consequence.NOTED)


def first_finished(outcomes: Mapping[Trial, Outcome]) -> Trial | None:
    """The first trial, in the order given, that finished."""
    for trial, outcome in outcomes.items():
        if outcome.status is Status.FINISHED:
            return trial
    return None
