"""What a perfect attacker can learn from the labels of each deviation: exact, not measured.

At the published settings (686 records, 5 teachers, lambda 0.001, at most 1000 iterations). If the
votes of every query differ between the worlds, by one teacher's or by all, the number of ones
among T labels is binomial in either world, and the labels tell no more than their number of ones:
so the hockey-stick divergence of the two binomials is the exact privacy curve of these labels.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple, cast

import numpy as np
from scipy import stats

from dpaudit.account import Mechanism, vote_table
from dpaudit.plugins.protocols import FloatArray
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit_generators.published import Switch, SwitchedPateGan
from dpaudit_generators.published.pate import Accountant
from dpaudit_generators.published.trainee import PublishedSettings
from reports.pate_gan_audit.access_settings import SUBJECTS, generator_of
from reports.pate_gan_audit.kept import Record, kept
from reports.pate_gan_audit.plan import Plan
from reports.pate_gan_audit.published import DELTA
from reports.pate_gan_audit.setting import GAMMA, TEACHERS, average_schema

RECORDS: Final = 686
CAP: Final = 1000
LARGEST: Final = 100.0
"""Epsilons above this are not distinguished."""
ALL_VOTES: Final = frozenset(
    {Switch.PARTITION_ALL_ROWS, Switch.PARTITION_RESHUFFLED, Switch.PARTITION_BY_POSITION}
)
"""Deviations by which one record may move the votes of all teachers."""


class Labels(NamedTuple):
    """The labels of one generator.

    Attributes:
        number: How many it releases, T.
        ones: Probability of a label 1 by votes for 1, 0 to k.
        moved: How many votes one record may move.
        chance: Probability that it does (it may be in no teacher's part).
    """

    number: int
    ones: FloatArray
    moved: int
    chance: float


def run(plan: Plan) -> None:
    """Computes what is not kept yet."""
    for name in plan.chosen(SUBJECTS):
        generator, given = generator_of(name)
        asked = {
            "name": name,
            "generator": generator,
            "parameters": given,
            "records": RECORDS,
            "teachers": TEACHERS,
            "gamma": GAMMA,
            "iterations": CAP,
        }
        settings = given | {"teachers": TEACHERS, "gamma": GAMMA, "iterations": CAP}

        def work(generator: str = generator, settings: dict[str, Any] = settings) -> Record:
            offered = {"schema": average_schema()}
            return exact_labels(
                cast(Any, build(generator, GENERATORS, given=settings, offered=offered))
            )

        kept(plan.out / "exact" / f"{name}.json", asked, work)


def exact_labels(generator: SwitchedPateGan) -> Record:
    """Epsilon of the labels at the claim's delta; nothing if they have no votes."""
    if Switch.NO_PATE in generator.switches:
        return {"labels": None, "epsilon": None}
    labels = labels_of(generator)
    return {
        "labels": labels.number,
        "moved": labels.moved,
        "chance": labels.chance,
        "at_most": Switch.QUERIES_NOT_ACCOUNTED in generator.switches,
        "epsilon": round(epsilon_of(labels, delta=DELTA), 3),
    }


def labels_of(generator: SwitchedPateGan) -> Labels:
    """The labels of a generator, each as dear to it as votes can make it."""
    settings, switches = generator.settings_for(RECORDS), generator.switches
    moved, chance = 1, 1.0
    if not ALL_VOTES.isdisjoint(switches):
        moved = settings.teachers
    if Switch.PARTITION_RESHUFFLED in switches and Switch.TEACHERS_REFITTED in switches:
        moved = 1  # a teacher forgets the parts of former iterations
    if Switch.PARTITION_LAST_ONLY in switches:
        moved, chance = settings.teachers, 1.0 / settings.teachers
    return Labels(bought(generator, settings), _ones(settings), moved, chance)


def bought(generator: SwitchedPateGan, settings: PublishedSettings) -> int:
    """Labels that a training releases, if every free one is free and the others are dear."""
    recipe, batch, late = generator.recipe, settings.batch, Switch.BUDGET_EXCEEDED
    steps = recipe.rounds * recipe.student_steps
    if Switch.QUERIES_NOT_ACCOUNTED in settings.switches:
        return settings.iterations * steps * batch
    accountant = Accountant(1, settings, moments=recipe.moments)
    dear = np.full((1, batch), settings.teachers // 2)
    labels, going, total = np.zeros((1, batch), dtype=np.int64), np.ones(1, dtype=np.bool_), 0
    for _ in range(settings.iterations):
        if not accountant.may_begin(batch)[0]:
            break
        for _ in range(steps):
            if late not in settings.switches and not accountant.may_buy(batch)[0]:
                return total
            accountant.charge(dear, labels, going=going)
            total += batch
    return total


def _ones(settings: PublishedSettings) -> FloatArray:
    """Probability of a label 1, by the number of votes for 1."""
    k, switches, votes = settings.teachers, settings.switches, np.arange(settings.teachers + 1)
    scale = 1.0 / settings.gamma
    if Switch.NOISE_SCALE_INVERTED in switches:
        scale = settings.gamma
    if Switch.NOISE_GAUSSIAN_ON_LABELS in switches:
        deviation = settings.deviation
        return np.asarray(stats.norm.cdf(((votes > k / 2) - 0.5) / deviation))
    if Switch.ONE_NOISE_CHARGED_AS_TWO in switches:
        return np.asarray(stats.laplace.cdf((votes - k / 2) / scale))
    return vote_table(Mechanism.NOISY_MAX, k, scale).probabilities


def epsilon_of(labels: Labels, *, delta: float) -> float:
    """The exact epsilon of labels whose votes differ in every query, in the worst way.

    Args:
        labels: The labels.
        delta: The delta of the statement.

    Returns:
        Epsilon in nats, of both directions the larger, at most `LARGEST`.
    """
    ends = list(zip(labels.ones, labels.ones[labels.moved :], strict=False))
    counts = np.arange(labels.number + 1)
    largest = 0.0
    for low, high in {pair for pair in ends if pair[0] != pair[1]}:
        laws = [stats.binom.logpmf(counts, labels.number, p) for p in (low, high)]
        for one, other in (laws, laws[::-1]):
            mixed = _mixed(one, other, labels.chance)
            pairs = ((mixed, other), (other, mixed))
            largest = max(largest, *(_epsilon(*pair, delta=delta) for pair in pairs))
    return largest


def _mixed(law: FloatArray, other: FloatArray, chance: float) -> FloatArray:
    """Logarithm of the mixture that has a law with some probability, else the other."""
    if chance == 1.0:
        return law
    return np.logaddexp(law + math.log(chance), other + math.log1p(-chance))


def _epsilon(one: FloatArray, other: FloatArray, *, delta: float) -> float:
    """The least epsilon with hockey-stick divergence at most delta, by bisection."""
    low, high = 0.0, LARGEST
    if _divergence(one, other, high) > delta:
        return LARGEST
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if _divergence(one, other, middle) > delta else (low, middle)
    return high


def _divergence(one: FloatArray, other: FloatArray, epsilon: float) -> float:
    above = one > other + epsilon
    return float(np.sum(np.exp(one[above]) * -np.expm1(epsilon + other[above] - one[above])))
